#include "core/resize_index.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>

#include "core/strided.h"

namespace sundog {

bool is_mixed_radix(std::vector<IndexExpr::Item>& items, const std::vector<int64_t>& extents) {
  std::stable_sort(items.begin(), items.end(), [&](const auto& a, const auto& b) {
    const int64_t x = std::abs(a.coefficient), y = std::abs(b.coefficient);
    return x != y ? x < y : extents[a.axis] < extents[b.axis];  // extent 1 first
  });
  for (size_t i = 1; i < items.size(); ++i) {
    if (items[i].coefficient != items[i - 1].coefficient * extents[items[i - 1].axis]) return false;
  }
  return true;
}

bool has_mixed_radix_sides(const IndexExpr& e, const std::vector<int64_t>& extents) {
  for (const bool negative : {false, true}) {
    std::vector<IndexExpr::Item> items;
    for (const auto& item : e.axes) {
      if ((item.coefficient < 0) == negative) items.push_back(item);
    }
    if (!is_mixed_radix(items, extents)) return false;
    if (!items.empty() && std::abs(items[0].coefficient) != 1) return false;
  }
  return true;
}

bool follows_extents(const IndexExpr& e, const std::vector<int64_t>& extents) {
  return has_mixed_radix_sides(e, extents) ||
         std::all_of(e.axes.begin(), e.axes.end(),
                     [](const auto& item) { return std::abs(item.coefficient) == 1; });
}

IndexExpr resized(const IndexExpr& e, const std::vector<int64_t>& old_extents,
                  const std::vector<int64_t>& new_extents) {
  IndexExpr result{e.constant, {}, e.sizes};
  for (const bool negative : {false, true}) {
    std::vector<IndexExpr::Item> items;
    for (const auto& item : e.axes) {
      if ((item.coefficient < 0) == negative) items.push_back(item);
    }
    if (is_mixed_radix(items, old_extents)) {
      for (size_t i = 1; i < items.size(); ++i) {
        items[i].coefficient = items[i - 1].coefficient * new_extents[items[i - 1].axis];
      }
    }
    for (const auto& item : items) result = result + IndexExpr::of(item.axis) * item.coefficient;
  }
  return result;
}

TensorDecl resized(const TensorDecl& tensor, const std::vector<int64_t>& old_extents,
                   const std::vector<int64_t>& new_extents) {
  TensorDecl result = tensor;
  for (size_t d = 0; d < tensor.dims.size(); ++d) {
    std::vector<IndexExpr::Item> items = tensor.dims[d].axes;
    int64_t before = 1, after = 1;
    for (const auto& item : items) {
      before *= old_extents[item.axis];
      after *= new_extents[item.axis];
    }
    if (before != tensor.extents[d] || !is_mixed_radix(items, old_extents)) continue;
    result.dims[d] = resized(tensor.dims[d], old_extents, new_extents);
    result.extents[d] = after;
  }
  if (tensor.strides.empty() || result.extents == tensor.extents) return result;
  std::vector<size_t> order(tensor.strides.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return tensor.strides[a] != tensor.strides[b] ? tensor.strides[a] < tensor.strides[b] : a > b;
  });
  int64_t next = 1;
  for (size_t d : order) {
    if (tensor.strides[d] == 0) continue;
    result.strides[d] = next;
    next *= std::max<int64_t>(result.extents[d], 1);
  }
  return result;
}

}  // namespace sundog
