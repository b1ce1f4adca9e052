#include "codegen/kernel_check.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <tuple>

#include "core/text.h"

namespace sundog::codegen {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

TensorDecl matrix(DType dtype, std::vector<int64_t> extents, std::vector<int64_t> strides = {}) {
  TensorDecl tensor;
  tensor.name = "y";
  tensor.dtype = dtype;
  tensor.extents = std::move(extents);
  tensor.strides = std::move(strides);
  return tensor;
}

// Checks `got` against `reference`, one row.
OutputCheck check_row(DType dtype, std::vector<double> got, std::vector<double> reference,
                      double tolerance) {
  const TensorDecl tensor = matrix(dtype, {static_cast<int64_t>(got.size())});
  const TensorMemory memory = to_memory(tensor, {tensor.extents, std::move(got), {}});
  return check_output(tensor, memory, {{}, std::move(reference)}, tolerance);
}

TEST(KernelCheck, PoisonIsNanInEveryFloatingType) {
  for (const DType dtype : kAllDTypes) {
    if (dtype == DType::kI8) continue;
    const TensorDecl tensor = matrix(dtype, {3});
    const OutputCheck check = check_output(tensor, poisoned_memory(tensor), {{}, {0, 0, 0}}, 1);
    EXPECT_FALSE(check.passed) << name(dtype);
  }
}

// However few bits an output has, what the program says differs from nothing at all.
TEST(KernelCheck, ZerosAreRightInNoType) {
  for (const char* type : {"f8e4m3", "f8e5m2", "f16", "bf16", "f32"}) {
    const std::string text = std::string("program p(n = 64) {\n  input x: f16[n]\n  output y: ") +
                             type + "[n] = x * 2\n}\n";
    const Result<Program> program = parse_program(text, "p.sd");
    ASSERT_TRUE(program.ok());
    const Result<MuGraph> graph = parse_mugraph(
        "ugraph u of p {\n  kernel k grid(n) warps(1) {\n    t[] = x * 2 : reg f32\n"
        "    store t -> y\n  }\n}\n",
        "u.mu", *program);
    ASSERT_TRUE(graph.ok()) << to_string(graph.error());
    EXPECT_LT(kernel_tolerance(*program, *graph), 0.3) << type;
    EXPECT_GE(kernel_tolerance(*program, *graph), unit_roundoff(program->outputs[0].tensor.dtype))
        << type;
  }
}

TEST(KernelCheck, ErrorIsRelativeToTheRow) {
  const std::vector<double> reference(40, 100.0);
  std::vector<double> got = reference;
  got[3] = 100.5;
  EXPECT_TRUE(check_row(DType::kF32, got, reference, 0.006).passed);
  const OutputCheck wrong = check_row(DType::kF32, got, reference, 0.004);
  EXPECT_FALSE(wrong.passed);
  EXPECT_NEAR(wrong.max_rel_error, 0.005, 1e-9);
  EXPECT_NE(wrong.failure.find("y[3] is 100.5, expected 100 (1 of 40"), std::string::npos)
      << wrong.failure;
}

TEST(KernelCheck, ARowIsNotExcusedByAnother) {
  const TensorDecl tensor = matrix(DType::kF32, {2, 40});
  std::vector<double> reference(80, 1000.0);
  std::fill(reference.begin() + 40, reference.end(), 1.0);
  std::vector<double> got = reference;
  got[50] = 1.1;
  const TensorMemory memory = to_memory(tensor, {tensor.extents, got, {}});
  const OutputCheck check = check_output(tensor, memory, {{}, reference}, 0.01);
  EXPECT_FALSE(check.passed);
  EXPECT_NE(check.failure.find("y[1, 10]"), std::string::npos) << check.failure;
}

TEST(KernelCheck, NanIsRightOnlyWhereTheReferenceHasIt) {
  EXPECT_TRUE(check_row(DType::kF16, {1, kNan}, {1, kNan}, 1e-3).passed);
  EXPECT_FALSE(check_row(DType::kF16, {1, kNan}, {1, 1}, 1e-3).passed);
  EXPECT_FALSE(check_row(DType::kF16, {1, 1}, {1, kNan}, 1e-3).passed);
}

TEST(KernelCheck, InfinitiesMustAgree) {
  EXPECT_TRUE(check_row(DType::kF16, {kInfinity}, {1e6}, 1e-3).passed) << "beyond the range";
  EXPECT_TRUE(check_row(DType::kF16, {65504}, {65530}, 1e-3).passed) << "at its edge";
  EXPECT_FALSE(check_row(DType::kF16, {-kInfinity}, {1e6}, 1e-3).passed);
  EXPECT_FALSE(check_row(DType::kF16, {65504}, {1e6}, 1e-3).passed);
  EXPECT_FALSE(check_row(DType::kF16, {kInfinity}, {100}, 1e-3).passed);
  EXPECT_FALSE(check_row(DType::kF16, {kInfinity, 1}, {100, 1}, 0.5).passed);
}

// One step beside the rounded reference is wrong, unless the reference is at a tie.
TEST(KernelCheck, IntegersAreTheReferenceRounded) {
  const std::vector<double> reference = {2.4, -100.2, 130, 7.50001};
  EXPECT_TRUE(check_row(DType::kI8, {2, -100, 127, 8}, reference, 1e-5).passed);
  EXPECT_TRUE(check_row(DType::kI8, {2, -100, 127, 7}, reference, 1e-5).passed);
  EXPECT_FALSE(check_row(DType::kI8, {2, -100, 127, 7}, reference, 1e-9).passed);
  EXPECT_FALSE(check_row(DType::kI8, {3, -100, 127, 8}, reference, 1e-4).passed);
  EXPECT_FALSE(check_row(DType::kI8, {2, -101, 127, 8}, reference, 1e-3).passed);
  EXPECT_FALSE(check_row(DType::kI8, {2, -100, 126, 8}, reference, 1e-3).passed);
}

TEST(KernelCheck, GapsMustStayAsTheyWere) {
  const TensorDecl tensor = matrix(DType::kF32, {2, 3}, {5, 1});
  TensorMemory memory = to_memory(tensor, {{2, 3}, {1, 2, 3, 4, 5, 6}, {}});
  ASSERT_EQ(memory.size(), 8u * 4);
  const ExpectedTensor expected{{}, {1, 2, 3, 4, 5, 6}};
  EXPECT_TRUE(check_output(tensor, memory, expected, 1e-6).passed);
  memory[4 * 4] = std::byte{0};
  const OutputCheck check = check_output(tensor, memory, expected, 1e-6);
  EXPECT_FALSE(check.passed);
  EXPECT_NE(check.failure.find("position 4"), std::string::npos) << check.failure;
}

TEST(KernelCheck, SampledElementsAreComparedAlone) {
  const TensorDecl tensor = matrix(DType::kF32, {2, 2});
  const TensorMemory memory = to_memory(tensor, {{2, 2}, {1, 99, 3, 4}, {}});
  EXPECT_TRUE(check_output(tensor, memory, {{0, 2}, {1, 3}}, 1e-6).passed);
  EXPECT_FALSE(check_output(tensor, memory, {{0, 1}, {1, 2}}, 1e-6).passed);
}

Program parsed(const std::string& text);

// Where float32 may carry a rounding over a tie either side is right, elsewhere neither.
TEST(ExpectedOutputs, HaveSlackWhereARoundingHangsOnTheLastBits) {
  const Program program =
      parsed("program p(n = 4) { input x: f32[n]\n output y: f32[n] = 3 * cast(x * 10, i8) }");
  const std::vector<FloatTensor> inputs = {{{4}, {0.25, 0.26, 0.25 + 1e-7, -1.7}, {}}};
  const auto expected = expected_outputs(program, inputs, Rounding::kWide, 1e9, 3);
  ASSERT_TRUE(expected.ok());
  EXPECT_EQ((*expected)[0].values, (std::vector<double>{6, 9, 9, -51}));
  EXPECT_EQ((*expected)[0].slack, (std::vector<double>{3, 0, 3, 0}));
  const TensorDecl& y = program.outputs[0].tensor;
  const auto passes = [&](std::vector<double> got) {
    return check_output(y, to_memory(y, {{4}, std::move(got), {}}), (*expected)[0], 1e-6).passed;
  };
  EXPECT_TRUE(passes({6, 9, 9, -51}));
  EXPECT_TRUE(passes({9, 9, 6, -51}));
  EXPECT_FALSE(passes({6, 6, 9, -51}));
  EXPECT_FALSE(passes({6, 9, 9, -48}));
}

TEST(DrawInput, KeepsToTheDeclaredRangeAndType) {
  TensorDecl tensor = matrix(DType::kF16, {1000});
  const auto extremes = [&] {
    const FloatTensor x = draw_input(tensor, 7, 0);
    const auto [low, high] = std::minmax_element(x.f64.begin(), x.f64.end());
    for (const double value : x.f64) EXPECT_EQ(value, round_to(tensor.dtype, value));
    return std::pair(*low, *high);
  };
  auto [low, high] = extremes();
  EXPECT_LT(low, -0.9);
  EXPECT_GT(high, 0.9);
  EXPECT_LE(high, 1);
  tensor.low = Number(5);
  std::tie(low, high) = extremes();
  EXPECT_GE(low, 5);
  tensor.high = Number(6);
  std::tie(low, high) = extremes();
  EXPECT_GE(low, 5);
  EXPECT_LE(high, 6);
  tensor.low.reset();
  tensor.high = Number(-5);
  std::tie(low, high) = extremes();
  EXPECT_LE(high, -5);
}

TEST(DrawInput, IsAFunctionOfTheSeedAndOfThePositionInMemory) {
  const TensorDecl tensor = matrix(DType::kF32, {3, 4}, {0, 1});
  const FloatTensor x = draw_input(tensor, 1, 0);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(x.f64[i], x.f64[4 + i]) << "a broadcast dimension";
  EXPECT_EQ(x.f64, draw_input(tensor, 1, 0).f64);
  EXPECT_NE(x.f64, draw_input(tensor, 2, 0).f64);
  EXPECT_NE(x.f64, draw_input(tensor, 1, 1).f64);
}

Program parsed(const std::string& text) {
  Result<Program> program = parse_program(text, "test.sd");
  SUNDOG_CHECK(program.ok());
  return std::move(*program);
}

TEST(ExpectedOutputs, SamplesHoldTheFirstAndTheLastRows) {
  const Program program = parsed(R"(program p(m = 50, n = 40, k = 30) {
    input A: f32[m, k]
    input B: f32[k, n]
    output C: f32[m, n] = sum[k](A * B)
  })");
  const std::vector<FloatTensor> inputs = draw_inputs(program, 3);
  const auto whole = expected_outputs(program, inputs, Rounding::kWide, 1e9, 3);
  ASSERT_TRUE(whole.ok()) << to_string(whole.error());
  EXPECT_TRUE((*whole)[0].elements.empty());
  ASSERT_EQ((*whole)[0].values.size(), 2000u);
  double by_hand = 0;
  for (int k = 0; k < 30; ++k) by_hand += inputs[0].f64[30 + k] * inputs[1].f64[40 * k + 2];
  EXPECT_NEAR((*whole)[0].values[42], by_hand, 1e-12);

  const auto some = expected_outputs(program, inputs, Rounding::kWide, 12000, 3);
  ASSERT_TRUE(some.ok());
  const ExpectedTensor& sampled = (*some)[0];
  ASSERT_FALSE(sampled.elements.empty());
  EXPECT_LT(sampled.elements.size(), 1000u);
  EXPECT_EQ(sampled.elements.front(), 0);
  EXPECT_EQ(*std::max_element(sampled.elements.begin(), sampled.elements.end()), 1999);
  for (size_t i = 0; i < sampled.elements.size(); ++i) {
    EXPECT_EQ(sampled.values[i], (*whole)[0].values[static_cast<size_t>(sampled.elements[i])]);
  }
}

// A mean of centred values is zero but for rounding; what rounding leaves is no fault of a kernel,
// and anything more is.
TEST(KernelCheck, WhatSinglePrecisionLeavesOpenIsAllowed) {
  const auto program = parse_program(R"(program centred(h = 300) {
  input x: f32[h]
  c[h] = x - sum[h](x) / size(h)
  output y: f32[] = sum[h](c)
})",
                                     "test.sd", {});
  ASSERT_TRUE(program.ok());
  const auto inputs = draw_inputs(*program, 1);
  const auto expected = expected_outputs(*program, inputs, Rounding::kWide, 1e9, 1);
  ASSERT_TRUE(expected.ok());
  const TensorDecl& tensor = program->outputs[0].tensor;
  const auto holding = [&](double x) { return to_memory(tensor, {{}, {x}, {}}); };
  EXPECT_TRUE(check_output(tensor, holding(1e-7), (*expected)[0], 1e-5).passed);
  EXPECT_FALSE(check_output(tensor, holding(1e-3), (*expected)[0], 1e-5).passed);
}

}  // namespace
}  // namespace sundog::codegen
