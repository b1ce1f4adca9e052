// Parts that lie on several warps: they pass through shared memory in words of several values,
// whatever the shape of the tile and of the warps.
#include <gtest/gtest.h>

#include <string>

#include "tests/codegen/generate_cases.h"

namespace sundog::codegen {
namespace {

// x[n, h] * w[h, d], the steps along h shared by `parts` of the warps.
GenerateCase product(const std::string& name, int n, int d, int tile, int warps, int parts,
                     const std::string& atom) {
  const auto text = [](int x) { return std::to_string(x); };
  return {
      name,
      "program p(n = " + text(n) + ", h = 256, d = " + text(d) +
          ") {\n  input x: f16[n, h]\n  input w: f16[h, d]\n  output y: f16[n, d] = sum[h](x * "
          "w)\n}\n",
      "ugraph g of p {\n  kernel k0 grid(d.o) warps(" + text(warps) +
          ") {\n    split h = h.o * h.i(128)\n    split d = d.o * d.i(" + text(tile) +
          ")\n    loop h.o stages(2) {\n      xs[n, h.i] = x : shared f16\n      ws[h.i, d.i] = "
          "w : shared f16\n      y[n, d.i] = sum[h.o, h.i](xs * ws) : reg f32 mma(" +
          atom + ") warps(h.i/" + text(parts) + ")\n    }\n    store y -> y\n  }\n}\n"};
}

GenerateOutcome expect_words(const GenerateCase& c, const std::string& word) {
  const GenerateOutcome outcome = run_case(c);
  EXPECT_TRUE(outcome.passed) << c.name << ": " << outcome.failure;
  EXPECT_NE(outcome.cuda.find("sd::Vec<float, " + word), std::string::npos) << c.name;
  return outcome;
}

TEST(EmitReduce, PartsOfAnAccumulatorPassInWords) {
  const GenerateOutcome straight =
      expect_words(product("straight", 32, 64, 64, 4, 4, "m16n8k16"), "4> in_");
  EXPECT_NE(straight.cuda.find("_scratch + "), std::string::npos);
  EXPECT_NE(straight.cuda.find("sd::Vec<float, 2> vec[1];"), std::string::npos);
  expect_words(product("across", 32, 64, 32, 8, 8, "m16n8k16, swap"), "4> in_");
  expect_words(product("odd_rows", 7, 64, 64, 4, 4, "m16n8k16"), "2> in_");
  expect_words(product("ragged_columns", 16, 44, 32, 4, 4, "m16n8k16"), "4> in_");
  expect_words(product("warps_left_over", 32, 64, 64, 8, 4, "m16n8k16"), "4> in_");
}

TEST(EmitReduce, AnOddTileIsGatheredOneByOne) {
  const GenerateCase c = product("odd_columns", 16, 41, 41, 4, 4, "m16n8k16");
  EXPECT_TRUE(run_case(c).passed) << run_case(c).failure;
}

// One value a block: the parts themselves lie one beside the other.
GenerateCase row(const std::string& name, int warps, const std::string& kind) {
  return {name,
          "program p(n = 3, h = 1000) {\n  input x: f32[n, h]\n  output y: f32[n] = " + kind +
              "[h](x)\n}\n",
          "ugraph g of p {\n  kernel k0 grid(n) warps(" + std::to_string(warps) +
              ") {\n    xs[h] = x : reg f32\n    y[] = " + kind +
              "[h](xs) : reg f32\n    store y -> y\n  }\n}\n"};
}

TEST(EmitReduce, PartsOfASingleValueAreReadInWords) {
  for (const std::string kind : {"sum", "max"}) {
    for (const int warps : {4, 8, 12, 16}) {
      expect_words(row(kind + std::to_string(warps), warps, kind), "4> ");
    }
    expect_words(row(kind + "2", 2, kind), "2> ");
    const GenerateOutcome three = run_case(row(kind + "3", 3, kind));
    EXPECT_TRUE(three.passed) << three.failure;
  }
}

// A block of as many rows as warps: each warp has one, though what is summed is computed first.
TEST(EmitReduce, WarpsHaveWholeRowsWhereThereAreEnough) {
  const GenerateCase c = {
      "rows",
      "program p(n = 12, h = 520) {\n  input X: f16[n, h]\n  input Z: f16[n, h]\n"
      "  y[n, h] = X * silu(Z)\n  output O: f16[n, h] = y * rsqrt(mean[h](y * y) + 1)\n}\n",
      "ugraph g of p {\n  kernel k0 grid(n.o) warps(4) {\n    split n = n.o * n.i(4)\n"
      "    zs[n.i, h] = Z : reg f16\n    xs[n.i, h] = X : reg f16\n"
      "    y[n.i, h] = xs * silu(zs) : reg f32\n    s[n.i] = sum[h](y * y) : reg f32\n"
      "    o[n.i, h] = y * rsqrt(s / size(h) + 1) : reg f32\n    store o -> O\n  }\n}\n"};
  const GenerateOutcome outcome = run_case(c);
  EXPECT_TRUE(outcome.passed) << outcome.failure;
  const std::string kernel = outcome.cuda.substr(outcome.cuda.find("g_k0("));
  EXPECT_EQ(kernel.find("sd::sync_threads();"), std::string::npos) << kernel;
}

// The parts of eight warps are two words, which lanes read and add up.
TEST(EmitReduce, LanesAddUpThePartsOfWarps) {
  const GenerateCase c = {
      "parts",
      "program p(n = 3, h = 1000) {\n  input X: f16[n, h]\n"
      "  output O: f16[n, h] = exp(X - max[h](X)) / sum[h](exp(X - max[h](X)))\n}\n",
      "ugraph g of p {\n  kernel k0 grid(n) warps(8) {\n    xs[h] = X : reg f16\n"
      "    m[] = max[h](xs) : reg f32\n    s[] = sum[h](exp(xs - m)) : reg f32\n"
      "    o[h] = exp(xs - m) / s : reg f32\n    store o -> O\n  }\n}\n"};
  const GenerateOutcome outcome = run_exact(c);
  EXPECT_TRUE(outcome.passed) << outcome.failure;
  EXPECT_NE(outcome.cuda.find("m_scratch + lane % 2 * 4"), std::string::npos) << outcome.cuda;
  EXPECT_NE(outcome.cuda.find("sd::lane_max<1>"), std::string::npos);
}

}  // namespace
}  // namespace sundog::codegen
