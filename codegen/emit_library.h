// What an emitted file has of a library: the calls in its launcher, and in place of each call, for
// the emulator alone, a kernel that computes the same.
#pragma once

#include <string>
#include <vector>

#include "codegen/launch_plan.h"
#include "core/mugraph.h"

namespace sundog::codegen {

// Threads of a block of what stands in place of a call, and blocks of all elements.
inline constexpr int kLibraryThreads = 128;
int64_t library_blocks(const LibraryGemm& gemm);

// `kernel` stores one element a thread; `parameters` are the names of its arguments, `types` those
// of their elements.  For the emulator only: nothing of it is compiled for a device.
std::string library_stand_in(const PlanKernel& kernel, const std::vector<std::string>& parameters,
                             const std::vector<std::string>& types);

// The function of the launcher that makes the calls, and one call of it.  `pointers`: of the
// arguments, as texts.
std::string library_function(const LaunchPlan& plan);
std::string library_call(const LaunchPlan& plan, const PlanKernel& kernel,
                         const std::vector<std::string>& pointers);

// Lines for the head of a file: which kernels are the library's, and what to link with.  Empty:
// none.
std::string library_note(const LaunchPlan& plan);

}  // namespace sundog::codegen
