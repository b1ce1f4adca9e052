// Joins µGraphs of the parts of a program (search/partition.h) into one of the whole.
#pragma once

#include <vector>

#include "core/mugraph.h"
#include "core/program.h"
#include "search/partition.h"

namespace sundog::search {

// `graphs`: one for each part of the partition, in its order. require: each computes its part.
MuGraph join(const Program& program, const Partition& partition,
             const std::vector<const MuGraph*>& graphs);

}  // namespace sundog::search
