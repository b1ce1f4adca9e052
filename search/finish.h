// Turns planned kernels with sizes into a µGraph.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "search/kernel_plan.h"
#include "search/machine.h"

namespace sundog::search {

// The µGraph with those tiles and part counts: factors of one value dropped, threads decided.
MuGraph finish(GraphPlan plan, const std::vector<std::vector<int64_t>>& tiles,
               const std::vector<int64_t>& part_counts, const Machine& machine);

// The same with kernel `joined` run by the last blocks of the one before it (core/via.h), its tiles
// those of that kernel.  Nothing where it cannot be.
std::optional<MuGraph> finish_joined(GraphPlan plan, std::vector<std::vector<int64_t>> tiles,
                                     const std::vector<int64_t>& part_counts,
                                     const Machine& machine, size_t joined);

// The same with kernel `joined` run by the blocks of clusters, each its share of the work.
std::optional<MuGraph> finish_in_cluster(GraphPlan plan, std::vector<std::vector<int64_t>> tiles,
                                         const std::vector<int64_t>& part_counts,
                                         const Machine& machine, size_t joined);

}  // namespace sundog::search
