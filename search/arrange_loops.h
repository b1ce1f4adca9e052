// The last touches to the statements of a finished kernel.
#pragma once

#include <vector>

#include "core/mugraph.h"
#include "search/roles.h"

namespace sundog::search {

// A tile that is copied ahead to shared memory and read by several computations as it is, none of
// them a product on tensor cores, is taken to registers once, in front of the first.
void keep_in_registers(const std::vector<Role>& roles, Kernel& kernel);

// What does not need the result of a warp group's product moves in front of what does: it overlaps
// with the product.
void overlap_products(Kernel& kernel);

}  // namespace sundog::search
