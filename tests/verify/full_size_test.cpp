#include "verify/full_size.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/verify/pairs.h"

namespace sundog::verify {
namespace {

constexpr double kWork = 1 << 22;

TEST(BeyondRounding, AllowsWhatFloat32LosesAndNoMore) {
  EXPECT_FALSE(beyond_rounding(1, 1, 1, 1));
  EXPECT_FALSE(beyond_rounding(1, 1 + 1e-10, 1, 1));
  EXPECT_TRUE(beyond_rounding(1, 1 + 1e-7, 1, 1));
  EXPECT_FALSE(beyond_rounding(1, 1 + 1e-7, 1.2, 1)) << "float32 is far off itself";
  const double inf = std::numeric_limits<double>::infinity();
  EXPECT_TRUE(beyond_rounding(1, inf, 1, inf));
  EXPECT_FALSE(beyond_rounding(inf, 1, inf, 1)) << "the program itself fails";
}

TEST(FullSize, OfProgramsFindsWhatOneSizeShows) {
  const Program p = parsed(
      "program p(n = 3, h = 1024) { input x: f32[n, h]\n"
      " output y: f32[n] = mean[h](x * x) }");
  const auto other = [](const std::string& divisor) {
    return parsed(
        "program p(n = 3, h = 1024) { input x: f32[n, h]\n output y: f32[n] = "
        "sum[h](x * x) / " +
        divisor + " }");
  };
  const FullSizeResult right = full_size_check(p, other("1024"), Rounding::kWide, 1, kWork);
  EXPECT_TRUE(right.ran);
  EXPECT_EQ(right.compared, 3);
  EXPECT_FALSE(right.witness.has_value());
  const FullSizeResult wrong = full_size_check(p, other("1025"), Rounding::kWide, 1, kWork);
  ASSERT_TRUE(wrong.witness.has_value());
  EXPECT_EQ(wrong.witness->sizes, "n=3 h=1024");
  EXPECT_NEAR(wrong.witness->actual / wrong.witness->expected, 1024.0 / 1025, 1e-9);
}

constexpr const char* kProgram =
    "program p(n = 40, h = 96) { input x: f32[n, h]\n input w: f32[h]\n"
    " output y: f32[n, h] = x * w * rsqrt(mean[h](x * x) + 1e-6) }";
constexpr const char* kGraph = R"(
  ugraph g of p {
    kernel a grid(n.o, h.s) {
      split n = n.o * n.i(8)
      split h = h.s(3) * h.i(32)
      s[n.i] = sum[h.i](x * x) : reg f32
      store s -> parts : f32[h.s, n]
    }
    kernel b grid(n.o) {
      split n = n.o * n.i(16)
      s[n.i] = sum[h.s](parts) : reg f32
      r[n.i] = rsqrt(s / DIVISOR + 1e-6) : reg f32
      y[n.i, h] = x * w * r : reg f32
      store y -> y
    }
  })";

FullSizeResult checked(const std::string& divisor, double most_work) {
  const Program program = parsed(kProgram);
  std::string text = kGraph;
  text.replace(text.find("DIVISOR"), 7, divisor);
  const auto graph = parse_mugraph(text, "test.mu", program);
  EXPECT_TRUE(graph.ok()) << to_string(graph.error());
  return full_size_check(program, *graph, Rounding::kWide, 1, most_work);
}

TEST(FullSize, OfMuGraphsRunsBlocksOfSeveralKernels) {
  const FullSizeResult right = checked("size(h)", kWork);
  EXPECT_TRUE(right.ran) << right.skipped;
  EXPECT_FALSE(right.witness.has_value());
  EXPECT_GE(right.compared, 8 * 96) << "the last block is ragged";
  EXPECT_LT(right.compared, 40 * 96);
  EXPECT_FALSE(checked("96", kWork).witness.has_value());
  EXPECT_TRUE(checked("97", kWork).witness.has_value());
}

FullSizeResult checked(const char* program_text, const char* graph_text) {
  const Program program = parsed(program_text);
  const auto graph = parse_mugraph(graph_text, "test.mu", program);
  EXPECT_TRUE(graph.ok()) << to_string(graph.error());
  return full_size_check(program, *graph, Rounding::kWide, 1, kWork);
}

// The sums do not depend on f: the blocks at its first tile store them for all.
TEST(FullSize, RunsTheBlocksThatStoreForOthers) {
  const FullSizeResult result = checked(
      "program p(n = 4, k = 64, f = 96) { input w: f32[n, k]\n input v: f32[k, f]\n"
      " output y: f32[n, f] = sum[k](w * v) / sum[k](w * w) }",
      R"(
  ugraph g of p {
    kernel a grid(n, k.s, f.o) {
      split k = k.s(2) * k.i(32)
      split f = f.o * f.i(32)
      l[] = sum[k.i](w * w) : reg f32
      o[f.i] = sum[k.i](w * v) : reg f32
      store l -> parts_l : f32[k.s, n]
      store o -> parts_o : f32[k.s, n, f]
    }
    kernel b grid(n, f.o) {
      split f = f.o * f.i(16)
      o[f.i] = sum[k.s](parts_o) : reg f32
      l[] = sum[k.s](parts_l) : reg f32
      y[f.i] = o / l : reg f32
      store y -> y
    }
  })");
  EXPECT_TRUE(result.ran) << result.skipped;
  EXPECT_GE(result.compared, 16);
  EXPECT_FALSE(result.witness.has_value());
}

// The last kernel has h in its grid, and the mean before it needs the blocks at every h.
TEST(FullSize, RunsAllBlocksThatARowNeeds) {
  const FullSizeResult result = checked(
      "program p(n = 8, h = 96) { input x: f32[n, h]\n a[n, h] = x * x\n"
      " output y: f32[n, h] = a - mean[h](a) }",
      R"(
  ugraph g of p {
    kernel a grid(n, h.o) {
      split h = h.o * h.i(32)
      s[h.i] = x * x : reg f32
      store s -> squares : f32[n, h]
    }
    kernel b grid(n) {
      s[] = sum[h](squares) : reg f32
      m[] = s / size(h) : reg f32
      store m -> means : f32[n]
    }
    kernel c grid(n, h.o) {
      split h = h.o * h.i(16)
      y[h.i] = squares - means : reg f32
      store y -> y
    }
  })");
  EXPECT_TRUE(result.ran) << result.skipped;
  EXPECT_FALSE(result.witness.has_value());
}

TEST(FullSize, SaysWhenItDidNotRun) {
  const FullSizeResult result = checked("size(h)", 100);
  EXPECT_FALSE(result.ran);
  EXPECT_NE(result.skipped.find("too large"), std::string::npos);
}

}  // namespace
}  // namespace sundog::verify
