#include "core/schedule/memory_plan.h"

#include <algorithm>
#include <string>

namespace sundog {

Status can_launch(const Kernel& kernel, const KernelPlan& plan, const Device& device) {
  const std::string what = "kernel '" + kernel.name + "' needs ";
  if (plan.shared_bytes > device.shared_per_block) {
    return unsupported(what + std::to_string(plan.shared_bytes) +
                           " bytes of shared memory; a block of " + device.name + " has " +
                           std::to_string(device.shared_per_block),
                       "smaller tiles or fewer stages");
  }
  if (plan.registers > kMostSpilled) {
    return unsupported(what + "about " + std::to_string(plan.registers) +
                           " registers a thread; no more than " + std::to_string(kMostSpilled) +
                           " are emitted",
                       "smaller tiles, more warps, or shared storage");
  }
  return {};
}

Status fits(const Kernel& kernel, const KernelPlan& plan, const Device& device) {
  const std::string what = "kernel '" + kernel.name + "' needs ";
  SUNDOG_RETURN_IF_ERROR(can_launch(kernel, plan, device));
  if (plan.registers > kMaxRegisters) {
    return unsupported(what + "about " + std::to_string(plan.registers) +
                           " registers a thread; there are " + std::to_string(kMaxRegisters),
                       "smaller tiles, more warps, or shared storage");
  }
  const int64_t block = int64_t{plan.registers} * kernel.warps * kLanes;
  if (block > device.registers_per_sm) {
    return unsupported(what + "about " + std::to_string(block) +
                           " registers a block; a multiprocessor of " + device.name + " has " +
                           std::to_string(device.registers_per_sm),
                       "smaller tiles or fewer warps");
  }
  return {};
}

// Barriers in shared memory that count bytes are no memory for anything else while the block lives;
// nor is what stays in the cluster, which others may read.
LaunchArena arena_of(const std::vector<KernelPlan>& plans, std::vector<ClusterTensor>& kept) {
  constexpr int64_t kAlignment = 1024, kKeptAlignment = 128;
  LaunchArena arena{plans[0].shared_bytes, 0};
  if (plans.size() == 1) return arena;
  if (!plans[0].bulk_loops.empty()) {
    arena.joined_offset = (arena.bytes + kAlignment - 1) / kAlignment * kAlignment;
  }
  if (plans[1].shared_bytes > 0) {
    arena.bytes = std::max(arena.bytes, arena.joined_offset + plans[1].shared_bytes);
  }
  for (ClusterTensor& tensor : kept) {
    tensor.offset = (arena.bytes + kKeptAlignment - 1) / kKeptAlignment * kKeptAlignment;
    arena.bytes = tensor.offset + tensor.elements * bytes(DType::kF32);
  }
  return arena;
}

}  // namespace sundog
