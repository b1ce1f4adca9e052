// The rates of a device in the units of the cost model: bytes and operations a microsecond.
#pragma once

#include <utility>
#include <vector>

#include "core/device.h"

namespace sundog::search {

struct Machine {
  double sms = 1;
  double shared_per_block = 0, shared_per_sm = 0;  // bytes
  double registers_per_sm = 0;                     // 32-bit registers
  double threads_per_sm = 0, blocks_per_sm = 0;
  double l2_bytes = 0;
  std::vector<std::pair<double, double>> hbm;  // bytes in flight an SM -> bytes/us, both rising
  double l2_rate = 0, shared_rate = 0;         // bytes/us, whole device
  double tensor_rate = 0, alu_rate = 0, sfu_rate = 0;  // multiply-adds, instructions, evaluations
  bool bulk = false;                                   // bulk tensor copies
  bool clusters = false;                               // thread-block clusters
  bool warpgroups = false;                             // products of four warps together
  double warpgroup_gain = 1;                           // their rate over tensor_rate
  double launch_us = 0, fill_us = 0, sync_us = 0;
  double arrive_us = 0;   // until the last block knows that it is
  double cluster_us = 0;  // until the blocks of a cluster have met, read one another and met again
  double overlap_us = 0;  // what every launch but the first saves by starting early
};

Machine machine_of(const Device& device);

// Blocks that run at once in clusters of so many, where an SM holds `resident`.  The blocks of a
// cluster share one group of SMs, in which what is left over stays empty.
double cluster_places(const Machine& machine, int64_t cluster, double resident);

// Rate of device memory with that many bytes in flight on each SM; at most the last row of the
// table.
double hbm_rate(const Machine& machine, double bytes_in_flight);
inline double hbm_peak(const Machine& machine) { return machine.hbm.back().second; }
// Multiply-adds of tensor cores at their best, by warp groups or a library.
inline double tensor_peak(const Machine& machine) {
  return machine.tensor_rate * machine.warpgroup_gain;
}

}  // namespace sundog::search
