// Does a planned kernel fit a device?
//
//   Result<KernelPlan> plan = plan_kernel(graph, kernel);
//   Status ok = fits(kernel, *plan, device);   // "needs 240,128 bytes of shared memory of 232,448"
#pragma once

#include <vector>

#include "core/device.h"
#include "core/schedule/cluster.h"
#include "core/schedule/kernel_plan.h"

namespace sundog {

// Registers that a thread may use; what does not fit is spilled to memory, which is slow but right.
inline constexpr int kMaxRegisters = 255;
// Beyond this the text of a kernel is too large to compile in reasonable time.
inline constexpr int kMostSpilled = 4096;

// What no compiler can make up for: shared memory, and registers beyond kMostSpilled.
Status can_launch(const Kernel& kernel, const KernelPlan& plan, const Device& device);

// can_launch, and registers within the device's limits: what search should consider.  The error is
// kUnsupported and names the kernel and both numbers.
Status fits(const Kernel& kernel, const KernelPlan& plan, const Device& device);

// Shared memory of a launch, and where the tiles of the joined kernel begin in it.
struct LaunchArena {
  int64_t bytes = 0;
  int64_t joined_offset = 0;
};

// `plans`: of the kernel that is launched and of the one that its blocks run, if any.  `kept`: what
// stays in the cluster; each tensor gets its offset.
LaunchArena arena_of(const std::vector<KernelPlan>& plans, std::vector<ClusterTensor>& kept);

}  // namespace sundog
