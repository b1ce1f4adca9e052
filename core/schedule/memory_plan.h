// Does a planned kernel fit a device?
//
//   Result<KernelPlan> plan = plan_kernel(graph, kernel);
//   Status ok = fits(kernel, *plan, device);   // "needs 240,128 bytes of shared memory of 232,448"
#pragma once

#include "core/device.h"
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

}  // namespace sundog
