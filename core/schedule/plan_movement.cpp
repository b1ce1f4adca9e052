// Pass 2 of planning: when partial results are combined, and which values also need a copy in
// shared memory because a reader holds other elements than the writer.
#include <algorithm>

#include "core/schedule/planner.h"

namespace sundog::planning {
namespace {

class MovementPass {
 public:
  explicit MovementPass(Context& context) : x_(context) {}

  void run() {
    for (uint32_t id = 0; id < count(); ++id) plan_deferral(id);
    for (uint32_t id = 0; id < count(); ++id) plan_into(id);
    for (uint32_t id = 0; id < count(); ++id) plan_operands(id);
    for (const StoreSite& store : x_.scan.stores) plan_store(store);
  }

 private:
  uint32_t count() const { return static_cast<uint32_t>(x_.plan.computations.size()); }
  ComputationPlan& plan(uint32_t id) { return x_.plan.computations[id]; }

  // Loops around the outermost loop that `id` accumulates over.
  size_t level(uint32_t id) {
    const auto& around = x_.scan.computations[id].around;
    size_t depth = 0;
    while (depth < around.size() && !plan(id).loops.has(loop(around[depth]).loop->factor)) ++depth;
    return depth;
  }
  const LoopSite& loop(int index) const { return x_.scan.loops[static_cast<size_t>(index)]; }

  // Inside of the loops that `id` accumulates over.
  bool inside(uint32_t id, const StatementSite& site) {
    const size_t depth = level(id);
    const auto& around = x_.scan.computations[id].around;
    return site.around.size() > depth && site.around[depth] == around[depth];
  }

  std::vector<StatementSite> uses(uint32_t id) const {
    std::vector<StatementSite> sites;
    for (uint32_t reader : x_.scan.readers[id]) sites.push_back(x_.scan.computations[reader]);
    for (const StoreSite& store : x_.scan.stores) {
      if (store.store->computation == id) sites.push_back(store.site);
    }
    return sites;
  }

  void plan_deferral(uint32_t id) {
    ComputationPlan& p = plan(id);
    if (p.loops.empty() || x_.computation(id).accumulate_into != kNone) return;
    p.deferred = true;
    for (const StatementSite& use : uses(id)) {
      if (inside(id, use)) {
        p.deferred = false;
        p.finish_before = -1;
        return;
      }
      finish_before(id, use);
    }
  }

  void finish_before(uint32_t id, const StatementSite& use) {
    ComputationPlan& p = plan(id);
    const int at = x_.scan.statement_at(level(id), use);
    if (p.finish_before < 0 || at < p.finish_before) p.finish_before = at;
  }

  // Adding to the target's partial sums needs the same layout, and no lane or warp that the target
  // does not combine.
  void plan_into(uint32_t id) {
    const uint32_t to = x_.computation(id).accumulate_into;
    if (to == kNone) return;
    ComputationPlan& p = plan(id);
    ComputationPlan& t = plan(to);
    const StatementSite& site = x_.scan.computations[id];
    const bool within = !t.loops.empty() && inside(to, site);
    const bool open =
        t.deferred && (within || t.finish_before < 0 || site.position < t.finish_before);
    const bool same = agrees(t.partial, p.partial, x_.tile_axes(id)) && p.partial == t.partial;
    const bool summed = (p.combine.lanes & ~t.combine.lanes) == 0 &&
                        (p.combine.warps.empty() || p.combine.warps == t.combine.warps);
    const bool fragments = p.kind != Realisation::kMma || t.kind == Realisation::kMma;
    if (open && same && summed && fragments) {
      p.into_partial = true;
      p.layout = p.partial;
      p.combine.redistribute = false;
      return;
    }
    if (!t.deferred) return;
    if (within) {
      t.deferred = false;
      t.finish_before = -1;
    } else {
      finish_before(to, site);
    }
  }

  void mirror(uint32_t id) {
    const Mode vector = vector_mode(plan(id).layout);
    add_shared(x_, id, vector.extent > 1 ? vector.axis : kNone);
  }

  void need(uint32_t operand, const Layout& reader) {
    const ComputationPlan& o = plan(operand);
    if (!o.in_registers) return;
    if (!agrees(o.layout, reader, x_.tile_axes(operand))) mirror(operand);
  }

  void plan_operands(uint32_t id) {
    const Computation& c = x_.computation(id);
    ComputationPlan& p = plan(id);
    if (p.mma) {
      // An operand that turned out to have a mirror is still read from registers where it can be.
      if (!p.mma->a_in_registers && plan(p.mma->a).in_registers) mirror(p.mma->a);
      if (!p.mma->b_in_registers && plan(p.mma->b).in_registers) mirror(p.mma->b);
    } else {
      for (uint32_t operand : x_.scan.locals[id]) need(operand, p.iteration);
    }
    if (c.rescale != kNone) need(c.rescale, p.deferred ? p.partial : p.layout);
    if (c.accumulate_into != kNone && !p.into_partial) {
      need(id, plan(c.accumulate_into).layout);
    }
  }

  void plan_store(const StoreSite& site) {
    const uint32_t id = site.store->computation;
    StorePlan s;
    const ComputationPlan& p = plan(id);
    s.from_registers = p.in_registers;
    if (p.in_registers && !badly_strided(id, *site.store)) {
      s.layout = p.layout;
    } else {
      if (p.in_registers) mirror(id);
      s.from_registers = false;
      s.layout = copy_layout(id, *site.store);
    }
    x_.plan.stores.push_back(std::move(s));
  }

  // Registers whose runs lie across the rows of the tensor would be stored one by one.
  bool badly_strided(uint32_t id, const Store& store) {
    const ComputationPlan& p = plan(id);
    const AxisId f =
        contiguous_factor(x_.graph, x_.kernel, store.tensor, store.index, x_.tile_axes(id));
    const DType dtype = x_.graph.tensors[store.tensor].decl.dtype;
    constexpr int64_t kFew = 4;
    if (f == kNone || bytes(dtype) >= 4 || slots(p.layout) <= kFew) return false;
    return vector_mode(p.layout).axis != f && x_.extent(f) > kFew;
  }

  Layout copy_layout(uint32_t id, const Store& store) {
    const AxisSet tile = x_.tile_axes(id);
    const AxisId f = contiguous_factor(x_.graph, x_.kernel, store.tensor, store.index, tile);
    std::vector<AxisId> axes = x_.computation(id).axes;
    int width = 1;
    const auto at = std::find(axes.begin(), axes.end(), f);
    if (at != axes.end()) {
      std::rotate(at, at + 1, axes.end());
      const DType dtype = x_.graph.tensors[store.tensor].decl.dtype;
      const std::vector<Bound> bounds = presence_bounds(
          x_.graph, x_.kernel, x_.dependences[id].absent_along, x_.bound(id) - plan(id).reduced);
      width = vector_width(x_.graph, x_.kernel, store.tensor, store.index, bounds, f,
                           std::max(1, 16 / bytes(dtype)));
    }
    return blocked_layout({x_.tile(axes), {}, width, x_.kernel.warps, {}});
  }

  Context& x_;
};

}  // namespace

void plan_movement(Context& context) { MovementPass(context).run(); }

}  // namespace sundog::planning
