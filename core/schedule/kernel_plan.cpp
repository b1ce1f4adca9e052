#include "core/schedule/kernel_plan.h"

#include "core/schedule/planner.h"

namespace sundog {

int64_t SharedTile::rows() const {
  int64_t count = 1;
  for (size_t i = 0; i + 1 < axes.size(); ++i) count *= axes[i].extent;
  return count;
}

int64_t SharedTile::elements() const {
  if (axes.empty()) return 1;
  return rows() * (panel > 0 ? axes.back().extent : pitch);
}

int64_t SharedTile::bytes() const { return elements() * sundog::bytes(dtype) * copies; }

int64_t SharedTile::stride(AxisId axis) const {
  int64_t step = pitch;
  for (size_t i = axes.size(); i-- > 0;) {
    if (i + 1 == axes.size()) {
      if (axes[i].axis == axis) return 1;
      continue;
    }
    if (axes[i].axis == axis) return step;
    step *= axes[i].extent;
  }
  return 0;
}

int64_t Combine::parts() const {
  int64_t count = 1;
  for (const Mode& m : warps) count *= m.extent;
  return count;
}

Result<KernelPlan> plan_kernel(const MuGraph& graph, const Kernel& kernel) {
  constexpr int64_t kMostElements = int64_t{1} << 24;
  for (const Computation& c : kernel.computations) {
    int64_t elements = 1;
    for (AxisId f : c.axes) {
      if (kernel.factors[f].extent > kMostElements) elements = kMostElements + 1;
      if (elements <= kMostElements) elements *= kernel.factors[f].extent;
    }
    if (elements > kMostElements) {
      return unsupported("kernel '" + kernel.name + "': the tile of computation '" + c.name +
                         "' has more than 16,777,216 elements");
    }
  }
  planning::Context context(graph, kernel);
  planning::plan_layouts(context);
  planning::plan_movement(context);
  planning::plan_memory(context);
  return std::move(context.plan);
}

}  // namespace sundog
