// What each computation of a kernel depends on, and which absent elements it has to leave out.
//
// A ragged split has indices beyond its axis, and elements there are absent.  Whether that concerns
// a computation follows from its term: a value that varies along an axis is absent where the index
// along the axis is; a value that has *reduced* the axis (or a part of it) is not.  So a partial
// sum over k.o and k.i in block k.s is present in every block, also in one whose whole share of k
// lies beyond the axis: there it is the unit.
#pragma once

#include <vector>

#include "core/mugraph.h"

namespace sundog {

struct Dependence {
  // Factors that the value varies with: free in the term, in those it reads, in the conditions that
  // trim its loops, and in the presence of what it reduces; without the reduced ones.
  AxisSet factors;
  // µGraph axes (not factors) along which an element of the result can be absent: at bound factors
  // (grid, enclosing loops, own tile axes) whose index along the axis reaches its extent.
  AxisSet absent_along;
  // Likewise for what the root reduction runs over; equal to absent_along without one.
  AxisSet operand_absent_along;
};

// One entry a computation.  Factors of a partial axis that a value carries after a reduction (k.s
// above) are in `factors` but their axis is not in `absent_along`.
std::vector<Dependence> dependences(const Kernel& kernel);

// True if the factors of `axis` in this kernel run beyond its extent.
bool is_ragged(const MuGraph& graph, const Kernel& kernel, AxisId axis);

}  // namespace sundog
