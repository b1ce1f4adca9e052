// Outputs of integers hold rounded values, whether a cast says so or not: `q: i8 = x` and
// `q: i8 = cast(x, i8)` are one program.  Here both are made the second, so that no other part of
// the verifier has to know.
#pragma once

#include "core/mugraph.h"
#include "core/program.h"

namespace sundog::verify {

bool has_integer_outputs(const Program& program);

// The same with what integer outputs store cast to their type.
Program with_integer_outputs(Program program);
MuGraph with_integer_outputs(MuGraph graph);

}  // namespace sundog::verify
