// Which terms of a kernel get a computation of their own, and which partial maxima may be read as
// running ones.
//
// A term is computed once and kept if several read it, if it is stored or reduced, if it is an
// operand of a matrix product (which reads tiles), or if its readers would compute it again along
// an axis that it does not have.  All else is written into its reader, and so is a product of what
// has a computation that only reductions and one other read: a scaled score is a factor of its
// maximum and of the exponent, which costs nothing in either.
//
// In online softmax each iteration has its own maximum m of scores, and what it adds is exp(s - m)
// times something.  Taking the running maximum R in the place of m scales what is added by exp(m -
// R), which is just what rescaling asks for, provided that m enters what is added through exactly
// one factor exp(.. - m).  That is checked here; where it fails, the factor exp(m - R) is written
// out.
#include <algorithm>

#include "search/kernel_lowerer.h"

namespace sundog::search {

void KernelLowerer::count_uses() {
  uses_.assign(table_.terms.size(), 0);
  for (const BodyItem& item : body_.items) {
    const RankedNode* n = node(item.term);
    if (n == nullptr) continue;
    for (int o : n->operands) ++uses_[static_cast<size_t>(o)];
  }
  // What reductions write in place and one other reader, computed as often, can write in place,
  // too.
  std::vector<int> reductions(uses_.size(), 0), alike(uses_.size(), 0);
  for (const BodyItem& item : body_.items) {
    const RankedNode* n = node(item.term);
    if (n == nullptr) continue;
    const bool reduces = is_reduction(n->node.kind);
    for (int o : n->operands) {
      const bool as_often = term(item.term).axes == term(o).axes;
      reductions[static_cast<size_t>(o)] += reduces ? 1 : 0;
      alike[static_cast<size_t>(o)] += !reduces && as_often ? 1 : 0;
    }
  }
  for (size_t rank = 0; rank < uses_.size(); ++rank) {
    const int others = uses_[rank] - reductions[rank];
    const bool in_place = reductions[rank] > 0 && others == 1 && alike[rank] == 1;
    if (in_place && written_in_place(static_cast<int>(rank))) uses_[rank] = others;
  }
}

// A product, or a multiple, of terms that need not be computed for it, or one that a mask cuts.
bool KernelLowerer::written_in_place(int rank) const {
  const RankedNode* n = node(rank);
  if (n == nullptr) return false;
  if (n->node.kind == NodeKind::kOpaque) {
    const bool selects = std::holds_alternative<SelectTerm>(bank_.opaque(n->node.opaque).term);
    const int then = n->operands[0];
    return selects && term(n->operands[1]).leaf == LeafKind::kConstant && !term(then).inline_only &&
           uses_[static_cast<size_t>(then)] == 1 && !has_kind(then, NodeKind::kOpaque) &&
           written_in_place(then);
  }
  if (n->node.kind != NodeKind::kProduct && n->node.kind != NodeKind::kScale) return false;
  return std::all_of(n->operands.begin(), n->operands.end(), [&](int o) {
    const RankedNode* operand = node(o);
    return operand == nullptr || is_reduction(operand->node.kind) || term(o).axes.empty();
  });
}

void KernelLowerer::mark_operands() {
  for (const BodyItem& item : body_.items) {
    if (!has_kind(item.term, NodeKind::kSum)) continue;
    const int summed = node(item.term)->operands[0];
    if (!has_kind(summed, NodeKind::kProduct)) continue;
    const RankedNode* product = node(summed);
    const int a = product->operands[0], b = product->operands[1];
    if (a == b || term(a).axes == term(b).axes) continue;
    for (int o : {a, b}) {
      if (!term(o).axes.empty() && !term(o).inline_only) operands_.insert(o);
    }
  }
}

void KernelLowerer::mark_invariants() {
  for (const BodyItem& item : body_.items) {
    const RankedNode* n = node(item.term);
    if (n == nullptr) continue;
    AxisSet domain = term(item.term).axes;
    for (int o : n->operands) domain |= term(o).axes;
    for (int o : n->operands) {
      if (node(o) == nullptr || term(o).inline_only) continue;
      const bool wider = !(domain - term(o).axes).empty();
      if (wider && is_reduction(n->node.kind) && !has_kind(o, NodeKind::kProduct)) {
        invariants_.insert(o);
      }
      if (is_deeper(item.term, o)) invariants_.insert(o);
    }
  }
}

bool KernelLowerer::wants_computation(int rank) const {
  if (term(rank).inline_only || node(rank) == nullptr) return is_output(rank);
  return is_output(rank) || uses_[static_cast<size_t>(rank)] > 1 || operands_.contains(rank) ||
         invariants_.contains(rank);
}

void KernelLowerer::mark_running_maxima() {
  for (const BodyItem& item : body_.items) {
    if (!has_kind(item.term, NodeKind::kOnlineSum)) continue;
    const int m = node(item.term)->operands[0];
    if (may_run(m)) running_.insert(m);
  }
}

// Every reader of the partial maximum is an online sum of it, its maximum over the loop, or a
// difference whose exp is one factor of what online sums of it add up.
bool KernelLowerer::may_run(int m) const {
  if (is_output(m) || !has_kind(m, NodeKind::kMax)) return false;
  for (const BodyItem& item : body_.items) {
    const RankedNode* n = node(item.term);
    if (n == nullptr || std::find(n->operands.begin(), n->operands.end(), m) == n->operands.end())
      continue;
    if (n->node.kind == NodeKind::kOnlineSum && n->operands[0] == m && n->operands[1] != m)
      continue;
    if (n->node.kind == NodeKind::kMax && shape_.loop_factors.has(n->node.axis)) continue;
    if (n->node.kind != NodeKind::kLinear || is_output(item.term)) return false;
    const bool minus =
        n->operands[1] == m ? n->node.cb.negated().is_one() : n->node.ca.negated().is_one();
    if (!minus || n->operands[0] == n->operands[1]) return false;
    for (const BodyItem& reader : body_.items) {
      const RankedNode* r = node(reader.term);
      if (r == nullptr ||
          std::find(r->operands.begin(), r->operands.end(), item.term) == r->operands.end())
        continue;
      if (r->node.kind != NodeKind::kExp || !reaches_online_sums(reader.term, m)) return false;
    }
  }
  return true;
}

bool KernelLowerer::reaches_online_sums(int rank, int m) const {
  if (is_output(rank)) return false;
  for (const BodyItem& item : body_.items) {
    const RankedNode* n = node(item.term);
    if (n == nullptr) continue;
    const auto reads = std::count(n->operands.begin(), n->operands.end(), rank);
    if (reads == 0) continue;
    if (reads > 1) return false;
    switch (n->node.kind) {
      case NodeKind::kOnlineSum:
        if (n->operands[0] != m || n->operands[1] != rank) return false;
        break;
      case NodeKind::kSum:
        if (shape_.loop_factors.has(n->node.axis)) return false;
        [[fallthrough]];
      case NodeKind::kScale:
        if (!reaches_online_sums(item.term, m)) return false;
        break;
      case NodeKind::kProduct: {
        // The other factor must not contain the exponential too.
        const int other = n->operands[0] == rank ? n->operands[1] : n->operands[0];
        std::vector<int> below = {other};
        for (size_t i = 0; i < below.size(); ++i) {
          if (below[i] == m) return false;
          if (const RankedNode* b = node(below[i])) {
            below.insert(below.end(), b->operands.begin(), b->operands.end());
          }
        }
        if (!reaches_online_sums(item.term, m)) return false;
        break;
      }
      case NodeKind::kLinear:
      case NodeKind::kExp:
      case NodeKind::kReciprocal:
      case NodeKind::kOpaque:
      case NodeKind::kMax:
        return false;
    }
  }
  return true;
}

}  // namespace sundog::search
