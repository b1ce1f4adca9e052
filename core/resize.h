// The same program, the same µGraph, at other sizes: what exact tests at small sizes, reduced runs
// on the emulator and re-use of a result on a new shape rest on.
//
// What an index expression says about sizes is kept: mixed radix numbers (4 * q.o + q.i, strides of
// factors) follow the new extents.  A literal does not follow anything, so it pins (LiteralPolicy):
// an axis that is read shifted, strided or windowed keeps its extent, as does the dimension that it
// reads.  Or the two change together, and only the window stays: of x[2 * l + kk] the extent of the
// dimension remains 2 * size(l) plus what it was.  Literals of conditions and shifts may also move
// with the extents, by relations between several (core/size_relations.h).  Two axes that index the
// same dimension with the same extent are tied and change together.
#pragma once

#include <cstdint>
#include <vector>

#include "core/axis_ties.h"
#include "core/mugraph.h"
#include "core/program.h"
#include "core/resize_literals.h"
#include "core/size_solver.h"
#include "core/status.h"

namespace sundog {

// Which axes of a program may change, and which only together: the extent of an axis is a function
// of that of its class.  Under kPin it is that extent.
struct AxisClasses {
  std::vector<uint32_t> class_of;     // per axis: the axis of its class that the others follow
  std::vector<uint8_t> pinned;        // per axis: its extent must stay
  std::vector<AxisTies::Form> forms;  // per axis; the root is class_of
};
AxisClasses axis_classes(const Program& program, LiteralPolicy literals = LiteralPolicy::kPin);
// Under kScale several classes may be related.  The extent of each axis as a function of those of
// the classes; `first` is the number of the first axis among the unknowns.
std::vector<SizeForm> size_forms(const std::vector<AxisTies::Form>& forms, uint32_t first = 0);

// The program with these extents, one an axis: tensors, parameters and splits follow.  Strides that
// were given keep their order, without padding.
// require: pinned axes keep their extent, axes of a class follow it, extents of empty axes stay 0.
Program with_extents(const Program& program, const std::vector<int64_t>& new_extents,
                     const Literals& literals = {});

// Small extents: a distinct prime for each class that is free, from `least` on, but never more than
// the axis has; pinned axes keep theirs.
std::vector<int64_t> small_extents(const Program& program, int64_t least = 2);

// Sizes of a µGraph: extents of its axes, and of the factors of each kernel.  Entries of axes for
// partial results are ignored: they are what their factor is.
struct MuSizes {
  std::vector<int64_t> axes;
  std::vector<std::vector<int64_t>> factors;
};
MuSizes sizes_of(const MuGraph& graph);

// The same structure at other sizes.  Error kUnsupported: a condition with a literal that does not
// follow from tile sizes.  The result may still break check(), if the factors do not cover an axis.
Result<MuGraph> with_sizes(const MuGraph& graph, const MuSizes& sizes,
                           const Literals& literals = {});

enum class ShrinkPolicy : uint8_t {
  // As few elements as show everything: factors of 2 and a few, ragged where the original is
  // ragged,
  // every class of axes with an extent of its own.  For exact tests.
  kFewElements,
  // Tiles keep their extents; grids and loops are cut to few iterations, no loop below its
  // pipeline's
  // depth, and an edge tile keeps its remainder.  For running emitted kernels slowly.
  kKeepTiles,
};

struct Shrunk {
  Program program;
  MuGraph graph;
  Literals literals;  // that moved
};

// require: check(graph, program).ok().  Errors: as with_sizes; literals that cannot move.
// `above`: extents of the program's axes; those that may be larger are.
Result<Shrunk> shrink(const MuGraph& graph, const Program& program, ShrinkPolicy policy,
                      LiteralPolicy literals = LiteralPolicy::kFollow,
                      const std::vector<int64_t>& above = {});

}  // namespace sundog
