// Runs of axes that every tensor of a graph has side by side, and that no operator tells apart, as
// one axis: heads and their width behind attention, which only the product after it sums over, both
// at once.  A kernel has one loop over them then, and one row in memory.
// NOLINT(sundog-mirror): the insides of graph.h.
#pragma once

#include <map>
#include <set>

#include "frontend/inference.h"

namespace sundog::frontend {

struct Coalesced {
  std::map<AxisVar, AxisVar> first;  // of each run: the axis that stands for all of it
  std::set<AxisVar> others;          // of all runs
  // What is written in place of resolved axes.
  Dim shown(const Dim& resolved) const;
};

// Adds the axes of the runs to `inference.axes`, and changes nothing else of it.
Coalesced coalesce(const Graph& graph, Inference& inference);

// The stride of each axis of a tensor, as the graph declares it.
std::vector<int64_t> axis_strides(const GraphTensor& tensor, const Dims& dims, const Axes& axes);

}  // namespace sundog::frontend
