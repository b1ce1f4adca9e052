#include "core/library_gemm.h"

#include <gtest/gtest.h>

#include "core/float_algebra.h"
#include "core/interpret.h"
#include "core/proto.h"
#include "core/resize.h"
#include "core/text.h"

namespace sundog {
namespace {

// A program with one µGraph, in which the kernel `g` is the library's.
struct Case {
  Program program;
  MuGraph graph;
  Result<LibraryGemm> gemm() const { return library_gemm(graph, graph.kernels[0]); }
};

Result<Case> read(const std::string& program_text, const std::string& kernel) {
  Result<Program> program = parse_program(program_text, "p.sd", {});
  if (!program.ok()) return program.error();
  Result<MuGraph> graph = parse_mugraph("ugraph u of p {\n" + kernel + "}\n", "u.mu", *program);
  if (!graph.ok()) return graph.error();
  return Case{*std::move(program), *std::move(graph)};
}

// `x` and `w` with the given types, O[n, d] = sum[h](x * w).
std::string program_of(const std::string& x, const std::string& w, const std::string& o) {
  return "program p(b = 3, n = 4, h = 8, d = 6) {\n  input x: " + x + "\n  input w: " + w +
         "\n  output O: " + o + " = sum[h](x * w)\n}\n";
}
const std::string kPlain = program_of("f16[n, h]", "f16[h, d]", "f16[n, d]");
const std::string kBatch = program_of("f16[b, n, h]", "f16[b, h, d]", "f16[b, n, d]");

std::string kernel_of(const std::string& axes, const std::string& header = "library(gemm)") {
  return "  kernel g " + header + " {\n    c[" + axes +
         "] = sum[h](x * w) : reg f32\n    store c -> O\n  }\n";
}

std::string refusal(const std::string& program, const std::string& kernel) {
  const Result<Case> c = read(program, kernel);
  return c.ok() ? "" : to_string(c.error());
}

TEST(LibraryGemm, TextAndStoredFormKeepIt) {
  const Result<Case> c = read(kPlain, kernel_of("n, d"));
  ASSERT_TRUE(c.ok()) << to_string(c.error());
  EXPECT_EQ(c->graph.kernels[0].kind, KernelKind::kLibraryGemm);
  const std::string text = print(c->graph, c->program);
  EXPECT_NE(text.find("  kernel g library(gemm) {\n    c[n, d] = sum[h](x * w) : reg f32\n"),
            std::string::npos)
      << text;
  EXPECT_EQ(*parse_mugraph(text, "u.mu", c->program), c->graph);
  EXPECT_EQ(*parse_mugraph_proto(serialize(c->graph), c->program), c->graph);
}

TEST(LibraryGemm, MatricesAreFoundInMemory) {
  const Result<Case> plain = read(kPlain, kernel_of("n, d"));
  ASSERT_TRUE(plain.ok()) << to_string(plain.error());
  EXPECT_EQ(*plain->gemm(), (LibraryGemm{1,
                                         4,
                                         6,
                                         8,
                                         {0, 0, 8, 0, false},
                                         {1, 0, 6, 0, false},
                                         {2, 0, 6, 0, false},
                                         DType::kF16,
                                         DType::kF16}));
  // Columns, padding and an offset; a result by columns swaps the operands.
  const std::string odd = program_of("bf16[h, n] stride(10, 1) offset 5",
                                     "bf16[h, d] stride(1, 9) offset 2", "f32[d, n]");
  const Result<Case> turned = read(odd, kernel_of("n, d"));
  ASSERT_TRUE(turned.ok()) << to_string(turned.error());
  EXPECT_EQ(*turned->gemm(), (LibraryGemm{1,
                                          6,
                                          4,
                                          8,
                                          {1, 2, 9, 0, false},
                                          {0, 5, 10, 0, false},
                                          {2, 0, 4, 0, false},
                                          DType::kBF16,
                                          DType::kF32}));
  const Result<Case> batch = read(kBatch, kernel_of("b, n, d"));
  ASSERT_TRUE(batch.ok()) << to_string(batch.error());
  EXPECT_EQ(*batch->gemm(), (LibraryGemm{3,
                                         4,
                                         6,
                                         8,
                                         {0, 0, 8, 32, false},
                                         {1, 0, 6, 48, false},
                                         {2, 0, 6, 24, false},
                                         DType::kF16,
                                         DType::kF16}));
}

TEST(LibraryGemm, AxesThatStepAsOneAreOne) {
  // b and n are rows of one matrix where w lacks b, and a batch where they do not follow.
  const Result<Case> rows =
      read(program_of("f16[b, n, h]", "f16[h, d]", "f16[b, n, d]"), kernel_of("b, n, d"));
  ASSERT_TRUE(rows.ok()) << to_string(rows.error());
  EXPECT_EQ(rows->gemm()->m, 12);
  EXPECT_EQ(rows->gemm()->batch, 1);
  const Result<Case> apart =
      read(program_of("f16[b, n, h] stride(40, 8, 1)", "f16[h, d]", "f16[b, n, d]"),
           kernel_of("b, n, d"));
  ASSERT_TRUE(apart.ok()) << to_string(apart.error());
  EXPECT_EQ(apart->gemm()->m, 4);
  EXPECT_EQ(apart->gemm()->batch, 3);
  EXPECT_EQ(apart->gemm()->a.batch_stride, 40);
  EXPECT_EQ(apart->gemm()->b.batch_stride, 0);
}

TEST(LibraryGemm, GramProductsReadOneTensorTwice) {
  const std::string program =
      "program p(n = 4, m = 4, h = 8) {\n  input x: f32[n, h]\n  input w: f32[m, h]\n"
      "  output O: f32[n, m] = sum[h](x * x[m, h] + 0 * w)\n}\n";
  const Result<Case> c = read(program,
                              "  kernel g library(gemm) {\n    c[n, m] = sum[h](x * x[m, h]) : "
                              "reg f32\n    store c -> O\n  }\n");
  ASSERT_TRUE(c.ok()) << to_string(c.error());
  EXPECT_EQ(c->gemm()->a.tensor, c->gemm()->b.tensor);
  EXPECT_FALSE(c->gemm()->a.transposed);
  EXPECT_TRUE(c->gemm()->b.transposed);
}

TEST(LibraryGemm, WhatALibraryDoesNotTakeIsRefusedWithItsReason) {
  const auto expect = [](const std::string& program, const std::string& kernel,
                         const std::string& why) {
    EXPECT_NE(refusal(program, kernel).find(why), std::string::npos) << why << "\n"
                                                                     << refusal(program, kernel);
  };
  expect(kPlain, kernel_of("n, d", "library(conv)"), "known: gemm");
  expect(kPlain, kernel_of("d", "library(gemm) grid(n)"), "it has no grid of its own");
  expect(kPlain, kernel_of("n, d", "library(gemm) warps(8)"), "it has no warps of its own");
  const std::string head = "  kernel g library(gemm) {\n";
  const std::string tail = "    store c -> O\n  }\n";
  expect(kPlain,
         head + "    split n = n.o * n.i(2)\n    c[n.o, n.i, d] = sum[h](x * w) : reg f32\n" + tail,
         "axis 'n' is split");
  expect(kPlain,
         head + "    xs[n, h] = x : shared f16\n    c[n, d] = sum[h](xs * w) : reg f32\n" + tail,
         "more or other statements than one computation and its store");
  expect(kPlain, head + "    loop h {\n    c[n, d] = sum[h](x * w) : reg f32\n    }\n" + tail,
         "more or other statements");
  expect(kPlain, head + "    c[n, d] = max[h](x * w) : reg f32\n" + tail, "is no sum of products");
  expect(kPlain, head + "    c[n, d] = sum[h](x * exp(w)) : reg f32\n" + tail,
         "multiplies what is no device tensor");
  expect(kPlain, head + "    c[n, d] = sum[h](x * w) : shared f32\n" + tail,
         "another place than reg f32");
  expect(program_of("f16[n, h]", "bf16[h, d]", "f16[n, d]"), kernel_of("n, d"),
         "f16 times bf16 stored as f16 is none of its products");
  expect(program_of("f16[n, h]", "f16[h, d]", "bf16[n, d]"), kernel_of("n, d"), "stored as bf16");
  expect(program_of("f16[n, h]", "f16[d]", "f16[n, d]"), kernel_of("n, d"),
         "axis 'h' is reduced and not in both operands");
  expect(program_of("f16[n, h] stride(16, 2)", "f16[h, d]", "f16[n, d]"), kernel_of("n, d"),
         "not laid out as rows or columns");
  // Heads between rows: two batch axes that do not step as one.
  const std::string heads =
      "program p(b = 3, g = 2, n = 4, h = 8, d = 6) {\n  input x: f16[b, n, g, h]\n"
      "  input w: f16[b, g, h, d]\n  output O: f16[b, g, n, d] = sum[h](x * w)\n}\n";
  expect(heads, kernel_of("b, g, n, d"), "not laid out as rows or columns");
  const std::string empty =
      "program p(n = 4, h = 8, d = 0) {\n  input x: f16[n, h]\n"
      "  input w: f16[h, d]\n  output O: f16[n, d] = sum[h](x * w)\n}\n";
  expect(empty, kernel_of("n, d"), "axis 'd' is empty");
}

TEST(LibraryGemm, MeansWhatItSaysAndShrinks) {
  const std::string large =
      "program p(n = 400, h = 800, d = 600) {\n  input x: f32[n, h]\n"
      "  input w: f32[h, d]\n  output O: f32[n, d] = sum[h](x * w)\n}\n";
  const Result<Case> c = read(large, kernel_of("n, d"));
  ASSERT_TRUE(c.ok()) << to_string(c.error());
  for (const ShrinkPolicy policy : {ShrinkPolicy::kKeepTiles, ShrinkPolicy::kFewElements}) {
    const Result<Shrunk> small = shrink(c->graph, c->program, policy);
    ASSERT_TRUE(small.ok()) << to_string(small.error());
    ASSERT_TRUE(check(small->graph, small->program).ok());
    const Result<LibraryGemm> gemm = library_gemm(small->graph, small->graph.kernels[0]);
    ASSERT_TRUE(gemm.ok());
    EXPECT_LE(gemm->m * gemm->n * gemm->k, 1000);
    EXPECT_TRUE(gemm->m != gemm->n && gemm->n != gemm->k && gemm->m != gemm->k);
    std::vector<TensorValues<double>> values;
    for (const TensorDecl& input : small->program.inputs) {
      values.push_back({input.extents, {}});
      for (int64_t i = 0; i < element_count(input); ++i) {
        values.back().values.push_back(static_cast<double>(i % 7) - 2 * static_cast<double>(i % 3));
      }
    }
    FloatAlgebra<Precision::kF64> algebra;
    const auto expected =
        interpret(algebra, small->program, std::span<const TensorValues<double>>(values));
    const auto got = interpret(algebra, small->graph, small->program,
                               std::span<const TensorValues<double>>(values));
    ASSERT_TRUE(expected.ok() && got.ok());
    EXPECT_EQ((*got)[0].values, (*expected)[0].values);
  }
}

TEST(LibraryGemm, NoBlocksOfItRunAnotherKernel) {
  const std::string join =
      "program p(n = 4, h = 8, d = 6) {\n  input x: f16[n, h]\n  input w: f16[h, d]\n"
      "  c[n, d] = sum[h](x * w)\n  output O: f16[n] = sum[d](c)\n}\n";
  const std::string kernels =
      "  kernel g library(gemm) {\n    c[n, d] = sum[h](x * w) : reg f32\n"
      "    store c -> t : f32[n, d]\n  }\n  kernel j grid() warps(4) via last_block {\n"
      "    s[n] = sum[d](t) : reg f32\n    store s -> O\n  }\n";
  EXPECT_NE(refusal(join, kernels).find("the kernel before it is a library's"), std::string::npos)
      << refusal(join, kernels);
}

}  // namespace
}  // namespace sundog
