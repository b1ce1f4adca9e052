// What a device can do: limits that a schedule must keep, and rates that the cost model works with.
// The rows are core/devices/*.textproto, which the library carries with it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/dtype.h"
#include "core/status.h"

namespace sundog {

struct Device {
  std::string name;       // "h200"
  std::string full_name;  // as the driver gives it
  std::string arch;       // "sm_90a"
  int sms = 0;
  double clock_mhz = 0;
  int64_t shared_per_block = 0;           // bytes a block may ask for
  int64_t shared_per_sm = 0;              // bytes
  int64_t shared_reserved_per_block = 0;  // bytes that the system adds to each block
  int64_t registers_per_sm = 0;           // of 32 bits
  int max_registers_per_thread = 0;
  int max_threads_per_block = 0;
  int max_threads_per_sm = 0;
  int max_blocks_per_sm = 0;
  int64_t l2_bytes = 0;
  int64_t memory_bytes = 0;

  // (bytes in flight per SM, GB/s of the device), increasing; at the last entry memory is
  // saturated.
  std::vector<std::pair<double, double>> hbm;
  double l2_gb_per_s = 0;
  double shared_bytes_per_clock_per_sm = 0;
  std::vector<std::pair<DType, double>> tensor_tflop_per_s;  // a multiply-add is two
  double fma_per_clock_per_sm = 0;                           // float32 multiply-adds
  double alu_per_clock_per_sm = 0;                           // other instructions
  double sfu_per_clock_per_sm = 0;                           // exp2, rsqrt, reciprocal, ...

  double launch_us = 0;          // one kernel by itself
  double graph_node_us = 0;      // each further kernel of a graph
  double dependent_node_us = 0;  // likewise, where it may start before the one before it is done
  double fill_us = 0;            // until the first bytes of memory arrive
  double block_sync_us = 0;      // a barrier of one block
  double grid_sync_us = 0;       // a barrier of all blocks
};

// The row of that name, in any case ("h200", "h100", "a100").  Error: no such device.
Result<Device> find_device(std::string_view name);
// The row for the device that the driver calls so ("NVIDIA H200"), else one of the same
// architecture.
Result<Device> find_device_of_driver(std::string_view full_name, int major, int minor);
std::vector<std::string> device_names();

// Reads one row.  Errors: not a row, a limit or rate missing.
Result<Device> parse_device(std::string_view textproto);

// The text that parse_device reads back.
std::string print_device(const Device& device);

// GB/s that memory gives with so many bytes in flight per SM: linear between the entries of the
// table, proportional below the first.
double hbm_gb_per_s(const Device& device, double bytes_in_flight_per_sm);

// Multiply-adds of tensor cores, TFLOP/s; 0 if the device has none for that type.
double tensor_tflop_per_s(const Device& device, DType dtype);

}  // namespace sundog
