// Makes a planned kernel with extents a finished one.
#pragma once

#include "core/mugraph.h"

namespace sundog::search {

// In a plan indices are written as if every factor had stride 1; here the strides go in.  Each
// factor of extent 1 whose axis keeps another one is dropped, the body of a loop of one iteration
// takes the loop's place, and a factor that is left alone is named after its axis.  Accumulators
// over a dropped loop become plain reductions.  Dimensions of partial results (axes from
// `program_axes` on) are indexed by the part itself.
struct Settled {
  Kernel kernel;
  std::vector<AxisId> new_id;  // of each factor that is kept
};
Settled settle(const MuGraph& graph, const Kernel& kernel, AxisId program_axes);

}  // namespace sundog::search
