// Skips the iterations of a loop in which a mask leaves nothing.
#pragma once

#include "core/mugraph.h"

namespace sundog::search {

// Adds a trim to each loop whose every accumulator is left as it is by an iteration with all
// elements masked: maxima of what the mask sets to -inf, and sums of exponentials of it.  The
// condition is that of the mask, at the element of the tile that meets it most easily.
void trim_masked(Kernel& kernel);

}  // namespace sundog::search
