// Chooses the sizes of planned kernels, and turns the plan into a µGraph.
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

// What the kernel costs with those tiles, or those nearest that there are; infinite: does not fit.
double price_at(KernelPlan& plan, const KernelProfile& profile,
                const std::vector<int64_t>& part_counts, const Machine& machine,
                const std::vector<int64_t>& tiles);

// The `most` best choices of tiles that the search came across, best first, the library's in its
// place.
std::vector<SizedKernel> size_variants(KernelPlan& plan, const KernelProfile& profile,
                                       const std::vector<int64_t>& part_counts,
                                       const Machine& machine, size_t most);

// The µGraph with those tiles and part counts: factors of one value dropped, threads decided.
MuGraph finish(GraphPlan plan, const std::vector<std::vector<int64_t>>& tiles,
               const std::vector<int64_t>& part_counts, const Machine& machine);

// The same with kernel `joined` run by the last blocks of the one before it (core/via.h), its tiles
// those of that kernel.  Nothing where it cannot be.
std::optional<MuGraph> finish_joined(GraphPlan plan, std::vector<std::vector<int64_t>> tiles,
                                     const std::vector<int64_t>& part_counts,
                                     const Machine& machine, size_t joined);

// Price of a finished kernel, with the warps and stages that it has.
KernelPrice price_of(const MuGraph& graph, const Kernel& kernel, const Machine& machine,
                     Known known = {});
// Predicted time of a µGraph, us.  `known`: of its kernels, in their order; fewer: nothing of those
// that are missing.
double predict(const MuGraph& graph, const Machine& machine, std::span<const Known> known = {});

}  // namespace sundog::search
