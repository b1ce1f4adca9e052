// From CUDA text to machine code for one architecture, with what it costs: registers, spills and
// shared memory of each kernel, as ptxas counts them.
//
// Two compilers: NVRTC, a library that is looked for at run time (codegen/nvrtc.h), and nvcc where
// a toolkit is installed.  Neither is needed to build, search, verify, emit or test.  Either runs
// in a child process, because a compiler may hang or crash on a kernel that nobody has compiled
// before.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/process.h"
#include "core/status.h"

namespace sundog::codegen {

struct KernelResources {
  std::string name;                                     // of the entry function
  int registers = 0;                                    // a thread
  int64_t spill_store_bytes = 0, spill_load_bytes = 0;  // a thread, static count
  int64_t stack_bytes = 0;   // local memory a thread: spills, and arrays with computed indices
  int64_t shared_bytes = 0;  // static, a block; the dynamic part is the launch plan's
  bool operator==(const KernelResources&) const = default;
};

struct CompiledModule {
  std::string cubin;
  std::vector<KernelResources> kernels;
  std::string compiler;  // "NVRTC 13.0", "nvcc 13.0"
  std::string log;       // warnings and ptxas -v
  double seconds = 0;
};

enum class Compiler { kAny, kNvrtc, kNvcc };  // kAny: NVRTC if there is one, else nvcc

struct CompileOptions {
  Compiler compiler = Compiler::kAny;
  ProcessLimits limits{.seconds = 120};
};

// `arch` as nvcc takes it: "sm_90a".  Errors: kToolMissing (with where it was looked for), kLimit,
// kFailed with the compiler's first error.
Result<CompiledModule> compile(const std::string& cuda, const std::string& arch,
                               const CompileOptions& options);

// "nvcc" on PATH, else under CUDA_HOME, CUDA_PATH or /usr/local/cuda; empty if there is none.
std::string find_nvcc();

// What ptxas -v says, one entry a kernel, in its order.
std::vector<KernelResources> parse_ptxas_log(std::string_view log);

}  // namespace sundog::codegen
