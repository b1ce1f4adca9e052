// Does a planned kernel fit a device?
//
//   Result<KernelPlan> plan = plan_kernel(graph, kernel);
//   Status ok = fits(kernel, *plan, device);   // "needs 240,128 bytes of shared memory of 232,448"
#pragma once

#include "core/device.h"
#include "core/schedule/kernel_plan.h"

namespace sundog {

// Registers that a thread may use.
inline constexpr int kMaxRegisters = 255;

// Shared bytes, warps and registers of a block against the device's limits; the error is kUnsupported
// and names the kernel and both numbers.
Status fits(const Kernel& kernel, const KernelPlan& plan, const Device& device);

}  // namespace sundog
