// Runs launch plans on a GPU: first for their results, then for the clock, then for their results
// again.
//
// A kernel that writes nothing, works on what an earlier one left, or is right only the first time
// is the fastest there is.  So outputs and workspaces are poisoned and fenced before each check,
// inputs compared after it, and the check after the timing uses inputs that the kernel has never
// seen.
//
// Method of timing.  All calls of one replay are captured into a CUDA graph, so that gaps between
// kernels count; time = replay / calls; median over the replays of two rounds, the second with the
// jobs in reverse order.  Cold: each call has another copy of the inputs, the copies together
// exceed the L2 four times (or each is used once a replay), and 512 MB are read before every
// replay.  Warm: one copy, and an untimed replay first.  Outputs and workspace are the same in
// every call.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "codegen/driver.h"
#include "codegen/kernel_check.h"
#include "codegen/launch_plan.h"
#include "codegen/library.h"
#include "core/process.h"
#include "core/program.h"
#include "core/status.h"

namespace sundog::codegen {

struct GpuJob {
  std::string name;  // for messages
  LaunchPlan plan;
  std::string cubin;
  double tolerance = 0;  // of kernel_check.h
};

// One set of inputs and what the outputs must be.
struct CheckData {
  std::vector<TensorMemory> inputs;
  std::vector<ExpectedTensor> expected;
};
Result<CheckData> make_check_data(const Program& program, Rounding rounding, double max_work,
                                  uint64_t seed);

struct MeasureOptions {
  int ordinal = 0;
  bool time = true;  // false: check only
  int replays = 22;  // per job and temperature, over both rounds
  int64_t flush_bytes = int64_t{512} << 20;
  std::string flush_cubin;  // of flush_source(); empty: memory is written instead of read
  // For tests: others than this machine's.
  const DriverApi* driver = nullptr;
  const LibraryApi* library = nullptr;
};

struct Timing {
  double cold_us = 0, warm_us = 0;          // one call, median
  double cold_spread = 0, warm_spread = 0;  // |round 1 - round 2| / median
  int calls = 0, copies = 0;                // of a replay; of the inputs
};

struct GpuReport {
  std::string failure;  // empty: right before and after timing
  OutputCheck before, after;
  bool timed = false;
  Timing timing;
  std::vector<int> registers;  // a kernel
};

// Checks and times the jobs on an open GPU.  A job that fails is not timed; after an error of the
// GPU itself the later jobs fail too, since the context is lost.
std::vector<GpuReport> measure(Gpu& gpu, const Program& program, std::span<const GpuJob> jobs,
                               const CheckData& first, const CheckData& fresh,
                               const MeasureOptions& options);

// The same in a child process with a watchdog.  An Error if the child crashed or was too slow, or
// if there is no GPU.
Result<std::vector<GpuReport>> measure_in_child(const Program& program,
                                                std::span<const GpuJob> jobs,
                                                const CheckData& first, const CheckData& fresh,
                                                const MeasureOptions& options,
                                                const ProcessLimits& limits);

// Job after job alone on the device, all in one child process, since opening a GPU takes longer
// than timing a kernel.  `take` gets each report as soon as there is one, the limit on time is that
// of a job, and one that fails is the last: it may have left the device in any state.
Status measure_each_in_child(const Program& program, std::span<const GpuJob> jobs,
                             const CheckData& first, const CheckData& fresh,
                             const MeasureOptions& options, const ProcessLimits& limits,
                             const std::function<void(GpuReport)>& take);

// The same in this process, which must not fork from then on: for tools that follow no child, such
// as compute-sanitizer.
Result<std::vector<GpuReport>> measure_here(const Program& program, std::span<const GpuJob> jobs,
                                            const CheckData& first, const CheckData& fresh,
                                            const MeasureOptions& options);

// Microseconds of one replay, between two events.
Result<double> timed_replay(Gpu& gpu, const GpuGraph& graph, const GpuEvent& from,
                            const GpuEvent& to);

// 0 of no values.
double median(std::vector<double> values);

// CUDA text of the kernel that reads memory to empty the L2: kernel "sundog_flush".
std::string flush_source();

}  // namespace sundog::codegen
