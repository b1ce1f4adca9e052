// How large the numbers in index expressions may grow, and which values an index takes.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "core/mugraph.h"
#include "core/program.h"
#include "core/term.h"

namespace sundog::text {

// How deep terms may be nested, and so how long a chain of operators may be: what walks them takes
// up to 2.3 KB of stack a level, of the 8 MB that a process has.
inline constexpr int kMaxTermDepth = 3000;

// Whether the numbers are small enough for one more substitution not to overflow; of all indices of
// the terms from `first` on.
bool coefficients_fit(const IndexExpr& e);
bool coefficients_fit(const TermGraph& terms, TermId first);

// Whether elements and span of a tensor stay below 2^62 bytes, also were its empty dimensions not
// empty.  Extents and strides must not be negative.
bool size_fits(const TensorDecl& tensor);

// The limits on what a reader returns, beyond check(): terms nested at most kMaxTermDepth
// deep (later stages walk them), grids of at most 2^62 blocks, tensors that fit, splits that go
// beyond their axis by no more than the axis or kMaxPadding indices.
inline constexpr int64_t kMaxPadding = int64_t{1} << 16;
Status check_limits(const Program& program);
Status check_limits(const MuGraph& graph);

// The least and the largest value of an index (within +-2^62), with an extent for each axis;
// nothing if one of its axes is empty.
std::optional<std::pair<int64_t, int64_t>> index_range(const IndexExpr& e,
                                                       const std::vector<int64_t>& extents);

}  // namespace sundog::text
