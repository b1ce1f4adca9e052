// Runs the tool as a user does.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/process.h"
#include "tests/cli/scratch.h"

namespace sundog::cli {

inline ProcessResult run_tool(std::vector<std::string> arguments, double seconds = 120) {
  arguments.insert(arguments.begin(), SUNDOG_TOOL);
  auto result = run_process(arguments, {.seconds = seconds});
  if (!result.ok()) {
    ADD_FAILURE() << to_string(result.error());
    return {};
  }
  EXPECT_EQ(result->end, ProcessResult::End::kExited)
      << describe_end(*result, {.seconds = seconds}) << "\n"
      << result->err;
  return std::move(*result);
}

// The tool by a shell: for redirections and limits.  $TOOL is the tool.
inline ProcessResult run_shell(const std::string& script, double seconds = 120) {
  auto result =
      run_process({"bash", "-c", "TOOL='" SUNDOG_TOOL "'\n" + script}, {.seconds = seconds});
  if (!result.ok()) {
    ADD_FAILURE() << to_string(result.error());
    return {};
  }
  return std::move(*result);
}

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// A program that is optimized within a second or so.
inline constexpr char kSmallProgram[] = R"(program row_norm(n = 64, h = 256) {
  input x: f16[n, h]
  r[n] = rsqrt(mean[h](x * x) + 1e-6)
  output y: f16[n, h] = x * r
}
)";

}  // namespace sundog::cli
