#include "frontend/axes.h"

#include <algorithm>

#include "core/check.h"

namespace sundog::frontend {

AxisVar Axes::fresh(int64_t extent) {
  infos_.push_back({extent, -1, {}});
  return static_cast<AxisVar>(infos_.size()) - 1;
}

int64_t Axes::extent(const Dim& dim) const {
  int64_t product = 1;
  for (const AxisVar axis : dim) product *= extent(axis);
  return product;
}

AxisVar Axes::root(AxisVar axis) const {
  while (infos_[static_cast<size_t>(axis)].same_as >= 0) {
    axis = infos_[static_cast<size_t>(axis)].same_as;
  }
  return axis;
}

void Axes::append(AxisVar axis, Dim& out) const {
  axis = root(axis);
  const Info& info = infos_[static_cast<size_t>(axis)];
  if (info.factors.empty()) {
    out.push_back(axis);
  } else {
    for (const AxisVar factor : info.factors) append(factor, out);
  }
}

Dim Axes::resolved(const Dim& dim) const {
  Dim out;
  for (const AxisVar axis : dim) append(axis, out);
  return out;
}

Dims Axes::resolved(const Dims& dims) const {
  Dims out;
  for (const Dim& dim : dims) out.push_back(resolved(dim));
  return out;
}

bool Axes::are_apart(AxisVar a, AxisVar b) const {
  return std::any_of(apart_.begin(), apart_.end(), [&](const Dim& each) {
    const Dim axes = resolved(each);
    return std::find(axes.begin(), axes.end(), a) != axes.end() &&
           std::find(axes.begin(), axes.end(), b) != axes.end();
  });
}

void Axes::split(AxisVar axis, int64_t inner_extent) {
  const AxisVar outer = fresh(extent(axis) / inner_extent), inner = fresh(inner_extent);
  infos_[static_cast<size_t>(root(axis))].factors = {outer, inner};
}

bool Axes::unify(const Dim& first, const Dim& second) {
  if (extent(first) != extent(second)) return false;
  // From the inside out; each round makes one pair one or cuts the longer of two.
  for (size_t done = 0;;) {
    const Dim a = resolved(first), b = resolved(second);
    if (done >= a.size() || done >= b.size()) return a.size() == b.size();
    const AxisVar x = a[a.size() - 1 - done], y = b[b.size() - 1 - done];
    if (x == y) {
      ++done;
    } else if (extent(x) == extent(y)) {
      if (are_apart(x, y)) return false;
      infos_[static_cast<size_t>(y)].same_as = x;
      ++done;
    } else if (extent(y) != 0 && extent(x) % extent(y) == 0) {
      split(x, extent(y));
    } else if (extent(x) != 0 && extent(y) % extent(x) == 0) {
      split(y, extent(x));
    } else {
      return false;
    }
  }
}

Result<bool> Axes::align(const Dim& first, const Dim& second) {
  bool changed = false;
  for (size_t done = 0;;) {
    const Dim a = resolved(first), b = resolved(second);
    if (done >= a.size() || done >= b.size()) return changed;
    const AxisVar x = a[a.size() - 1 - done], y = b[b.size() - 1 - done];
    if (extent(x) == extent(y)) {
      ++done;
      continue;
    }
    const bool x_is_longer = extent(x) > extent(y);
    const AxisVar longer = x_is_longer ? x : y, shorter = x_is_longer ? y : x;
    if (extent(longer) % extent(shorter) != 0) {
      return unsupported("dimensions that are viewed in ways without a common refinement");
    }
    split(longer, extent(shorter));
    changed = true;
  }
}

bool Axes::cut(const Dim& dim, int64_t inner_extent, Dim* outer, Dim* inner) {
  int64_t left = inner_extent;
  while (true) {
    const Dim axes = resolved(dim);
    size_t taken = 0;
    left = inner_extent;
    while (taken < axes.size() && left > 1) {
      const int64_t e = extent(axes[axes.size() - 1 - taken]);
      if (e == 0 || left % e != 0) break;
      left /= e;
      ++taken;
    }
    if (left == 1) {
      const auto middle = axes.end() - static_cast<std::ptrdiff_t>(taken);
      outer->assign(axes.begin(), middle);
      inner->assign(middle, axes.end());
      return true;
    }
    if (taken == axes.size()) return false;
    const AxisVar next = axes[axes.size() - 1 - taken];
    if (left == 0 || extent(next) % left != 0) return false;
    split(next, left);
  }
}

}  // namespace sundog::frontend
