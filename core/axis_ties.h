// Extents that change together, each an affine function of one of them: `lp = l + kk - 1` of a
// convolution, `n = 2 * l + 3` of a strided one.  A union-find whose edges carry the function.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace sundog {

class AxisTies {
 public:
  // extent = scale * extent of the root + offset, scale at least 1.
  struct Form {
    uint32_t root = 0;
    int64_t scale = 1, offset = 0;
    int64_t at(int64_t extent_of_root) const { return scale * extent_of_root + offset; }
    bool operator==(const Form&) const = default;
  };

  explicit AxisTies(size_t axes);
  Form of(uint32_t axis) const;
  // From now on extent(a) = scale * extent(b) + offset.  False, and nothing is changed, if that
  // says more about their roots than one affine function can: then neither may change.
  bool tie(uint32_t a, uint32_t b, int64_t scale = 1, int64_t offset = 0);

 private:
  std::vector<Form> parent_;
};

}  // namespace sundog
