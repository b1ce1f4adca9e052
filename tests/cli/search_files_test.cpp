#include "cli/search_files.h"

#include "cli/commands.h"
#include "tests/cli/json_reader.h"
#include "tests/cli/tool_runner.h"

namespace sundog::cli {
namespace {

std::vector<std::string> search(const Scratch& scratch, std::vector<std::string> more) {
  std::vector<std::string> arguments = {
      "optimize",         scratch.write("row_norm.sd", kSmallProgram),
      "--target",         "h200",
      "--states",         "400",
      "--no-check",       "--no-gpu",
      "--json",           "--out",
      scratch.path("out")};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

TEST(SearchFiles, TheSpaceIsThatOfTheFile) {
  const Scratch scratch;
  const std::string one = scratch.write("one.space", "most_kernels: 1  # and nothing else\n");
  const auto few = run_tool(search(scratch, {"--space", one}));
  const auto all = run_tool(search(scratch, {}));
  ASSERT_EQ(few.code, 0) << few.err;
  EXPECT_LT(parse_json(few.out)["search"]["states"].number,
            parse_json(all.out)["search"]["states"].number);
  const auto printed = run_tool({"space", one});
  EXPECT_EQ(printed.code, 0);
  EXPECT_TRUE(contains(printed.out, "most_kernels: 1\n"));
  EXPECT_TRUE(contains(printed.out, "online: true\n"));
  EXPECT_EQ(run_tool({"space", scratch.write("two.space", printed.out)}).out, printed.out);
}

TEST(SearchFiles, AWrongSpaceIsNamedWithItsPlace) {
  const Scratch scratch;
  const auto result =
      run_tool(search(scratch, {"--space", scratch.write("a.space", "\nmost_kernel: 1\n")}));
  EXPECT_EQ(result.code, 2);
  EXPECT_TRUE(contains(result.err, "a.space:2:")) << result.err;
  EXPECT_EQ(run_tool(search(scratch, {"--space", scratch.path("none")})).code, 2);
}

// What cannot be kept costs a message, not the answer.
TEST(SearchFiles, AFullDiskEndsTheTraceAndNotTheSearch) {
  const Scratch scratch;
  const auto result = run_tool(search(scratch, {"--trace", "/dev/full"}));
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(parse_json(result.out)["search"]["stop_reason"].text, "exhausted");
  const size_t told =
      result.err.find("the trace ends early: cannot write /dev/full: No space left");
  EXPECT_NE(told, std::string::npos) << result.err;
  EXPECT_EQ(result.err.find("/dev/full", told + 40), std::string::npos) << result.err;
}

TEST(SearchFiles, ADeviceIsNoCheckpoint) {
  const Scratch scratch;
  const auto result = run_tool(search(scratch, {"--checkpoint", "/dev/full"}));
  EXPECT_EQ(result.code, 2);
  EXPECT_TRUE(contains(result.err, "/dev/full is no file that a checkpoint")) << result.err;
}

TEST(SearchFiles, ACheckpointIsKeptInAFileOrAFolder) {
  const Scratch scratch;
  const auto first = run_tool(search(scratch, {"--checkpoint", scratch.path("file")}));
  ASSERT_EQ(first.code, 0) << first.err;
  EXPECT_GT(scratch.read("file").size(), 100u);
  const auto again = run_tool(search(scratch, {"--checkpoint", scratch.path("file")}));
  ASSERT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(parse_json(again.out)["search"]["states"].number,
            parse_json(first.out)["search"]["states"].number);
  EXPECT_TRUE(parse_json(again.out)["search"]["resumed"].truth);
  EXPECT_FALSE(parse_json(first.out)["search"]["resumed"].truth);
  std::filesystem::create_directory(scratch.path("folder"));
  EXPECT_EQ(run_tool(search(scratch, {"--checkpoint", scratch.path("folder")})).code, 0);
  EXPECT_GT(scratch.read("folder/search.checkpoint").size(), 100u);
}

TEST(SearchFiles, FoldersAboveAreMade) {
  const Scratch scratch;
  const auto result = run_tool(search(
      scratch, {"--checkpoint", scratch.path("a/b/file"), "--trace", scratch.path("c/d/trace")}));
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_GT(scratch.read("a/b/file").size(), 100u);
  EXPECT_GT(scratch.read("c/d/trace").size(), 100u);
  ASSERT_EQ(run_tool(search(scratch, {"--checkpoint", scratch.path("e/f/")})).code, 0);
  EXPECT_GT(scratch.read("e/f/search.checkpoint").size(), 100u);
  const auto below = run_tool(search(scratch, {"--checkpoint", scratch.path("a/b/file/x")}));
  EXPECT_EQ(below.code, 2);
  EXPECT_TRUE(contains(below.err, "a/b/file")) << below.err;
}

TEST(SearchFiles, ADamagedCheckpointIsRefusedWithAMessage) {
  const Scratch scratch;
  ASSERT_EQ(run_tool(search(scratch, {"--checkpoint", scratch.path("file")})).code, 0);
  std::string bytes = scratch.read("file");
  bytes[bytes.size() / 2] ^= 4;
  scratch.write("file", bytes);
  const auto result = run_tool(search(scratch, {"--checkpoint", scratch.path("file")}));
  ASSERT_EQ(result.code, 0) << result.err;
  EXPECT_FALSE(parse_json(result.out)["search"]["resumed"].truth);
  EXPECT_TRUE(contains(result.out, "damaged")) << result.out;
  const auto mended = run_tool(search(scratch, {"--checkpoint", scratch.path("file")}));
  EXPECT_TRUE(parse_json(mended.out)["search"]["resumed"].truth) << "it was written anew";
}

TEST(SearchFiles, AFileThatIsNoCheckpointIsLeftAlone) {
  const Scratch scratch;
  const std::string mine = scratch.write("thesis.txt", "years of work");
  const auto result = run_tool(search(scratch, {"--checkpoint", mine}));
  EXPECT_EQ(result.code, 2);
  EXPECT_TRUE(contains(result.err, "no checkpoint")) << result.err;
  EXPECT_EQ(scratch.read("thesis.txt"), "years of work");
}

}  // namespace
}  // namespace sundog::cli
