// How large an index may be that emitted code computes: what conditions compare, and indices as
// values, are ints there.  (Addresses are 64 bits wide, so tensors may be larger.)
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "core/term.h"

namespace sundog {

// With room for the padding of a last tile.
inline constexpr int64_t kMostIndex = std::numeric_limits<int32_t>::max() - 65536;

// No value of the index, nor any sum of some of its terms, is larger than this in magnitude.
//  axes, sizes  the extents of the axes in it, and of those whose size is in it
double index_reach(const IndexExpr& e, const std::vector<int64_t>& axes,
                   const std::vector<int64_t>& sizes);

// The same over all conditions and indices as values of the terms from `first` on.
double index_reach(const TermGraph& terms, TermId first, const std::vector<int64_t>& axes,
                   const std::vector<int64_t>& sizes);

}  // namespace sundog
