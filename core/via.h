// Kernels that are no launch of their own: blocks of the kernel before run them.
//
//   kernel part grid(q.o, k.s) { ... store acc -> p : f32 }
//   kernel join grid(q.o) via last_block { s[q.i] = sum[k.s](p) ... }
//   kernel join grid(q.o, q.c) via cluster { split q = q.o * q.c(8) * q.i  s[q.i] = sum[k.s](p) ...
//   }
//
// The grid factors of `join` are grid factors of `part`; those that are left, here k.s, tell the
// blocks of one group apart.  `join` means the same as a kernel behind `part` if each of its blocks
// reads of what `part` stored only what its own group did.
//
// Via last_block, the last block of a group to arrive runs the block of `join` with the group's
// index.  Via cluster, the blocks of a group are a thread-block cluster, and `join` may have grid
// factors more, here q.c: they cut its work into shares, of which each block of the cluster runs
// one.  What is handed over stays in the shared memory of the block that stored it, where the
// others read it (distributed shared memory); nothing of it is in device memory, and no other
// kernel can have it.
//
// Rules, each checked by arrival_of():
//  - The kernel before is a launch of its own and defined by its graph, and both have equally many
//  warps.
//  - A grid factor of the one is one of the other: of the same axis, with its extent and stride.
//  - Via last_block: of a tensor that one stores and the other reads, some dimension is indexed by
//  that axis, whole, in every store and in every read: the digit of the group is the same on both
//  sides.
//  - Via cluster: a group has at most 8 blocks, and at least as many as there are shares.  They are
//  neighbours: what tells them apart comes last in the grid of the kernel before, and the shares
//  last in the grid of the joining one.
//  - Via cluster: a tensor that is handed over is an intermediate one of f32 that no other kernel
//  touches.  Each dimension is indexed by its axis, whole, in every store and in every read: by a
//  factor that tells blocks apart, each of which indexes one, or by an axis that no such factor
//  cuts.
#pragma once

#include <string_view>
#include <vector>

#include "core/mugraph.h"
#include "core/status.h"

namespace sundog {

// The most blocks of a cluster that every device with clusters has.
inline constexpr int64_t kMostClusterBlocks = 8;

// "kernel", "last_block", "cluster".
std::string_view name(Via via);

struct Arrival {
  std::vector<AxisId> group;     // for each grid factor of the kernel, that of the kernel before
  std::vector<AxisId> arriving;  // grid factors of the kernel before that are left
  int64_t count = 1;             // blocks of a group
  std::vector<AxisId> sharing;   // grid factors of the kernel behind those of the group
  int64_t shares = 1;            // blocks of a group that run a block of the kernel
};

// require: kernels[kernel].via is not kKernel, and the kernels are well-formed by themselves.
Result<Arrival> arrival_of(const MuGraph& graph, uint32_t kernel);

// Tensors that the kernel before `kernel` stores and `kernel` reads.
std::vector<uint32_t> handed_over(const MuGraph& graph, uint32_t kernel);

// Likewise, those that never leave the shared memory of a cluster; none unless via cluster.
std::vector<uint32_t> kept_in_cluster(const MuGraph& graph, uint32_t kernel);

// Launches: kernels that have their own.
int launch_count(const MuGraph& graph);

}  // namespace sundog
