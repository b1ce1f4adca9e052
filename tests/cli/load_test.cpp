#include "cli/load.h"

#include <gtest/gtest.h>

#include "tests/cli/scratch.h"

namespace sundog::cli {
namespace {

constexpr char kProgram[] = R"(program twice(n = 64) {
  input x: f32[n]
  output y: f32[n] = 2 * x
}
)";
constexpr char kGraph[] = R"(ugraph one of twice {
  kernel k grid(n.o) warps(1) {
    split n = n.o * n.i(32)
    v[n.i] = x : reg f32
    w[n.i] = 2 * v : reg f32
    store w -> y
  }
}
)";

Invocation invocation(std::vector<std::string> more = {}) {
  std::vector<std::string> arguments = {"emit", "file"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  Result<Invocation> parsed =
      parse_invocation(arguments, [](const std::string&) { return std::optional<std::string>(); });
  SUNDOG_CHECK(parsed.ok());
  return std::move(*parsed);
}

int64_t extent(const Result<Candidate>& candidate) {
  return candidate.ok() ? candidate->program.axes[0].extent : -1;
}

TEST(Load, AMugraphFindsItsProgramByName) {
  const Scratch scratch;
  scratch.write("twice.sd", kProgram);
  const std::string file = scratch.write("any.mu", kGraph);
  EXPECT_EQ(extent(load_mugraph(file, invocation())), 64);
  EXPECT_EQ(extent(load_mugraph(file, invocation({"-D", "n=96"}))), 96);
}

TEST(Load, TheFirstLineNamesAnotherFileAndItsSizes) {
  const Scratch scratch;
  scratch.write("twice.sd", "not this one");
  scratch.write("other.sd", kProgram);
  const std::string file =
      scratch.write("any.mu", std::string("# program: other.sd n=128\n") + kGraph);
  EXPECT_EQ(extent(load_mugraph(file, invocation())), 128);
  EXPECT_EQ(extent(load_mugraph(file, invocation({"-D", "n=96"}))), 96) << "-D wins";
}

TEST(Load, TheOptionNamesTheProgramOverAll) {
  const Scratch scratch;
  scratch.write("twice.sd", "not this one");
  const std::string file = scratch.write("any.mu", kGraph);
  const std::string program = scratch.write("mine.sd", kProgram);
  EXPECT_FALSE(load_mugraph(file, invocation()).ok());
  EXPECT_EQ(extent(load_mugraph(file, invocation({"--program", program}))), 64);
}

TEST(Load, AFolderIsAResult) {
  const Scratch scratch;
  scratch.write("program.sd", kProgram);
  scratch.write("best.mu", kGraph);
  EXPECT_EQ(extent(load_mugraph(scratch.path(), invocation())), 64);
  EXPECT_TRUE(load_program(scratch.path(), invocation()).ok());
  EXPECT_FALSE(load_result(scratch.path(), invocation()).ok()) << "result.pb is missing";
}

}  // namespace
}  // namespace sundog::cli
