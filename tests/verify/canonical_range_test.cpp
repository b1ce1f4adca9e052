// Sums and maxima over pieces of ranges: each has one form however it is cut, and the value that
// adding up its terms gives.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "tests/verify/form_value.h"
#include "verify/canonical_form.h"

namespace sundog::verify {
namespace {

class CanonicalRange : public testing::Test {
 protected:
  VarId variable(int64_t extent) { return f_.indices.fresh(f_.indices.range(extent)); }
  IndexId at(VarId v, int64_t plus = 0) {
    return f_.indices.add(f_.indices.of_variable(v), f_.indices.constant(plus));
  }
  FormId x(VarId v, int64_t plus = 0) { return f_.read(0, {at(v, plus)}); }
  FormId y(VarId v, int64_t plus = 0) { return f_.read(1, {at(v, plus)}); }
  FormId below(VarId v, int64_t end) {  // v < end
    return f_.condition(IndexRelation::kNotPositive, at(v, 1 - end));
  }
  FormId from(VarId v, int64_t begin) { return f_.subtract(f_.one(), below(v, begin)); }
  FormId select(FormId c, FormId a, FormId b) {
    return f_.add(b, f_.multiply(c, f_.subtract(a, b)));
  }
  FormId sum_of_x(int64_t extent) {
    const VarId v = variable(extent);
    return f_.sum({v}, x(v));
  }
  FormId sum_of_y(int64_t extent) {
    const VarId v = variable(extent);
    return f_.sum({v}, y(v));
  }

  Forms f_;
};

TEST_F(CanonicalRange, ASumOverTwoJoinedIsTwo) {
  const VarId k = variable(27);
  const FormId joined = f_.sum({k}, select(below(k, 20), x(k), y(k, -20)));
  EXPECT_EQ(joined, f_.add(sum_of_x(20), sum_of_y(7)));
  EXPECT_NE(joined, f_.add(sum_of_x(20), sum_of_y(8)));
  const VarId other = variable(27);
  EXPECT_EQ(f_.sum({other}, select(from(other, 20), y(other, -20), x(other))), joined);
  EXPECT_NE(f_.sum({other}, select(below(other, 21), x(other), y(other, -20))), joined);
}

TEST_F(CanonicalRange, PiecesOfOneSumAreTheSum) {
  const FormId whole = sum_of_x(27);
  for (const int64_t cut : {0, 1, 13, 26, 27}) {
    const VarId k = variable(27);
    const FormId first = f_.sum({k}, f_.multiply(below(k, cut), x(k)));
    EXPECT_EQ(f_.add(first, f_.sum({k}, f_.multiply(from(k, cut), x(k)))), whole) << cut;
    EXPECT_EQ(first == f_.zero(), cut == 0);
    EXPECT_EQ(first == whole, cut == 27);
  }
}

TEST_F(CanonicalRange, ConditionsInExponentsPartTheSum) {
  const VarId k = variable(27), m = variable(5), i = variable(20), j = variable(7);
  const FormId most = y(m);
  const FormId s = select(below(k, 20), x(k), y(k, -20));
  const FormId joined = f_.sum({k}, f_.exp(f_.subtract(s, most)));
  const FormId parts = f_.add(f_.sum({i}, f_.exp(f_.subtract(x(i), most))),
                              f_.sum({j}, f_.exp(f_.subtract(y(j), most))));
  EXPECT_EQ(joined, parts);
}

TEST_F(CanonicalRange, AMaximumOverTwoJoinedIsOfTwo) {
  const VarId k = variable(27), i = variable(20), j = variable(7);
  const auto joined = f_.max({{{k}, f_.one(), select(below(k, 20), x(k), y(k, -20))}});
  const auto parts = f_.max({{{i}, f_.one(), x(i)}, {{j}, f_.one(), y(j)}});
  ASSERT_TRUE(joined && parts);
  EXPECT_EQ(*joined, *parts);
  EXPECT_FALSE(f_.max({{{k}, f_.multiply(below(k, 3), from(k, 3)), x(k)}}).has_value());
}

// A size that is a symbol has no ends to tell pieces by.
TEST_F(CanonicalRange, OfSymbolsConditionsStay) {
  const VarId k = f_.indices.fresh(f_.indices.domain("k"));
  const FormId first = f_.sum({k}, f_.multiply(below(k, 20), x(k)));
  EXPECT_NE(first, sum_of_x(20));
}

// Random bodies, with reads that no tensor has included.
TEST_F(CanonicalRange, FormsHaveTheValuesOfAddingUp) {
  const std::vector<TensorValues<double>> none(2, TensorValues<double>{{0}, {}});
  std::mt19937_64 random(7);
  const auto drawn = [&](int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random() % static_cast<uint64_t>(high - low + 1));
  };
  for (int round = 0; round < 400; ++round) {
    const VarId v = variable(drawn(1, 9)), w = variable(drawn(2, 4));
    const int64_t extent = *f_.indices.extent_of(f_.indices.domain_of(v));
    const auto read = [&] { return drawn(0, 1) == 0 ? x(v, drawn(-9, 9)) : y(v, drawn(-9, 9)); };
    FormId body = f_.scale(read(), Rational::of(drawn(1, 3)));
    if (drawn(0, 1) == 0) body = f_.multiply(body, y(w));
    if (drawn(0, 2) == 0) body = f_.multiply(body, read());
    if (drawn(0, 1) == 0) body = select(below(v, drawn(0, 9)), body, read());
    if (drawn(0, 1) == 0) body = f_.exp(f_.scale(body, Rational{1, 16}));
    if (drawn(0, 2) == 0) body = f_.multiply(body, from(v, drawn(0, 9)));
    FormValue value(f_, {}, none, FormValue::Outside::kSome);
    double total = 0, most = -std::numeric_limits<double>::infinity();
    value.set(w, drawn(0, 1));
    const FormId sum = f_.sum({v}, body);
    const auto maximum = f_.max({{{v}, f_.one(), body}});
    ASSERT_TRUE(maximum.has_value());
    const double found = value.form(sum), found_most = value.form(*maximum);
    for (int64_t i = 0; i < extent; ++i) {
      value.set(v, i);
      total += value.form(body);
      most = std::max(most, value.form(body));
    }
    EXPECT_NEAR(found, total, 1e-9 * (1 + std::fabs(total))) << f_.text(body);
    EXPECT_NEAR(found_most, most, 1e-9 * (1 + std::fabs(most))) << f_.text(body);
    ASSERT_FALSE(f_.failure()) << *f_.failure();
  }
}

}  // namespace
}  // namespace sundog::verify
