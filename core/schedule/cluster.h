// What the blocks of a cluster hand each other (core/via.h), as memory: each block keeps what it
// stores of a tensor in its own shared memory, row-major, and reads what the others keep there.
//
//   part[h.s, n, d], stored by blocks (d.o, h.s) of tiles of 64 columns d:
//     element (s, i, j) lies in block s of its cluster, at i * 72 + j % 64
#pragma once

#include <cstdint>
#include <vector>

#include "core/device.h"
#include "core/mugraph.h"
#include "core/schedule/access.h"
#include "core/via.h"

namespace sundog {

// Thread-block clusters came with sm_90.
bool has_clusters(const Device& device);
// Error: a kernel runs via cluster and the device has none.  kUnsupported, names the kernel.
Status clusters_run_on(const Device& device, const MuGraph& graph);

struct ClusterTensor {
  uint32_t tensor = 0;
  // For each dimension: by how many blocks of the cluster, or else by how many elements of a
  // block's part, one step of its index moves on.
  std::vector<int64_t> ranks, strides;
  std::vector<int64_t> extents;  // of a block's part; 1 where blocks differ
  int64_t elements = 0;          // of a block's part, with padding; a multiple of 4
  int64_t offset = 0;            // bytes in the arena, once that is laid out
};

// Those that `kernel` reads; empty unless it runs via cluster.
// require: arrival_of(graph, kernel) is no error.
std::vector<ClusterTensor> cluster_tensors(const MuGraph& graph, uint32_t kernel);

// Where an element lies: in the block of that rank, so many elements from where the tensor begins.
struct ClusterAddress {
  Affine rank, offset;
};
// `group`: the grid factors of the kernel that all blocks of a cluster share.
ClusterAddress cluster_address(const MuGraph& graph, const Kernel& kernel,
                               const ClusterTensor& tensor, const std::vector<IndexExpr>& index,
                               AxisSet group);

// The grid factors of `kernel`, which runs via cluster, and of the one before it, that all blocks
// of a cluster share.
AxisSet group_of_joined(const MuGraph& graph, uint32_t kernel);
AxisSet group_of_parts(const MuGraph& graph, uint32_t kernel);

// The µGraph with all that stays in clusters in role kCluster, with strides as if the parts of a
// cluster lay one behind the other: what a plan needs to know of its memory.
MuGraph placed_in_clusters(const MuGraph& graph);

}  // namespace sundog
