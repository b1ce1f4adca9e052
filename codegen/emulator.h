// Runs generated CUDA on the CPU and checks what it does: no GPU and no CUDA toolkit is needed,
// only a C++ compiler (SUNDOG_CXX, else c++ or g++ on the PATH).
//
//   Result<EmulatorModule> module = EmulatorModule::compile(cu_text, options);
//   if (!module.ok()) return module.error();
//   EmulatorLaunch launch{.kernel = "gemm", .grid = {8, 8, 1}, .block = {128, 1, 1},
//                         .shared_bytes = 24576, .args = {0, 1, 2}};
//   Result<EmulatorReport> report = module->run({&launch, 1}, buffers, options);
//
// The text is what codegen emits: primitives (codegen/primitives.cuh, pasted or included) and
// kernels `extern "C" __global__ void name(pointers ...)` that use functions of namespace sd.
// Everything runs in a child process with a limit on time and memory; whatever a kernel does, the
// caller gets a value.
//
// With race_check every load and store is seen.  Found are, whatever the numbers say: accesses
// outside of a buffer or of the shared memory asked for, misaligned ones, writes to inputs, reads
// of shared bytes that nobody wrote, missing barriers (between warps, and between the lanes of a
// warp without sync_warp), reads of copies under way, two blocks at one byte of an output, reads
// of another block's shared memory that no barrier of the cluster parts from its writes or from its
// end, lanes that meet in different operations or barriers, and threads that wait forever.  Without
// it kernels run several times faster and only gross errors (guard pages, deadlocks, alignment, NaN
// poison) show.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/emulator/residue.h"
#include "core/status.h"

namespace sundog::codegen {

// A global-memory buffer.  The kernel sees a copy that starts at a multiple of 256 bytes plus
// `misalignment`; after a run a writable buffer holds what the first schedule left there.
struct EmulatorBuffer {
  void* data = nullptr;
  size_t bytes = 0;
  bool writable = false;
  size_t misalignment = 0;
};

struct EmulatorLaunch {
  std::string kernel;
  uint32_t grid[3] = {1, 1, 1};
  uint32_t block[3] = {1, 1, 1};
  uint32_t cluster[3] = {1, 1, 1};  // along x alone, at most 8 blocks
  size_t shared_bytes = 0;
  std::vector<int> args;   // indexes of buffers, in the order of the kernel's parameters
  int unit = 0;            // which source of a module compiled from several
  bool dependent = false;  // may start before the launch before it is done: threads must wait
};

struct EmulatorOptions {
  // How often all launches run: 1 in order with copies that land at once; 2 backwards with copies
  // that land when waited for; from the third on everything random.  From the second on some blocks
  // of dependent launches start before the launches in front of them.
  int schedules = 3;
  bool race_check = true;  // given to compile; run checks what was compiled in
  // Given to both: kernels compute with residues in this field in place of floats, and buffers hold
  // their codes (codegen/emulator/residue.h).  Without race_check.
  std::optional<sd::emulator::ResidueField> residues;
  double time_limit_s = 60;                // of one compilation and of one run
  uint64_t seed = 1;                       // of the random schedules
  int threads = 0;                         // blocks at a time; 0: as many as the machine has cores
  std::vector<std::string> scalar_defs;    // macros for the compilation, "NAME=VALUE"
  size_t memory_limit = size_t{16} << 30;  // bytes of address space beyond the buffers; 0: no limit
};

// Of the shared memory of one launch, as a GPU would count them: turns of its banks that loads,
// stores, ldmatrix and cp_async take, and those among them that are due to bank conflicts.
struct BankUse {
  std::string kernel;
  uint64_t turns = 0, conflicts = 0;
};

struct EmulatorReport {
  double seconds_compile = 0;    // of the module
  double seconds_run = 0;        // all schedules
  uint64_t barriers = 0;         // of one schedule: block barriers and named ones
  uint64_t collectives = 0;      // warp operations
  uint64_t shared_accesses = 0;  // only with race_check
  std::vector<BankUse> banks;    // a launch; likewise
  // Comparisons of residues that decided nothing: results that depend on them mean nothing.
  uint64_t open_comparisons = 0;
  // One line each: "<kind>: kernel <name>, block (x, y, z), thread <t>, line <n>: <what>".  The
  // kinds: out of bounds, misaligned, wrong space, write to input, uninitialised read, shared race,
  // copy in flight, global race, missing wait, early exit, divergence, deadlock, bad barrier, bad
  // launch, schedule dependence, crash, out of memory, timeout.  The line is one of the source, if
  // addr2line is on the PATH.
  std::vector<std::string> problems;
};

// A compiled source, or several.  Cheap to copy; the program lies in a temporary folder that goes
// with the last copy.
class EmulatorModule {
 public:
  // Errors: kToolMissing without a compiler, kFailed if the text does not compile (the message has
  // the compiler's first error), kBadInput if it has no kernel, kIo, kLimit.
  static Result<EmulatorModule> compile(std::string_view cu_source, const EmulatorOptions& options);
  // Compiles several sources into one program, which is much faster than one program each; a launch
  // names its source by `unit`.  The same kernel names may occur in several.
  static Result<EmulatorModule> compile(std::span<const std::string> cu_sources,
                                        const EmulatorOptions& options);

  // The kernels of a source, in the order of the text.
  const std::vector<std::string>& kernels(int unit = 0) const;

  // Runs the launches one after the other, as a stream does; dependent ones may overlap.  Errors
  // are those of the call (an unknown kernel, a wrong number of arguments, a grid no GPU takes);
  // those of the kernels are problems.
  Result<EmulatorReport> run(std::span<const EmulatorLaunch> launches,
                             std::span<const EmulatorBuffer> buffers,
                             const EmulatorOptions& options) const;

 private:
  struct Program;
  explicit EmulatorModule(std::shared_ptr<const Program> program) : program_(std::move(program)) {}
  std::shared_ptr<const Program> program_;
};

}  // namespace sundog::codegen
