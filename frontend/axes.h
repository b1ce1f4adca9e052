// Axes that are still being found out: made one with others, or cut into factors, while a graph is
// read.
// NOLINT(sundog-mirror): the insides of graph.h.
#pragma once

#include <cstdint>
#include <vector>

#include "core/status.h"

namespace sundog::frontend {

using AxisVar = int;
using Dim = std::vector<AxisVar>;  // axes of one dimension, outer to inner; none: extent 1
using Dims = std::vector<Dim>;

class Axes {
 public:
  AxisVar fresh(int64_t extent);
  int64_t extent(AxisVar axis) const { return infos_[static_cast<size_t>(axis)].extent; }
  int64_t extent(const Dim& dim) const;

  // The axes that a list stands for by now, none of them cut further.
  Dim resolved(const Dim& dim) const;
  Dims resolved(const Dims& dims) const;

  // A list of axes that a tensor or a loop runs over: two of them will never be one.
  void keep_apart(const Dim& axes) { apart_.push_back(axes); }

  // Makes two lists of the same extent one, cutting axes where that is needed.  False, with nothing
  // changed that matters, if two axes are to be kept apart or the extents have no common
  // refinement.
  bool unify(const Dim& a, const Dim& b);

  // Cuts two lists at the same places without making them one; whether anything was cut.
  Result<bool> align(const Dim& a, const Dim& b);

  // Cuts the end off a list: resolved(dim) becomes outer and inner, inner of that extent.  False if
  // the extents do not allow it.
  bool cut(const Dim& dim, int64_t inner_extent, Dim* outer, Dim* inner);

 private:
  struct Info {
    int64_t extent = 1;
    AxisVar same_as = -1;  // another axis
    Dim factors;           // or its factors
  };
  AxisVar root(AxisVar axis) const;
  void append(AxisVar axis, Dim& out) const;
  bool are_apart(AxisVar a, AxisVar b) const;
  void split(AxisVar axis, int64_t inner_extent);

  std::vector<Info> infos_;
  std::vector<Dim> apart_;
};

}  // namespace sundog::frontend
