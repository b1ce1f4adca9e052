// From a µGraph to one self-contained CUDA file and its launch plan.
//
//   GenerateOptions options{.header_comment = print(program) + print(graph, program), .name =
//   "rms"}; Result<Generated> g = generate(graph, program, device, options);
//   // g->cuda: primitives, kernels, and the launcher
//   //   int rms(void* const* inputs, void* const* outputs, void* workspace, cudaStream_t);
//   // g->plan: the same launches as data (codegen/launch_plan.h)
//
// The text is deterministic.  It needs sm_80 (cp.async, ldmatrix, mma.sync) and runs on later
// devices.
#pragma once

#include <string>
#include <vector>

#include "codegen/launch_plan.h"
#include "core/device.h"
#include "core/mugraph.h"
#include "core/program.h"
#include "core/status.h"

namespace sundog::codegen {

struct GenerateOptions {
  std::string header_comment;           // put at the top, line by line
  std::string name;                     // of the launcher; empty: the µGraph's
  Rounding rounding = Rounding::kWide;  // which casts are kept
};

struct KernelStats {
  std::string name;
  int64_t blocks = 0;
  int threads = 0;
  int64_t shared_bytes = 0;
  int registers = 0;  // a thread's, as estimated
};

struct Generated {
  std::string cuda;
  LaunchPlan plan;
  std::vector<KernelStats> stats;
};

// require: check(graph, program).  Errors: kUnsupported where a kernel exceeds the device (shared
// memory, registers, grid), with the numbers; never anything else.
Result<Generated> generate(const MuGraph& graph, const Program& program, const Device& device,
                           const GenerateOptions& options);

}  // namespace sundog::codegen
