#include "search/library_kernel.h"

#include <gtest/gtest.h>

#include <cmath>
#include <iterator>

#include "core/text.h"
#include "core/via.h"
#include "search/candidate.h"
#include "search/finish.h"
#include "search/replan.h"
#include "search/sizes.h"
#include "search/superoptimize.h"
#include "search/unfused.h"
#include "tests/search/expect_right.h"
#include "tests/search/programs.h"

namespace sundog::search {
namespace {

Device h200() { return *find_device("h200"); }

Program gemm_program(const std::string& sizes) {
  return parse(("program p(" + sizes +
                ") {\n  input x: f16[n, h]\n  input w: f16[h, d]\n"
                "  output O: f16[n, d] = sum[h](x * w)\n}\n")
                   .c_str());
}

int library_kernels(const MuGraph& graph) {
  return static_cast<int>(
      std::count_if(graph.kernels.begin(), graph.kernels.end(),
                    [](const Kernel& k) { return k.kind == KernelKind::kLibraryGemm; }));
}

Result<SearchReport> searched(const Program& program, const SearchSpace& space = {}) {
  SearchOptions options;
  options.max_states = 3000;
  options.top_k = 16;
  return superoptimize(program, h200(), space, options);
}

SearchSpace without_library() {
  SearchSpace space;
  space.library_gemm = false;
  return space;
}

TEST(LibraryKernel, ALargeProductIsTheLibrarysUnlessThatIsSwitchedOff) {
  const Program program = gemm_program("n = 4096, h = 4096, d = 4096");
  const Result<SearchReport> report = searched(program);
  ASSERT_TRUE(report.ok()) << to_string(report.error());
  EXPECT_EQ(library_kernels(report->candidates[0].graph), 1) << report->candidates[0].structure;
  EXPECT_EQ(library_kernels(report->unfused.graph), 1);
  EXPECT_NE(report->candidates[0].structure.find("library gemm: computes"), std::string::npos);
  EXPECT_TRUE(check(report->candidates[0].graph, program).ok());
  const Result<SearchReport> own = searched(program, without_library());
  ASSERT_TRUE(own.ok()) << to_string(own.error());
  for (const Candidate& c : own->candidates) EXPECT_EQ(library_kernels(c.graph), 0);
  EXPECT_EQ(library_kernels(own->unfused.graph), 0);
  EXPECT_GT(own->candidates[0].predicted_us, report->candidates[0].predicted_us);
}

TEST(LibraryKernel, FusedKernelsKeepWinningWhereTheyAreFaster) {
  const Program program = parse(
      "program p(n = 8, h = 4096, d = 4096) {\n  input x: f16[n, h]\n  input w: f16[h, d]\n"
      "  input v: f16[h, d]\n  a[n, d] = sum[h](x * w)\n  b[n, d] = sum[h](x * v)\n"
      "  output O: f16[n, d] = a / (1 + exp(-a)) * b\n}\n");
  const Result<SearchReport> report = searched(program);
  ASSERT_TRUE(report.ok()) << to_string(report.error());
  EXPECT_EQ(library_kernels(report->candidates[0].graph), 0) << report->candidates[0].structure;
  EXPECT_EQ(launch_count(report->candidates[0].graph), 1);
}

TEST(LibraryKernel, EveryFormOfItIsRight) {
  // Small enough to interpret, and the library's whatever it costs.
  const Program program = parse(
      "program p(b = 3, n = 6, h = 160, d = 8) {\n  input x: f16[b, n, h]\n"
      "  input w: f16[b, h, d]\n  output O: f32[b, n, d] = sum[h](x * w)\n}\n");
  GraphPlan plan = unfused_plan(program);
  const Machine machine = machine_of(h200());
  ASSERT_EQ(plan.kernels.size(), 1u);
  offer_library(plan.graph, machine, plan.kernels[0]);
  ASSERT_TRUE(plan.kernels[0].library.has_value());
  const double us = plan.kernels[0].library->us;
  const MuGraph graph = finish(std::move(plan), {{}}, {}, machine);
  ASSERT_TRUE(check(graph, program).ok()) << check(graph, program).error().message;
  EXPECT_EQ(library_kernels(graph), 1);
  EXPECT_DOUBLE_EQ(predict(graph, machine), us);
  expect_right(program, graph);
  const Result<MuGraph> again = parse_mugraph(print(graph, program), "u.mu", program);
  ASSERT_TRUE(again.ok()) << to_string(again.error());
  EXPECT_EQ(*again, graph);
}

TEST(LibraryKernel, WhatIsNoProductOfStoredTermsIsNotOffered) {
  const Machine machine = machine_of(h200());
  for (const char* body :
       {"input x: f16[n, h]\n input w: bf16[h, d]\n output O: f16[n, d] = sum[h](x * w)",
        "input x: f16[n, h]\n input w: f16[h, d]\n output O: f16[n, d] = max[h](x * w)",
        "input x: f16[n, h]\n input w: f16[h, d]\n output O: f16[n, d] = 2 * sum[h](x * w)",
        "input x: f16[n, h]\n input w: f16[h]\n output O: f16[n] = sum[h](x * x * w)",
        "input x: f16[n, h] stride(256, 2)\n input w: f16[h, d]\n"
        " output O: f16[n, d] = sum[h](x * w)"}) {
    const Program program =
        parse(("program p(n = 16, h = 128, d = 64) { " + std::string(body) + " }").c_str());
    GraphPlan plan = unfused_plan(program);
    KernelPlan& last = plan.kernels.back();
    offer_library(plan.graph, machine, last);
    EXPECT_FALSE(last.library.has_value()) << body;
  }
}

TEST(LibraryKernel, AResultAtOtherSizesKeepsIt) {
  const Program program = gemm_program("n = 4096, h = 4096, d = 4096");
  const Result<SearchReport> report = searched(program);
  ASSERT_TRUE(report.ok());
  const Program other = gemm_program("n = 2048, h = 1024, d = 512");
  const auto moved = replan(report->candidates[0].graph, other, h200(), 2);
  ASSERT_TRUE(moved.ok()) << to_string(moved.error());
  EXPECT_EQ(library_kernels((*moved)[0].graph), 1);
  EXPECT_TRUE(check((*moved)[0].graph, other).ok());
}

// Times of cuBLAS on an H200, from a cold cache; the constants were set from all but the last
// three.
TEST(LibraryKernel, ThePriceIsThatOfMeasuredProducts) {
  struct Measured {
    const char* what;
    int64_t batch, m, n, k;
    double us;
  };
  const Machine machine = machine_of(h200());
  double sum = 0;
  const Measured all[] = {{"rms_norm b = 8", 1, 16, 6144, 4096, 15.26},
                          {"gated_mlp, side by side", 1, 8, 8192, 4096, 17.97},
                          {"gated_mlp, one of two", 1, 8, 4096, 4096, 12.9},
                          {"lora", 1, 8, 4096, 256, 3.05},
                          {"gqa scores b = 8", 16, 256, 4096, 64, 13.95},
                          {"gqa scores b = 16", 32, 256, 4096, 64, 25.99},
                          {"gqa values b = 1", 2, 256, 64, 4096, 8.05},
                          {"gqa values b = 8", 16, 256, 64, 4096, 10.76},
                          {"gqa values b = 16", 32, 256, 64, 4096, 22.49},
                          {"4096^3", 1, 4096, 4096, 4096, 209.2},
                          {"the same on another machine", 1, 4096, 4096, 4096, 187.7},
                          {"mm s = 1024", 1, 1024, 4096, 4096, 46.5},
                          {"mm s = 16", 1, 16, 4096, 4096, 13.11}};
  for (const Measured& m : all) {
    LibraryGemm gemm;
    gemm.batch = m.batch, gemm.m = m.m, gemm.n = m.n, gemm.k = m.k;
    gemm.a.batch_stride = gemm.b.batch_stride = gemm.c.batch_stride = 64;
    gemm.a.leading = m.k, gemm.b.leading = gemm.c.leading = m.n;
    const double us = library_price(gemm, machine).us;
    EXPECT_NEAR(us, m.us, 0.25 * m.us) << m.what;
    sum += std::fabs(us / m.us - 1);
  }
  EXPECT_LT(sum / std::size(all), 0.13);
}

// Rows of 8 and of 4 aligned bytes.
TEST(LibraryKernel, RowsThatAreNoMultiplesOfSixteenBytesTakeLonger) {
  const Machine machine = machine_of(h200());
  for (const int64_t d : {4098, 4100}) {
    LibraryGemm gemm;
    gemm.m = 1024, gemm.n = d, gemm.k = 4096;
    gemm.a.leading = 4096, gemm.b.leading = gemm.c.leading = d;
    EXPECT_NEAR(library_price(gemm, machine).us, 124, 0.1 * 124);
  }
}

}  // namespace
}  // namespace sundog::search
