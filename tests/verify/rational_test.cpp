#include "verify/rational.h"

#include <gtest/gtest.h>

namespace sundog::verify {
namespace {

TEST(Rational, ComputesInLowestTerms) {
  EXPECT_EQ(add({1, 6}, {1, 3}), (Rational{1, 2}));
  EXPECT_EQ(add({1, 2}, {-1, 2}), (Rational{0, 1}));
  EXPECT_EQ(multiply({-2, 3}, {3, 4}), (Rational{-1, 2}));
  EXPECT_EQ(divide({1, 2}, {-3, 1}), (Rational{-1, 6}));
  EXPECT_EQ(common_measure({3, 4}, {9, 10}), (Rational{3, 20}));
  EXPECT_EQ(of_number(*Number::parse("1e-6")), (Rational{1, 1000000}));
  EXPECT_EQ(of_number(*Number::parse("-1.25")), (Rational{-5, 4}));
  EXPECT_EQ(to_text({-5, 4}), "-5/4");
}

TEST(Rational, HasRootsOfSquaresOnly) {
  EXPECT_EQ(root({4, 9}), (Rational{2, 3}));
  EXPECT_EQ(root({0, 1}), (Rational{0, 1}));
  EXPECT_FALSE(root({2, 1}));
  EXPECT_FALSE(root({-4, 1}));
  const Int128 large = Int128{1} << 60;
  EXPECT_EQ(root({large * large, 1}), (Rational{large, 1}));
  EXPECT_FALSE(root({large * large + 1, 1}));
}

TEST(Rational, SaysWhatDoesNotFit) {
  const Rational large{Int128{1} << 126, 1}, small{1, Int128{1} << 126};
  EXPECT_FALSE(multiply(large, {3, 1}));
  EXPECT_FALSE(add(large, large));
  EXPECT_FALSE(multiply(small, small));
  EXPECT_FALSE(of_number(*Number::parse("1e300")));
  EXPECT_EQ(multiply(large, small), (Rational{1, 1}));
}

}  // namespace
}  // namespace sundog::verify
