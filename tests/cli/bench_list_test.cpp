#include "cli/bench_list.h"

#include "tests/cli/tool_runner.h"

namespace sundog::cli {
namespace {

Result<std::vector<BenchEntry>> entries_of(const std::vector<std::string>& arguments) {
  std::vector<std::string> all = {"bench"};
  all.insert(all.end(), arguments.begin(), arguments.end());
  const auto invocation =
      parse_invocation(all, [](const std::string&) { return std::optional<std::string>(); });
  if (!invocation.ok()) return invocation.error();
  return bench_entries(*invocation);
}

TEST(BenchList, LinesOfAListNameProgramsBesideIt) {
  const Scratch scratch;
  const std::string program = scratch.write("p.sd", kSmallProgram);
  const std::string list =
      scratch.write("list.txt", "# comment\n\nfirst p n=8 h=64  # odd\nsecond p\n");
  const auto entries = entries_of({list, "-D", "n=4"});
  ASSERT_TRUE(entries.ok()) << to_string(entries.error());
  ASSERT_EQ(entries->size(), 2u);
  EXPECT_EQ((*entries)[0].name, "first");
  EXPECT_EQ((*entries)[0].path, program);
  EXPECT_EQ((*entries)[0].defines, (std::vector<std::string>{"n=4", "n=8", "h=64"}));
  EXPECT_EQ((*entries)[1].defines, std::vector<std::string>{"n=4"});
}

TEST(BenchList, AFolderStandsForItsProgramsByName) {
  const Scratch scratch;
  scratch.write("b.sd", kSmallProgram);
  scratch.write("a.sd", kSmallProgram);
  scratch.write("notes.txt", "nothing");
  const auto entries = entries_of({scratch.path("")});
  ASSERT_TRUE(entries.ok()) << to_string(entries.error());
  ASSERT_EQ(entries->size(), 2u);
  EXPECT_EQ((*entries)[0].name, "a");
  EXPECT_FALSE((*entries)[0].result);
}

TEST(BenchList, WhatCannotBeMeasuredIsRefusedWithItsPlace) {
  const Scratch scratch;
  scratch.write("p.sd", kSmallProgram);
  const std::pair<const char*, const char*> bad[] = {
      {"lonely\n", "list.txt:1: a name without a program"},
      {"\nx y\n", "list.txt:2: there is no"},
      {"../x p\n", "list.txt:1: '../x' is not a name"},
      {"x p\nx p n=2\n", "two rows have the name x"},
      {"# nothing\n", "nothing to measure"}};
  for (const auto& [text, message] : bad) {
    const auto entries = entries_of({scratch.write("list.txt", text)});
    ASSERT_FALSE(entries.ok()) << text;
    EXPECT_TRUE(contains(to_string(entries.error()), message)) << to_string(entries.error());
    EXPECT_EQ(entries.error().code, ErrorCode::kBadInput);
  }
  EXPECT_FALSE(entries_of({scratch.path("none.sd")}).ok());
  EXPECT_FALSE(entries_of({scratch.write("g.mu", "ugraph g of p {\n}\n")}).ok());
}

}  // namespace
}  // namespace sundog::cli
