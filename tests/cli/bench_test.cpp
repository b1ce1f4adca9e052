// The command as a user has it, where there is neither a GPU nor PyTorch;
// tests/python/test_bench.py has the baselines.
#include "tests/cli/json_reader.h"
#include "tests/cli/tool_runner.h"

namespace sundog::cli {
namespace {

TEST(Bench, BadInputIsRefusedBeforeAnythingIsDone) {
  const Scratch scratch;
  const std::string program = scratch.write("p.sd", kSmallProgram);
  const std::string broken = scratch.write("q.sd", "program q(n = 4) {\n  input x: f16[n\n");
  const std::string out = scratch.path("out");
  const std::pair<std::vector<std::string>, const char*> bad[] = {
      {{program, "--methods", "eager,magic"}, "there is no method 'magic'"},
      {{program, "--methods", ","}, "--methods names none"},
      {{scratch.path("none.sd")}, "none.sd"},
      {{program, broken}, "q.sd:3"},
      {{program, "-D", "zz=4"}, "zz"},
      {{program, program}, "two rows have the name p"},
      {{}, "sundog bench takes DIR|FILE..."}};
  for (const auto& [arguments, message] : bad) {
    std::vector<std::string> command = {"bench", "--out", out};
    command.insert(command.end(), arguments.begin(), arguments.end());
    const ProcessResult result = run_tool(command);
    EXPECT_EQ(result.code, 2) << message << "\n" << result.err;
    EXPECT_TRUE(contains(result.err, message)) << result.err;
    EXPECT_EQ(result.out, "");
    EXPECT_FALSE(std::filesystem::exists(out)) << message;
  }
}

TEST(BenchSlow, WithoutAGpuAndPyTorchItSaysSoAndKeepsTheResultForTheNextRun) {
  const Scratch scratch;
  const std::string program = scratch.write("p.sd", kSmallProgram);
  const std::vector<std::string> command = {
      "bench",    program,      "--no-gpu", "--states", "30", "--out", scratch.path("out"),
      "--python", "/bin/false", "--json",   "--quiet"};
  const ProcessResult first = run_tool(command, 300);
  ASSERT_EQ(first.code, 0) << first.err;
  const JsonValue json = JsonReader(first.out).whole();
  EXPECT_FALSE(json["gpu"].truth);
  const JsonValue& row = json["rows"].items.at(0);
  EXPECT_EQ(row["name"].text, "p");
  EXPECT_EQ(row["sizes"].text, "n=64 h=256");
  EXPECT_EQ(row["failure"].text, "");
  EXPECT_LT(row["harness"]["error"].number, 1e-2);
  bool told = false;
  for (const JsonValue& note : json["notes"].items)
    told |= contains(note.text, "/bin/false exited");
  EXPECT_TRUE(told) << first.out;
  const std::string result = scratch.read("out/results/p/result.pb");
  ASSERT_FALSE(result.empty());
  EXPECT_TRUE(contains(scratch.read("out/bench.md"), "a dry run"));
  const auto written = std::filesystem::last_write_time(scratch.path("out/results/p/result.pb"));
  ASSERT_EQ(run_tool(command, 300).code, 0);
  EXPECT_EQ(std::filesystem::last_write_time(scratch.path("out/results/p/result.pb")), written);
}

}  // namespace
}  // namespace sundog::cli
