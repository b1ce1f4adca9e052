#include "search/explain.h"

#include "cli/commands.h"
#include "tests/cli/json_reader.h"
#include "tests/cli/tool_runner.h"

namespace sundog::cli {
namespace {

constexpr char kChain[] = R"(program chain(n = 16, h = 512, d = 256, e = 64) {
  input x: f16[n, h]
  input w: f16[h, d]
  input v: f16[d, e]
  a[n, d] = sum[h](x * w)
  y[n, e] = sum[d](a * v)
  output y: f16[n, e]
}
)";

ProcessResult explain(const Scratch& scratch, std::vector<std::string> more) {
  std::vector<std::string> arguments = {"explain", scratch.write("chain.sd", kChain), "--target",
                                        "h200"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return run_tool(arguments);
}

TEST(Explain, GivesThePriceOfACutAndWhatLeftIt) {
  const Scratch scratch;
  for (const char* cut : {"a", "none"}) {
    const auto result = explain(scratch, {"--cut", cut, "--json"});
    ASSERT_EQ(result.code, 0) << result.err;
    const JsonValue json = parse_json(result.out);
    EXPECT_GT(json["best"]["predicted_us"].number, 0);
    EXPECT_GT(json["pick"]["predicted_us"].number, 0);
    EXPECT_EQ(contains(json["best"]["structure"].text, "1 kernel,"), std::string(cut) == "none");
    EXPECT_EQ(json["pruned"]["bound"]["times"].kind, JsonValue::kNumber);
  }
  const auto text = explain(scratch, {"--stored", "a"});
  EXPECT_TRUE(contains(text.out, "the pick takes")) << text.out;
  EXPECT_TRUE(contains(text.out, "with a stored between kernels")) << text.out;
}

// An output that has no other name is known by its own.
TEST(Explain, AnOutputIsATermByItsName) {
  const Scratch scratch;
  const std::string file = scratch.write("scaled.sd", R"(program scaled(n = 16, h = 64) {
  input x: f16[n, h]
  s[n] = sum[h](x)
  output o: f32[n] = s * 2
}
)");
  const auto result = run_tool({"explain", file, "--target", "h200", "--term", "o"});
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_TRUE(contains(result.out, "structures that compute o")) << result.out;
}

TEST(Explain, RefusesWhatCannotBeAnswered) {
  const Scratch scratch;
  EXPECT_EQ(explain(scratch, {}).code, 2);
  EXPECT_EQ(explain(scratch, {"--cut", "a", "--stored", "a"}).code, 2);
  const auto unknown = explain(scratch, {"--term", "nobody"});
  EXPECT_EQ(unknown.code, 2);
  EXPECT_TRUE(contains(unknown.err, "nobody")) << unknown.err;
  for (const char* option : {"--stored", "--cut"}) {
    const auto output = explain(scratch, {option, "y"});
    EXPECT_EQ(output.code, 2);
    EXPECT_TRUE(contains(output.err, "'y' is an output of the program")) << output.err;
  }
}

}  // namespace
}  // namespace sundog::cli
