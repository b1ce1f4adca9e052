#include "search/shares.h"

#include <gtest/gtest.h>

#include "tests/search/expect_right.h"
#include "tests/search/programs.h"

namespace sundog::search {
namespace {

Program normed_product() {
  return parse(
      "program p(n = 6, h = 64, d = 40) {\n  input X: f16[n, h]\n  input W: f16[h, d]\n"
      "  output O: f16[n, d] = sum[h](X * W) * rsqrt(mean[h](X * X) + 1)\n}\n");
}

// Two kernels, of which `join` is a row of the text below.
MuGraph graph_of(const Program& program, const std::string& join) {
  Result<MuGraph> graph = parse_mugraph(
      "ugraph g of p {\n  kernel part grid(d.o, h.s) warps(1) {\n"
      "    split h = h.s(4) * h.i(16)\n    split d = d.o(2) * d.i(20)\n"
      "    acc[n, d.i] = sum[h.i](X * W) : reg f32\n    ss[n] = sum[h.i](X * X) : reg f32\n"
      "    store acc -> t : f32[h.s, n, d]\n    store ss -> u : f32[h.s, n]\n  }\n" +
          join + "}\n",
      "p.mu", program);
  EXPECT_TRUE(graph.ok()) << (graph.ok() ? "" : to_string(graph.error()));
  return std::move(*graph);
}

constexpr char kJoin[] =
    "  kernel join grid(d.o) warps(1) {\n    split d = d.o(2) * d.i(20)\n"
    "    s[n, d.i] = sum[h.s](t) : reg f32\n    q[n] = sum[h.s](u) : reg f32\n"
    "    o[n, d.i] = s * rsqrt(q / size(h) + 1) : reg f32\n    store o -> O\n  }\n";

const Factor& cut_factor(const MuGraph& graph, const ShareFactor& cut) {
  return graph.kernels[1].factors[cut.factor];
}

TEST(SharesTest, AreAsManyAsThereCanBe) {
  const MuGraph graph = graph_of(normed_product(), kJoin);
  // 6 rows and 20 columns: the larger divisor decides, and of equals whole rows stay.
  for (const auto& [most, name, shares] : {std::tuple{8, "n", 6},
                                           {6, "n", 6},
                                           {5, "d.i", 5},
                                           {4, "d.i", 4},
                                           {3, "n", 3},
                                           {2, "n", 2}}) {
    const auto cut = share_factor(graph, graph.kernels[1], most);
    ASSERT_TRUE(cut.has_value()) << most;
    EXPECT_EQ(cut_factor(graph, *cut).name, name) << most;
    EXPECT_EQ(cut->shares, shares) << most;
  }
  EXPECT_FALSE(share_factor(graph, graph.kernels[1], 1).has_value());
}

TEST(SharesTest, WhatIsReducedIsNotCut) {
  const Program program = parse(
      "program p(n = 6, h = 64, d = 40) {\n  input X: f16[n, h]\n  input W: f16[h, d]\n"
      "  output O: f32[n] = sum[h, d](X * W) * rsqrt(mean[h](X * X) + 1)\n}\n");
  const MuGraph graph = graph_of(program,
                                 "  kernel join grid(n) warps(1) {\n"
                                 "    s[] = sum[h.s, d](t) : reg f32\n"
                                 "    q[] = sum[h.s](u) : reg f32\n"
                                 "    o[] = s * rsqrt(q / size(h) + 1) : reg f32\n"
                                 "    store o -> O\n  }\n");
  expect_right(program, graph);
  EXPECT_FALSE(share_factor(graph, graph.kernels[1], 8).has_value());
}

TEST(SharesTest, ComputeTheSame) {
  const Program program = normed_product();
  const MuGraph graph = graph_of(program, kJoin);
  expect_right(program, graph);
  for (int64_t most = 2; most <= 8; ++most) {
    MuGraph cut = graph;
    const auto factor = share_factor(graph, graph.kernels[1], most);
    cut.kernels[1] = cut_into_shares(graph.kernels[1], *factor);
    expect_right(program, cut);
    EXPECT_EQ(block_count(cut.kernels[1]), 2 * factor->shares);
    const std::string text = print(cut, program);
    EXPECT_NE(text.find(factor->shares == 6 || factor->shares == 3 || factor->shares == 2
                            ? "grid(d.o, n.c)"
                            : "grid(d.o, d.c)"),
              std::string::npos)
        << text;
    const Result<MuGraph> read = parse_mugraph(text, "p.mu", program);
    ASSERT_TRUE(read.ok()) << to_string(read.error());
    EXPECT_EQ(print(*read, program), text);
  }
}

// Loops and masks are over the factors as they are then.
TEST(SharesTest, LoopsAndConditionsFollow) {
  const Program program = parse(
      "program p(q = 12, k = 12) {\n  input X: f16[q, k]\n"
      "  output O: f32[q] = sum[k](select(k <= q, X, 0))\n}\n");
  Result<MuGraph> graph = parse_mugraph(
      "ugraph g of p {\n  kernel sums grid() warps(1) {\n    split k = k.o(3) * k.i(4)\n"
      "    loop k.o trim(4 * k.o <= 11) {\n"
      "      s[q] = sum[k.o, k.i](select(4 * k.o + k.i <= q, X, 0)) : reg f32\n    }\n"
      "    store s -> O\n  }\n}\n",
      "p.mu", program);
  ASSERT_TRUE(graph.ok()) << to_string(graph.error());
  const auto factor = share_factor(*graph, graph->kernels[0], 4);
  ASSERT_TRUE(factor.has_value());
  EXPECT_EQ(graph->kernels[0].factors[factor->factor].name, "q");
  graph->kernels[0] = cut_into_shares(graph->kernels[0], *factor);
  EXPECT_EQ(block_count(graph->kernels[0]), 4);
  expect_right(program, *graph);
}

}  // namespace
}  // namespace sundog::search
