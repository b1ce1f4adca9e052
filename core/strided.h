// Loops over boxes of strided arrays, the inner machinery of interpreters: neighbouring dimensions
// that all arrays run through evenly are joined, and the body sees one run along the last at a
// time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/axis.h"

namespace sundog {

// Values over a box of axes.  Element (i, j, ...) is at the sum of index * stride.  `defined` is
// parallel to `values`; empty means that all elements have a value.
template <class V>
struct Array {
  std::vector<int64_t> extents;
  std::vector<int64_t> strides;
  std::vector<V> values;
  std::vector<uint8_t> defined;
};

inline std::vector<int64_t> row_major(std::span<const int64_t> extents) {
  std::vector<int64_t> strides(extents.size(), 1);
  for (size_t d = extents.size(); d-- > 1;) strides[d - 1] = strides[d] * extents[d];
  return strides;
}

inline int64_t product(std::span<const int64_t> extents) {
  int64_t result = 1;
  for (int64_t extent : extents) result *= extent;
  return result;
}

// Calls f(offsets, count, steps) for runs that together cover the box: array n is at
// offsets[n] + i * steps[n] for i < count.  Row-major order.
template <size_t N, class F>
void for_runs(std::span<const int64_t> sizes,
              const std::array<std::span<const int64_t>, N>& strides, F&& f) {
  std::array<int64_t, kMaxAxes> size;
  std::array<std::array<int64_t, kMaxAxes>, N> step;
  size_t dims = 0;
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] == 0) return;
    if (sizes[d] == 1) continue;
    bool joins = dims > 0;
    for (size_t n = 0; n < N && joins; ++n) {
      joins = step[n][dims - 1] == strides[n][d] * sizes[d];
    }
    if (!joins) size[dims++] = 1;
    size[dims - 1] *= sizes[d];
    for (size_t n = 0; n < N; ++n) step[n][dims - 1] = strides[n][d];
  }
  std::array<int64_t, N> offsets{};
  std::array<int64_t, N> last{};
  if (dims == 0) {
    f(offsets, int64_t{1}, last);
    return;
  }
  for (size_t n = 0; n < N; ++n) last[n] = step[n][dims - 1];
  std::array<int64_t, kMaxAxes> at;
  for (size_t d = 0; d < dims; ++d) at[d] = 0;
  while (true) {
    f(offsets, size[dims - 1], last);
    size_t d = dims - 1;
    for (; d > 0; --d) {
      for (size_t n = 0; n < N; ++n) offsets[n] += step[n][d - 1];
      if (++at[d - 1] < size[d - 1]) break;
      for (size_t n = 0; n < N; ++n) offsets[n] -= step[n][d - 1] * size[d - 1];
      at[d - 1] = 0;
    }
    if (d == 0) return;
  }
}

}  // namespace sundog
