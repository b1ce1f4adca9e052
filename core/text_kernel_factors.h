// Which factors a kernel lists, and in which order.
#pragma once

#include <vector>

#include "core/mugraph.h"

namespace sundog::text {

// The factors that a kernel lists where its text does not say: all those of each axis of which the
// kernel uses one, by axis, as ids of `kernel`.
std::vector<AxisId> factors_in_use(const Kernel& kernel);

// Keeps the factors `keep`, in that order, and renumbers everything.  Gives the new id of each old
// one (kNone: dropped).
// require: all factors that something uses are kept.
std::vector<AxisId> keep_factors(Kernel& kernel, const std::vector<AxisId>& keep);

}  // namespace sundog::text
