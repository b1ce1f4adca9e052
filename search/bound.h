// Admissible bounds: no kernel sequence can be faster.
#pragma once

#include "core/program.h"
#include "search/machine.h"

namespace sundog::search {

// At least `launches` launches, and that many bytes once through memory at its peak rate.
double structure_bound(const Machine& machine, int launches, double bytes);

// For the whole program: one launch, each input that is read and each output once.
double program_bound(const Program& program, const Machine& machine);

}  // namespace sundog::search
