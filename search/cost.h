// What a kernel costs on a device, as a function of its sizes.
//
//   time = launch + fill + max(HBM, L2, shared memory, tensor core, ALU, SFU) x waves + iterations
//
// A profile is what of a kernel does not depend on sizes; price() evaluates it at given extents in
// well under a microsecond, so that a search over sizes costs little.  The model ranks candidates.
// It knows nothing of bank conflicts or instruction scheduling; the clock decides among the best
// few.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "core/mugraph.h"
#include "search/kernel_plan.h"
#include "search/machine.h"
#include "search/roles.h"
#include "search/thread_level.h"
#include "search/trimmed.h"

namespace sundog::search {

// A read or write of a device tensor.
struct Traffic {
  uint32_t tensor = 0;
  uint32_t computation = 0;
  AxisSet index;  // factors that the index runs over
  AxisSet times;  // loops around the access
  int loop = -1;  // the innermost of them, counted in order
  AxisSet row;    // tile factors along the dimension that is contiguous in memory
  AxisSet run;    // those along which a block moves over neighbours in memory
  double element_bytes = 4;
  int aligned = 16;         // bytes of which all rows begin at a multiple
  double tensor_bytes = 0;  // of the whole tensor as far as its size is fixed, else 0
  bool is_store = false;
  bool in_cluster = false;  // of what blocks of a cluster keep for one another
};

struct KernelProfile {
  std::vector<Role> roles;
  std::vector<uint32_t> repeats;  // where loops have one iteration: an earlier equal computation
  std::vector<Traffic> traffic;
  std::vector<uint32_t> load_of;  // for each computation that is a load: its traffic, else kNone
  AxisSet grid;
  std::vector<AxisSet> loop_sets;    // for each loop: its factor and those of the loops around it
  std::vector<AxisId> loop_factors;  // for each loop
  AxisSet loops;
  Trims trims;
};

// `wide`: computations that are not stored narrower than f32.
KernelProfile profile(const MuGraph& graph, const Kernel& kernel,
                      const std::set<std::string>& wide = {});
// Of a kernel whose sizes are open, with its loops trimmed as they will be.
KernelProfile profile(const MuGraph& graph, const KernelPlan& plan);

struct KernelPrice {
  bool fits = false;
  double us = std::numeric_limits<double>::infinity();  // unless it fits
  double shared_bytes = 0;                              // of a block, stages included
  int stages = 1;
  int resident = 1;  // blocks an SM holds
  int warps = 4;
  bool warps_vary = false;  // warp_choice matters
  double trimmed_mean = 1;  // of the iterations of its loops: what a block runs of them,
  double trimmed_most = 1;  // and the longest block, where masks trim them
  // Time by resource, us: memory, L2, shared memory, tensor cores, ALU, SFU, dependent steps,
  // blocks.
  std::array<double, 8> by_resource{};
};

// What is known of a kernel; 0: it is still to be chosen or guessed.
struct Known {
  int stages = 0;            // of loops with copies ahead
  int registers = 0;         // a thread, as a compiler counts them
  double spilled_bytes = 0;  // that a thread puts into memory and takes back for lack of them
  bool finished = false;     // its sizes are no choice: what fits no registers is spilled
  int64_t cluster = 1;       // blocks of a cluster of its launch
  double kept_bytes = 0;     // of a block's shared memory: what it keeps for the others
};

// require: `extents` has one entry a factor of the kernel.
KernelPrice price(const KernelProfile& profile, const Kernel& kernel,
                  const std::vector<int64_t>& extents, const Machine& machine, int warp_choice,
                  const Known& known = {});
// Likewise; `level` is memory to use again, and holds what the threads do afterwards.
KernelPrice price(const KernelProfile& profile, const Kernel& kernel,
                  const std::vector<int64_t>& extents, const Machine& machine, int warp_choice,
                  ThreadLevel& level, const Known& known = {});

}  // namespace sundog::search
