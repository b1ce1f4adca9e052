// Finds computations of a kernel that are made twice, and makes them once.
#pragma once

#include <cstdint>
#include <vector>

#include "core/mugraph.h"

namespace sundog::search {

// For each computation an earlier one with the same value, were there no loops; kNone if there is
// none.
std::vector<uint32_t> repeats(const Kernel& kernel);

// Drops each computation that repeats one which is still there where it stands: one of the same
// loop body, or of one around it.
void merge_repeats(Kernel& kernel);

}  // namespace sundog::search
