// What a scalar expression costs the arithmetic units.
#pragma once

#include "core/term.h"

namespace sundog::search {

// Instruction slots of one evaluation on the general (fused multiply-add, compare, select) and on
// the special function unit.
struct Work {
  double alu = 0;
  double sfu = 0;
  Work& operator+=(const Work& o) {
    alu += o.alu;
    sfu += o.sfu;
    return *this;
  }
};

Work work_of(const Op& op);

// Of one evaluation of the term: each distinct subterm once, reductions by the work of one step.
// Of what does not depend on all of `own`, the axes along which it is evaluated, a share: a thread
// does it once for the neighbours that it holds.
Work work_of(const TermGraph& graph, TermId term, AxisSet own = {});

}  // namespace sundog::search
