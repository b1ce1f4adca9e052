// Products of operands of 8 bits: every way in which they can lie, every type beside both of 16
// bits, and shapes that are no multiples of an atom.
#include <gtest/gtest.h>

#include "core/dtype.h"
#include "tests/codegen/generate_cases.h"

namespace sundog::codegen {
namespace {

struct Side {
  std::string dtype, axes;  // the latter in the order of memory
};

// Sums over k of A[m, k] * B[k, n], a tile of 64 of k at a time.
struct Shape {
  int m = 0, n = 0, k = 0;
  bool swap = false;
  std::string loop = "stages(3)", warps = {};
  int count = 2;
};

GenerateCase product(const std::string& name, const Side& a, const Side& b, const Shape& s) {
  const auto tile = [](std::string axes) { return axes.replace(axes.find('k'), 1, "k.i"); };
  const std::string sizes = "(m = " + std::to_string(s.m) + ", n = " + std::to_string(s.n) +
                            ", k = " + std::to_string(s.k) + ")";
  return {name,
          "program p" + sizes + " {\n  input A: " + a.dtype + "[" + a.axes + "]\n  input B: " +
              b.dtype + "[" + b.axes + "]\n  output C: f32[m, n] = sum[k](A * B)\n}\n",
          "ugraph g of p {\n  kernel k0 grid() warps(" + std::to_string(s.count) +
              ") {\n    split k = k.o * k.i(64)\n    loop k.o " + s.loop + " {\n      as[" +
              tile(a.axes) + "] = A : shared " + a.dtype + "\n      bs[" + tile(b.axes) +
              "] = B : shared " + b.dtype +
              "\n      c[m, n] = sum[k.o, k.i](as * bs) : reg f32 mma(m16n8k16" +
              (s.swap ? ", swap" : "") + ")" + s.warps + "\n    }\n    store c -> C\n  }\n}\n"};
}

// Right, exactly so as residues, and on tensor cores; rows of the tiles lie in different banks.
void expect_product(const GenerateCase& c, double most_conflicts = 0.02) {
  const GenerateOutcome outcome = run_exact(c);
  EXPECT_TRUE(outcome.passed) << c.name << ": " << outcome.failure << "\n" << outcome.cuda;
  EXPECT_TRUE(outcome.residues_passed) << c.name << ": " << outcome.residues;
  EXPECT_NE(outcome.cuda.find("sd::mma_m16n8k16<"), std::string::npos) << c.name;
  EXPECT_LE(outcome.conflicts, most_conflicts) << c.name;
}

constexpr const char* kNarrow[] = {"f8e4m3", "f8e5m2", "i8"};

TEST(EmitMma, WidensEveryTypeOfEightBits) {
  for (const std::string narrow : kNarrow) {
    for (const std::string wide : {"f16", "bf16"}) {
      const std::string name = narrow + "_" + wide;
      expect_product(product(name, {wide, "m, k"}, {narrow, "n, k"}, {16, 32, 192}));
      expect_product(product(name + "_across", {narrow, "k, m"}, {wide, "n, k"}, {32, 16, 128}));
    }
  }
}

TEST(EmitMma, WidensOperandsHoweverTheyLie) {
  const Side wide{"f16", "m, k"}, along{"f8e4m3", "n, k"}, across{"f8e4m3", "k, n"};
  for (const bool swap : {false, true}) {
    const std::string side = swap ? "_m" : "_n";
    expect_product(product("along" + side, wide, along, {16, 64, 192, swap}));
    expect_product(product("across" + side, wide, across, {16, 64, 192, swap}));
    const std::string bulk = "stages(3) bulk";
    expect_product(product("along_bulk" + side, wide, along, {16, 64, 256, swap, bulk}));
    expect_product(product("across_bulk" + side, wide, across, {16, 64, 256, swap, bulk}));
    const Shape by_k{16, 64, 256, swap, "stages(2)", " warps(k.i/4)", 4};
    expect_product(product("along_by_k" + side, wide, along, by_k));
    expect_product(product("across_by_k" + side, wide, across, by_k));
  }
}

TEST(EmitMma, WidensBothSides) {
  expect_product(product("both", {"f8e4m3", "m, k"}, {"f8e5m2", "n, k"}, {32, 32, 192}));
  expect_product(product("integers", {"i8", "m, k"}, {"i8", "k, n"}, {16, 32, 192}));
}

// What does not fill atoms, or the words that ldmatrix reads, is fetched one by one.
TEST(EmitMma, WidensWhatIsNoMultipleOfAnAtom) {
  const Side wide{"bf16", "m, k"};
  expect_product(product("ragged_k", wide, {"i8", "n, k"}, {5, 24, 100}), 1);
  expect_product(product("ragged_n", wide, {"f8e5m2", "k, n"}, {7, 20, 72}), 1);
  expect_product(product("odd_n", wide, {"f8e4m3", "k, n"}, {16, 9, 130}), 1);
  expect_product(product("three_atoms", wide, {"i8", "k, n"}, {16, 24, 128}), 1);
  expect_product(product("swapped", wide, {"f8e4m3", "k, n"}, {3, 40, 96, true}), 1);
}

}  // namespace
}  // namespace sundog::codegen
