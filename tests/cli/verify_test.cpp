// Verdicts and runs by the tool: what a candidate was made with, and what cannot be compared.
#include "tests/cli/json_reader.h"
#include "tests/cli/tool_runner.h"

namespace sundog::cli {
namespace {

std::string product(const std::string& parameters) {
  return "program product(" + parameters + R"() {
  input x: f16[n, h]
  input w: f16[h, d]
  output y: f16[n, d] = sum[h](x * w)
}
)";
}

// The tool's answer for two programs, which must be an error of the user.
std::string refusal(const std::string& program, const std::string& candidate,
                    const std::vector<std::string>& more = {}) {
  const Scratch scratch;
  std::vector<std::string> arguments = {"verify", scratch.write("a.sd", program),
                                        scratch.write("b.sd", candidate)};
  arguments.insert(arguments.end(), more.begin(), more.end());
  const auto run = run_tool(arguments);
  EXPECT_EQ(run.code, 2) << run.out << run.err;
  EXPECT_EQ(run.out, "");
  return run.err;
}

TEST(Verify, OtherDefaultSizesAreNoDifference) {
  const std::string small = product("n = 8, h = 64, d = 32");
  const std::string text = refusal(small, product("n = 16, h = 64, d = 48"));
  EXPECT_TRUE(contains(text, "input 'x' is [n=8, h=64] in the program and [n=16, h=64] in the"))
      << text;
  EXPECT_TRUE(contains(text, "-D n=8 -D d=32")) << text;
  const Scratch scratch;
  const auto run = run_tool({"verify", scratch.write("a.sd", small),
                             scratch.write("b.sd", product("n = 16, h = 64, d = 48")), "-D", "n=8",
                             "-D", "d=32"});
  EXPECT_EQ(run.code, 0) << run.out << run.err;
}

TEST(Verify, OtherShapesAreRefusedByName) {
  const std::string text =
      refusal(product("n = 8, h = 64, d = 32"), R"(program product(n = 8, h = 64, d = 16) {
  input x: f16[n, h]
  input w: f16[h, d]
  output y: f16[n] = sum[h, d](x * w)
}
)");
  EXPECT_TRUE(contains(text, "input 'w' is [h=64, d=32] in the program and [h=64, d=16]")) << text;
  EXPECT_FALSE(contains(text, "-D")) << "another rank: no size makes it the same\n" << text;
}

TEST(Verify, AResultForOtherSizesIsRefused) {
  const Scratch scratch;
  const std::string program = scratch.write("p.sd", kSmallProgram);
  const auto made = run_tool({"optimize", program, "--states", "50", "--no-gpu", "--no-check",
                              "--target", "h200", "--out", scratch.path("out")});
  ASSERT_EQ(made.code, 0) << made.err;
  const auto run = run_tool({"verify", program, scratch.path("out/result.pb"), "-D", "n=32"});
  EXPECT_EQ(run.code, 2) << run.out << run.err;
  EXPECT_TRUE(contains(run.err, "[n=32, h=256] in the program and [n=64, h=256]")) << run.err;
}

// Rounding that nothing but the cast explains: f32 in, f32 out.
constexpr char kCoarse[] = R"(program coarse(n = 8, h = 256) {
  input x: f32[n, h]
  output y: f32[n] = sum[h](cast(x, f8e5m2) * x)
}
)";

TEST(Verify, WhatWasMadeEagerIsJudgedAndRunEager) {
  const Scratch scratch;
  const std::string program = scratch.write("coarse.sd", kCoarse), out = scratch.path("out");
  const auto made = run_tool({"optimize", program, "--rounding", "eager", "--states", "500",
                              "--no-gpu", "--target", "h200", "--out", out, "--json"});
  ASSERT_EQ(made.code, 0) << made.err;
  EXPECT_TRUE(contains(parse_json(made.out)["best"]["verdict"]["kernel_check"].text, "passed"));
  for (const std::string& path : {out, out + "/best.mu", out + "/result.pb"}) {
    const auto run = run_tool({"run", path, "--on", "emulator"});
    EXPECT_EQ(run.code, 0) << path << run.out << run.err;
    const auto verdict = run_tool({"verify", program, path});
    EXPECT_EQ(verdict.code, 0) << path << verdict.out << verdict.err;
  }
  EXPECT_EQ(run_tool({"run", out, "--on", "emulator", "--rounding", "wide"}).code, 1);
  const auto evidence = run_tool({"verify", "--evidence", out});
  EXPECT_EQ(evidence.code, 0) << evidence.out << evidence.err;
  const auto kept = run_tool({"emit", out + "/best.mu"});
  EXPECT_TRUE(contains(kept.out, "sd::from_float<sd::f8e5m2>")) << kept.out;
  // The line that uses the result again needs no option.
  const auto again =
      run_tool({"optimize", program, "--from", out, "--no-gpu", "--target", "h200", "--out", out});
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(run_tool({"run", out, "--on", "emulator"}).code, 0);
}

// Quantisation, with the default rounding, down to the kernel.
TEST(Verify, CastsToIntegersReachTheKernel) {
  const Scratch scratch;
  const std::string text = R"(program quantise(n = 24, h = 512) {
  input x: f16[n, h] in [-4, 4]
  s[n] = max[h](abs(x)) / 127 + 1e-6
  q[n, h] = cast(x / s, i8)
  output codes: i8[n, h] = q
  output y: f16[n, h] = q * s
}
)";
  const std::string program = scratch.write("quantise.sd", text), out = scratch.path("out");
  const auto made = run_tool({"optimize", program, "--states", "2000", "--no-gpu", "--target",
                              "h200", "--out", out, "--json"});
  ASSERT_EQ(made.code, 0) << made.err;
  const JsonValue best = parse_json(made.out)["best"];
  EXPECT_EQ(best["verdict"]["answer"].text, "equivalent") << best["verdict"]["reason"].text;
  EXPECT_TRUE(contains(best["verdict"]["kernel_check"].text, "passed"));
  EXPECT_EQ(run_tool({"run", out, "--on", "emulator", "--seed", "7"}).code, 0);
  std::string plain = text;
  plain.replace(plain.find("cast(x / s, i8)"), 15, "x / s");
  const auto verdict = run_tool({"verify", program, scratch.write("plain.sd", plain)});
  EXPECT_EQ(verdict.code, 1) << verdict.out << verdict.err;
}

}  // namespace
}  // namespace sundog::cli
