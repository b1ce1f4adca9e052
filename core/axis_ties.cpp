#include "core/axis_ties.h"

#include <algorithm>

#include "core/check.h"

namespace sundog {

AxisTies::AxisTies(size_t axes) {
  for (uint32_t axis = 0; axis < axes; ++axis) parent_.push_back({axis, 1, 0});
}

AxisTies::Form AxisTies::of(uint32_t axis) const {
  Form form = parent_[axis];
  while (parent_[form.root].root != form.root) {
    const Form& next = parent_[form.root];
    form = {next.root, form.scale * next.scale, form.scale * next.offset + form.offset};
  }
  return form;
}

bool AxisTies::tie(uint32_t a, uint32_t b, int64_t scale, int64_t offset) {
  SUNDOG_CHECK(scale >= 1);
  const Form x = of(a), y = of(b);
  // x.scale * (root of a) = factor * (root of b) + rest
  const int64_t factor = scale * y.scale, rest = scale * y.offset + offset - x.offset;
  if (x.root == y.root) return x.scale == factor && rest == 0;
  if (x.scale == factor) {  // the smaller one stays a root
    if (rest % factor != 0) return false;
    const uint32_t root = std::min(x.root, y.root);
    const int64_t apart = root == y.root ? rest / factor : -rest / factor;
    parent_[std::max(x.root, y.root)] = {root, 1, apart};
    return true;
  }
  if (factor % x.scale == 0 && rest % x.scale == 0) {
    parent_[x.root] = {y.root, factor / x.scale, rest / x.scale};
    return true;
  }
  if (x.scale % factor == 0 && rest % factor == 0) {
    parent_[y.root] = {x.root, x.scale / factor, -rest / factor};
    return true;
  }
  return false;
}

}  // namespace sundog
