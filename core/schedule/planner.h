// Inside of plan_kernel: the passes and what they share.  Users include
// core/schedule/kernel_plan.h.
#pragma once

#include <optional>
#include <vector>

#include "core/schedule/kernel_plan.h"
#include "core/schedule/kernel_scan.h"

namespace sundog::planning {

struct Context {
  const MuGraph& graph;
  const Kernel& kernel;
  KernelScan scan;
  std::vector<Dependence> dependences;
  AxisSet grid, looped;
  KernelPlan plan;
  std::vector<bool> pending;  // register loads whose layout their first reader decides

  Context(const MuGraph& g, const Kernel& k);

  const Computation& computation(uint32_t id) const { return kernel.computations[id]; }
  int64_t extent(AxisId f) const { return kernel.factors[f].extent; }
  AxisSet tile_axes(uint32_t id) const;
  // Grid factors, enclosing loops and the iterated tile axes.
  AxisSet bound(uint32_t id) const;
  // What has to be tested before the read `input` by computation `id`.
  std::vector<Bound> read_bounds(uint32_t id, const InputTerm& input) const;
  std::vector<TileAxis> tile(const std::vector<AxisId>& axes) const;
};

// The root reduction of a computation, or null.
const ReduceTerm* root_reduction(const Kernel& kernel, uint32_t id);

// Pass 1, in order of computations: realisation and layouts.
void plan_layouts(Context& context);
// The tensor-core realisation of `id`, if its operands and extents allow one.
std::optional<MmaPlan> plan_mma(const Context& context, uint32_t id, Layout& iteration);
// The sum `id`, evaluated in the layout of its operand, as products with ones, if it is one along
// the rows of fragments.
std::optional<RowSum> plan_row_sum(const Context& context, uint32_t id);
// The load `id`, planned as a copy ahead of a loop, as bulk copies, if the tensor, the index and
// the bounds allow it.
std::optional<BulkPlan> plan_bulk(const Context& context, uint32_t id, const InputTerm& load);
// Adds a shared tile for computation `id` if it has none; `inner` is the contiguous axis (kNone:
// the last one).
void add_shared(Context& context, uint32_t id, AxisId inner);
// Pass 2: mirrors, combination, stores.
void plan_movement(Context& context);
// Pass 3: lifetimes and the arena; registers.
void plan_memory(Context& context);

}  // namespace sundog::planning
