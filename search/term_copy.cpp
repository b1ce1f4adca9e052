// Copying is a fold over the term: shared subterms are copied once, so the copy has the sharing of
// the original.  A reduction all of whose factors have been dropped is its operand: the kernels of
// one block or one iteration need no case of their own.
#include "search/term_copy.h"

#include <algorithm>
#include <type_traits>

namespace sundog::search {

AxisSet TermCopier::copy(AxisSet axes) const {
  if (same_axes_) return axes;
  AxisSet out;
  for (AxisId a : axes) out |= index_of_[a].axis_set();
  return out;
}

TermId TermCopier::copy(TermId term) {
  if (term < done_.size() && done_[term] != kNoTerm) return done_[term];
  std::optional<TermId> given;
  if (replace) given = replace(term);
  TermId made = kNoTerm;
  if (given) {
    made = *given;
  } else if (from_ == to_) {
    const Term here = (*from_)[term];  // pushing moves the terms of the graph
    made = copy_anew(here);
  } else {
    made = copy_anew((*from_)[term]);
  }
  if (term >= done_.size()) done_.resize(std::max<size_t>(from_->size(), term + 1), kNoTerm);
  done_[term] = made;
  return made;
}

TermId TermCopier::copy_anew(const Term& term) {
  return std::visit(
      [&]<class T>(const T& t) -> TermId {
        if constexpr (std::is_same_v<T, InputTerm>) {
          InputTerm out{t.tensor, {}};
          for (const IndexExpr& e : t.index) out.index.push_back(copy(e));
          return to_->push(std::move(out));
        } else if constexpr (std::is_same_v<T, LocalTerm>) {
          return to_->push(LocalTerm{t.computation, copy(t.axes)});
        } else if constexpr (std::is_same_v<T, ConstantTerm> || std::is_same_v<T, SizeTerm>) {
          return to_->push(t);
        } else if constexpr (std::is_same_v<T, IndexTerm>) {
          return to_->push(IndexTerm{copy(t.index)});
        } else if constexpr (std::is_same_v<T, ApplyTerm>) {
          ApplyTerm out{t.op, {}};
          for (TermId o : t.operands) out.operands.push_back(copy(o));
          return to_->push(std::move(out));
        } else if constexpr (std::is_same_v<T, ReduceTerm>) {
          const AxisSet axes = copy(t.axes);
          const TermId operand = copy(t.operand);
          if (axes.empty() && !t.axes.empty()) return operand;
          return to_->push(ReduceTerm{t.kind, axes, operand});
        } else if constexpr (std::is_same_v<T, SelectTerm>) {
          const IndexCondition c{copy(t.condition.expr), t.condition.relation};
          const TermId then = copy(t.then), otherwise = copy(t.otherwise);
          return to_->push(SelectTerm{c, then, otherwise});
        } else {
          static_assert(std::is_same_v<T, CompareTerm>);
          const TermId l = copy(t.left), r = copy(t.right);
          const TermId then = copy(t.then), otherwise = copy(t.otherwise);
          return to_->push(CompareTerm{t.relation, l, r, then, otherwise});
        }
      },
      term);
}

void read_instead(Kernel& kernel, uint32_t reader, uint32_t from, uint32_t to) {
  TermCopier copier(kernel.terms, kernel.terms);
  copier.replace = [&](TermId t) -> std::optional<TermId> {
    const auto* local = std::get_if<LocalTerm>(&kernel.terms[t]);
    if (local == nullptr || local->computation != from) return {};
    const AxisSet axes = local->axes;  // pushing moves the terms of the graph
    return kernel.terms.local(to, axes);
  };
  kernel.computations[reader].value = copier.copy(kernel.computations[reader].value);
}

}  // namespace sundog::search
