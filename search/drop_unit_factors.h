// Removes factors of one value from a kernel.
#pragma once

#include "core/mugraph.h"

namespace sundog::search {

// Drops each factor of extent 1 whose axis keeps another one, puts the body of a loop of one iteration
// in the loop's place, and names a factor that is left alone after its axis.  The kernel computes the
// same; accumulators over a dropped loop become plain reductions.
struct Dropped {
  Kernel kernel;
  std::vector<AxisId> new_id;  // of each factor that is kept
};
Dropped drop_unit_factors(const MuGraph& graph, const Kernel& kernel);

}  // namespace sundog::search
