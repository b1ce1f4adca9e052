// Index expressions at other sizes (core/resize.h).
#pragma once

#include <vector>

#include "core/axis.h"
#include "core/program.h"

namespace sundog {

// The items of one sign as a mixed radix number: sorted by |coefficient|, each coefficient the one
// before times the extent of its axis.  False if they are none.
bool is_mixed_radix(std::vector<IndexExpr::Item>& items, const std::vector<int64_t>& extents);

// The coefficients of the items of each sign that form a mixed radix number, at the new extents.
IndexExpr resized(const IndexExpr& e, const std::vector<int64_t>& old_extents,
                  const std::vector<int64_t>& new_extents);

// A tensor's dims, extents and strides at the new extents of the axes.
TensorDecl resized(const TensorDecl& tensor, const std::vector<int64_t>& old_extents,
                   const std::vector<int64_t>& new_extents);

// Whether the parts of an expression besides its constant are mixed radix numbers on either side.
bool has_mixed_radix_sides(const IndexExpr& e, const std::vector<int64_t>& extents);

// Whether they follow a change of extents: such numbers, or sums of axes (`l + kk`), in whose
// coefficients is no extent.
bool follows_extents(const IndexExpr& e, const std::vector<int64_t>& extents);

}  // namespace sundog
