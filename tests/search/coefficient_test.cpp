#include "search/coefficient.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <random>

namespace sundog::search {
namespace {

Coefficient ratio(int64_t n, int64_t d) {
  return *multiply(Coefficient::of(n), *invert(Coefficient::of(d)));
}

TEST(CoefficientTest, IsInLowestTerms) {
  EXPECT_EQ(ratio(6, 8), ratio(-3, -4));
  EXPECT_EQ(ratio(6, 8).denominator, 4);
  EXPECT_TRUE(ratio(5, 5).is_one());
  EXPECT_TRUE(ratio(1, -3).is_negative());
  EXPECT_GT(ratio(1, -3).denominator, 0);
}

TEST(CoefficientTest, SizesCancel) {
  const Coefficient h = Coefficient::of_size(2), d = Coefficient::of_size(5);
  const Coefficient both = *multiply(h, d);
  EXPECT_EQ(*multiply(both, *invert(h)), d);
  EXPECT_TRUE(multiply(h, *invert(h))->is_one());
  EXPECT_FALSE(h == d);
}

TEST(CoefficientTest, AddsOnlyWhatItCanHold) {
  EXPECT_EQ(*add(ratio(1, 3), ratio(1, 6)), ratio(1, 2));
  EXPECT_TRUE(add(ratio(1, 3), ratio(-1, 3))->is_zero());
  const Coefficient large = Coefficient::of(std::numeric_limits<int64_t>::max());
  EXPECT_FALSE(multiply(large, large).has_value());
  EXPECT_FALSE(Coefficient::of(Number::infinity()).has_value());
  EXPECT_FALSE(invert(Coefficient::of(0)).has_value());
}

TEST(CoefficientTest, FieldLawsHoldOnRandomRationals) {
  std::mt19937_64 random(3);
  const auto draw = [&] {
    return ratio(static_cast<int64_t>(random() % 41) - 20, 1 + static_cast<int64_t>(random() % 20));
  };
  for (int i = 0; i < 500; ++i) {
    const Coefficient a = draw(), b = draw(), c = draw();
    EXPECT_EQ(*multiply(a, *add(b, c)), *add(*multiply(a, b), *multiply(a, c)));
    EXPECT_EQ(*add(a, b), *add(b, a));
    if (a.is_zero()) continue;
    EXPECT_TRUE(multiply(a, *invert(a))->is_one());
  }
}

TEST(CoefficientTest, PrintsAsTheTermThatItIs) {
  TermGraph graph;
  const TermId one = to_term(Coefficient{}, graph);
  EXPECT_TRUE(std::holds_alternative<ConstantTerm>(graph[one]));
  const TermId x = graph.input(0, {});
  EXPECT_EQ(scale(Coefficient{}, x, graph), x);
  EXPECT_NE(scale(ratio(1, 3), x, graph), x);
}

}  // namespace
}  // namespace sundog::search
