// What the tests of the emulator share: kernels from tests/codegen/kernels and a look at reports.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "codegen/emulator.h"

namespace sundog::codegen {

inline std::string read_kernel(const std::string& name) {
  std::ifstream file(std::string(SUNDOG_SOURCE_DIR) + "/tests/codegen/kernels/" + name);
  std::stringstream text;
  text << file.rdbuf();
  EXPECT_FALSE(text.str().empty()) << name;
  return text.str();
}

// A problem of this kind was found.
inline bool has_kind(const EmulatorReport& report, const std::string& kind) {
  return std::any_of(report.problems.begin(), report.problems.end(),
                     [&](const std::string& problem) { return problem.starts_with(kind + ": "); });
}

inline std::string join(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

template <class T>
EmulatorBuffer input(std::vector<T>& values) {
  return {values.data(), values.size() * sizeof(T), false};
}
template <class T>
EmulatorBuffer output(std::vector<T>& values) {
  return {values.data(), values.size() * sizeof(T), true};
}

// A launch with all buffers as arguments, in their order.
inline EmulatorLaunch launch_all(const std::string& kernel, uint32_t grid, uint32_t block,
                                 size_t shared_bytes, size_t buffers) {
  EmulatorLaunch launch;
  launch.kernel = kernel;
  launch.grid[0] = grid;
  launch.block[0] = block;
  launch.shared_bytes = shared_bytes;
  for (size_t i = 0; i < buffers; ++i) launch.args.push_back(static_cast<int>(i));
  return launch;
}

// Runs one kernel and gives its report; an Error fails the test.
inline EmulatorReport run_kernel(const Result<EmulatorModule>& module, const EmulatorLaunch& launch,
                                 const std::vector<EmulatorBuffer>& buffers,
                                 const EmulatorOptions& options) {
  if (!module.ok()) {
    ADD_FAILURE() << to_string(module.error());
    return {};
  }
  Result<EmulatorReport> report = module->run({&launch, 1}, buffers, options);
  if (!report.ok()) {
    ADD_FAILURE() << to_string(report.error());
    return {};
  }
  return *report;
}

}  // namespace sundog::codegen
