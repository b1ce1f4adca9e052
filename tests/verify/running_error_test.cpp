#include "verify/running_error.h"

#include <gtest/gtest.h>

#include <random>

namespace sundog::verify {
namespace {

using Value = RunningError::Value;

float rounded(double x) { return static_cast<float>(x); }

// Sums in float32, by hand, against the bound.
TEST(RunningError, BoundsTheErrorOfASum) {
  std::mt19937_64 random(5);
  std::normal_distribution<double> normal;
  RunningError a;
  for (int trial = 0; trial < 200; ++trial) {
    Value sum;
    double exact = 0;
    float device = 0;
    for (int i = 0; i < 100; ++i) {
      const float x = rounded(normal(random) * 1e3), y = rounded(normal(random));
      sum = a.add(sum, a.mul(a.input(x), a.input(y)));
      exact += static_cast<double>(x) * y;
      device += x * y;
    }
    EXPECT_NEAR(sum.value, exact, 1e-6);
    EXPECT_LE(std::fabs(device - exact), sum.error);
    EXPECT_LT(sum.error, 1e3 * 100 * 100 * 0x1p-24);
  }
}

TEST(RunningError, GrowsWithTheLengthOfASum) {
  RunningError a;
  const auto of_length = [&](int n) {
    Value sum;
    for (int i = 0; i < n; ++i) sum = a.add(sum, a.input(1));
    return sum.error / n;
  };
  EXPECT_GT(of_length(1000), 5 * of_length(100));
}

TEST(RunningError, KnowsWhatItCannotBound) {
  RunningError a;
  const Value off{1e-9, 1e-8};
  EXPECT_TRUE(std::isinf(a.div(a.input(1), off).error)) << "the divisor may be 0";
  EXPECT_TRUE(std::isinf(a.store(DType::kF16, a.input(1e6)).error));
  EXPECT_GE(a.store(DType::kF16, a.input(1000.3)).error, 0.25);
  EXPECT_GE(a.sub(a.add(a.input(1e8), a.input(1)), a.input(1e8)).error, 1);
  const Value close = a.choose(Relation::kLess, off, a.input(0), a.input(5), a.input(9));
  EXPECT_GE(close.error, 4) << "either branch may be taken";
}

TEST(RunningError, OfWhatIsMaskedIsNone) {
  RunningError a;
  const Value masked = a.constant(Number::infinity(true));
  const Value off{2, 1e-6};
  EXPECT_EQ(a.exp(masked).error, 0);
  EXPECT_EQ(a.exp(a.sub(masked, off)).error, 0);
  EXPECT_EQ(a.max(masked, off).error, off.error);
  EXPECT_LT(a.add(a.exp(masked), off).error, 2e-6);
  EXPECT_LT(a.mul(a.exp(masked), off).error, 1e-30);
}

// The same sum in float64, against longer numbers.
TEST(RunningError, OfFloat64HasItsUnit) {
  RunningError a(Rounding::kWide, Precision::kF64);
  EXPECT_EQ(a.constant(Number(3)).error, 0);
  EXPECT_LE(a.constant(Number::ratio(1, 3)).error, 0x1p-53);
  EXPECT_EQ(a.store(DType::kF16, a.input(1000.3)).error, 0) << "the reference stores as it is";
  std::mt19937_64 random(5);
  std::normal_distribution<double> normal;
  Value sum;
  long double exact = 0;
  for (int i = 0; i < 1000; ++i) {
    const double x = normal(random) * 1e3, y = normal(random);
    sum = a.add(sum, a.mul(a.input(x), a.input(y)));
    exact += static_cast<long double>(x) * y;
  }
  EXPECT_LE(static_cast<double>(std::fabs(exact - sum.value)), sum.error);
  EXPECT_LT(sum.error, 1e3 * 1000 * 1000 * 0x1p-53);
  EXPECT_GT(sum.error, 0);
}

// What is rounded to integers is exact, unless the device may be on the other side of a tie.
TEST(RunningError, AStepCostsOneOnlyNearATie) {
  RunningError a;
  EXPECT_EQ(a.cast(DType::kI8, {2.4, 0.05}).value, 2);
  EXPECT_EQ(a.cast(DType::kI8, {2.4, 0.05}).error, 0);
  EXPECT_EQ(a.cast(DType::kI8, {2.4, 0.2}).error, 1);
  EXPECT_EQ(a.cast(DType::kI8, {130, 1}).value, 127);
  EXPECT_EQ(a.cast(DType::kI8, {130, 1}).error, 0);
  EXPECT_EQ(a.cast(DType::kF16, {2.4, 0.05}).error, 0.05) << "dropped";
  EXPECT_GE(RunningError(Rounding::kEager).cast(DType::kF16, {2.4, 0.05}).error, 0.04);
}

}  // namespace
}  // namespace sundog::verify
