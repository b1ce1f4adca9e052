// What fetching operands costs: the turns of shared memory that warps and threads take to read
// them, and the instructions that make of 8 bits what is computed with.
#pragma once

#include <cstdint>
#include <vector>

#include "search/cost.h"
#include "search/thread_level.h"

namespace sundog::search {

struct OperandCost {
  double shared_bytes = 0;  // words that are not used whole count whole
  double instructions = 0;
};

// Of one evaluation of the product `i` by warps with tensor cores.
OperandCost operands_of_warps(const KernelProfile& profile, const ThreadLevel& level,
                              const std::vector<int64_t>& extents, uint32_t i);
// Of one evaluation of `i` by threads: of what they read as 8 bits, and of what they read to make
// fragments of it.
OperandCost operands_of_threads(const KernelProfile& profile, const ThreadLevel& level,
                                const std::vector<int64_t>& extents, uint32_t i);

}  // namespace sundog::search
