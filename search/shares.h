// Cuts what a kernel computes into shares, one a block of a cluster (core/via.h):
//
//   grid(d.o) { split d = d.o * d.i(64)  ->  grid(d.o, d.c) { split d = d.o * d.c(4) * d.i(16)
#pragma once

#include <cstdint>
#include <optional>

#include "core/mugraph.h"

namespace sundog::search {

// A tile factor, and how many shares it is cut into.
struct ShareFactor {
  AxisId factor = 0;
  int64_t shares = 1;
};

// The factor along which a kernel of the µGraph is cut into at most `most` shares, as many as there
// can be.  Nothing: it is not cut, since every axis of its results is reduced in it somewhere,
// loops or has no divisor that is small enough.
std::optional<ShareFactor> share_factor(const MuGraph& graph, const Kernel& kernel, int64_t most);

// The kernel with that factor cut in two, the outer one last on the grid.  Factors behind it are
// one further.  require: no thread is decided.
Kernel cut_into_shares(const Kernel& kernel, const ShareFactor& cut);

}  // namespace sundog::search
