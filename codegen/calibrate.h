// The micro-benchmark of a device: measures what the cost model works with, and gives it back as a
// row of core/devices.
//
// Times are those of CUDA graphs between two events, the median of a few replays; rates per clock
// are counted in cycles by the kernels themselves (codegen/calibration_kernels.cuh), so that a
// clock that moves does not show in them.
#pragma once

#include <string>
#include <vector>

#include "codegen/driver.h"
#include "core/device.h"
#include "core/process.h"
#include "core/status.h"

namespace sundog::codegen {

// What was measured beside the fields of a row.
struct Measurement {
  std::string name;
  double value = 0;
  std::string unit;
};

struct Calibration {
  Device device;
  std::vector<Measurement> beside;
};

// The architecture that kernels for this device are compiled for: "sm_90a".
std::string arch_of(const GpuInfo& info);

// CUDA text of the kernels that measure a device of that architecture.
std::string calibration_source(const std::string& arch);

// `cubin` of calibration_source().  Name, full name and architecture are those of the driver.
Result<Calibration> calibrate(Gpu& gpu, const std::string& cubin);

// The same in a child process with a watchdog.
Result<Calibration> calibrate_in_child(int ordinal, const std::string& cubin,
                                       const ProcessLimits& limits);

}  // namespace sundog::codegen
