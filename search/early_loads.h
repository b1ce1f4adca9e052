// Loads outside of loops, started together at the beginning of a kernel.
#pragma once

#include "core/mugraph.h"

namespace sundog::search {

// Moves loads that stand in no loop to the front of the kernel, those of inputs first: they need
// not wait for kernels before.  With `registers` also those to registers, which then hold them for
// longer; else only those to shared memory.
void start_loads_early(const MuGraph& graph, Kernel& kernel, bool registers);

}  // namespace sundog::search
