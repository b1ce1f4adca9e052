#include "search/unfused.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/float_algebra.h"
#include "core/interpret.h"
#include "core/text.h"
#include "search/finish.h"
#include "search/sizes.h"
#include "tests/search/programs.h"

namespace sundog::search {
namespace {

size_t kernels(const char* text) { return unfused_plan(parse(text)).kernels.size(); }

TEST(UnfusedTest, IsCutAtReductions) {
  EXPECT_EQ(kernels(R"(program p(n = 8, h = 16, d = 8) {
    input x: f16[n, h]
    input w: f16[h, d]
    r[n] = rsqrt(mean[h](x * x) + 1)
    y[n, d] = sum[h](x * r * w)
    output y: f16[n, d]
  })"),
            3u);  // the mean, what is multiplied, the product
}

// A library does not launch a kernel for a number.
TEST(UnfusedTest, WhatReadsNoInputIsNoKernel) {
  const char* scaled = R"(program p(n = 8, h = 16, d = 8) {
    input x: f16[n, h]
    input w: f16[h, d]
    scale = 1 / sqrt(size(h))
    y[n, d] = sum[h](x * w * scale)
    output y: f16[n, d]
  })";
  const GraphPlan plan = unfused_plan(parse(scaled));
  for (const KernelPlan& kernel : plan.kernels) {
    EXPECT_FALSE(kernel.splits.empty()) << kernel.kernel.name << " computes a number";
  }
}

MuGraph finished(const Program& program, SizedPlan sized) {
  const Machine machine = machine_of(*find_device("h200"));
  MuGraph graph = finish(std::move(sized.plan), sized.tiles, sized.part_counts, machine);
  EXPECT_TRUE(check(graph, program).ok()) << to_string(check(graph, program).error());
  return graph;
}

// The first output in float64, on inputs that are no multiples of one another.
std::vector<double> run(const Program& program, const MuGraph* graph) {
  Float64 floats({.round_stores = false});
  std::vector<TensorValues<double>> inputs;
  for (const TensorDecl& t : program.inputs) {
    auto& values = inputs.emplace_back(TensorValues<double>{t.extents, {}});
    for (int64_t i = 0; i < element_count(t); ++i) {
      values.values.push_back(1 + std::sin(static_cast<double>(i) * 0.7));
    }
  }
  const auto in = std::span<const TensorValues<double>>(inputs);
  auto out =
      graph == nullptr ? interpret(floats, program, in) : interpret(floats, *graph, program, in);
  EXPECT_TRUE(out.ok()) << (out.ok() ? "" : to_string(out.error()));
  return out.ok() ? (*out)[0].values : std::vector<double>{};
}

// One block a row would leave the device idle: no library does that.
TEST(UnfusedTest, LongReductionsToFewResultsAreSplitOverTheGrid) {
  const Machine machine = machine_of(*find_device("h200"));
  for (const std::string body :
       {"output y: f32[n] = sum[h](x * x)", "output y: f32[] = max[n, h](x)",
        "output y: f32[n] = sum[h](x / max[h](x))"}) {
    const auto program_at = [&](const std::string& h) {
      const std::string text =
          "program p(n = 3, h = " + h + ") { input x: f16[n, h]\n " + body + " }";
      return parse(text.c_str());
    };
    const Program large = program_at("4194301");
    auto sized = sized_unfused_plan(large, machine);
    ASSERT_TRUE(sized.ok()) << body;
    ASSERT_FALSE(sized->part_counts.empty()) << body;
    for (const int64_t parts : sized->part_counts) EXPECT_GE(parts, 16) << body;
    const size_t kernels = unfused_plan(large).kernels.size();
    EXPECT_EQ(sized->plan.kernels.size(), kernels + sized->part_counts.size());
    const double us = sized->us;
    const MuGraph graph = finished(large, *std::move(sized));
    EXPECT_GE(block_count(graph.kernels[0]), 48) << body;
    EXPECT_LT(us, 120) << body << ": one block a row takes some thousand";

    // The same cut where it can be interpreted.
    const Program small = program_at("70001");
    auto again = sized_unfused_plan(small, machine);
    ASSERT_TRUE(again.ok());
    EXPECT_FALSE(again->part_counts.empty()) << body;
    const MuGraph cut = finished(small, *std::move(again));
    const std::vector<double> got = run(small, &cut), wanted = run(small, nullptr);
    ASSERT_EQ(got.size(), wanted.size());
    for (size_t i = 0; i < got.size(); ++i) {
      EXPECT_NEAR(got[i], wanted[i], 1e-9 * std::fabs(wanted[i])) << body;
    }
  }
}

TEST(UnfusedTest, ShortOnesAndThoseOfManyResultsAreNot) {
  const Machine machine = machine_of(*find_device("h200"));
  for (const char* text :
       {"program p(n = 3, h = 512) { input x: f16[n, h]\n output y: f32[n] = sum[h](x) }",
        "program p(n = 8192, h = 4096) { input x: f16[n, h]\n output y: f32[n] = sum[h](x) }"}) {
    const auto sized = sized_unfused_plan(parse(text), machine);
    ASSERT_TRUE(sized.ok());
    EXPECT_TRUE(sized->part_counts.empty()) << text;
  }
}

// An output may repeat a reduction along the axis that it reduces: it is a copy then.
TEST(UnfusedTest, OutputsThatRepeatAReductionAreCopies) {
  const Machine machine = machine_of(*find_device("h200"));
  for (const char* text :
       {"program p(n = 4) { input x: f16[n]\n output y: f16[n] = sum[n](x) }",
        "program p(n = 1) { input x: f16[n]\n output y: f16[n] = max[n](x) }",
        "program p(m = 3, n = 64) { input x: f16[m, n]\n output y: f32[m, n] = sum[n](x) }",
        "program p(n = 4096) { input x: f16[n]\n output y: f32[n] = sum[n](x) }"}) {
    const Program program = parse(text);
    auto sized = sized_unfused_plan(program, machine);
    ASSERT_TRUE(sized.ok()) << text;
    EXPECT_GE(sized->plan.kernels.size(), 2u) << text;
    const MuGraph graph = finished(program, *std::move(sized));
    const std::vector<double> got = run(program, &graph), wanted = run(program, nullptr);
    ASSERT_EQ(got.size(), wanted.size());
    for (size_t i = 0; i < got.size(); ++i) {
      EXPECT_NEAR(got[i], wanted[i], 1e-9 * std::fabs(wanted[i])) << text;
    }
  }
}

}  // namespace
}  // namespace sundog::search
