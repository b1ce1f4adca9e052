// What the emitted text may use on a device.
#pragma once

#include <string>

#include "core/device.h"
#include "core/status.h"

namespace sundog::codegen {

struct Target {
  int architecture = 80;          // 80 for "sm_80", 90 for "sm_90a"
  bool warpgroups = false;        // products of warp groups: sm_90a alone
  bool dependent_launch = false;  // a kernel may start before the one before it is done: sm_90
  std::string nvcc_flags;         // "-gencode=arch=compute_90a,code=sm_90a"
};

// Error: an architecture before sm_80, or none.
Result<Target> target_of(const Device& device);

}  // namespace sundog::codegen
