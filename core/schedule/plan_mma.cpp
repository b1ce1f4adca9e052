// Tensor cores: which axes of a sum of products the m16n8k16 atom cuts, and who holds what.
//
// An axis that both operands have and the sum removes is a k axis; one that only the M side (N
// side) has is an m (n) axis; one that both have and the sum keeps is a batch.  Of each kind the
// atom cuts the longest; the others are registers (or warps) around it.  Atoms of one warp are
// neighbours, so that the accumulator of one product is the A fragment of the next one (P in
// attention).
#include <algorithm>

#include "core/arithmetic.h"
#include "core/schedule/planner.h"

namespace sundog::planning {
namespace {

struct Operand {
  uint32_t computation = 0;
  AxisSet axes;
};

class MmaPass {
 public:
  MmaPass(const Context& context, uint32_t id) : x_(context), id_(id) {}

  std::optional<MmaPlan> run(Layout& iteration) {
    if (!find_operands() || !find_axes()) return std::nullopt;
    plan_.warpgroup = find_warpgroups();
    if (!plan_.warpgroup) spread_warps();
    lay_out(iteration);
    if (plan_.warpgroup && !reaches_operands()) {
      plan_.warpgroup = false;
      warps_.clear();
      spread_warps();
      lay_out(iteration);
    }
    return plan_;
  }

 private:
  void lay_out(Layout& iteration) {
    plan_.a_interleaved = comes_in_pairs(a_, plan_.m, 16);
    plan_.b_interleaved = comes_in_pairs(b_, plan_.n, 8);
    iteration = accumulator();
    plan_.a_layout = fragment(plan_.m, /*a_side=*/true);
    plan_.b_layout = fragment(plan_.n, /*a_side=*/false);
    plan_.k_steps = ceil_div(ceil_div(x_.extent(plan_.k), 16), warps_of(plan_.k));
    plan_.a_in_registers = held(a_, plan_.a_layout);
    plan_.b_in_registers = held(b_, plan_.b_layout);
  }

  // Whether ldmatrix fetches two columns of bytes at once: of whole words across K, and for each
  // warp whole ones.
  bool comes_in_pairs(const Operand& operand, AxisId rows, int64_t atom) const {
    constexpr int64_t kWord = 16;
    const std::optional<SharedTile>& tile = x_.plan.computations[operand.computation].shared;
    if (!tile || bytes(tile->dtype) != 1 || tile->axes.back().axis != rows) return false;
    const int64_t own = ceil_div(atoms(rows), warps_of(rows)) * atom;
    return own % kWord == 0 && own * warps_of(rows) == x_.extent(rows);
  }

  // Four warps beside one another along M, whole atoms, and nothing else to run over.
  bool find_warpgroups() {
    const Computation& c = x_.computation(id_);
    if (c.mma != MmaAtom::kM64N8K16 || c.accumulate_into != kNone) return false;
    if (!plan_.outer_k.empty() || x_.computation(id_).axes.size() != 2) return false;
    const int64_t rows = x_.extent(plan_.m);
    if (rows % 64 != 0 || x_.extent(plan_.n) % 8 != 0 || x_.extent(plan_.k) % 16 != 0) return false;
    int64_t count = 0;
    for (int64_t d = 4; d <= x_.kernel.warps; d += 4) {
      if (x_.kernel.warps % d == 0 && rows / 16 % d == 0) count = d;
    }
    if (c.warps.size() > 1) return false;
    if (c.warps.size() == 1) {
      count = c.warps[0].factor == plan_.m && c.warps[0].count % 4 == 0 ? c.warps[0].count : 0;
      if (count > 0 && rows / 16 % count != 0) return false;
    }
    if (count == 0) return false;
    warps_ = {{plan_.m, count, 1, Holder::kWarp, 1}};
    return true;
  }

  // Whether the instruction can fetch the operands: rows of 32, 64 or 128 bytes (longer ones are
  // cut into panels of 128), in groups of eight.
  bool reaches_operands() const {
    const auto reaches = [&](const Operand& operand, AxisId rows, int64_t least) {
      const std::optional<SharedTile>& tile = x_.plan.computations[operand.computation].shared;
      if (!tile || tile->axes.size() != 2) return false;
      const int64_t width = tile->axes[1].extent * bytes(tile->dtype);
      const bool fits = width == 32 || width == 64 || width % 128 == 0;
      if (!fits || tile->axes[0].extent % 8 != 0 || bytes(tile->dtype) != 2) return false;
      // Across K an atom's rows of M or N lie in whole panels.
      return tile->axes[1].axis != rows || width >= 2 * least;
    };
    if (plan_.b_in_registers) return false;
    return reaches(b_, plan_.n, 1) && (plan_.a_in_registers || reaches(a_, plan_.m, 64));
  }

  bool find_operands() {
    const Computation& c = x_.computation(id_);
    const ReduceTerm* reduce = root_reduction(x_.kernel, id_);
    const auto* product = std::get_if<ApplyTerm>(&x_.kernel.terms[reduce->operand]);
    if (product == nullptr || product->operands.size() != 2) return false;
    Operand sides[2];
    for (int i = 0; i < 2; ++i) {
      const auto* local =
          std::get_if<LocalTerm>(&x_.kernel.terms[product->operands[static_cast<size_t>(i)]]);
      if (local == nullptr) return false;
      sides[i] = {local->computation, local->axes};
    }
    a_ = sides[c.mma_swap ? 1 : 0];
    b_ = sides[c.mma_swap ? 0 : 1];
    plan_.a = a_.computation;
    plan_.b = b_.computation;
    const auto dtype = product_dtype(x_.computation(plan_.a).dtype, x_.computation(plan_.b).dtype);
    if (!dtype || plan_.a == plan_.b) return false;
    plan_.dtype = *dtype;
    return true;
  }

  AxisId longest(AxisSet set) const {
    AxisId best = kNone;
    for (AxisId f : set) {
      if (best == kNone || x_.extent(f) > x_.extent(best)) best = f;
    }
    return best;
  }

  bool find_axes() {
    const AxisSet reduced = x_.plan.computations[id_].reduced;
    const AxisSet kept = x_.tile_axes(id_);
    for (AxisId f : reduced | kept) {
      if (x_.extent(f) < 1) return false;
    }
    if (!(a_.axes & b_.axes).contains(reduced) || !(a_.axes | b_.axes).contains(kept)) return false;
    plan_.k = longest(reduced);
    plan_.m = longest((kept & a_.axes) - b_.axes);
    plan_.n = longest((kept & b_.axes) - a_.axes);
    if (plan_.k == kNone || plan_.m == kNone || plan_.n == kNone) return false;
    for (AxisId f : reduced) {
      if (f != plan_.k) plan_.outer_k.push_back(f);
    }
    return true;
  }

  // Of an atom along the axis.
  int64_t size_of(AxisId f) const {
    return f == plan_.m || f == plan_.k ? 16 : f == plan_.n ? 8 : 1;
  }
  int64_t atoms(AxisId f) const { return ceil_div(x_.extent(f), size_of(f)); }

  int64_t warps_of(AxisId f) const {
    for (const Mode& w : warps_) {
      if (w.axis == f) return w.extent;
    }
    return 1;
  }

  // As asked for; else to M, then N, then K, as long as there are atoms.
  void spread_warps() {
    int64_t unit = 1;
    for (const WarpSplit& split : x_.computation(id_).warps) {
      const auto& outer = plan_.outer_k;
      if (std::find(outer.begin(), outer.end(), split.factor) != outer.end()) continue;
      if (split.count <= 1 || warps_of(split.factor) > 1) continue;
      warps_.push_back({split.factor, split.count, 1, Holder::kWarp, unit});
      unit *= split.count;
    }
    const Computation& c = x_.computation(id_);
    if (!c.warps.empty()) return;
    if (c.accumulate_into != kNone) {
      // As the target, so that its partial sums can be added to.
      for (Mode w :
           warp_modes(x_.plan.computations[c.accumulate_into].partial, x_.tile_axes(id_))) {
        warps_.push_back(w);
      }
      return;
    }
    int64_t left = x_.kernel.warps;
    for (AxisId f : {plan_.m, plan_.n, plan_.k}) {
      int64_t count = 1;
      for (int64_t d = 2; d <= left; ++d) {
        if (left % d == 0 && d <= atoms(f)) count = d;
      }
      if (count == 1) continue;
      warps_.push_back({f, count, 1, Holder::kWarp, unit});
      unit *= count;
      left /= count;
    }
  }

  // Atoms of axis `f` in registers, then over warps; of a warp group the other way round, as its
  // four warps hold neighbouring rows.
  void place(Layout& layout, AxisId f, int64_t atom, int64_t& unit) const {
    if (plan_.warpgroup && f == plan_.m) return place_warpgroups(layout, unit);
    const int64_t warps = warps_of(f);
    const int64_t count = ceil_div(atoms(f) * size_of(f), warps * atom);
    if (count > 1) layout.modes.push_back({f, count, atom, Holder::kReg, unit});
    unit *= count;
    for (Mode w : warps_) {
      if (w.axis != f) continue;
      w.stride = atom * count;
      layout.modes.push_back(w);
    }
  }

  void place_warpgroups(Layout& layout, int64_t& unit) const {
    const int64_t warps = warps_of(plan_.m), count = atoms(plan_.m) / warps;
    layout.modes.push_back({plan_.m, 4, 16, Holder::kWarp, 1});
    if (count > 1) layout.modes.push_back({plan_.m, count, 64, Holder::kReg, unit});
    unit *= count;
    if (warps > 4) layout.modes.push_back({plan_.m, warps / 4, 64 * count, Holder::kWarp, 4});
  }

  // The 16 rows of an atom's M side: neighbours, or their halves, are of the same lanes.
  static void add_rows(Layout& layout, AxisId m, bool neighbours, int64_t unit) {
    layout.modes.push_back({m, 8, neighbours ? 2 : 1, Holder::kLane, 4});
    layout.modes.push_back({m, 2, neighbours ? 1 : 8, Holder::kReg, unit});
  }

  Layout accumulator() const {
    const AxisId m = plan_.m, n = plan_.n;
    const int64_t step = plan_.b_interleaved ? 2 : 1;
    Layout layout{{{n, 2, step, Holder::kReg, 1}, {n, 4, 2 * step, Holder::kLane, 1}}};
    add_rows(layout, m, plan_.a_interleaved, 2);
    int64_t unit = 4;
    if (plan_.b_interleaved) {
      layout.modes.push_back({n, 2, 1, Holder::kReg, unit});
      unit *= 2;
    }
    place(layout, n, 8 * step, unit);
    place(layout, m, 16, unit);
    for (AxisId f : x_.computation(id_).axes) {
      if (f != m && f != n) place(layout, f, 1, unit);
    }
    // Only the warps along k: its lanes are combined by the instruction.
    for (Mode w : warps_) {
      if (w.axis != plan_.k) continue;
      w.stride = 16 * ceil_div(atoms(plan_.k), w.extent);
      layout.modes.push_back(w);
    }
    return layout;
  }

  Layout fragment(AxisId row, bool a_side) const {
    const AxisId k = plan_.k;
    const bool pairs = !a_side && plan_.b_interleaved;
    Layout layout{{{k, 2, 1, Holder::kReg, 1}, {k, 4, 2, Holder::kLane, 1}}};
    if (a_side) {
      add_rows(layout, row, plan_.a_interleaved, 2);
    } else {
      layout.modes.push_back({row, 8, pairs ? 2 : 1, Holder::kLane, 4});
    }
    layout.modes.push_back({k, 2, 8, Holder::kReg, a_side ? 4 : 2});
    int64_t unit = a_side ? 8 : 4;
    place(layout, k, 16, unit);
    if (pairs) {
      layout.modes.push_back({row, 2, 1, Holder::kReg, unit});
      unit *= 2;
    }
    place(layout, row, a_side || pairs ? 16 : 8, unit);
    const AxisSet own = a_side ? a_.axes : b_.axes;
    for (AxisId f : own) {
      if (f != row && f != k) place(layout, f, 1, unit);
    }
    return layout;
  }

  bool held(const Operand& operand, const Layout& wanted) const {
    const ComputationPlan& o = x_.plan.computations[operand.computation];
    return o.in_registers && !x_.pending[operand.computation] &&
           x_.computation(operand.computation).dtype == plan_.dtype &&
           agrees(o.layout, wanted, operand.axes) && vector_mode(o.layout).axis == plan_.k &&
           vector_mode(o.layout).extent == 2;
  }

  const Context& x_;
  uint32_t id_;
  MmaPlan plan_;
  Operand a_, b_;
  std::vector<Mode> warps_;
};

// The fragments of an m x k operand whose other digits along m are those of `held`.
Layout row_fragments(const Layout& held, AxisId m, AxisId k, int64_t steps) {
  Layout layout{{{k, 2, 1, Holder::kReg, 1},
                 {k, 4, 2, Holder::kLane, 1},
                 {m, 8, 1, Holder::kLane, 4},
                 {m, 2, 8, Holder::kReg, 2},
                 {k, 2, 8, Holder::kReg, 4}}};
  int64_t unit = 8;
  if (steps > 1) layout.modes.push_back({k, steps, 16, Holder::kReg, unit});
  unit *= steps;
  for (Mode mode : held.modes) {
    if (mode.axis != m || mode.extent <= 1 || mode.stride < 16) continue;
    if (mode.holder == Holder::kReg) {
      mode.unit = unit;
      unit *= mode.extent;
    }
    layout.modes.push_back(mode);
  }
  return layout;
}

}  // namespace

std::optional<RowSum> plan_row_sum(const Context& context, uint32_t id) {
  const ComputationPlan& p = context.plan.computations[id];
  const Computation& c = context.computation(id);
  const ReduceTerm* reduce = root_reduction(context.kernel, id);
  const auto* local = std::get_if<LocalTerm>(&context.kernel.terms[reduce->operand]);
  if (p.mma || local == nullptr || reduce->kind != ReduceKind::kSum) return std::nullopt;
  if (c.dtype != DType::kF32 || c.storage != Storage::kReg || c.accumulate_into != kNone) {
    return std::nullopt;
  }
  const ComputationPlan& o = context.plan.computations[local->computation];
  const DType dtype = context.computation(local->computation).dtype;
  if (!o.in_registers || context.pending[local->computation]) return std::nullopt;
  if (dtype != DType::kF16 && dtype != DType::kBF16) return std::nullopt;
  const AxisSet kept = context.tile_axes(id), reduced = p.reduced;
  if (c.axes.size() != 1 || reduced.size() != 1 || !(o.layout == p.iteration)) return std::nullopt;
  RowSum sum{local->computation, *kept.begin(), *reduced.begin(), {}};
  const int64_t depth = context.extent(sum.k);
  if (depth % 16 != 0 || context.extent(sum.m) % 16 != 0) return std::nullopt;
  sum.a_layout = row_fragments(o.layout, sum.m, sum.k, depth / 16);
  const Mode run = vector_mode(o.layout);
  if (run.axis != sum.k || run.extent != 2) return std::nullopt;
  if (!agrees(o.layout, sum.a_layout, kept | reduced)) return std::nullopt;
  return sum;
}

std::optional<MmaPlan> plan_mma(const Context& context, uint32_t id, Layout& iteration) {
  return MmaPass(context, id).run(iteration);
}

}  // namespace sundog::planning
