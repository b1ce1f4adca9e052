// Bookkeeping of kernels whose sizes are open.  The one decision here: a part holds a whole number
// of tiles, so that the three factors of a cut axis stay a mixed-radix index and a ragged end shows
// in the last part only.
#include "search/kernel_plan.h"

#include <algorithm>

#include "core/arithmetic.h"
#include "core/check.h"

namespace sundog::search {
GraphPlan empty_plan(const Program& program) {
  GraphPlan plan;
  plan.graph.name = program.name;
  plan.graph.program = program.name;
  for (const Axis& a : program.axes) plan.graph.axes.push_back({a.name, a.extent, kNone, 0});
  for (const TensorDecl& t : program.inputs) {
    plan.graph.tensors.push_back({t, TensorRole::kInput});
  }
  for (const Output& o : program.outputs) {
    plan.graph.tensors.push_back({o.tensor, TensorRole::kOutput});
  }
  return plan;
}

Split& add_split(KernelPlan& plan, const MuGraph& graph, AxisId axis, bool looped) {
  const MuAxis& a = graph.axes[axis];
  Split s;
  s.axis = axis;
  s.extent = a.extent;
  s.looped = looped;
  auto& factors = plan.kernel.factors;
  s.outer = static_cast<AxisId>(factors.size());
  factors.push_back({a.name + ".o", axis, 1, 1});
  s.inner = static_cast<AxisId>(factors.size());
  factors.push_back({a.name + ".i", axis, 1, 1});
  if (!looped) plan.kernel.grid.push_back(s.outer);
  plan.splits.push_back(s);
  return plan.splits.back();
}

int64_t part_extent(int64_t extent, int64_t count) {
  constexpr int64_t kStep = 16;
  if (count <= 1) return extent;
  return ceil_div(ceil_div(extent, count), kStep) * kStep;
}

SplitExtents extents_at(const Split& split, int64_t tile, int64_t count) {
  const int64_t per_part = part_extent(split.extent, count);
  SplitExtents e{count, 1, tile};
  if (split.extent == 0) {
    e.inner = 0;
  } else if (split.outer == kNoFactor) {
    e.inner = per_part;
  } else {
    e.inner = std::clamp<int64_t>(tile, 1, per_part);
    e.outer = ceil_div(per_part, e.inner);
  }
  return e;
}

void set_tile(KernelPlan& plan, const Split& split, int64_t tile, int64_t count) {
  auto& factors = plan.kernel.factors;
  const SplitExtents e = extents_at(split, tile, count);
  factors[split.inner].extent = e.inner;
  factors[split.inner].stride = 1;
  if (split.outer != kNoFactor) {
    factors[split.outer].extent = e.outer;
    factors[split.outer].stride = std::max<int64_t>(e.inner, 1);
  }
  if (split.part != kNoFactor) {
    factors[split.part].extent = e.part;
    factors[split.part].stride = std::max<int64_t>(e.inner * e.outer, 1);
  }
}

uint32_t add_intermediate(MuGraph& graph, std::string name, const std::vector<AxisId>& axes) {
  TensorDecl decl;
  decl.name = std::move(name);
  decl.dtype = DType::kF32;
  for (AxisId a : axes) {
    decl.dim_names.push_back(graph.axes[a].name);
    decl.dims.push_back(IndexExpr::of(a));
    decl.extents.push_back(graph.axes[a].extent);
  }
  graph.tensors.push_back({std::move(decl), TensorRole::kIntermediate});
  return static_cast<uint32_t>(graph.tensors.size() - 1);
}

void set_part_counts(GraphPlan& plan) {
  for (const Part& p : plan.parts) plan.graph.axes[p.mu_axis].extent = p.count;
  for (DeviceTensor& t : plan.graph.tensors) {
    if (t.role != TensorRole::kIntermediate) continue;
    for (size_t d = 0; d < t.decl.dims.size(); ++d) {
      AxisId axis = 0;
      SUNDOG_CHECK(t.decl.dims[d].is_axis(&axis));
      t.decl.extents[d] = plan.graph.axes[axis].extent;
    }
  }
}

}  // namespace sundog::search
