#include "search/arrange_loops.h"

#include <gtest/gtest.h>

#include "core/device.h"
#include "search/machine.h"
#include "search/thread_level.h"
#include "tests/search/expect_right.h"

namespace sundog::search {
namespace {

// Keys are scaled by what their rows of values add up to, inside the loop over them.
constexpr char kProgram[] =
    "program p(q = 64, e = 64, k = 128, f = 64) {\n  input Q: f16[q, e]\n  input K: f16[k, e]\n"
    "  input V: f16[k, f]\n  s[q, k] = sum[e](Q * K)\n  v[k, f] = V / sum[f](V * V)\n"
    "  output O: f32[q, f] = sum[k](s * v)\n}\n";

std::string graph_text(const std::string& load, const std::string& atom) {
  return "ugraph g of p {\n  kernel k0 grid() warps(4) {\n    split k = k.o * k.i(64)\n"
         "    qs[q, e] = Q : shared f16\n    loop k.o stages(2) bulk {\n"
         "      ks[k.i, e] = K : shared f16\n      vs[k.i, f] = V : " +
         load +
         " f16\n"
         "      s[q, k.i] = sum[e](qs * ks) : reg f32" +
         atom +
         "\n"
         "      p[q, k.i] = s : reg f16\n"
         "      t[k.i] = sum[f](vs * vs) : reg f32\n"
         "      vn[k.i, f] = vs / t : shared f16\n"
         "      o[q, f] = sum[k.o, k.i](p * vn) : reg f32" +
         atom +
         "\n    }\n"
         "    store o -> O\n  }\n}\n";
}

Program program() { return *parse_program(kProgram, "p.sd", {}); }
MuGraph graph(const std::string& load, const std::string& atom = "") {
  return *parse_mugraph(graph_text(load, atom), "g.mu", program());
}

// The names of what the loop computes, in order.
std::vector<std::string> order(const Kernel& kernel) {
  std::vector<std::string> names;
  for (const Statement& s : kernel.body) {
    const auto* loop = std::get_if<Loop>(&s.node);
    if (loop == nullptr) continue;
    for (const Statement& inside : loop->body) {
      names.push_back(kernel.computations[std::get<Compute>(inside.node).computation].name);
    }
  }
  return names;
}

TEST(ArrangeLoops, ATileReadTwiceIsTakenToRegistersOnce) {
  MuGraph g = graph("shared");
  keep_in_registers(roles_of(g, g.kernels[0]), g.kernels[0]);
  const std::vector<std::string> want = {"ks", "vs", "s", "p", "vsr", "t", "vn", "o"};
  EXPECT_EQ(order(g.kernels[0]), want);
  EXPECT_NE(print(g, program()).find("vn[k.i, f] = vsr / t : shared f16"), std::string::npos);
  expect_right(program(), g);
  // Not again, and not what one computation reads.
  const MuGraph once = g;
  keep_in_registers(roles_of(g, g.kernels[0]), g.kernels[0]);
  EXPECT_EQ(g, once);
}

// What a warp group multiplies and threads add up is kept in f32 for these.
TEST(ArrangeLoops, SumsBesideProductsOfWarpGroupsAreOfUnroundedValues) {
  const Program sums = *parse_program(
      "program p(q = 64, e = 64, k = 128, f = 64) {\n  input Q: f16[q, e]\n  input K: f16[k, e]\n"
      "  input V: f16[k, f]\n  s[q, k] = sum[e](Q * K)\n"
      "  output O: f32[q, f] = sum[k](s * V) / sum[k](s)\n}\n",
      "p.sd", {});
  const auto graph_of = [&](const std::string& atom) {
    return *parse_mugraph(
        "ugraph g of p {\n  kernel k0 grid() warps(4) {\n    split k = k.o * k.i(64)\n"
        "    qs[q, e] = Q : shared f16\n    loop k.o stages(2) bulk {\n"
        "      ks[k.i, e] = K : shared f16\n      vs[k.i, f] = V : shared f16\n"
        "      s[q, k.i] = sum[e](qs * ks) : reg f32" +
            atom +
            "\n"
            "      p[q, k.i] = s : reg f16\n"
            "      o[q, f] = sum[k.o, k.i](p * vs) : reg f32" +
            atom +
            "\n"
            "      t[q] = sum[k.o, k.i](p) : reg f32\n    }\n"
            "    y[q, f] = o / t : reg f32\n    store y -> O\n  }\n}\n",
        "g.mu", sums);
  };
  MuGraph g = graph_of(" mma(m64n8k16)");
  separate_sums(roles_of(g, g.kernels[0]), g.kernels[0]);
  const std::vector<std::string> want = {"ks", "vs", "s", "p", "t", "pc", "o"};
  EXPECT_EQ(order(g.kernels[0]), want);
  EXPECT_NE(print(g, sums).find("p[q, k.i] = s : reg f32"), std::string::npos);
  EXPECT_NE(print(g, sums).find("pc[q, k.i] = p : reg f16"), std::string::npos);
  expect_right(sums, g);
  // Not again, and not for products of single warps, whose fragments tensor cores add up.
  const MuGraph once = g;
  separate_sums(roles_of(g, g.kernels[0]), g.kernels[0]);
  EXPECT_EQ(g, once);
  MuGraph single = graph_of(" mma(m16n8k16)");
  separate_sums(roles_of(single, single.kernels[0]), single.kernels[0]);
  EXPECT_EQ(single, graph_of(" mma(m16n8k16)"));
}

TEST(ArrangeLoops, WhatDoesNotNeedAProductComesBeforeWhatDoes) {
  MuGraph g = graph("shared", " mma(m64n8k16)");
  overlap_products(g.kernels[0]);
  const std::vector<std::string> want = {"ks", "vs", "s", "t", "vn", "p", "o"};
  EXPECT_EQ(order(g.kernels[0]), want);
  expect_right(program(), g);
  // Products of single warps are done when they are read.
  MuGraph single = graph("shared", " mma(m16n8k16)");
  overlap_products(single.kernels[0]);
  EXPECT_EQ(single, graph("shared", " mma(m16n8k16)"));
}

// What a loop loads beside the operands of a product comes along with them, where copies can bring
// it.
TEST(ArrangeLoops, LoadsBesideOperandsAreCopiedAhead) {
  const MuGraph g = graph("reg");
  const Kernel& kernel = g.kernels[0];
  std::vector<int64_t> extents;
  for (const Factor& f : kernel.factors) extents.push_back(f.extent);
  const auto storage = [&](const char* device) {
    const ThreadLevel level = choose_thread_level(kernel, roles_of(g, kernel), extents,
                                                  machine_of(*find_device(device)), 1);
    for (size_t i = 0; i < kernel.computations.size(); ++i) {
      if (kernel.computations[i].name == "vs") return level.storage[i];
    }
    ADD_FAILURE();
    return Storage::kReg;
  };
  EXPECT_EQ(storage("h200"), Storage::kShared);
  EXPECT_EQ(storage("a100"), Storage::kReg);
}

// An operand is made by each warp for itself where its warps share the reduced axis, the tiles lie
// along it, and they are copied ahead; vectors beside it come along where they fill a copy.
TEST(ArrangeLoops, OperandsOfSkinnyProductsAreMadeAsFragments) {
  struct Case {
    int n, step;
    const char* weights;  // [h, d] or [d, h]
    const char* operand;  // what is computed of it
    const char* device;
    Storage made, vector;
  };
  constexpr Storage kReg = Storage::kReg, kShared = Storage::kShared;
  const Case cases[] = {
      {8, 256, "h, d", "x", "h200", kReg, kShared},
      {8, 256, "h, d", "x", "a100", kShared, kReg},       // no bulk copies
      {8, 72, "h, d", "x", "h200", kShared, kReg},        // no whole atoms; 144 bytes fill no copy
      {8, 256, "d, h", "w", "h200", kReg, kShared},       // rows of the weights lie along h
      {8, 256, "h, d", "w", "h200", kShared, kShared},    // across
      {256, 256, "h, d", "x", "h200", kShared, kShared},  // warps share rows and columns
  };
  for (const Case& c : cases) {
    const bool of_x = std::string(c.operand) == "x";
    const std::string text = "program p(n = " + std::to_string(c.n) +
                             ", h = 4608, d = 128) {\n  input x: f16[n, h]\n  input g: f16[h]\n"
                             "  input w: f16[" +
                             c.weights + "]\n  output y: f32[n, d] = sum[h](x * g * w)\n}\n";
    const Program program = *parse_program(text, "p.sd", {});
    const std::string made = of_x ? "t[n, h.i] = xs * gs" : "t[h.i, d.i] = ws * gs";
    const std::string product = of_x ? "t * ws" : "t * xs";
    const MuGraph g = *parse_mugraph(
        "ugraph g of p {\n  kernel k0 grid(d.o) warps(8) {\n    split h = h.o * h.i(" +
            std::to_string(c.step) +
            ")\n    split d = d.o * d.i(64)\n    loop h.o stages(2) bulk {\n"
            "      xs[n, h.i] = x : reg f16\n      gs[h.i] = g : reg f16\n"
            "      ws[h.i, d.i] = w : reg f16\n      " +
            made + " : reg f32\n      y[n, d.i] = sum[h.o, h.i](" + product +
            ") : reg f32\n    }\n    store y -> y\n  }\n}\n",
        "g.mu", program);
    const Kernel& kernel = g.kernels[0];
    std::vector<int64_t> extents;
    for (const Factor& f : kernel.factors) extents.push_back(f.extent);
    const ThreadLevel level = choose_thread_level(kernel, roles_of(g, kernel), extents,
                                                  machine_of(*find_device(c.device)), 1);
    for (size_t i = 0; i < kernel.computations.size(); ++i) {
      const std::string& name = kernel.computations[i].name;
      if (name == "t") {
        EXPECT_EQ(level.storage[i], c.made) << text << c.step << c.device;
        EXPECT_EQ(level.fragment[i], c.made == kReg) << text << c.step;
      } else if (name == "gs") {
        EXPECT_EQ(level.storage[i], c.vector) << text << c.step << c.device;
      }
    }
  }
}

}  // namespace
}  // namespace sundog::search
