#include "core/schedule/access.h"

#include <algorithm>

namespace sundog {
namespace {

bool multiple(int64_t value, int64_t of) { return value % of == 0; }

// A bound whose value can leave [0, extent), or nothing to test.
Bound make_bound(const Kernel& kernel, Affine value, int64_t extent) {
  int64_t least = value.constant, most = value.constant;
  for (size_t f = 0; f < kernel.factors.size(); ++f) {
    const int64_t span = value.coefficients[f] * std::max<int64_t>(kernel.factors[f].extent - 1, 0);
    (span < 0 ? least : most) += span;
  }
  return {std::move(value), extent, least < 0, most >= extent};
}

// Apart from its part along `axis`, every value is a multiple of `width`.
bool aligned(const Affine& value, AxisId axis, int width) {
  if (!multiple(value.constant, width)) return false;
  for (size_t f = 0; f < value.coefficients.size(); ++f) {
    if (f != axis && !multiple(value.coefficients[f], width)) return false;
  }
  return true;
}

// Every value at a multiple of `width` along `axis` decides for the whole vector.
bool uniform(const Bound& bound, AxisId axis, int width) {
  const int64_t own = bound.value.coefficients[axis];
  if (own == 0) return true;
  if (own != 1 || !aligned(bound.value, axis, width)) return false;
  return !bound.above || multiple(bound.extent, width);
}

}  // namespace

Affine affine(const MuGraph& graph, const Kernel& kernel, const IndexExpr& e) {
  Affine result{e.constant, std::vector<int64_t>(kernel.factors.size(), 0)};
  for (const auto& item : e.axes) result.coefficients[item.axis] += item.coefficient;
  for (const auto& item : e.sizes) {
    result.constant += item.coefficient * graph.axes[item.axis].extent;
  }
  return result;
}

Affine element_offset(const MuGraph& graph, const Kernel& kernel, uint32_t tensor,
                      const std::vector<IndexExpr>& index) {
  const TensorDecl& decl = graph.tensors[tensor].decl;
  const std::vector<int64_t> strides = strides_of(decl);
  Affine result{decl.offset, std::vector<int64_t>(kernel.factors.size(), 0)};
  for (size_t d = 0; d < index.size(); ++d) {
    const Affine dim = affine(graph, kernel, index[d]);
    result.constant += strides[d] * dim.constant;
    for (size_t f = 0; f < kernel.factors.size(); ++f) {
      result.coefficients[f] += strides[d] * dim.coefficients[f];
    }
  }
  return result;
}

Affine index_along(const Kernel& kernel, AxisId axis, AxisSet bound) {
  Affine result{0, std::vector<int64_t>(kernel.factors.size(), 0)};
  for (AxisId f : factors_of(kernel, axis)) {
    if (bound.has(f)) result.coefficients[f] = kernel.factors[f].stride;
  }
  return result;
}

std::vector<Bound> presence_bounds(const MuGraph& graph, const Kernel& kernel, AxisSet absent_along,
                                   AxisSet bound) {
  std::vector<Bound> result;
  for (AxisId axis : absent_along) {
    Bound test = make_bound(kernel, index_along(kernel, axis, bound), graph.axes[axis].extent);
    if (test.below || test.above) result.push_back(std::move(test));
  }
  return result;
}

std::vector<Bound> tensor_bounds(const MuGraph& graph, const Kernel& kernel, uint32_t tensor,
                                 const std::vector<IndexExpr>& index) {
  std::vector<Bound> result;
  for (size_t d = 0; d < index.size(); ++d) {
    Bound test =
        make_bound(kernel, affine(graph, kernel, index[d]), graph.tensors[tensor].decl.extents[d]);
    if (test.below || test.above) result.push_back(std::move(test));
  }
  return result;
}

int vector_width(const MuGraph& graph, const Kernel& kernel, uint32_t tensor,
                 const std::vector<IndexExpr>& index, const std::vector<Bound>& bounds, AxisId axis,
                 int most) {
  const TensorDecl& decl = graph.tensors[tensor].decl;
  const Affine offset = element_offset(graph, kernel, tensor, index);
  if (offset.coefficients[axis] != 1 || kernel.factors[axis].extent == 0) return 1;
  const auto fits = [&](int width) {
    // The declared alignment is the pointer's; offsets may leave less of it.
    if (!multiple(decl.alignment, int64_t{width} * bytes(decl.dtype))) return false;
    if (!multiple(offset.constant, width)) return false;
    if (!multiple(kernel.factors[axis].extent, width)) return false;
    for (size_t f = 0; f < kernel.factors.size(); ++f) {
      if (f != axis && !multiple(offset.coefficients[f], width)) return false;
    }
    return std::all_of(bounds.begin(), bounds.end(),
                       [&](const Bound& b) { return uniform(b, axis, width); });
  };
  int width = 1;
  while (width * 2 <= most && fits(width * 2)) width *= 2;
  return width;
}

bool same_along(const MuGraph& graph, const Kernel& kernel, const IndexCondition& condition,
                AxisId axis, int width) {
  const Affine value = affine(graph, kernel, condition.expr);
  const int64_t own = value.coefficients[axis];
  if (own == 0) return true;
  // i < m and m <= i change at m, which is where a run begins.
  const bool at_a_run = condition.relation == Relation::kLess        ? own == 1
                        : condition.relation == Relation::kLessEqual ? own == -1
                                                                     : false;
  return at_a_run && aligned(value, axis, width);
}

int window_width(const MuGraph& graph, const Kernel& kernel, uint32_t tensor,
                 const std::vector<IndexExpr>& index, const std::vector<Bound>& bounds, AxisId axis,
                 int most) {
  constexpr int kWordBytes = 16;
  const DeviceTensor& device = graph.tensors[tensor];
  if (device.role != TensorRole::kInput || !multiple(device.decl.alignment, kWordBytes)) return 1;
  if (element_offset(graph, kernel, tensor, index).coefficients[axis] != 1) return 1;
  const auto open_ended = [&](const Bound& b) {
    const int64_t own = b.value.coefficients[axis];
    return own == 0 || (own == 1 && !b.below);
  };
  if (!std::all_of(bounds.begin(), bounds.end(), open_ended)) return 1;
  int width = 1;
  while (width * 2 <= std::min(most, kWordBytes / bytes(device.decl.dtype))) width *= 2;
  return width;
}

AxisId contiguous_factor(const MuGraph& graph, const Kernel& kernel, uint32_t tensor,
                         const std::vector<IndexExpr>& index, AxisSet tile) {
  const Affine offset = element_offset(graph, kernel, tensor, index);
  AxisId best = kNone;
  for (AxisId f : tile) {
    if (offset.coefficients[f] != 1) continue;
    if (best == kNone || kernel.factors[f].extent > kernel.factors[best].extent) best = f;
  }
  return best;
}

}  // namespace sundog
