#include "core/text_kernel_factors.h"

#include <algorithm>

#include "core/check.h"

namespace sundog::text {
namespace {

AxisSet used_in(const std::vector<Statement>& body) {
  AxisSet used;
  for (const Statement& statement : body) {
    if (const auto* store = std::get_if<Store>(&statement.node)) {
      for (const IndexExpr& e : store->index) used |= e.axis_set();
    } else if (const auto* loop = std::get_if<Loop>(&statement.node)) {
      used.insert(loop->factor);
      for (const IndexCondition& condition : loop->trim) used |= condition.expr.axis_set();
      used |= used_in(loop->body);
    }
  }
  return used;
}

AxisSet used_in(const Term& term) {
  AxisSet used;
  if (const auto* input = std::get_if<InputTerm>(&term)) {
    for (const IndexExpr& e : input->index) used |= e.axis_set();
  } else if (const auto* reduce = std::get_if<ReduceTerm>(&term)) {
    used = reduce->axes;
  } else if (const auto* index = std::get_if<IndexTerm>(&term)) {
    used = index->index.axis_set();
  } else if (const auto* select = std::get_if<SelectTerm>(&term)) {
    used = select->condition.expr.axis_set();
  }
  return used;
}

// Replaces factor ids everywhere.
class Remapping {
 public:
  Remapping(size_t old_count, const std::vector<AxisId>& keep) : map_(old_count, kNone) {
    for (size_t i = 0; i < keep.size(); ++i) map_[keep[i]] = static_cast<AxisId>(i);
  }

  const std::vector<AxisId>& map() const { return map_; }

  AxisId operator()(AxisId old) const {
    SUNDOG_CHECK(map_[old] != kNone);
    return map_[old];
  }
  AxisSet operator()(AxisSet old) const {
    AxisSet result;
    for (AxisId axis : old) result.insert((*this)(axis));
    return result;
  }
  IndexExpr operator()(const IndexExpr& old) const {
    IndexExpr result{old.constant, {}, old.sizes};
    for (const auto& item : old.axes) {
      result = result + IndexExpr::of((*this)(item.axis)) * item.coefficient;
    }
    return result;
  }
  template <class T>
  void each(std::vector<T>& list) const {
    for (T& entry : list) entry = (*this)(entry);
  }

  Term operator()(Term term) const {
    if (auto* input = std::get_if<InputTerm>(&term)) {
      each(input->index);
    } else if (auto* local = std::get_if<LocalTerm>(&term)) {
      local->axes = (*this)(local->axes);
    } else if (auto* reduce = std::get_if<ReduceTerm>(&term)) {
      reduce->axes = (*this)(reduce->axes);
    } else if (auto* index = std::get_if<IndexTerm>(&term)) {
      index->index = (*this)(index->index);
    } else if (auto* select = std::get_if<SelectTerm>(&term)) {
      select->condition.expr = (*this)(select->condition.expr);
    }
    return term;
  }

  void body(std::vector<Statement>& statements) const {
    for (Statement& statement : statements) {
      if (auto* store = std::get_if<Store>(&statement.node)) {
        each(store->index);
      } else if (auto* loop = std::get_if<Loop>(&statement.node)) {
        loop->factor = (*this)(loop->factor);
        for (IndexCondition& condition : loop->trim) condition.expr = (*this)(condition.expr);
        body(loop->body);
      }
    }
  }

 private:
  std::vector<AxisId> map_;
};

}  // namespace

std::vector<AxisId> factors_in_use(const Kernel& kernel) {
  AxisSet used = used_in(kernel.body);
  for (AxisId f : kernel.grid) used.insert(f);
  for (const Computation& c : kernel.computations) {
    for (AxisId f : c.axes) used.insert(f);
    for (const WarpSplit& split : c.warps) used.insert(split.factor);
  }
  for (TermId t = 0; t < kernel.terms.size(); ++t) used |= used_in(kernel.terms[t]);
  std::vector<AxisId> axes;
  for (AxisId f : used) axes.push_back(kernel.factors[f].axis);
  std::sort(axes.begin(), axes.end());
  axes.erase(std::unique(axes.begin(), axes.end()), axes.end());
  std::vector<AxisId> result;
  for (AxisId axis : axes) {
    for (AxisId f : factors_of(kernel, axis)) result.push_back(f);
  }
  return result;
}

std::vector<AxisId> keep_factors(Kernel& kernel, const std::vector<AxisId>& keep) {
  const Remapping remap(kernel.factors.size(), keep);
  std::vector<Factor> factors;
  for (AxisId f : keep) factors.push_back(kernel.factors[f]);
  kernel.factors = std::move(factors);
  remap.each(kernel.grid);
  for (Computation& c : kernel.computations) {
    remap.each(c.axes);
    for (WarpSplit& split : c.warps) split.factor = remap(split.factor);
  }
  // Operand ids stay: distinct terms remain distinct.
  TermGraph terms;
  for (TermId t = 0; t < kernel.terms.size(); ++t) terms.push(remap(kernel.terms[t]));
  SUNDOG_CHECK(terms.size() == kernel.terms.size());
  kernel.terms = std::move(terms);
  remap.body(kernel.body);
  return remap.map();
}

}  // namespace sundog::text
