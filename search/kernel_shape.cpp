// Nothing here is chosen but the set of loops.  The grid is what all outputs share.  A term's stage
// is the greatest of its operands', and one more where a reduction runs over a looped factor: what
// is before the loop, in it, accumulated by it, after it, and how many loops there are, is all read
// off that.  Without nests a term may vary along one looped factor only, so the sets of loops are
// the independent sets of a conflict graph; only maximal ones matter, since a loop may turn out to
// have one iteration.
//
// A loop stands inside another one where a reduction over it leaves a term that varies along the
// other: scores, summed along the head dimension, for each block of keys.  Where reductions ask for
// both orders there is no nest.  There is one inner axis at a time; what varies along it is
// computed in its loop, inside whatever loop the reader stands in, and stages are counted anew in
// each body.  Loops over output tiles around a reduction were best nowhere and took up to half as
// long again to search, so they are not among the nests that are tried by default.
//
// A bound part is another variable than a free one: a block that joins all partial sums of an axis
// may itself hold one part of that axis.  Items are marked where they are read with the whole
// factor.
#include "search/kernel_shape.h"

#include <algorithm>

namespace sundog::search {
namespace {

constexpr int64_t kShortestParallelLoop = 64;

class Shaper {
 public:
  Shaper(const Bank& bank, const TermTable& table, const KernelBody& body, Nests nests)
      : bank_(bank), table_(table), body_(body), nests_(nests) {
    position_.assign(table.terms.size(), -1);
    for (size_t i = 0; i < body.items.size(); ++i) {
      position_[static_cast<size_t>(body.items[i].term)] = static_cast<int>(i);
      all_ |= axes(i);
    }
    common_ = AxisSet(~uint64_t{0});
    for (int o : body.outputs) common_ = common_ & table.terms[static_cast<size_t>(o)].axes;
    for (AxisId a = 0; a < bank.axes().size(); ++a) {
      if (bank.axes()[a].level == Level::kPart) parts_.insert(a);
    }
  }

  std::vector<KernelShape> run() {
    if (!find_grid_parts()) return {};
    find_parallel();
    std::vector<AxisId> candidates;
    for (AxisId b = 0; b < bank_.base_count(); ++b) {
      if (may_loop(b)) candidates.push_back(b);
    }
    std::vector<KernelShape> shapes;
    for (AxisSet loops : loop_sets(candidates, kNoAxis)) add_shape(loops, kNoAxis, shapes);
    if (nests_ == Nests::kNone || candidates.size() < 2) return shapes;
    std::vector<AxisId> reduced;
    AxisSet parallel;
    for (AxisId b : candidates) {
      if (bank_.base(b).reduced) {
        reduced.push_back(b);
      } else {
        parallel.insert(b);
      }
    }
    for (AxisId inner : reduced) {
      for (AxisSet loops : loop_sets(reduced, inner)) add_shape(loops, inner, shapes);
    }
    if (nests_ == Nests::kReduced) return shapes;
    for (AxisId inner : reduced) {
      for (AxisSet loops : loop_sets(candidates, inner)) {
        if (!(loops & parallel).empty()) add_shape(loops, inner, shapes);
      }
    }
    return shapes;
  }

 private:
  const RankedTerm& term(size_t i) const {
    return table_.terms[static_cast<size_t>(body_.items[i].term)];
  }
  AxisSet axes(size_t i) const { return term(i).axes; }
  const RankedNode* node(size_t i) const {
    const int n = body_.items[i].node;
    return n < 0 ? nullptr : &term(i).nodes[static_cast<size_t>(n)];
  }
  AxisId reduced_axis(size_t i) const {
    const RankedNode* n = node(i);
    return n != nullptr && is_reduction(n->node.kind) ? n->node.axis : kNoAxis;
  }
  int position(int rank) const { return position_[static_cast<size_t>(rank)]; }

  void add_shape(AxisSet loops, AxisId inner, std::vector<KernelShape>& shapes) const {
    KernelShape shape = base_;
    shape.looped = loops;
    for (AxisId base : loops) shape.loop_factors.insert(loop_factor(base));
    if (inner != kNoAxis) {
      shape.looped.insert(inner);
      shape.inner_factors.insert(loop_factor(inner));
    }
    if (find_stages(shape)) shapes.push_back(std::move(shape));
  }

  bool find_grid_parts() {
    const size_t n = body_.items.size();
    base_.grid_parts = common_ & parts_;
    base_.whole_parts.assign(n, {});
    std::vector<AxisSet> own(n);
    for (int o : body_.outputs) {
      if (position(o) >= 0)
        own[static_cast<size_t>(position(o))] |= table_.terms[static_cast<size_t>(o)].axes & parts_;
    }
    auto& whole = base_.whole_parts;
    for (size_t i = 0; i < n; ++i) {
      const RankedNode* nd = node(i);
      if (nd == nullptr) continue;
      AxisSet bound;
      if (const AxisId a = reduced_axis(i); a != kNoAxis && parts_.has(a)) bound.insert(a);
      for (int o : nd->operands) {
        if (position(o) < 0) continue;
        const auto p = static_cast<size_t>(position(o));
        whole[p] |= (whole[i] | bound) & axes(p);
        own[p] |= (own[i] & axes(p)) - bound;
      }
    }
    for (size_t i = 0; i < n; ++i) {
      if (node(i) == nullptr) continue;
      base_.grid_parts = base_.grid_parts - (whole[i] & own[i]);
      const AxisId a = reduced_axis(i);
      if (a == kNoAxis || parts_.has(a)) continue;
      const AxisId part = bank_.base(bank_.axes()[a].base).part;
      if (part != kNoAxis && whole[i].has(part)) return false;
    }
    for (size_t i = 0; i < n; ++i) {
      if (!(((axes(i) & parts_) - base_.grid_parts) - whole[i]).empty()) return false;
    }
    return true;
  }

  void find_parallel() {
    for (AxisId b = 0; b < bank_.base_count(); ++b) {
      const BaseAxis& base = bank_.base(b);
      if (!base.reduced || !all_.has(base.tile) || !common_.contains(base.all)) continue;
      bool reduced_here = false;
      for (size_t i = 0; i < body_.items.size(); ++i) {
        const AxisId a = reduced_axis(i);
        reduced_here = reduced_here || (a != kNoAxis && (a == base.tile || a == base.step));
      }
      if (!reduced_here) base_.parallel.insert(b);
    }
  }

  AxisId loop_factor(AxisId base) const {
    const BaseAxis& b = bank_.base(base);
    return b.reduced ? b.step : b.whole;
  }

  bool may_loop(AxisId b) const {
    const BaseAxis& base = bank_.base(b);
    if (base_.parallel.has(b)) return false;
    if (base.reduced) return base.step != kNoAxis && all_.has(base.step);
    // A parallel axis loops only where something is kept from one iteration to the next.
    if (!all_.has(base.whole) || bank_.program().axes[b].extent <= kShortestParallelLoop)
      return false;
    for (size_t i = 0; i < body_.items.size(); ++i) {
      if (node(i) != nullptr && !axes(i).empty() && !axes(i).has(base.whole)) return true;
    }
    return false;
  }

  // Whether loops over these axes can stand in one kernel, none of them in another one; and, if
  // there is an inner axis, whether its loop stands in one of each of them.
  bool may_stand(AxisSet loops, AxisId inner) const {
    AxisSet factors, around;
    for (AxisId base : loops) factors.insert(loop_factor(base));
    const AxisId within = inner == kNoAxis ? kNoAxis : loop_factor(inner);
    for (size_t i = 0; i < body_.items.size(); ++i) {
      const AxisSet here = axes(i) & factors;
      if (here.size() > 1) return false;
      if (inner == kNoAxis) continue;
      const AxisId reduced = reduced_axis(i);
      if (reduced == within) around |= here;
      if (reduced != kNoAxis && factors.has(reduced) && axes(i).has(within)) return false;
    }
    return inner == kNoAxis || (!factors.empty() && around == factors);
  }

  std::vector<AxisSet> loop_sets(const std::vector<AxisId>& all, AxisId inner) const {
    std::vector<AxisId> candidates;
    AxisSet optional;
    for (AxisId b : all) {
      if (b == inner) continue;
      candidates.push_back(b);
      if (!bank_.base(b).reduced) optional.insert(b);
    }
    std::vector<AxisSet> free;
    for (uint64_t s = 0; s < uint64_t{1} << candidates.size(); ++s) {
      AxisSet bases;
      for (size_t i = 0; i < candidates.size(); ++i) {
        if ((s >> i & 1) != 0) bases.insert(candidates[i]);
      }
      if (may_stand(bases, inner)) free.push_back(bases);
    }
    std::vector<AxisSet> maximal;
    for (AxisSet s : free) {
      const bool smaller = std::any_of(free.begin(), free.end(), [&](AxisSet t) {
        return !(t == s) && t.contains(s) && ((t - s) & optional).empty();
      });
      if (!smaller) maximal.push_back(s);
    }
    return maximal;
  }

  bool over(size_t i, AxisSet factors) const {
    const AxisId a = reduced_axis(i);
    return a != kNoAxis && factors.has(a);
  }

  bool find_stages(KernelShape& shape) const {
    const size_t n = body_.items.size();
    shape.stage.assign(n, 0);
    shape.events.assign(n, 0);
    for (size_t i = n; i-- > 0;) {
      const RankedNode* nd = node(i);
      if (nd == nullptr) continue;
      for (int o : nd->operands) {
        if (position(o) >= 0) {
          shape.stage[i] = std::max(shape.stage[i], shape.stage[static_cast<size_t>(position(o))]);
        }
      }
      // Nothing is rescaled in an inner loop.
      if (nd->node.kind == NodeKind::kOnlineSum && !over(i, shape.loop_factors)) return false;
      if (over(i, shape.loop_factors)) ++shape.stage[i];
    }
    for (size_t i = 0; i < n; ++i) {
      const bool is_output = std::find(body_.outputs.begin(), body_.outputs.end(),
                                       body_.items[i].term) != body_.outputs.end();
      if (is_output) shape.events[i] |= uint32_t{1} << shape.stage[i];
      const RankedNode* nd = node(i);
      if (nd == nullptr) continue;
      uint32_t at = uint32_t{1} << shape.stage[i];
      if (over(i, shape.loop_factors)) {
        at = uint32_t{1} << (shape.stage[i] - 1);
      } else if (!(axes(i) & shape.loop_factors).empty()) {
        at = shape.events[i];
      }
      for (int o : nd->operands) {
        if (position(o) >= 0) shape.events[static_cast<size_t>(position(o))] |= at;
      }
    }
    find_inner_stages(shape);
    return true;
  }

  // Only inner loops of the same body, or stretch, have to end: what is made elsewhere is known
  // when it begins.
  void find_inner_stages(KernelShape& shape) const {
    const size_t n = body_.items.size();
    shape.inner_at.assign(n, 0);
    shape.inner_stage.assign(n, 0);
    const auto in_loop = [&](size_t i) { return !(axes(i) & shape.loop_factors).empty(); };
    for (size_t i = n; i-- > 0;) {
      const RankedNode* nd = node(i);
      if (nd == nullptr) continue;
      const bool ends_loop = over(i, shape.loop_factors);
      for (int o : nd->operands) {
        if (position(o) < 0) continue;
        const auto p = static_cast<size_t>(position(o));
        const bool beside =
            ends_loop || in_loop(i) ? in_loop(p) : !in_loop(p) && shape.stage[p] == shape.stage[i];
        if (beside) shape.inner_at[i] = std::max(shape.inner_at[i], shape.inner_stage[p]);
      }
      if (ends_loop) continue;
      shape.inner_stage[i] = shape.inner_at[i] + (over(i, shape.inner_factors) ? 1 : 0);
    }
  }

  const Bank& bank_;
  const TermTable& table_;
  const KernelBody& body_;
  const Nests nests_;
  std::vector<int> position_;
  AxisSet all_, common_, parts_;
  KernelShape base_;
};

}  // namespace

std::vector<KernelShape> kernel_shapes(const Bank& bank, const TermTable& table,
                                       const KernelBody& body, Nests nests) {
  return Shaper(bank, table, body, nests).run();
}

}  // namespace sundog::search
