// A kernel whose structure is fixed and whose sizes are not.
//
// Search decides structure first: which terms a kernel computes, what is on the grid, what loops.
// Tile extents, the number of partial results, warps, storage and stages come last.  Between the
// two stands a KernelPlan: a core kernel in which every axis is cut the same way,
//
//   index = (part * |outer| + outer) * |inner| + inner
//
// with `part` on the grid (its partial results are stored and joined by a later kernel), `outer` on
// the grid or a loop, and `inner` the tile.  set_tile fills the extents in; finish() removes the
// factors that turned out to have one value and decides what the threads do.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/mugraph.h"
#include "core/program.h"

namespace sundog::search {

inline constexpr AxisId kNoFactor = ~AxisId{0};

struct Split {
  AxisId axis = 0;     // of the µGraph
  int64_t extent = 0;  // of that axis
  AxisId part = kNoFactor;
  AxisId outer = kNoFactor;
  AxisId inner = kNoFactor;
  bool looped = false;   // outer is a loop, not on the grid
  int shared_part = -1;  // index into GraphPlan::parts where `part` is a factor
  int whole_part = -1;   // likewise where the axis is the one that partial results carry
};

// The same kernel as a library's, which needs no sizes.
struct LibraryKernel {
  Kernel kernel;
  double us = 0;
};

struct KernelPlan {
  Kernel kernel;
  std::vector<Split> splits;
  std::set<std::string> wide;  // computations whose values may leave the range of 16 bits
  std::optional<LibraryKernel> library = {};  // where it is offered (search/library_kernel.h)
  bool library_alone = false;                 // it stays the library's
};

// A factor whose extent several kernels share: how many partial results an axis is cut into.
struct Part {
  AxisId axis = 0;     // the axis that is cut
  AxisId mu_axis = 0;  // the axis of the µGraph that the partial results carry
  int64_t extent = 0;  // of `axis`
  int64_t count = 1;
};

struct GraphPlan {
  MuGraph graph;  // axes and tensors; its kernels are filled in by finish()
  std::vector<KernelPlan> kernels;
  std::vector<Part> parts;
};

// A µGraph of `program` with its axes, inputs and outputs and no kernels yet.
GraphPlan empty_plan(const Program& program);

// Adds a factor pair (grid or loop, tile) for `axis`; the extents follow by set_tile.
Split& add_split(KernelPlan& plan, const MuGraph& graph, AxisId axis, bool looped);

// Index values of one of `count` parts of an axis: a whole number of tensor-core steps, so that
// rows of tiles start at aligned addresses.  All of them where there is one part.
int64_t part_extent(int64_t extent, int64_t count);

// Extents of a split's factors at `tile` elements a step and `count` parts (1 where it has none).
struct SplitExtents {
  int64_t part = 1, outer = 1, inner = 1;
};
SplitExtents extents_at(const Split& split, int64_t tile, int64_t count);

// Fills in the extents of a split: `tile` elements a step, `count` parts (1 where it has none).
void set_tile(KernelPlan& plan, const Split& split, int64_t tile, int64_t count);

// Adds an intermediate tensor over whole axes of the µGraph, f32, row-major.  Gives its index.
uint32_t add_intermediate(MuGraph& graph, std::string name, const std::vector<AxisId>& axes);

// Writes the counts of `parts` into the µGraph's axes and tensors.
void set_part_counts(GraphPlan& plan);

}  // namespace sundog::search
