// Graphs of tensors with dimensions, and the importer that turns them into programs with named
// axes.
//
//   Graph graph;
//   graph.inputs = {{"x", DType::kF16, {16, 4096}, {}, 0, 16}, {"w", DType::kF16, {4096, 64}, {},
//   0, 16}}; graph.nodes = {{.name = "y", .op = "contract", .inputs = {"x", "w"}, .text =
//   "nh,hd->nd"}}; graph.outputs = {{"y", {"y", DType::kF16, {16, 64}, {}, 0, 16}}};
//   Result<std::string> text = program_text(graph);   // program text, to be read by core/text.h
//
// The operators are few; a frontend (frontend/onnx.h, sundog.torch) says everything in them.
// Operands of different rank are aligned at their last dimensions, and a dimension of 1 repeats, as
// in numpy.
//
//   constant                 numbers[0]
//   add sub mul div max min neg exp ... gelu    the catalog of core/op.h, by name
//   pow                      numbers[0] the exponent;   clamp: numbers low, high
//   cast                     text: the type
//   sum  reduce_max          integers: dimensions, which stay with extent 1
//   contract                 text: "bij,bjk->bik": a product summed over what the result lacks
//   reshape  expand          integers: the new extents, whose product is that of the old
//                            (expand: to which dimensions of 1 repeat)
//   permute                  integers: for each new dimension the old one
//   slice                    integers: dimension, first, count, step
//   concat                   integers: dimension
//   window                   integers: dimension, first, count, step, extent, spread;
//                            numbers[0]: what stands outside.  The dimension becomes `count` places
//                            of a window, whose `extent` elements are a new last dimension: element
//                            w of place p is what stands at first + p * step + w * spread
//   iota                     integers: dimension, extents ...: the index along the dimension
//   less less_equal equal not_equal              a condition of two values
//   and or not               of conditions
//   where                    condition, value, value
//
// How dimensions become axes.  Each tensor's dimension is a list of axes, outer to inner, of which
// a dimension of 1 has none.  An operator says which lists are one (both operands of an addition,
// the summed letters of a contraction), a reshape cuts the axes where the new dimensions begin. Two
// axes that stand in one tensor are never made one: an operand for which that would be needed (the
// keys of self-attention beside the queries) is read along axes of its own instead.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/dtype.h"
#include "core/program.h"
#include "core/status.h"

namespace sundog::frontend {

struct GraphTensor {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<int64_t> extents;
  std::vector<int64_t> strides;  // in elements; empty: row-major
  int64_t offset = 0;
  int alignment = 16;  // bytes
};

struct GraphNode {
  std::string name;  // of its value
  std::string op;
  std::vector<std::string> inputs;
  std::vector<int64_t> integers;
  std::vector<std::string> numbers;  // exact, as text
  std::string text;
  std::string label;  // what the user calls it; empty: the operator
};

struct GraphOutput {
  std::string value;
  GraphTensor tensor;
};

struct Graph {
  std::string name = "graph";
  std::vector<GraphTensor> inputs;
  std::vector<GraphNode> nodes;  // each after those that it reads
  std::vector<GraphOutput> outputs;
};

// Program text.  Errors: kBadInput where the graph contradicts itself, kUnsupported where extents
// have no common refinement (a reshape of [3, 4] to [2, 6]); each names the node by its label.
Result<std::string> program_text(const Graph& graph);

// The program itself.
Result<Program> program_of(const Graph& graph);

// Reads a message TensorGraph.
Result<Graph> parse_graph(std::string_view bytes);

}  // namespace sundog::frontend
