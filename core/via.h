// Kernels that are no launch of their own: blocks of the kernel before run them.
//
//   kernel part grid(q.o, k.s) { ... store acc -> p : f32 }
//   kernel join grid(q.o) via last_block { s[q.i] = sum[k.s](p) ... }
//
// The grid factors of `join` are grid factors of `part`; those that are left, here k.s, tell the
// blocks of one group apart.  The last block of a group to arrive runs the block of `join` with the
// group's index.  So `join` means the same as a kernel behind `part` if each of its blocks reads of
// what `part` stored only what its own group did.  Rules, each checked by arrival_of():
//  - The kernel before is a launch of its own and defined by its graph, and both have equally many
//  warps.
//  - A grid factor of the one is one of the other: of the same axis, with its extent and stride.
//  - Of a tensor that one stores and the other reads, some dimension is indexed by that axis,
//  whole,
//    in every store and in every read: the digit of the group is the same on both sides.
#pragma once

#include <string_view>
#include <vector>

#include "core/mugraph.h"
#include "core/status.h"

namespace sundog {

// "kernel", "last_block".
std::string_view name(Via via);

struct Arrival {
  std::vector<AxisId> group;     // for each grid factor of the kernel, that of the kernel before
  std::vector<AxisId> arriving;  // grid factors of the kernel before that are left
  int64_t count = 1;             // blocks of a group
};

// require: kernels[kernel].via is not kKernel, and the kernels are well-formed by themselves.
Result<Arrival> arrival_of(const MuGraph& graph, uint32_t kernel);

// Launches: kernels that have their own.
int launch_count(const MuGraph& graph);

}  // namespace sundog
