// How a kernel reads and writes device tensors: element offsets as linear functions of factors, the
// conditions under which an element is there, and how wide a vector may be.
//
// Index expressions are linear in the factors and tensors are strided, so the offset of an element
// is linear too; vector widths and predicates are decided here, once, when a kernel is planned.
#pragma once

#include <cstdint>
#include <vector>

#include "core/mugraph.h"

namespace sundog {

// constant + sum of coefficient[f] * factor f.
struct Affine {
  int64_t constant = 0;
  std::vector<int64_t> coefficients;  // one a factor of the kernel
  bool operator==(const Affine&) const = default;
};

Affine affine(const MuGraph& graph, const Kernel& kernel, const IndexExpr& e);

// Offset in elements from the tensor's pointer.
Affine element_offset(const MuGraph& graph, const Kernel& kernel, uint32_t tensor,
                      const std::vector<IndexExpr>& index);

// The index along µGraph axis `axis`, with only the factors in `bound`.
Affine index_along(const Kernel& kernel, AxisId axis, AxisSet bound);

// 0 <= value < extent is not certain: what has to be tested before the access.
struct Bound {
  Affine value;
  int64_t extent = 0;
  bool below = false, above = false;  // may be negative; may reach the extent
  bool operator==(const Bound&) const = default;
};

// The tests that an element needs: absent along the axes in `absent_along` (with the factors
// `bound`), where those are ragged.
std::vector<Bound> presence_bounds(const MuGraph& graph, const Kernel& kernel, AxisSet absent_along,
                                   AxisSet bound);

// The tests that keep an access inside of the tensor.
std::vector<Bound> tensor_bounds(const MuGraph& graph, const Kernel& kernel, uint32_t tensor,
                                 const std::vector<IndexExpr>& index);

// The largest power of two up to `most` so that vectors of that many neighbours along factor `axis`
// are contiguous and aligned in the tensor and wholly inside or outside of every bound; 1 if none.
int vector_width(const MuGraph& graph, const Kernel& kernel, uint32_t tensor,
                 const std::vector<IndexExpr>& index, const std::vector<Bound>& bounds, AxisId axis,
                 int most);

// Whether the condition is the same for each run of `width` neighbours along factor `axis` that
// begins at a multiple of `width`.
bool same_along(const MuGraph& graph, const Kernel& kernel, const IndexCondition& condition,
                AxisId axis, int width);

// Likewise for runs that begin anywhere: as many elements up to `most`, a power of two, whose words
// of 16 bytes may be read instead.  Whether a run's first element passes the bounds says that the
// run may be read; its others may lie beyond them.  1 where the pointer is no multiple of 16 bytes,
// the tensor is no input, or the run could begin in front of what is there.
int window_width(const MuGraph& graph, const Kernel& kernel, uint32_t tensor,
                 const std::vector<IndexExpr>& index, const std::vector<Bound>& bounds, AxisId axis,
                 int most);

// The tile factor along which the tensor is contiguous, or kNone.
AxisId contiguous_factor(const MuGraph& graph, const Kernel& kernel, uint32_t tensor,
                         const std::vector<IndexExpr>& index, AxisSet tile);

}  // namespace sundog
