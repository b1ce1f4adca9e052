// The thread level of a kernel: which products use tensor cores, which operand is their M side,
// where each computation is kept, how the warps share the work.
#pragma once

#include <cstdint>
#include <vector>

#include "search/kernel_plan.h"
#include "search/machine.h"
#include "search/roles.h"

namespace sundog::search {

// Product of the extents of `factors`.
inline double tile_count(AxisSet factors, const std::vector<int64_t>& extents) {
  double product = 1;
  for (AxisId f : factors) product *= static_cast<double>(extents[f]);
  return product;
}

inline constexpr int kWarpChoices[] = {1, 2, 4};

// How a contraction of an m x n x k tile is computed.
struct MmaChoice {
  bool use = false;
  bool swap = false;       // the second operand is the M side
  double padded = 0;       // multiply-adds including the padding of the atom
  bool warpgroup = false;  // four warps together, operands straight from shared memory
};
MmaChoice choose_mma(double m, double n, double k);

// What a kernel's threads do at given extents (one entry a computation in each vector).
struct ThreadLevel {
  int warps = 4;
  bool chained = false;     // a product takes its rows from another one's registers
  bool warps_vary = false;  // the choice of warps makes a difference
  std::vector<MmaChoice> mma;
  std::vector<Storage> storage;
  std::vector<DType> dtype;
  std::vector<bool> fragment;  // computed by each warp for its own products, in registers
  std::vector<std::vector<WarpSplit>> splits;
};
// `warp_choice`: one of kWarpChoices. Without tensor cores a block has so many
// times the threads that its elements ask for: a row of which several values are kept in registers
// fits more of them. With tensor cores more than 2 is 2. Where products are chained through
// registers, the atoms of rows that a warp holds: more of them share what a warp reads from shared
// memory, and take registers. Elsewhere 2 allows a block of products twice as many warps, which
// hide more and leave each fewer registers.
ThreadLevel choose_thread_level(const Kernel& kernel, const std::vector<Role>& roles,
                                const std::vector<int64_t>& extents, const Machine& machine,
                                int warp_choice);
// Into `out`, whose memory is used again.
void choose_thread_level(const Kernel& kernel, const std::vector<Role>& roles,
                         const std::vector<int64_t>& extents, const Machine& machine,
                         int warp_choice, ThreadLevel& out);

// Writes the choice into the computations, without the warp splits (factors are still to be
// dropped).
void apply(const ThreadLevel& level, Kernel& kernel);

}  // namespace sundog::search
