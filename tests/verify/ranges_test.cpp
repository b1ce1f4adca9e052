#include "verify/ranges.h"

#include <gtest/gtest.h>

namespace sundog::verify {
namespace {

using Value = GroupRing::Value;

struct Ranges : testing::Test {
  RangeRing r{1, Rounding::kWide};
  Value var(uint64_t key) { return r.random(key); }
  Value max(std::initializer_list<Value> values) {
    Value m = r.constant(Number::infinity(true));
    for (const Value& v : values) m = r.max(m, v);
    return m;
  }
  Value sub(const Value& a, const Value& b) { return subtract(r, a, b); }
  // Whether exp(a) is a hazard.
  bool risky(const Value& a) {
    r.exp(a);
    return !r.take_hazards().exponents.empty();
  }
  bool risky_root(const Value& a) {
    r.sqrt(a);
    return !r.take_hazards().roots.empty();
  }
};

TEST_F(Ranges, ExponentsLessTheirMaximum) {
  const Value a = var(1), b = var(2), c = var(3), d = var(4);
  const Value m = max({a, b, c});
  EXPECT_TRUE(risky(a));
  EXPECT_FALSE(risky(sub(a, m)));
  EXPECT_FALSE(risky(sub(b, m)));
  EXPECT_TRUE(risky(sub(d, m)));
  EXPECT_TRUE(risky(sub(m, a)));
  EXPECT_TRUE(risky(r.add(a, m)));
  EXPECT_FALSE(risky(r.integer(-3)));
  EXPECT_TRUE(risky(r.integer(3)));
}

TEST_F(Ranges, RunningMaximaAndPartsOfTheirSet) {
  const Value a = var(1), b = var(2), c = var(3), d = var(4);
  const Value first = max({a, b}), second = max({c, d}), both = r.max(first, second);
  EXPECT_FALSE(risky(sub(first, both)));
  EXPECT_FALSE(risky(sub(c, both)));
  EXPECT_TRUE(risky(sub(both, first)));
  EXPECT_TRUE(risky(sub(second, first)));
}

TEST_F(Ranges, PositiveScales) {
  const Value a = var(1), b = var(2), m = max({a, b});
  const Value scale = r.constant(*Number::parse("0.125"));
  EXPECT_FALSE(risky(r.mul(sub(a, m), scale)));
  EXPECT_FALSE(risky(sub(r.mul(scale, a), r.mul(m, scale))));
  EXPECT_TRUE(risky(r.mul(sub(a, m), r.integer(-2))));
}

TEST_F(Ranges, RootsOfSumsOfSquares) {
  const Value a = var(1), b = var(2), m = var(3);
  const Value da = sub(a, m), db = sub(b, m);
  const Value two_pass = r.add(r.mul(da, da), r.mul(db, db));
  EXPECT_FALSE(risky_root(two_pass));
  EXPECT_FALSE(
      risky_root(r.add(r.div(two_pass, r.integer(2)), r.constant(*Number::parse("1e-5")))));
  const Value one_pass = sub(r.add(r.mul(a, a), r.mul(b, b)), r.mul(m, m));
  EXPECT_TRUE(risky_root(one_pass));
  EXPECT_TRUE(risky_root(a));
}

TEST_F(Ranges, DenominatorsAwayFromZero) {
  const Value a = var(1), b = var(2), c = var(3), m = max({a, b});
  const auto risky_divisor = [&](const Value& divisor) {
    r.div(c, divisor);
    return !r.take_hazards().denominators.empty();
  };
  const Value ea = r.exp(sub(a, m)), eb = r.exp(sub(b, m)), ec = r.exp(sub(c, max({a, b, c})));
  r.take_hazards();
  EXPECT_FALSE(risky_divisor(r.integer(3)));
  EXPECT_FALSE(risky_divisor(r.add(r.integer(1), ec)));
  EXPECT_FALSE(risky_divisor(r.add(ea, eb))) << "one of the two is 1";
  EXPECT_TRUE(risky_divisor(ea)) << "the other one may be the maximum";
  EXPECT_TRUE(risky_divisor(r.add(r.exp(a), r.exp(b))));
  EXPECT_TRUE(risky_divisor(a));
  const Value square = r.mul(a, a);
  EXPECT_TRUE(risky_divisor(r.sqrt(square)));
  EXPECT_FALSE(risky_divisor(r.sqrt(r.add(square, r.constant(*Number::parse("1e-6"))))));
}

TEST(Hazards, OfACandidateMustBeThoseOfTheProgram) {
  const Hazards none, one{{1}, {}, {}}, two{{1, 2}, {}, {}}, root{{}, {3}, {}}, zero{{}, {}, {4}};
  EXPECT_TRUE(worse_hazards(none, none).empty());
  EXPECT_TRUE(worse_hazards(two, one).empty());
  EXPECT_FALSE(worse_hazards(one, two).empty());
  EXPECT_TRUE(worse_hazards(one, two, {true, false}).empty());
  EXPECT_FALSE(worse_hazards(none, root).empty());
  EXPECT_FALSE(worse_hazards(none, root, {true, true}).empty());
  EXPECT_TRUE(worse_hazards(root, none).empty());
  EXPECT_FALSE(worse_hazards(none, zero).empty());
  EXPECT_TRUE(worse_hazards(none, zero, {false, true}).empty());
  EXPECT_NE(describe(none), describe(one));
  EXPECT_NE(describe(none), describe(zero));
}

}  // namespace
}  // namespace sundog::verify
