// Rows that begin at any element, fetched as the words that they lie in.
#include <gtest/gtest.h>

#include <string>

#include "tests/codegen/generate_cases.h"

namespace sundog::codegen {
namespace {

std::string text(int x) { return std::to_string(x); }

bool has(const std::string& in, const std::string& part) {
  return in.find(part) != std::string::npos;
}

// A product whose right operand has rows of `d` values and comes in steps of 32 along h.
GenerateCase product(int h, int d, const std::string& dtype, const std::string& attributes) {
  return {"product_" + text(h) + "_" + text(d),
          "program p(n = 16, h = " + text(h) + ", d = " + text(d) + ") {\n  input x: " + dtype +
              "[n, h]\n  input w: " + dtype + "[h, d]\n  output y: f32[n, d] = sum[h](x * w)\n}\n",
          "ugraph g of p {\n  kernel k0 grid(d.o) warps(2) {\n    split h = h.o * h.i(32)\n    "
          "split d = d.o * d.i(32)\n    loop h.o " +
              attributes + " {\n      xs[n, h.i] = x : shared " + dtype +
              "\n      ws[h.i, d.i] = w : shared " + dtype +
              "\n      t[n, d.i] = sum[h.o, h.i](xs * ws) : reg f32 mma(m16n8k16) "
              "warps(h.i/2)\n    }\n    store t -> y\n  }\n}\n"};
}

// Rows of `h` values, held in registers, less their mean.
GenerateCase centred(int n, int h, const std::string& dtype) {
  return {"centred_" + text(h),
          "program p(n = " + text(n) + ", h = " + text(h) + ") {\n  input x: " + dtype +
              "[n, h]\n  input g: " + dtype +
              "[n, h]\n  output y: f16[n, h] = (x - mean[h](x)) * g\n}\n",
          "ugraph g of p {\n  kernel k0 grid(n) warps(2) {\n    xs[h] = x : reg " + dtype +
              "\n    gs[h] = g : reg " + dtype +
              "\n    t[] = sum[h](xs) : reg f32\n    c[h] = (xs - t / size(h)) * gs : reg f32\n"
              "    store c -> y\n  }\n}\n"};
}

// Ragged in both directions, the last row of the tensor in the last word, beside bulk copies and
// without them.
TEST(EmitWindow, TilesOfALoopComeAnIterationAhead) {
  for (const std::string attributes : {"stages(3) bulk", "stages(2)"}) {
    for (const int d : {33, 63, 97}) {
      for (const char* dtype : {"f16", "bf16"}) {
        const GenerateOutcome outcome = run_exact(product(104, d, dtype, attributes));
        EXPECT_TRUE(outcome.passed) << outcome.failure;
        EXPECT_TRUE(outcome.residues_passed) << outcome.residues;
        EXPECT_TRUE(has(outcome.cuda, "sd::align_window(")) << outcome.cuda;
        EXPECT_TRUE(has(outcome.cuda, "if (h_o + 1 < 4)")) << outcome.cuda;
        // The first tile before the loop.
        EXPECT_LT(outcome.cuda.find("sd::load_window(ws_window"),
                  outcome.cuda.find("for (int h_o"));
      }
    }
  }
}

TEST(EmitWindow, WithoutStagesTheyComeInTheirIteration) {
  const GenerateOutcome outcome = run_exact(product(96, 33, "f16", ""));
  EXPECT_TRUE(outcome.passed) << outcome.failure;
  EXPECT_TRUE(outcome.residues_passed) << outcome.residues;
  EXPECT_FALSE(has(outcome.cuda, "if (h_o + 1 <")) << outcome.cuda;
}

// Words of four bytes are for cp.async.
TEST(EmitWindow, RowsOfWholeWordsAreCopied) {
  const GenerateOutcome outcome = run_case(product(96, 34, "f16", "stages(3) bulk"));
  EXPECT_TRUE(outcome.passed) << outcome.failure;
  EXPECT_FALSE(has(outcome.cuda, "load_window")) << outcome.cuda;
}

// Element by element, which is faster there.
TEST(EmitWindow, RowsInRegistersAreNot) {
  const GenerateOutcome outcome = run_case(centred(3, 1001, "f16"));
  EXPECT_TRUE(outcome.passed) << outcome.failure;
  EXPECT_FALSE(has(outcome.cuda, "load_window")) << outcome.cuda;
}

TEST(EmitWindow, BytesShiftByBytes) {
  GenerateCase bytes = centred(5, 1003, "f8e4m3");
  const std::string kept = ": reg f8e4m3";
  for (size_t at; (at = bytes.graph.find(kept)) != std::string::npos;) {
    bytes.graph.replace(at, kept.size(), ": shared f8e4m3");
  }
  const GenerateOutcome outcome = run_case(bytes);
  EXPECT_TRUE(outcome.passed) << outcome.failure;
  EXPECT_TRUE(has(outcome.cuda, "sd::Window<sd::f8e4m3, 8>")) << outcome.cuda;
}

// The run is taken from where it was fetched, and of the iteration that is computed.
TEST(EmitWindow, SlipsAreSeen) {
  const GenerateCase right = product(104, 33, "f16", "stages(3) bulk");
  EXPECT_TRUE(run_case(right).passed);
  EXPECT_FALSE(run_changed(right, "const int h_o = 0;", "const int h_o = 1;").passed);
  EXPECT_FALSE(run_changed(right, "if (h_o + 1 < 4)", "if (h_o + 2 < 4)").passed);
}

}  // namespace
}  // namespace sundog::codegen
