// Programs too large for one search, cut into parts that are searched one by one.
//
// A part is a program of its own. What a part needs of an earlier one is an input of it and an
// output of that; all parts have the axes of the whole, so that their µGraphs can be joined
// (search/join.h).
#pragma once

#include <string>
#include <vector>

#include "core/program.h"
#include "search/machine.h"

namespace sundog::search {

struct ProgramPart {
  Program program;
  // Tensors of the whole, for each input and then each output of the part: inputs of the whole,
  // then its outputs, then the intermediates of the partition.
  std::vector<uint32_t> tensors;
};

struct Partition {
  std::vector<ProgramPart> parts;         // in launch order
  std::vector<TensorDecl> intermediates;  // between parts
  double estimate_us = 0;                 // of what the cuts cost: launches and traffic
};

// Reductions of the program that are matrix products: what makes it large.
int count_products(const Program& program);

// Whether one kernel can well make all outputs: the axes that they have in common, over which
// nothing is reduced, are as many blocks as one of them could have, or as fill the device.
// Gradients of a row and of a column have none.
bool outputs_share_a_grid(const Program& program, const Machine& machine);

// The `most` partitions with the cheapest cuts, best first; none where one part is all there is.
// `narrow`: what a later part multiplies is stored in the 16-bit type of the inputs, if they have
// one; else every intermediate is f32.  Where outputs share no grid and cuts can give each part
// outputs that do, only those are considered, and one partition more has parts that share nothing.
std::vector<Partition> partitions(const Program& program, const Machine& machine, bool narrow,
                                  size_t most);

}  // namespace sundog::search
