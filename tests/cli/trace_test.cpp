#include "search/trace.h"

#include "cli/commands.h"
#include "tests/cli/json_reader.h"
#include "tests/cli/tool_runner.h"

namespace sundog::cli {
namespace {

TEST(Trace, TellsWhatTheSearchDid) {
  const Scratch scratch;
  const std::string file = scratch.path("events");
  const auto searched = run_tool({"optimize", scratch.write("row_norm.sd", kSmallProgram),
                                  "--target", "h200", "--states", "300", "--no-check", "--no-gpu",
                                  "--json", "--trace", file, "--out", scratch.path("out")});
  ASSERT_EQ(searched.code, 0) << searched.err;
  const auto summary = run_tool({"trace", file, "--json"});
  ASSERT_EQ(summary.code, 0) << summary.err;
  const JsonValue json = parse_json(summary.out), report = parse_json(searched.out);
  EXPECT_EQ(json["events"]["structure"].number, report["search"]["structures"].number);
  EXPECT_EQ(json["pruned"]["bound"].number, report["search"]["pruned"]["bound"].number);
  EXPECT_EQ(json["rounds"].number, report["search"]["rounds"].number);
  EXPECT_TRUE(contains(run_tool({"trace", file}).out, "row_norm"));
  const auto events = run_tool({"trace", file, "--events"});
  EXPECT_TRUE(contains(events.out, "kernel for ")) << events.out;
  EXPECT_TRUE(contains(events.out, "structure "));
}

TEST(Trace, RefusesWhatIsNoTrace) {
  const Scratch scratch;
  const auto result = run_tool({"trace", scratch.write("row_norm.sd", kSmallProgram)});
  EXPECT_EQ(result.code, 2);
  EXPECT_TRUE(contains(result.err, "no trace")) << result.err;
  EXPECT_EQ(run_tool({"trace", scratch.path("none")}).code, 2);
}

}  // namespace
}  // namespace sundog::cli
