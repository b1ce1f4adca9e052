// NOLINT(sundog-mirror): the examples of README.md are what they claim to be.
#include <fstream>

#include "tests/cli/tool_runner.h"

namespace sundog::cli {
namespace {

// The indented block of README.md that begins with `first`, without its indentation.
std::string block(const std::string& first) {
  std::ifstream file(std::string(SUNDOG_SOURCE_DIR) + "/README.md");
  std::string line, text;
  bool inside = false;
  while (std::getline(file, line)) {
    inside |= line.starts_with("    " + first);
    if (inside && !line.starts_with("    ")) break;
    if (inside) text += line.substr(4) + "\n";
  }
  return text;
}

TEST(Readme, ItsMugraphIsItsProgram) {
  const Scratch scratch;
  const std::string program = scratch.write("rms_norm.sd", block("program "));
  const std::string graph = scratch.write("best.mu", block("ugraph "));
  ASSERT_NE(scratch.read("best.mu"), "");
  const auto verdict = run_tool({"verify", program, graph});
  EXPECT_EQ(verdict.code, 0) << verdict.out << verdict.err;
}

TEST(Readme, ItsKernelCallsWhatIsEmittedForItsMugraph) {
  const Scratch scratch;
  scratch.write("rms_norm.sd", block("program "));
  const auto emitted = run_tool({"emit", scratch.write("best.mu", block("ugraph "))});
  ASSERT_EQ(emitted.code, 0) << emitted.err;
  const std::string excerpt = block("// t13[n, d.i]");
  int calls = 0;
  for (size_t at = excerpt.find("sd::"); at != std::string::npos;
       at = excerpt.find("sd::", at + 1)) {
    const std::string name = excerpt.substr(at, excerpt.find_first_of("(<", at) - at);
    EXPECT_TRUE(contains(emitted.out, name + "(") || contains(emitted.out, name + "<")) << name;
    ++calls;
  }
  EXPECT_GE(calls, 4);
  EXPECT_TRUE(contains(emitted.out, "// t13[n, d.i] = sum[h.o, h.i](xs * ws)"));
}

}  // namespace
}  // namespace sundog::cli
