// The last touches to the statements of a finished kernel.
#pragma once

#include <vector>

#include "core/mugraph.h"
#include "search/roles.h"

namespace sundog::search {

// A tile that is copied ahead to shared memory and read by several computations as it is, none of
// them a product on tensor cores, is taken to registers once, in front of the first.
void keep_in_registers(const std::vector<Role>& roles, Kernel& kernel);

// A computed operand of a warp group's product that a reduction reads, too, stays in f32, and the
// product gets a copy of 16 bits behind the reduction.  Threads then add what they have before it
// is rounded, while a sum of the fragments by products with ones would wait for the tensor cores,
// which are at work on what the warp group has started.
void separate_sums(const std::vector<Role>& roles, Kernel& kernel);

// What does not need the result of a warp group's product moves in front of what does: it overlaps
// with the product.
void overlap_products(Kernel& kernel);

}  // namespace sundog::search
