// Conditions on one axis make a box of intervals, on which an affine index takes its extremes at
// corners.  A condition on two axes, an equation or one on values is not looked into: a read under
// it is taken to be right, and found wrong, if it is, when the program is evaluated.
#include "core/text_guards.h"

#include <algorithm>

#include "core/arithmetic.h"
#include "core/text_limits.h"

namespace sundog::text {
namespace {

struct Interval {
  int64_t low = 0, high = 0;
};

// Narrows the interval of the only axis of the condition; false if there is no such axis.
bool narrow(const IndexCondition& c, bool holds, const std::vector<int64_t>& extents,
            std::vector<Interval>& box) {
  const bool ordered = c.relation == Relation::kLess || c.relation == Relation::kLessEqual;
  if (!ordered || c.expr.axes.size() > 1) return false;
  IndexExpr rest = c.expr;
  rest.axes.clear();
  const auto constant = index_range(rest, extents);
  if (!constant) return false;
  // coefficient * i <= most where it holds, coefficient * i >= least where it does not.
  const int64_t most = -constant->first - (c.relation == Relation::kLess ? 1 : 0);
  const int64_t least = most + 1;
  if (c.expr.axes.empty()) {
    if ((0 <= most) != holds) box.assign(box.size(), {0, -1});
    return true;
  }
  const auto [axis, coefficient] = c.expr.axes[0];
  Interval& i = box[axis];
  if (holds == (coefficient > 0)) {
    const int64_t bound = holds ? floor_div(most, coefficient) : floor_div(-least, -coefficient);
    i.high = std::min(i.high, bound);
  } else {
    const int64_t bound = holds ? -floor_div(most, -coefficient) : -floor_div(-least, coefficient);
    i.low = std::max(i.low, bound);
  }
  return true;
}

}  // namespace

std::optional<std::pair<int64_t, int64_t>> Guards::range(
    const IndexExpr& e, const std::vector<int64_t>& extents) const {
  if (guards_.empty()) return index_range(e, extents);
  std::vector<Interval> box;
  for (const int64_t extent : extents) box.push_back({0, extent - 1});
  for (const Guard& guard : guards_) {
    if (!guard.condition || !narrow(*guard.condition, guard.holds, extents, box)) return {};
  }
  if (std::any_of(box.begin(), box.end(), [](const Interval& i) { return i.low > i.high; })) {
    return {};
  }
  // The same index from the low corner of the box on.
  IndexExpr moved = e;
  std::vector<int64_t> lengths = extents;
  for (const auto& item : e.axes) {
    moved.constant += item.coefficient * box[item.axis].low;
    lengths[item.axis] = box[item.axis].high - box[item.axis].low + 1;
  }
  for (const auto& item : e.sizes) moved.constant += item.coefficient * extents[item.axis];
  moved.sizes.clear();
  return index_range(moved, lengths);
}

int Guards::hide(AxisSet axes) {
  const bool concerned = std::any_of(guards_.begin(), guards_.end(), [&](const Guard& guard) {
    return guard.condition && !(guard.condition->expr.axis_set() & axes).empty();
  });
  if (!concerned) return 0;
  push_unknown();
  return 1;
}

}  // namespace sundog::text
