// A launch plan loaded into a CUDA program that is not ours: a C program, or PyTorch.
//
//   Result<LoadedPlan> plan = LoadedPlan::load(0, cubin, generated.plan);
//   plan->launch(inputs, outputs, workspace, stream);   // the caller's stream; does not wait
//
// Loading uses the primary context of the device, which is the one that the CUDA runtime and so
// PyTorch use.  Unlike codegen/driver.h nothing here allocates or waits, so a launch may be
// captured into a CUDA graph.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "codegen/launch_plan.h"
#include "core/status.h"

namespace sundog::codegen {

struct DriverApi;   // codegen/driver_api.h
struct LibraryApi;  // codegen/library.h

class LoadedPlan {
 public:
  // `ordinal` as the CUDA runtime counts (CUDA_VISIBLE_DEVICES applies).  Errors: kToolMissing
  // without a driver, device or the library that it calls, kBadInput for another ordinal, kFailed
  // with the driver's words.
  static Result<LoadedPlan> load(int ordinal, const std::string& cubin, const LaunchPlan& plan);
  // The same with a driver, and a library for the plan's calls of one, that must outlive the plan.
  static Result<LoadedPlan> load(const DriverApi& api, int ordinal, const std::string& cubin,
                                 const LaunchPlan& plan, const LibraryApi* library = nullptr);

  // Enqueues all kernels into `stream`, a CUstream of that device's primary context (0: the default
  // stream).  Pointers are device pointers in the order of the plan, each with as many bytes behind
  // it as the plan says; `workspace` may be null if the plan needs none.  Any number of threads may
  // launch at once, with workspaces of their own.
  Status launch(void* const* inputs, void* const* outputs, void* workspace, void* stream) const;

  int ordinal() const;

 private:
  struct State;
  explicit LoadedPlan(std::shared_ptr<const State> state) : state_(std::move(state)) {}
  std::shared_ptr<const State> state_;
};

}  // namespace sundog::codegen
