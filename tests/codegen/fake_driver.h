// A CUDA driver that runs "kernels" written in C++ on host memory, so that launching, checking and
// timing are tested without a GPU.  Time is a counter that each launch advances.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "codegen/driver_api.h"

namespace sundog::codegen {

// Gets its pointer parameters.
using FakeKernel = std::function<void(const std::vector<std::byte*>&)>;

struct FakeDevice {
  std::map<std::string, FakeKernel> kernels;  // by name
  std::map<std::string, double> cost_us;      // of one launch; 1 if not listed
  std::map<std::string, int> parameters;      // of one launch; 3 if not listed
  std::map<std::string, int> launches;        // outside of capture and in replays
  std::vector<std::string> order;             // of launches
  int fail_launch = 0;                        // code that launches give
  void* current = nullptr;                    // context; that of the device is the FakeDevice
  std::vector<void*> below;                   // contexts under the current one
  void* stream = nullptr;                     // of the last launch
  std::vector<std::string> dependent;         // launches that had leave to start early
};

// The driver of that device.  One at a time; both must outlive the Gpu.
DriverApi fake_driver(FakeDevice& device);

}  // namespace sundog::codegen
