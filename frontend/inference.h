// What is known of a graph once its dimensions have become axes: for each node what it reads along
// which axes, and what it runs over.  Between frontend/inference.cpp, which finds it out, and
// frontend/graph_text.cpp, which writes it down.
// NOLINT(sundog-mirror): the insides of graph.h.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "frontend/axes.h"
#include "frontend/graph.h"

namespace sundog::frontend {

// How a node reads a value: along which axes.  Dimension `dim`, if there is one, is read elsewhere:
// its outermost axis `outer` at step * along + spread * window + first, the axes below it, `inner`,
// as they are.
struct Access {
  size_t value = 0;
  Dims dims;
  bool renamed = false;  // not along the value's own axes
  int dim = -1;
  Dim outer, along, inner, window;
  int64_t first = 0, step = 1, spread = 1;
};

struct Value {
  std::vector<int64_t> extents;
  Dims dims;
  int node = -1;  // that computes it; -1: an input
  std::vector<Access> operands;
  Dim bound;          // axes that its term sums over, here or further down
  Dim reduced;        // axes that the node itself sums over
  AxisVar part = -1;  // of a concatenation of equal parts: the axis over them
  bool condition = false;
  int uses = 0;
};

struct Inference {
  Axes axes;
  std::vector<Value> values;  // inputs, then nodes
  std::map<std::string, size_t> by_name;
};

// What a few equal parts of a dimension become, that are sliced out or put together (the halves of
// what is rotated): an axis over the parts, whose number is then no literal beside which extents
// would have to stay as they are; or ranges of one axis.  The first does not suit a dimension that
// is also sliced otherwise.
enum class Parts : uint8_t { kAxes, kRanges };

Result<Inference> infer_axes(const Graph& graph, Parts parts);

}  // namespace sundog::frontend
