// A µGraph as canonical forms: what it stores, for all sizes of axes and factors.
//
// Kernels are read in order, statements once each with symbolic grid, loop and tile indices, by the
// rules of core/mugraph.h:
//  - the factors of an axis are the parts of a split; an index is a position (canonical_index.h);
//  - a reduction runs over its factors under the condition that the position lies inside the axis,
//    wherever core/dependence.h says that its operand can be absent;
//  - an accumulator is opaque inside its loops and a sum over them afterwards; with `rescale m`
//  each
//    iteration weighs exp(m at that iteration - m at the end);
//  - a store makes the tensor a function of its axes, if each element is written exactly once.
// Whatever does not fit these rules fails, with the reason.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "core/dependence.h"
#include "core/mugraph.h"
#include "verify/implication.h"
#include "verify/symbolic_terms.h"

namespace sundog::verify {

struct SymbolicMuGraph {
  std::vector<Symbolic> outputs;  // over the variables of the program's axes
  // What must hold, universally closed: kind, element (binders, guard, form).
  std::set<std::pair<Need::Kind, ElementId>> needs;
  // What is taken as given beyond "factors cover their axis": "k0: q = q.o * q.i is exact".
  std::vector<std::string> assumptions;
};

// require: check(graph, program).ok().  Failures are in forms.failure().
//  implications  its extents are filled with those of the factors
SymbolicMuGraph symbolic_mugraph(SymbolicAlgebra& algebra, const MuGraph& graph,
                                 const Program& program, const AxisSymbols& symbols,
                                 Implications& implications);

}  // namespace sundog::verify
