// Skips the iterations of a loop in which a mask leaves nothing.
#pragma once

#include <vector>

#include "core/mugraph.h"

namespace sundog::search {

// Adds a trim to each loop whose every accumulator is left as it is by an iteration with all
// elements masked: maxima of what the mask sets to -inf, and sums of exponentials of it.  The
// condition is that of the mask, at the element of the tile that meets it most easily.
void trim_masked(Kernel& kernel);

// The masks themselves: an iteration of the loop does nothing where one of them holds nowhere in
// its tile.  Inequalities over the kernel's factors that vary with the loop's own.
std::vector<IndexCondition> masks_of(const Kernel& kernel, const Loop& loop);

}  // namespace sundog::search
