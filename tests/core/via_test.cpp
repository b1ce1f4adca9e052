#include "core/via.h"

#include <gtest/gtest.h>

#include "core/field.h"
#include "core/interpret.h"
#include "core/proto.h"
#include "core/resize.h"
#include "core/text.h"

namespace sundog {
namespace {

constexpr char kProgram[] =
    "program p(n = 6, h = 24, d = 10) {\n  input X: f32[n, h]\n  input W: f32[h, d]\n"
    "  output O: f32[n, d] = sum[h](X * W)\n}\n";

// A product cut along h; `join` is the header of the kernel that adds the parts, `body` its body.
std::string graph_text(const std::string& join, const std::string& body) {
  return "ugraph g of p {\n  kernel part grid(d.o, h.s, n.o) warps(2) {\n"
         "    split n = n.o(3) * n.i(2)\n    split h = h.s(4) * h.i(6)\n"
         "    split d = d.o(3) * d.i(4)\n    acc[n.i, d.i] = sum[h.i](X * W) : reg f32\n"
         "    store acc -> t : f32[h.s, n, d]\n  }\n  kernel join " +
         join + " {\n" + body + "  }\n}\n";
}
const std::string kBody =
    "    split n = n.o(3) * n.i(2)\n    split d = d.o(3) * d.i(4)\n"
    "    s[n.i, d.i] = sum[h.s](t) : reg f32\n    store s -> O\n";

Program program() { return *parse_program(kProgram, "p.sd", {}); }

Result<MuGraph> graph(const std::string& join, const std::string& body = kBody) {
  return parse_mugraph(graph_text(join, body), "g.mu", program());
}

// The message with which check() refuses it.
std::string refusal(const std::string& join, const std::string& body = kBody) {
  const Result<MuGraph> g = graph(join, body);
  if (!g.ok()) return to_string(g.error());
  const Status status = check(*g, program());
  return status.ok() ? "" : status.error().message;
}

TEST(Via, TextAndStoredFormKeepIt) {
  const Result<MuGraph> g = graph("grid(n.o, d.o) warps(2) via last_block");
  ASSERT_TRUE(g.ok()) << to_string(g.error());
  EXPECT_EQ(g->kernels[1].via, Via::kLastBlock);
  EXPECT_EQ(launch_count(*g), 1);
  const std::string text = print(*g, program());
  EXPECT_NE(text.find("kernel join grid(n.o, d.o) warps(2) via last_block {"), std::string::npos);
  EXPECT_EQ(*parse_mugraph(text, "g.mu", program()), *g);
  EXPECT_EQ(*parse_mugraph_proto(serialize(*g), program()), *g);
  EXPECT_EQ(graph("via kernel grid(n.o, d.o) warps(2)")->kernels[1].via, Via::kKernel);
  EXPECT_NE(refusal("grid(n.o, d.o) via nothing").find("known: kernel, last_block, cluster"),
            std::string::npos);
}

TEST(Via, GroupsAreTheGridOfTheJoiningKernel) {
  const Result<MuGraph> g = graph("grid(n.o, d.o) warps(2) via last_block");
  ASSERT_TRUE(check(*g, program()).ok()) << check(*g, program()).error().message;
  const Result<Arrival> arrival = arrival_of(*g, 1);
  ASSERT_TRUE(arrival.ok());
  const Kernel& part = g->kernels[0];
  EXPECT_EQ(arrival->group, (std::vector<AxisId>{part.grid[2], part.grid[0]}));
  EXPECT_EQ(arrival->arriving, std::vector<AxisId>{part.grid[1]});
  EXPECT_EQ(arrival->count, 4);
}

TEST(Via, RefusesWhatOtherBlocksWouldHaveToFinish) {
  const std::string via = "grid(n.o, d.o) warps(2) via last_block";
  EXPECT_EQ(refusal(via), "");
  EXPECT_NE(refusal("grid(n.o, d.o) warps(4) via last_block").find("it has 4 warps"),
            std::string::npos);
  // Tiles of other sizes; an axis of the grid that the first kernel does not cut.
  EXPECT_NE(refusal("grid(n.o, d.o) warps(2) via last_block",
                    "    split n = n.o(3) * n.i(2)\n    split d = d.o(5) * d.i(2)\n"
                    "    s[n.i, d.i] = sum[h.s](t) : reg f32\n    store s -> O\n")
                .find("'d.o' is no grid factor of 'part'"),
            std::string::npos);
  // Reads of another row than its own.
  EXPECT_NE(refusal(via,
                    "    split n = n.o(3) * n.i(2)\n    split d = d.o(3) * d.i(4)\n"
                    "    s[n.i, d.i] = sum[h.s](t[h.s, n - 1 - n.o * 2 - n.i, d]) : reg f32\n"
                    "    store s -> O\n")
                .find("reads what other blocks"),
            std::string::npos);
}

TEST(Via, TheFirstKernelHasNoBlocksBeforeIt) {
  const Result<MuGraph> g = parse_mugraph(
      "ugraph g of p {\n  kernel k grid(n) warps(1) via last_block {\n"
      "    s[d] = sum[h](X * W) : reg f32\n    store s -> O\n  }\n}\n",
      "g.mu", program());
  ASSERT_FALSE(g.ok());
  EXPECT_NE(g.error().message.find("is the first"), std::string::npos) << g.error().message;
}

// It means what a launch of its own means, and blocks run it one by one as groups fill up.
TEST(Via, MeansTheSameAsALaunchOfItsOwn) {
  const Program p = program();
  FieldImage field(7);
  std::vector<TensorValues<FieldImage::Value>> in;
  uint64_t key = 0;
  for (const TensorDecl& input : p.inputs) {
    TensorValues<FieldImage::Value> values{input.extents, {}};
    for (int64_t i = 0; i < element_count(input); ++i) values.values.push_back(field.random(key++));
    in.push_back(std::move(values));
  }
  const std::span<const TensorValues<FieldImage::Value>> inputs(in);
  const auto joined = interpret(field, *graph("grid(n.o, d.o) warps(2) via last_block"), p, inputs);
  const auto launched = interpret(field, *graph("grid(n.o, d.o) warps(2)"), p, inputs);
  ASSERT_TRUE(joined.ok() && launched.ok());
  EXPECT_EQ((*joined)[0].values, (*launched)[0].values);
  // Unchecked, a block that reads another group's parts finds them missing.
  MuGraph wrong = *graph("grid(n.o, d.o) warps(2)",
                         "    split n = n.o(3) * n.i(2)\n    split d = d.o(3) * d.i(4)\n"
                         "    s[n.i, d.i] = sum[h.s](t[h.s, n - 1 - n.o * 2 - n.i, d]) : reg f32\n"
                         "    store s -> O\n");
  ASSERT_TRUE(check(wrong, p).ok());
  wrong.kernels[1].via = Via::kLastBlock;
  EXPECT_FALSE(interpret(field, wrong, p, inputs).ok());
}

TEST(Via, OtherSizesKeepItWhereTheKernelsStillFit) {
  const MuGraph g = *graph("grid(n.o, d.o) warps(2) via last_block");
  for (ShrinkPolicy policy : {ShrinkPolicy::kFewElements, ShrinkPolicy::kKeepTiles}) {
    const Result<Shrunk> shrunk = shrink(g, program(), policy);
    ASSERT_TRUE(shrunk.ok());
    EXPECT_TRUE(check(shrunk->graph, shrunk->program).ok());
    EXPECT_EQ(shrunk->graph.kernels[1].via, Via::kLastBlock);
  }
}

// --- clusters

constexpr char kSums[] =
    "program p(n = 6, h = 24, d = 10) {\n  input X: f32[n, h]\n  input W: f32[h, d]\n"
    "  output O: f32[n, d] = sum[h](X * W) * rsqrt(mean[h](X * X) + 1)\n}\n";

// As above, with a second sum that does not depend on d: every group has its own.
std::string cluster_text(const std::string& grid, const std::string& join, const std::string& body,
                         const std::string& to = "f32[h.s, n, d]") {
  return "ugraph g of p {\n  kernel part grid(" + grid + ") warps(2) {\n" +
         "    split n = n.o(3) * n.i(2)\n    split h = h.s(4) * h.i(6)\n"
         "    split d = d.o(3) * d.i(4)\n    acc[n.i, d.i] = sum[h.i](X * W) : reg f32\n"
         "    ss[n.i] = sum[h.i](X * X) : reg f32\n    store acc -> t : " +
         to + "\n    store ss -> u : f32[h.s, n]\n  }\n  kernel join " + join + " {\n" + body +
         "  }\n}\n";
}
const std::string kGrid = "d.o, n.o, h.s";
const std::string kShares =
    "    split n = n.o(3) * n.i(2)\n    split d = d.o(3) * d.c(4) * d.i(1)\n"
    "    s[n.i, d.i] = sum[h.s](t) : reg f32\n    r[n.i] = sum[h.s](u) : reg f32\n"
    "    o[n.i, d.i] = s * rsqrt(r / size(h) + 1) : reg f32\n    store o -> O\n";
const std::string kJoin = "grid(n.o, d.o, d.c) warps(2) via cluster";

Program sums() { return *parse_program(kSums, "p.sd", {}); }

Result<MuGraph> cluster(const std::string& grid = kGrid, const std::string& join = kJoin,
                        const std::string& body = kShares,
                        const std::string& to = "f32[h.s, n, d]") {
  return parse_mugraph(cluster_text(grid, join, body, to), "g.mu", sums());
}

std::string cluster_refusal(const Result<MuGraph>& g) {
  if (!g.ok()) return to_string(g.error());
  const Status status = check(*g, sums());
  return status.ok() ? "" : status.error().message;
}

std::vector<TensorValues<FieldImage::Value>> random_inputs(FieldImage& field, const Program& p) {
  std::vector<TensorValues<FieldImage::Value>> inputs;
  uint64_t key = 0;
  for (const TensorDecl& input : p.inputs) {
    TensorValues<FieldImage::Value> values{input.extents, {}};
    for (int64_t i = 0; i < element_count(input); ++i) values.values.push_back(field.random(key++));
    inputs.push_back(std::move(values));
  }
  return inputs;
}

TEST(ViaCluster, TextAndStoredFormKeepIt) {
  const Result<MuGraph> g = cluster();
  ASSERT_TRUE(g.ok()) << to_string(g.error());
  EXPECT_EQ(g->kernels[1].via, Via::kCluster);
  EXPECT_EQ(launch_count(*g), 1);
  const std::string text = print(*g, sums());
  EXPECT_NE(text.find("kernel join grid(n.o, d.o, d.c) warps(2) via cluster {"), std::string::npos);
  EXPECT_EQ(*parse_mugraph(text, "g.mu", sums()), *g);
  EXPECT_EQ(*parse_mugraph_proto(serialize(*g), sums()), *g);
}

TEST(ViaCluster, SharesAreTheGridFactorsBehindThoseOfTheGroup) {
  const Result<MuGraph> g = cluster();
  ASSERT_EQ(cluster_refusal(g), "");
  const Result<Arrival> arrival = arrival_of(*g, 1);
  ASSERT_TRUE(arrival.ok());
  const Kernel &part = g->kernels[0], &join = g->kernels[1];
  EXPECT_EQ(arrival->group, (std::vector<AxisId>{part.grid[1], part.grid[0]}));
  EXPECT_EQ(arrival->arriving, std::vector<AxisId>{part.grid[2]});
  EXPECT_EQ(arrival->count, 4);
  EXPECT_EQ(arrival->sharing, std::vector<AxisId>{join.grid[2]});
  EXPECT_EQ(arrival->shares, 4);
  EXPECT_EQ(kept_in_cluster(*g, 1).size(), 2u);
  MuGraph last = *g;
  last.kernels[1].via = Via::kLastBlock;
  EXPECT_TRUE(kept_in_cluster(last, 1).empty());
  // One block may run all of it.
  EXPECT_EQ(cluster_refusal(cluster(kGrid, "grid(n.o, d.o) warps(2) via cluster",
                                    "    split n = n.o(3) * n.i(2)\n    split d = d.o(3) * d.i(4)\n"
                                    "    s[n.i, d.i] = sum[h.s](t) : reg f32\n"
                                    "    r[n.i] = sum[h.s](u) : reg f32\n"
                                    "    o[n.i, d.i] = s * rsqrt(r / size(h) + 1) : reg f32\n"
                                    "    store o -> O\n")),
            "");
}

TEST(ViaCluster, RefusesWhatNoClusterCanDo) {
  const auto expect = [](const Result<MuGraph>& g, const char* part) {
    EXPECT_NE(cluster_refusal(g).find(part), std::string::npos) << cluster_refusal(g);
  };
  expect(cluster("h.s, d.o, n.o"),
         "'h.s' tells the blocks of a cluster apart, which are neighbours");
  expect(cluster(kGrid, "grid(n.o, d.c, d.o) warps(2) via cluster"),
         "'d.o' of its grid tells groups apart and stands behind");
  std::string body = kShares;
  body.replace(body.find("d.c(4) * d.i(1)"), 15, "d.c(2) * d.i(2)");
  EXPECT_EQ(cluster_refusal(cluster(kGrid, kJoin, body)), "");
  // More shares than blocks: h is cut in 4.
  body = kShares;
  body.replace(body.find("n.o(3) * n.i(2)"), 15, "n.o(3) * n.c(2) * n.i(1)");
  expect(cluster(kGrid, "grid(n.o, d.o, n.c, d.c) warps(2) via cluster", body),
         "cut into 8 shares for a cluster of 4 blocks");
  expect(cluster(kGrid, kJoin, kShares, "f16[h.s, n, d]"), "and it is not f32");
  // A block of another group would have to be read.
  body = kShares;
  body.replace(body.find("sum[h.s](u)"), 11, "sum[h.s](u[h.s, n - 1 - n.o * 2 - n.i])");
  expect(cluster(kGrid, kJoin, body), "dimension 1 is not indexed by its axis");
  // Of d, what the first kernel cuts over the grid is no part of the joining one's.
  body = kShares;
  body.replace(body.find("d.o(3) * d.c(4) * d.i(1)"), 24, "d.o(5) * d.i(2)");
  expect(cluster("n.o, d.o, h.s", "grid(n.o, d.o) warps(2) via cluster", body),
         "a cluster of 12 blocks; it has at most 8");
}

TEST(ViaCluster, NothingElseUsesWhatStaysInIt) {
  const Result<MuGraph> g = parse_mugraph(
      "ugraph g of p {\n  kernel part grid(d.o, h.s) warps(2) {\n    split h = h.s(4) * h.i(6)\n"
      "    split d = d.o(3) * d.i(4)\n    acc[n, d.i] = sum[h.i](X * W) : reg f32\n"
      "    ss[n] = sum[h.i](X * X) : reg f32\n    store acc -> t : f32[h.s, n, d]\n"
      "    store ss -> u : f32[h.s, n]\n  }\n"
      "  kernel join grid(d.o) warps(2) via cluster {\n    split d = d.o(3) * d.i(4)\n"
      "    s[n, d.i] = sum[h.s](t) : reg f32\n    store s -> v : f32[n, d]\n  }\n"
      "  kernel scale grid(n) warps(2) {\n    a[d] = sum[h.s](t) : reg f32\n"
      "    r[] = sum[h.s](u) : reg f32\n    o[d] = (v + a - a) * rsqrt(r / size(h) + 1) : reg f32\n"
      "    store o -> O\n  }\n}\n",
      "g.mu", sums());
  EXPECT_NE(cluster_refusal(g).find("of tensor 't' nothing leaves the cluster, and kernel 'scale'"),
            std::string::npos)
      << cluster_refusal(g);
}

// Blocks of a cluster see what their own cluster stored and nothing else, and every group has the
// sums that do not depend on it.
TEST(ViaCluster, MeansTheSameAsALaunchOfItsOwn) {
  const Program p = sums();
  FieldImage field(7);
  const auto in = random_inputs(field, p);
  const std::span<const TensorValues<FieldImage::Value>> inputs(in);
  const auto expected = interpret(field, p, inputs);
  const auto joined = interpret(field, *cluster(), p, inputs);
  ASSERT_TRUE(expected.ok() && joined.ok()) << to_string(joined.error());
  EXPECT_EQ((*joined)[0].values, (*expected)[0].values);
  MuGraph launched = *cluster();
  launched.kernels[1].via = Via::kKernel;
  EXPECT_EQ((*interpret(field, launched, p, inputs))[0].values, (*expected)[0].values);
}

TEST(ViaCluster, OtherSizesKeepItWhereTheKernelsStillFit) {
  const MuGraph g = *cluster();
  for (ShrinkPolicy policy : {ShrinkPolicy::kFewElements, ShrinkPolicy::kKeepTiles}) {
    const Result<Shrunk> shrunk = shrink(g, sums(), policy);
    ASSERT_TRUE(shrunk.ok());
    EXPECT_TRUE(check(shrunk->graph, shrunk->program).ok());
    EXPECT_EQ(shrunk->graph.kernels[1].via, Via::kCluster);
  }
}

}  // namespace
}  // namespace sundog
