// Makes the loads of a kernel explicit.
#pragma once

#include "core/mugraph.h"

namespace sundog::search {

// Gives each read of a device tensor a computation of its own, placed at the start of the innermost
// loop that its index depends on (of the block, if on none), and lets its users read that
// computation. A read that a select guards, or whose dimension mixes axes (`x[i + k]`), stays where
// it is: it is defined for some elements only, or each element is not one of a tile.
void hoist_loads(const MuGraph& graph, Kernel& kernel);

}  // namespace sundog::search
