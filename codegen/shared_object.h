// A kernel to ship: one shared library with the machine code of a launch plan for several
// architectures, a C entry, and whatever the caller wants to find again (a stored result).  It
// needs the CUDA driver when it is used and nothing else, no Sundog and no CUDA toolkit; only
// products that are a library's need that (cuBLAS, opened at the first launch):
//
//   int NAME(void* const* inputs, void* const* outputs, void* workspace, void* stream);
//   int64_t NAME_workspace_bytes(void);   int64_t NAME_zeroed_bytes(void);   // of the launch plan
//   int sundog_saved_launch(...);  int64_t sundog_saved_workspace_bytes(void);   // the same
//   const void* sundog_saved_result(size_t* size);  const char* sundog_saved_name(void);
//
// A launch enqueues into the stream of the caller's current device and returns 0, a CUresult, or
// 20000 and a cublasStatus_t (1: there is no library); modules are loaded and handles made at the
// first launch on each device, which therefore cannot be captured into a graph.
#pragma once

#include <string>
#include <vector>

#include "codegen/launch_plan.h"
#include "core/status.h"

namespace sundog::codegen {

struct SavedCode {
  std::string arch;  // "sm_90a"
  std::string cubin;
};

// The C text of the library, without the bytes: those are in assembly beside it.  For tests.
std::string shared_object_source(const LaunchPlan& plan, const std::vector<SavedCode>& code);

// Compiles and puts the library in place by one rename.  Errors: kToolMissing without a C compiler,
// kFailed with its words, kIo.
Status write_shared_object(const std::string& path, const LaunchPlan& plan,
                           const std::vector<SavedCode>& code, const std::string& result);

}  // namespace sundog::codegen
