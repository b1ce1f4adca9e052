// A CUDA driver that runs "kernels" written in C++ on host memory, so that launching, checking and
// timing are tested without a GPU.  Time is a counter that each launch advances.
#pragma once

#include <array>
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
  int count = 1;  // devices of the machine, at most 1 + others.size(), which share all below
  std::map<std::string, FakeKernel> kernels;  // by name
  std::map<std::string, double> cost_us;      // of one launch; 1 if not listed
  std::map<std::string, int> parameters;      // of one launch; 3 if not listed
  std::map<std::string, int> launches;        // outside of capture and in replays
  std::vector<std::string> order;             // of launches
  int fail_launch = 0;                        // code that launches give
  void* current = nullptr;                    // context; see `context`
  std::vector<void*> below;                   // contexts under the current one
  void* stream = nullptr;                     // of the last launch
  std::vector<std::string> dependent;         // launches that had leave to start early
  std::vector<int> ran_on;                    // the device of each launch
  std::array<char, 3> others{};               // what the contexts of devices but the first are

  // The primary context of device `ordinal`.  What is loaded while it is current can be launched,
  // and unloaded, only while it is.
  void* context(int ordinal) {
    return ordinal == 0 ? static_cast<void*>(this) : &others.at(static_cast<size_t>(ordinal) - 1);
  }
};

// The driver of that device.  One at a time; both must outlive the Gpu.
DriverApi fake_driver(FakeDevice& device);

}  // namespace sundog::codegen
