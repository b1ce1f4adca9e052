#include "verify/numerics.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/float_algebra.h"
#include "core/interpret.h"
#include "core/text.h"
#include "tests/verify/pairs.h"
#include "verify/float_inputs.h"
#include "verify/run_candidate.h"

namespace sundog::verify {
namespace {

SmallCase pair(const std::string& program, const std::string& candidate) {
  Program p = parsed(program);
  std::string sizes = sizes_text(p);
  return {std::move(p), parsed(candidate), std::move(sizes)};
}

const std::string kHead =
    "program p(n = 4, k = 24) {\n input x: f16[n, k]\n output y: f16[n, k] = ";
const std::string kSafe = kHead + "exp(x - max[k](x)) / sum[k](exp(x - max[k](x))) }";
const std::string kUnsafe = kHead + "exp(x) / sum[k](exp(x)) }";
const std::string kShifted = kHead + "exp(x - max[k](x) - 1) / sum[k](exp(x - max[k](x) - 1)) }";

TEST(Numerics, AcceptsTheProgramItself) {
  const NumericsResult r = compare_numerics(pair(kSafe, kSafe), Rounding::kWide, 1);
  EXPECT_TRUE(r.reason.empty()) << r.reason;
  EXPECT_EQ(r.evidence.cases.size(), std::size(kAllInputKinds));
  EXPECT_TRUE(compare_numerics(pair(kSafe, kShifted), Rounding::kWide, 1).reason.empty());
}

TEST(Numerics, RefusesOverflowWhereTheProgramIsFinite) {
  const NumericsResult r = compare_numerics(pair(kSafe, kUnsafe), Rounding::kWide, 1);
  EXPECT_FALSE(r.reason.empty());
  ASSERT_TRUE(r.witness.has_value());
  EXPECT_FALSE(std::isfinite(r.witness->actual));
  EXPECT_TRUE(std::isfinite(r.witness->expected));
  EXPECT_TRUE(compare_numerics(pair(kUnsafe, kSafe), Rounding::kWide, 1).reason.empty());
}

TEST(Numerics, RefusesCancellation) {
  const std::string head =
      "program p(n = 4, h = 32) {\n input x: f32[n, h]\n m[n] = mean[h](x)\n output y: f32[n] = ";
  const std::string two_pass = head + "mean[h]((x - m) * (x - m)) }";
  const std::string one_pass = head + "mean[h](x * x) - m * m }";
  EXPECT_FALSE(compare_numerics(pair(two_pass, one_pass), Rounding::kWide, 1).reason.empty());
  EXPECT_TRUE(compare_numerics(pair(two_pass, two_pass), Rounding::kWide, 1).reason.empty());
}

TEST(Numerics, ErrorsStayBelowTheirComputedBound) {
  const std::string head =
      "program p(n = 4, h = 48, d = 3) {\n input x: f16[n, h]\n input w: f16[h, d]\n"
      " output y: f16[n, d] = ";
  for (const std::string body :
       {"sum[h](x * w) }", "sum[h](x * rsqrt(mean[h](x * x) + 1e-6) * w) }",
        "sum[h](exp(x - max[h](x)) * w) / sum[h](exp(x - max[h](x))) }", "sum[h](silu(x) * w) }",
        "sum[h](tanh(x) * w) + log(1 + sum[h](x * x)) }"}) {
    const NumericsResult r = compare_numerics(pair(head + body, head + body), Rounding::kWide, 1);
    int finite = 0;
    for (const NumericsCase& c : r.evidence.cases) {
      EXPECT_LE(c.candidate_error, c.error_bound) << body << ", " << c.name;
      EXPECT_EQ(c.differing, 0) << body << ", " << c.name;
      finite += std::isfinite(c.error_bound) && c.error_bound < 1;
    }
    EXPECT_GE(finite, 3) << body << ": a bound that says nothing would always hold";
  }
}

TEST(Numerics, BitsAreComparedWithEveryCastInPlace) {
  const std::string head = "program p(n = 64) {\n input x: f16[n]\n input y: f16[n]\n";
  const std::string rounded = head + " output z: f32[n] = cast(x * y, f16) + y }";
  const std::string same = head + " output z: f32[n] = y + cast(y * x, f16) }";
  const auto differing = [&](const std::string& candidate, Rounding rounding) {
    return compare_numerics(pair(rounded, candidate), rounding, 1).evidence.cases[0].differing;
  };
  EXPECT_EQ(differing(same, Rounding::kEager), 0);
  EXPECT_GT(differing(same, Rounding::kWide), 32) << "the cast is dropped";
}

TEST(FloatInputs, CancelAlongSummedAxes) {
  const Program p = parsed(
      "program p(n = 4, k = 9, d = 3) { input w: f32[k, d]\n input x: f32[n, k]\n"
      " output y: f32[n, d] = sum[k](x * w) }");
  EXPECT_EQ(summed_dimensions(p), (std::vector<size_t>{0, 1}));
  const auto inputs = float_inputs(p, InputKind::kCancelling, 3);
  const std::span<const TensorValues<double>> in(inputs);
  Float64 algebra({.round_stores = false});
  const auto y = interpret(algebra, p, in);
  ASSERT_TRUE(y.ok());
  for (const double value : (*y)[0].values) EXPECT_LT(std::fabs(value), 400) << "of 9 times 40000";
}

TEST(Witness, IsFoundForWhatDiffersAndOnlyForThat) {
  EXPECT_FALSE(find_witness(pair(kSafe, kUnsafe), Rounding::kWide, 1, true).has_value());
  const std::string wrong = kHead + "exp(x - max[k](x)) / sum[k](exp(x - max[k](x)) + 1e-5) }";
  const SmallCase small = pair(kSafe, wrong);
  const auto w = find_witness(small, Rounding::kWide, 1);
  ASSERT_TRUE(w.has_value());
  EXPECT_EQ(w->output, "y");
  // Replayed from what the witness says.
  const auto inputs = float_inputs(small.program, InputKind::kOrdinary, w->seed);
  const std::span<const TensorValues<double>> in(inputs);
  Float64 algebra({.round_stores = false});
  const auto expected = interpret(algebra, small.program, in);
  const auto actual = run_candidate(algebra, small.program, small.candidate, in);
  ASSERT_TRUE(expected.ok() && actual.ok());
  const auto at = static_cast<size_t>(w->element[0] * 24 + w->element[1]);
  EXPECT_EQ((*expected)[0].values[at], w->expected);
  EXPECT_EQ((*actual)[0].values[at], w->actual);
}

// The two differ on huge inputs alone, which come last.
TEST(Witness, IsNotLookedForForLong) {
  const SmallCase small = pair(kHead + "x }", kHead + "clamp(x, -5000, 5000) }");
  EXPECT_TRUE(find_witness(small, Rounding::kWide, 1).has_value());
  EXPECT_FALSE(find_witness(small, Rounding::kWide, 1, false, 0).has_value());
}

TEST(FloatInputs, AreOfTheirKindDtypeAndRange) {
  const Program p = parsed(
      "program p(n = 8, k = 16) {\n input x: f16[n, k]\n input z: f32[n] in [0, 1]\n"
      " output y: f32[n] = sum[k](x) * z }");
  for (const InputKind kind : kAllInputKinds) {
    const auto inputs = float_inputs(p, kind, 3);
    ASSERT_EQ(inputs.size(), 2u);
    for (const double x : inputs[0].values) {
      EXPECT_TRUE(std::isfinite(x)) << name(kind);
      EXPECT_EQ(round_to(DType::kF16, x), x) << name(kind);
    }
    for (const double z : inputs[1].values) EXPECT_TRUE(z >= 0 && z <= 1) << name(kind);
    EXPECT_EQ(float_inputs(p, kind, 3)[0].values, inputs[0].values);
  }
  const auto zeros = float_inputs(p, InputKind::kZero, 3);
  for (const double x : zeros[0].values) EXPECT_EQ(x, 0);
  double largest = 0, row = 0;
  const auto near_maximum = float_inputs(p, InputKind::kNearMaximum, 3);
  for (const double x : near_maximum[0].values) {
    largest = std::max(largest, std::fabs(x));
  }
  EXPECT_GT(largest, 50000);
  const auto one_hot = float_inputs(p, InputKind::kOneHot, 3);
  for (size_t i = 0; i < 16; ++i) row += one_hot[0].values[i];
  EXPECT_EQ(row, 1);
}

}  // namespace
}  // namespace sundog::verify
