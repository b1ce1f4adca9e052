#include "cli/result.h"

#include <gtest/gtest.h>

#include "core/text.h"

namespace sundog::cli {
namespace {

constexpr char kProgram[] = R"(program twice(n = 64) {
  input x: f32[n]
  output y: f32[n] = 2 * x
})";
constexpr char kGraph[] = R"(ugraph one of twice {
  kernel k grid(n.o) warps(1) {
    split n = n.o * n.i(32)
    v[n.i] = x : reg f32
    w[n.i] = 2 * v : reg f32
    store w -> y
  }
})";

StoredResult example() {
  StoredResult result;
  result.version = "0.1.0";
  result.target = "h200";
  Result<Program> program = parse_program(kProgram, "twice.sd");
  SUNDOG_CHECK(program.ok());
  result.program = *program;
  Result<MuGraph> graph = parse_mugraph(kGraph, "one.mu", *program);
  SUNDOG_CHECK(graph.ok());
  StoredCandidate& best = result.report.candidates.emplace_back();
  best.graph = *graph;
  best.predicted_us = 1.5;
  best.measured_us = 1.25;
  best.structure = "one kernel";
  best.kind = "map";
  best.evidence.answer = "equivalent";
  best.evidence.reason = "the field test passed";
  best.evidence.rounds = 2;
  best.evidence.primes = {2305843009213693951u};
  best.evidence.seeds = {1, 2};
  best.evidence.error_log2 = -90;
  best.evidence.sizes = {"n=3"};
  best.evidence.image_only = true;
  best.evidence.numerics = {{"ordinary", 1e-4, 2e-4, true}};
  best.evidence.ranges = "bounded";
  best.evidence.proof = "not attempted";
  best.evidence.kernel_check = "passed";
  result.report.unfused = best;
  result.report.unfused->measured_us.reset();
  result.report.bound_us = 1;
  result.report.states = 17;
  result.report.pruned = {{"bound", 3}};
  result.report.stop_reason = "exhausted";
  using Kind = codegen::PlanArgument::Kind;
  result.plan.name = "twice";
  result.plan.inputs = {{"x", DType::kF32, 64, 256}};
  result.plan.outputs = {{"y", DType::kF32, 64, 256}};
  result.plan.workspace_bytes = 64;
  result.plan.kernels = {
      {"k", {2, 1, 1}, 32, 16, {{Kind::kInput, 0, 0}, {Kind::kWorkspace, 0, 32}}}};
  result.cuda = "// text";
  result.timing = "not timed: no GPU";
  result.notes = {"kernel check not run: no compiler"};
  result.rounding = Rounding::kEager;
  return result;
}

TEST(Result, IsReadBackAsItWasWritten) {
  const StoredResult before = example();
  const std::string bytes = serialize(before);
  const auto after = parse_result(bytes, "r.pb");
  ASSERT_TRUE(after.ok()) << to_string(after.error());
  EXPECT_EQ(serialize(*after), bytes);
  EXPECT_EQ(after->program, before.program);
  EXPECT_EQ(after->plan, before.plan);
  EXPECT_EQ(after->cuda, before.cuda);
  EXPECT_EQ(after->timing, before.timing);
  EXPECT_EQ(after->notes, before.notes);
  EXPECT_EQ(after->rounding, Rounding::kEager);
  const StoredCandidate& best = after->report.candidates.at(0);
  EXPECT_EQ(best.graph, before.report.candidates[0].graph);
  EXPECT_EQ(best.measured_us, 1.25);
  EXPECT_EQ(best.evidence.primes, before.report.candidates[0].evidence.primes);
  EXPECT_EQ(best.evidence.sizes, before.report.candidates[0].evidence.sizes);
  EXPECT_TRUE(best.evidence.image_only);
  EXPECT_EQ(best.evidence.numerics.at(0).name, "ordinary");
  ASSERT_TRUE(after->report.unfused.has_value());
  EXPECT_FALSE(after->report.unfused->measured_us.has_value());
  EXPECT_EQ(after->report.pruned, before.report.pruned);
}

TEST(Result, EveryTruncationIsAnErrorOrAnotherWholeResult) {
  const std::string bytes = serialize(example());
  int refused = 0;
  for (size_t size = 0; size < bytes.size(); ++size) {
    const auto result = parse_result(std::string_view(bytes).substr(0, size), "r.pb");
    if (result.ok()) continue;
    ++refused;
    EXPECT_EQ(result.error().code, ErrorCode::kBadInput) << size;
    EXPECT_NE(result.error().message.find("r.pb"), std::string::npos) << size;
  }
  EXPECT_GT(refused, static_cast<int>(bytes.size()) / 2);
}

TEST(Result, FlippedBytesNeverCrash) {
  const std::string bytes = serialize(example());
  int refused = 0;
  for (size_t i = 0; i < bytes.size(); ++i) {
    for (const int flip : {0x01, 0x80, 0xff}) {
      std::string damaged = bytes;
      damaged[i] = static_cast<char>(damaged[i] ^ flip);
      refused += !parse_result(damaged, "r.pb").ok();
    }
  }
  EXPECT_GT(refused, 0);
}

TEST(Result, APlanThatDoesNotFitTheProgramIsRefused) {
  const auto refused = [](auto change) {
    StoredResult result = example();
    change(result.plan);
    return !parse_result(serialize(result), "r.pb").ok();
  };
  EXPECT_FALSE(refused([](codegen::LaunchPlan&) {}));
  EXPECT_TRUE(refused([](codegen::LaunchPlan& plan) { plan.outputs[0].bytes = 4; }));
  EXPECT_TRUE(refused([](codegen::LaunchPlan& plan) { plan.outputs.clear(); }));
  EXPECT_TRUE(refused([](codegen::LaunchPlan& plan) { plan.workspace_bytes = -1; }));
  EXPECT_TRUE(refused([](codegen::LaunchPlan& plan) { plan.kernels[0].block = 5000; }));
  EXPECT_TRUE(refused([](codegen::LaunchPlan& plan) { plan.kernels[0].grid[0] = -1; }));
  EXPECT_TRUE(refused([](codegen::LaunchPlan& plan) { plan.kernels[0].arguments[0].index = 1; }));
  EXPECT_TRUE(refused([](codegen::LaunchPlan& plan) { plan.kernels[0].arguments[1].offset = 65; }));
}

}  // namespace
}  // namespace sundog::cli
