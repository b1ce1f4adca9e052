#include "core/axis.h"

#include <algorithm>

#include "core/check.h"

namespace sundog {
namespace {

// Adds factor * (axis, coefficient) to a sorted list, dropping what cancels.
void accumulate(std::vector<IndexExpr::Item>& list, AxisId axis, int64_t coefficient) {
  auto at = std::lower_bound(
      list.begin(), list.end(), axis,
      [](const IndexExpr::Item& item, AxisId wanted) { return item.axis < wanted; });
  if (at == list.end() || at->axis != axis) {
    if (coefficient != 0) list.insert(at, {axis, coefficient});
    return;
  }
  at->coefficient += coefficient;
  if (at->coefficient == 0) list.erase(at);
}

void accumulate(IndexExpr& to, const IndexExpr& from, int64_t factor) {
  to.constant += factor * from.constant;
  for (const auto& item : from.axes) accumulate(to.axes, item.axis, factor * item.coefficient);
  for (const auto& item : from.sizes) accumulate(to.sizes, item.axis, factor * item.coefficient);
}

}  // namespace

bool IndexExpr::is_axis(AxisId* axis) const {
  if (constant != 0 || !sizes.empty() || axes.size() != 1 || axes[0].coefficient != 1) return false;
  if (axis != nullptr) *axis = axes[0].axis;
  return true;
}

AxisSet IndexExpr::axis_set() const {
  AxisSet set;
  for (const auto& item : axes) set.insert(item.axis);
  return set;
}

IndexExpr operator+(const IndexExpr& a, const IndexExpr& b) {
  IndexExpr r = a;
  accumulate(r, b, 1);
  return r;
}

IndexExpr operator-(const IndexExpr& a, const IndexExpr& b) {
  IndexExpr r = a;
  accumulate(r, b, -1);
  return r;
}

IndexExpr operator*(const IndexExpr& a, int64_t factor) {
  IndexExpr r;
  accumulate(r, a, factor);
  return r;
}

IndexExpr substitute(const IndexExpr& e, const std::vector<IndexExpr>& replacement) {
  IndexExpr r{e.constant, {}, e.sizes};
  for (const auto& item : e.axes) accumulate(r, replacement[item.axis], item.coefficient);
  return r;
}

int64_t evaluate(const IndexExpr& e, const std::vector<int64_t>& index,
                 const std::vector<int64_t>& size_of) {
  int64_t value = e.constant;
  for (const auto& item : e.axes) value += item.coefficient * index[item.axis];
  for (const auto& item : e.sizes) value += item.coefficient * size_of[item.axis];
  return value;
}

bool holds(const IndexCondition& c, const std::vector<int64_t>& index,
           const std::vector<int64_t>& size_of) {
  return holds(c.relation, evaluate(c.expr, index, size_of), int64_t{0});
}

}  // namespace sundog
