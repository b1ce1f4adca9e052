// Each block of a cluster has all of the partial results of the others at hand and could add up any
// of them.  Work is cut along an axis that every result has and nothing is reduced over; what lacks
// it (the sum of squares of a row, in a share of the columns) is computed in each share.
#include "search/shares.h"

#include <algorithm>

#include "core/check.h"
#include "search/term_copy.h"

namespace sundog::search {
namespace {

AxisSet reduced_factors(const Kernel& kernel) {
  AxisSet reduced;
  for (const Computation& c : kernel.computations) {
    const auto* reduce = std::get_if<ReduceTerm>(&kernel.terms[c.value]);
    if (reduce != nullptr) reduced |= reduce->axes;
  }
  return reduced;
}

AxisSet loop_factors(const Kernel& kernel) {
  AxisSet loops;
  for (const std::vector<AxisId>& around : enclosing_loops(kernel)) loops |= AxisSet::of(around);
  return loops;
}

int64_t largest_divisor(int64_t extent, int64_t most) {
  int64_t d = std::min(extent, most);
  while (d > 1 && extent % d != 0) --d;
  return std::max<int64_t>(d, 1);
}

class Cutter {
 public:
  Cutter(const Kernel& kernel, const ShareFactor& cut)
      : from_(kernel), cut_(cut), copier_(from_.terms, to_.terms, index_of()) {}

  Kernel run() {
    to_.name = from_.name;
    to_.warps = from_.warps;
    cut_factors();
    for (AxisId f : from_.grid) to_.grid.push_back(moved(f));
    to_.grid.push_back(cut_.factor);
    copier_.replace = [&](TermId t) -> std::optional<TermId> {
      const auto* local = std::get_if<LocalTerm>(&from_.terms[t]);
      if (local == nullptr) return {};
      return to_.terms.local(local->computation, tile(local->axes));
    };
    to_.computations = from_.computations;
    for (Computation& c : to_.computations) {
      SUNDOG_CHECK(c.warps.empty());
      for (AxisId& f : c.axes) f = moved(f);
      c.value = copier_.copy(c.value);
    }
    to_.body = from_.body;
    move_body(to_.body);
    return std::move(to_);
  }

 private:
  // The share stands in front of the tile, which is what the factor becomes.
  AxisId moved(AxisId f) const { return f < cut_.factor ? f : f + 1; }
  int64_t tile_extent() const { return from_.factors[cut_.factor].extent / cut_.shares; }

  AxisSet tile(AxisSet factors) const {
    AxisSet out;
    for (AxisId f : factors) out.insert(moved(f));
    return out;
  }

  std::vector<IndexExpr> index_of() const {
    std::vector<IndexExpr> index;
    for (AxisId f = 0; f < from_.factors.size(); ++f) index.push_back(IndexExpr::of(moved(f)));
    index[cut_.factor] = IndexExpr::of(cut_.factor) * tile_extent() + index[cut_.factor];
    return index;
  }

  void cut_factors() {
    to_.factors = from_.factors;
    Factor& inner = to_.factors[cut_.factor];
    const size_t dot = inner.name.rfind('.');
    const std::string base = inner.name.substr(0, dot);
    Factor share{base + ".c", inner.axis, cut_.shares, inner.stride * tile_extent()};
    inner.extent = tile_extent();
    if (dot == std::string::npos) inner.name += ".i";
    to_.factors.insert(to_.factors.begin() + cut_.factor, std::move(share));
  }

  void move_body(std::vector<Statement>& body) {
    for (Statement& s : body) {
      if (auto* store = std::get_if<Store>(&s.node)) {
        for (IndexExpr& e : store->index) e = copier_.copy(e);
      } else if (auto* loop = std::get_if<Loop>(&s.node)) {
        loop->factor = moved(loop->factor);
        for (IndexCondition& c : loop->trim) c.expr = copier_.copy(c.expr);
        move_body(loop->body);
      }
    }
  }

  const Kernel& from_;
  const ShareFactor cut_;
  Kernel to_;
  TermCopier copier_;
};

}  // namespace

std::optional<ShareFactor> share_factor(const MuGraph& graph, const Kernel& kernel, int64_t most) {
  if (most < 2) return std::nullopt;
  const AxisSet no = reduced_factors(kernel) | loop_factors(kernel) | AxisSet::of(kernel.grid);
  const std::vector<const Store*> stores = stores_of(kernel);
  std::optional<ShareFactor> best;
  bool best_is_contiguous = false;
  for (AxisId f = 0; f < kernel.factors.size(); ++f) {
    const auto has = [&](const Store* s) {
      return std::any_of(s->index.begin(), s->index.end(),
                         [&](const IndexExpr& e) { return e.axis_set().has(f); });
    };
    const bool partial = graph.axes[kernel.factors[f].axis].kernel != kNone;
    if (partial || no.has(f) || !std::all_of(stores.begin(), stores.end(), has)) continue;
    const int64_t shares = largest_divisor(kernel.factors[f].extent, most);
    if (shares < 2) continue;
    // Of equals one that leaves rows in memory whole.
    const bool contiguous = std::any_of(stores.begin(), stores.end(), [&](const Store* s) {
      return !s->index.empty() && s->index.back().axis_set().has(f) &&
             strides_of(graph.tensors[s->tensor].decl).back() == 1;
    });
    if (best && (shares < best->shares || (shares == best->shares && !best_is_contiguous))) {
      continue;
    }
    best = ShareFactor{f, shares};
    best_is_contiguous = contiguous;
  }
  return best;
}

Kernel cut_into_shares(const Kernel& kernel, const ShareFactor& cut) {
  return Cutter(kernel, cut).run();
}

}  // namespace sundog::search
