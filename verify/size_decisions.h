// Whether the value of an index or of an extent decides something: which of two is the maximum, a
// branch, an integer that it is rounded to.  `relu(index(n) - 3000)` is nothing at every small size
// and something at the declared one, so that tests at small sizes say nothing about it.
#pragma once

#include "core/mugraph.h"
#include "core/program.h"

namespace sundog::verify {

// A maximum or comparison of values into which indices or extents go, and no input.  Conditions on
// indices (`select(n < 3000, ...)`) are not meant: those pin their axes (core/resize.h).
bool decided_by_size(const Program& program);
bool decided_by_size(const MuGraph& graph);

}  // namespace sundog::verify
