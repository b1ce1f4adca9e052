// A planned kernel as one of a library's: where all that it makes is a product of stored terms, a
// library can be asked for it (core/library_gemm.h).  Whether that is faster is a matter of price,
// as the choice of tiles is; a tie goes to the kernel that is defined by its graph.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/library_gemm.h"
#include "search/cost.h"
#include "search/kernel_plan.h"
#include "search/machine.h"

namespace sundog::search {

// In place of the tiles of a kernel: it is the library's.
inline bool is_library(const std::vector<int64_t>& tiles) { return tiles.empty(); }

// The kernel as a library's.  Nothing: no library computes what it does.
std::optional<Kernel> as_library(const MuGraph& graph, const KernelPlan& plan);

// Sets `library` of the kernel, if there is that.
void offer_library(const MuGraph& graph, const Machine& machine, KernelPlan& plan);

// What the call costs.
KernelPrice library_price(const LibraryGemm& gemm, const Machine& machine);

}  // namespace sundog::search
