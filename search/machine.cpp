// Units once and for all: 1 GB/s is 1000 bytes a microsecond, 1 TFLOP/s is half a million
// multiply-adds a microsecond.  mma.sync reaches a good half of the rate that was measured with
// warp-group products.
#include "search/machine.h"

#include <algorithm>
#include <cmath>

#include "core/schedule/cluster.h"

namespace sundog::search {
namespace {

constexpr double kWarpMmaShare = 0.7;
constexpr double kArriveShare = 0.5;  // of a barrier of all blocks: nobody waits to be told

constexpr double kClusterShare = 0.6;  // likewise, and reads of what others keep
constexpr double kSmsOfGroup = 16.5;   // of an H200: 132 in 8 groups, which are not all alike

}  // namespace

double cluster_places(const Machine& machine, int64_t cluster, double resident) {
  const double blocks = static_cast<double>(cluster);
  const double left = std::max(0.0, (blocks - 2) / 2) / (kSmsOfGroup * resident);
  return blocks * std::max(1.0, std::floor(machine.sms * resident * (1 - left) / blocks));
}

Machine machine_of(const Device& d) {
  Machine m;
  const double sm_clocks = d.sms * d.clock_mhz;  // SM cycles a microsecond
  m.sms = d.sms;
  m.shared_per_block = static_cast<double>(d.shared_per_block);
  m.shared_per_sm = static_cast<double>(d.shared_per_sm);
  m.registers_per_sm = static_cast<double>(d.registers_per_sm);
  m.threads_per_sm = d.max_threads_per_sm;
  m.blocks_per_sm = d.max_blocks_per_sm;
  m.l2_bytes = static_cast<double>(d.l2_bytes);
  for (const auto& [in_flight, rate] : d.hbm) m.hbm.push_back({in_flight, rate * 1e3});
  m.l2_rate = d.l2_gb_per_s * 1e3;
  m.shared_rate = d.shared_bytes_per_clock_per_sm * sm_clocks;
  m.tensor_rate = tensor_tflop_per_s(d, DType::kF16) * 0.5e6 * kWarpMmaShare;
  m.bulk = d.arch.starts_with("sm_9");
  m.clusters = has_clusters(d);
  m.warpgroups = d.arch == "sm_90a";
  m.warpgroup_gain = 1 / kWarpMmaShare;
  m.alu_rate = d.fma_per_clock_per_sm * sm_clocks;
  m.sfu_rate = d.sfu_per_clock_per_sm * sm_clocks;
  m.launch_us = d.graph_node_us;
  m.arrive_us = kArriveShare * d.grid_sync_us;
  m.cluster_us = kClusterShare * d.grid_sync_us;
  m.overlap_us = d.graph_node_us - d.dependent_node_us;
  m.fill_us = d.fill_us;
  m.sync_us = d.block_sync_us;
  return m;
}

double hbm_rate(const Machine& machine, double in_flight) {
  std::pair<double, double> last{0, 0};
  for (const auto& row : machine.hbm) {
    if (in_flight < row.first) {
      const double share = (in_flight - last.first) / (row.first - last.first);
      return last.second + share * (row.second - last.second);
    }
    last = row;
  }
  return last.second;
}

}  // namespace sundog::search
