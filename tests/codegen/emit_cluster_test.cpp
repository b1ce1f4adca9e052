// Kernels that the blocks of a cluster run: what the emitted text does is right, and without any of
// its barriers the emulator complains. NOLINT(sundog-mirror): codegen/emit_launch.cpp
#include <gtest/gtest.h>

#include "codegen/emit_kernel.h"
#include "codegen/generate.h"
#include "core/device.h"
#include "core/schedule/cluster.h"
#include "core/text.h"
#include "tests/codegen/generate_cases.h"

namespace sundog::codegen {
namespace {

// Four blocks have a part each of the sums of a tile and of their squares; each adds up a quarter
// of the columns.  The second sum is the same for all tiles, and the last of them is ragged.
GenerateCase split_sums() {
  return {"split_sums",
          "program p(n = 8, h = 128, d = 40) {\n  input X: f16[n, h]\n  input W: f16[h, d]\n"
          "  input B: f16[n, d]\n  r[n] = rsqrt(mean[h](X * X) + 1)\n"
          "  output O: f16[n, d] = sum[h](X * W) * r + B\n}\n",
          "ugraph g of p {\n  kernel part grid(d.o, h.s) warps(2) {\n"
          "    split h = h.s(4) * h.i(32)\n    split d = d.o(3) * d.i(16)\n"
          "    xs[n, h.i] = X : shared f16\n    ws[h.i, d.i] = W : shared f16\n"
          "    acc[n, d.i] = sum[h.i](xs * ws) : reg f32 mma(m16n8k16)\n"
          "    ss[n] = sum[h.i](xs * xs) : reg f32\n"
          "    store acc -> t : f32[h.s, n, d]\n    store ss -> u : f32[h.s, n]\n"
          "  }\n  kernel join grid(d.o, d.c) warps(2) via cluster {\n"
          "    split d = d.o(3) * d.c(4) * d.i(4)\n"
          "    s[n, d.i] = sum[h.s](t) : reg f32\n    q[n] = sum[h.s](u) : reg f32\n"
          "    o[n, d.i] = s * rsqrt(q / size(h) + 1) + B : reg f32\n    store o -> O\n  }\n}\n"};
}

// Bulk copies, whose barriers in shared memory nothing may touch, rows that blocks share, and
// kernels in front and behind that overlap.
GenerateCase chain() {
  return {"chain",
          "program p(n = 12, h = 512, d = 64) {\n  input X: f16[n, h]\n  input W: f16[h, d]\n"
          "  a[n, h] = X * 2\n  y[n, d] = sum[h](a * W)\n"
          "  output O: f32[n, d] = y * rsqrt(mean[d](y * y) + 1)\n}\n",
          "ugraph g of p {\n  kernel twice grid(n) warps(2) {\n    a[h] = X * 2 : reg f32\n"
          "    store a -> xx : f16[n, h]\n  }\n  kernel part grid(d.o, h.s) warps(4) {\n"
          "    split h = h.s(2) * h.o(4) * h.i(64)\n    split d = d.o(2) * d.i(32)\n"
          "    loop h.o stages(3) bulk {\n"
          "      xs[n, h.i] = xx : shared f16\n      ws[h.i, d.i] = W : shared f16\n"
          "      acc[n, d.i] = sum[h.o, h.i](xs * ws) : reg f32 mma(m16n8k16) warps(h.i/4)\n    }\n"
          "    store acc -> t : f32[h.s, n, d]\n  }\n"
          "  kernel join grid(d.o, n.c) warps(4) via cluster {\n    split d = d.o(2) * d.i(32)\n"
          "    split n = n.c(2) * n.i(7)\n"
          "    s[n.i, d.i] = sum[h.s](t) : shared f32\n    store s -> y : f32[n, d]\n  }\n"
          "  kernel norm grid(n) warps(2) {\n    ys[d] = y : reg f32\n"
          "    v[] = sum[d](ys * ys) : reg f32\n"
          "    o[d] = ys * rsqrt(v / size(d) + 1) : reg f32\n    store o -> O\n  }\n}\n"};
}

Result<Generated> generated(const GenerateCase& c, const char* device) {
  const Result<Program> program = parse_program(c.program, "p.sd", {});
  const Result<MuGraph> graph = parse_mugraph(c.graph, "p.mu", *program);
  if (!graph.ok()) return graph.error();
  return generate(*graph, *program, *find_device(device), {});
}

TEST(EmitCluster, BlocksJoinTheirParts) {
  // Two of the three blocks share the columns between them.
  const GenerateCase attention = split_attention("grid(q.o, f.c) warps(1) via cluster", "f.i",
                                                 "    split f = f.c(2) * f.i(12)\n");
  for (const GenerateCase& c : {split_sums(), attention}) {
    const GenerateOutcome outcome = run_exact(c);
    EXPECT_TRUE(outcome.passed) << c.name << outcome.failure;
    EXPECT_TRUE(outcome.residues_passed) << c.name << outcome.residues;
  }
  const GenerateOutcome outcome = run_case(chain());
  EXPECT_TRUE(outcome.passed) << outcome.failure;
}

TEST(EmitCluster, NothingOfThePartsIsInDeviceMemory) {
  const Result<Generated> g = generated(split_sums(), "h200");
  ASSERT_TRUE(g.ok()) << to_string(g.error());
  ASSERT_EQ(g->plan.kernels.size(), 1u);
  const PlanKernel& kernel = g->plan.kernels[0];
  EXPECT_EQ(g->plan.workspace_bytes, 0);
  EXPECT_EQ(kernel.cluster, 4);
  EXPECT_EQ(kernel.grid[0], 12);
  EXPECT_EQ(kernel.arguments.size(), 4u);  // X, W, B, O
  EXPECT_NE(g->cuda.find("__cluster_dims__(4, 1, 1)"), std::string::npos);
  EXPECT_NE(g->cuda.find("sd::load_cluster("), std::string::npos);
}

TEST(EmitCluster, OlderDevicesHaveNone) {
  const Result<Generated> g = generated(split_sums(), "a100");
  ASSERT_FALSE(g.ok());
  EXPECT_EQ(g.error().code, ErrorCode::kUnsupported);
  EXPECT_NE(g.error().message.find("kernel 'join' is run by the blocks of a cluster"),
            std::string::npos)
      << g.error().message;
}

TEST(EmitCluster, BarriersOfTheClusterAreNeeded) {
  const auto found = [](const GenerateCase& c, const std::string& from, const std::string& to) {
    return run_changed(c, from, to).problems;
  };
  const std::string first = "  sd::cluster_sync();\n  {", last = "  sd::cluster_sync();\n}";
  EXPECT_EQ(found(split_sums(), first, first), "");
  // In front of the reads: their owner may not have written, nor even have started.
  EXPECT_NE(found(split_sums(), first, "  sd::sync_threads();\n  {").find("shared race"),
            std::string::npos);
  // Behind them: their owner may have ended.
  EXPECT_NE(found(split_sums(), last, "}").find("early exit"), std::string::npos);
  EXPECT_NE(found(split_sums(), last, "  if (h_s == 0) sd::cluster_sync();\n}").find("early exit"),
            std::string::npos);
  // What others read is written anew.
  EXPECT_NE(
      found(split_sums(), last, "  t[tid] = 0.0f;\n  sd::cluster_sync();\n}").find("shared race"),
      std::string::npos);
  // A block of another cluster's number.
  EXPECT_NE(found(split_sums(), "const int h_s = block % 4", "const int h_s = block % 4 + 4"), "");
}

// Padded rows: eight rows of a product meet in no bank.
TEST(ClusterTensors, HaveAPlaceInEachBlock) {
  GenerateCase c = split_sums();
  const size_t at = c.graph.find("d.o(3) * d.i(16)");
  c.graph.replace(at, 16, "d.o(2) * d.i(32)");
  const size_t own = c.graph.find("d.o(3) * d.c(4) * d.i(4)");
  c.graph.replace(own, 24, "d.o(2) * d.c(4) * d.i(8)");
  const Result<Program> program = parse_program(c.program, "p.sd", {});
  const Result<MuGraph> graph = parse_mugraph(c.graph, "p.mu", *program);
  ASSERT_TRUE(graph.ok()) << to_string(graph.error());
  const std::vector<ClusterTensor> kept = cluster_tensors(*graph, 1);
  ASSERT_EQ(kept.size(), 2u);
  EXPECT_EQ(kept[0].ranks, (std::vector<int64_t>{1, 0, 0}));
  EXPECT_EQ(kept[0].strides, (std::vector<int64_t>{0, 40, 1}));
  EXPECT_EQ(kept[0].extents, (std::vector<int64_t>{1, 8, 32}));
  EXPECT_EQ(kept[0].elements, 320);
  EXPECT_EQ(kept[1].elements, 8);
  const MuGraph placed = placed_in_clusters(*graph);
  EXPECT_EQ(placed.tensors[kept[0].tensor].role, TensorRole::kCluster);
  EXPECT_EQ(placed.tensors[kept[0].tensor].decl.strides, (std::vector<int64_t>{320, 40, 1}));
  expect_right(c);
}

}  // namespace
}  // namespace sundog::codegen
