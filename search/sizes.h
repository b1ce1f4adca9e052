// Chooses the sizes of planned kernels (search/finish.h makes them a µGraph), and prices them.
#pragma once

#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "search/cost.h"
#include "search/kernel_plan.h"
#include "search/machine.h"

namespace sundog::search {

// What one kernel costs best for each choice of the shared part counts, and with which tiles.
struct SizedKernel {
  double us = 0;
  std::vector<int64_t> tiles;  // one a split, and the choice of warps; none: it is the library's
};

// Tile extents worth trying along an axis of `extent` values.  `alone`: no other axis is looped,
// with which a step shorter than the tensor-core atom could make a tile that is deep enough.
// `products`: the kernel has some; without, what threads go through may be long, since nothing is
// read twice and short blocks cost their start.
std::vector<int64_t> tile_candidates(int64_t extent, bool looped, const Machine& machine,
                                     bool alone = true, bool products = true);
// Numbers of parts worth trying for a reduced axis.
std::vector<int64_t> part_candidates(int64_t extent, const Machine& machine);

// The best tiles of one kernel with the part counts given, or none where the library that it is
// offered is faster.  Nothing if no size fits the device.
// `near`: tiles that are good for other counts; the search then starts from them alone, and ends
// there if they take longer than `good_enough` us.
std::optional<SizedKernel> size_kernel(
    KernelPlan& plan, const KernelProfile& profile, const std::vector<int64_t>& part_counts,
    const Machine& machine, const std::vector<int64_t>* near = nullptr,
    double good_enough = std::numeric_limits<double>::infinity());

// Extents of a kernel's factors as it is priced: an empty axis counts as one element, since a
// kernel without blocks costs nothing whatever its tiles are, and must be one that can be emitted.
std::vector<int64_t> priced_extents(const Kernel& kernel);

// What the kernel costs with those tiles, or those nearest that there are, or smaller ones where it
// does not fit with these; infinite: it fits with none.
double price_at(KernelPlan& plan, const KernelProfile& profile,
                const std::vector<int64_t>& part_counts, const Machine& machine,
                const std::vector<int64_t>& tiles);

// The `most` best choices of tiles that the search came across, best first, the library's in its
// place.
std::vector<SizedKernel> size_variants(KernelPlan& plan, const KernelProfile& profile,
                                       const std::vector<int64_t>& part_counts,
                                       const Machine& machine, size_t most);

// Prices of the kernels of a finished µGraph, with the warps and stages that they have.  `known`:
// of its kernels, in their order; fewer: nothing of those that are missing.
std::vector<KernelPrice> prices_of(const MuGraph& graph, const Machine& machine,
                                   std::span<const Known> known = {});
// Predicted time of a µGraph, us; `known` as above.
double predict(const MuGraph& graph, const Machine& machine, std::span<const Known> known = {});

}  // namespace sundog::search
