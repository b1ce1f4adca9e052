// How many iterations the blocks of a kernel run where masks trim its loops.
//
// A block of a causal kernel runs as many as its last query sees keys, so that all blocks together
// do about half of the work, and the longest one twice the work of the mean.  Which iterations run
// is an interval that follows from the block's indices by affine conditions; sizes enter through
// the strides and extents of factors, which may still be open.
#pragma once

#include <cstdint>
#include <vector>

#include "core/mugraph.h"

namespace sundog::search {

// An iteration runs only if constant + sum(coefficient * stride * index) <= 0 somewhere in its
// tile.
struct TrimBound {
  struct Item {
    AxisId factor = 0;
    int64_t coefficient = 0;
    AxisSet stride;  // factors whose extents are the rest of the coefficient
  };
  int64_t constant = 0;
  std::vector<Item> items;
};

struct TrimmedLoop {
  size_t loop = 0;  // counted in order, as Role::loop
  AxisId factor = 0;
  AxisSet around;  // factors of the loops around it
  std::vector<TrimBound> bounds;
};

struct Trims {
  std::vector<AxisId> grid;          // slowest first
  std::vector<AxisSet> loops;        // for each loop of the kernel: its factor and those around it
  std::vector<TrimmedLoop> trimmed;  // those that are trimmed, outer ones first
};

// As the loops of a finished kernel say.  `size_of`: extents of the µGraph's axes.
Trims trims_of(const Kernel& kernel, const std::vector<int64_t>& size_of);
// As masks will trim the loops of a kernel whose sizes are open: all its strides are 1.
Trims trims_to_come(const Kernel& kernel, const std::vector<int64_t>& size_of);

struct Iterations {
  std::vector<double> share;  // of each loop's iterations: what the mean block runs
  // Of the iterations that a block runs in all of its loops, in those of the mean block:
  double longest = 1;
  std::vector<double> blocks = {1};  // of samples in the order in which blocks start, one period
  double periods = 1;                // how often that repeats
};

// require: `extents` has one entry a factor of the kernel.
Iterations iterations_at(const Trims& trims, const std::vector<int64_t>& extents);

// The time until `blocks` blocks are through, where so many `places` take one after the other, in
// that of the mean block.  Within about a tenth of what giving each block to the first free place
// comes to.
double busiest_place(const Iterations& iterations, double blocks, double places);

// The share of an index space that conditions keep, all of them together, as far as they are
// inequalities: their axes are those of `extents`, and so are the sizes in them.
double kept_share(const std::vector<IndexCondition>& conditions,
                  const std::vector<int64_t>& extents);

}  // namespace sundog::search
