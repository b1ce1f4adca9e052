#include "core/field.h"

#include <gtest/gtest.h>

#include "core/op.h"

namespace sundog {
namespace {

class FieldTest : public testing::Test {
 protected:
  using V = FieldImage::Value;
  V x() { return f.random(1); }
  V y() { return f.random(2); }
  V z() { return f.random(3); }
  V number(const char* text) { return f.constant(*Number::parse(text)); }
  FieldImage f{7};
};

uint64_t power(uint64_t base, uint64_t exponent, uint64_t modulus) {
  __extension__ using Wide = unsigned __int128;
  uint64_t result = 1;
  for (; exponent != 0; exponent >>= 1) {
    if ((exponent & 1) != 0) result = static_cast<uint64_t>(Wide(result) * base % modulus);
    base = static_cast<uint64_t>(Wide(base) * base % modulus);
  }
  return result;
}

TEST_F(FieldTest, BothModuliPassFermat) {
  EXPECT_EQ(FieldImage::kP, 2 * FieldImage::kQ + 1);
  for (uint64_t base : {2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37}) {
    EXPECT_EQ(power(base, FieldImage::kP - 1, FieldImage::kP), 1u);
    EXPECT_EQ(power(base, FieldImage::kQ - 1, FieldImage::kQ), 1u);
  }
}

TEST_F(FieldTest, ProductsAreThoseOfWideIntegers) {
  __extension__ using Wide = unsigned __int128;
  for (uint64_t key = 0; key < 5000; ++key) {
    const V a = f.random(key), b = f.random(~key), c = f.mul(a, b);
    EXPECT_EQ(c.p, static_cast<uint64_t>(Wide(a.p) * b.p % FieldImage::kP));
    EXPECT_EQ(c.q, static_cast<uint64_t>(Wide(a.q) * b.q % FieldImage::kQ));
  }
}

TEST_F(FieldTest, ArithmeticIsAField) {
  EXPECT_EQ(f.mul(x(), f.add(y(), z())), f.add(f.mul(x(), y()), f.mul(x(), z())));
  EXPECT_EQ(f.mul(f.div(x(), y()), y()), x());
  EXPECT_EQ(f.sub(f.add(x(), y()), y()), x());
  EXPECT_EQ(f.add(number("0.1"), number("0.2")), number("0.3"));
  EXPECT_EQ(f.mul(number("1/3"), number("3")), f.constant(Number(1)));
  EXPECT_EQ(f.mul(number("1e-6"), number("1e6")), f.constant(Number(1)));
  EXPECT_FALSE(f.add(x(), y()) == f.mul(x(), y()));
}

TEST_F(FieldTest, ExponentialsTurnSumsIntoProducts) {
  EXPECT_EQ(f.exp(f.add(x(), y())), f.mul(f.exp(x()), f.exp(y())));
  EXPECT_EQ(f.exp(f.sub(x(), y())), f.div(f.exp(x()), f.exp(y())));
  EXPECT_EQ(f.exp(f.constant(Number(0))), f.constant(Number(1)));
  EXPECT_EQ(f.log(f.exp(x())), x());
  EXPECT_EQ(f.exp(f.log(x())), x());
  EXPECT_FALSE(f.exp(f.mul(x(), y())) == f.mul(f.exp(x()), f.exp(y())));
}

TEST_F(FieldTest, MaximaAreSets) {
  const V m = f.max(f.max(x(), y()), z());
  EXPECT_EQ(m, f.max(z(), f.max(y(), x())));
  EXPECT_EQ(m, f.max(m, f.max(y(), z())));
  EXPECT_EQ(f.max(x(), x()), x());
  EXPECT_FALSE(f.max(x(), y()) == m);
  const V lowest = f.constant(Number::infinity(true));
  EXPECT_EQ(f.max(lowest, x()), x());
  EXPECT_TRUE(f.is_minus_infinity(f.max(lowest, lowest)));
}

TEST_F(FieldTest, InfinitiesAreValues) {
  const V lowest = f.constant(Number::infinity(true));
  EXPECT_EQ(f.exp(lowest), f.constant(Number(0)));
  EXPECT_TRUE(f.is_minus_infinity(f.add(lowest, x())));
  EXPECT_TRUE(f.is_minus_infinity(f.mul(lowest, number("0.125"))));
  EXPECT_TRUE(f.is_minus_infinity(f.neg(f.mul(lowest, number("-2")))));
  EXPECT_EQ(f.div(x(), lowest), f.constant(Number(0)));
  EXPECT_FALSE(f.failure().has_value());
  EXPECT_TRUE(f.is_undefined(f.sub(lowest, lowest)));
  EXPECT_TRUE(f.failure().has_value());
}

TEST_F(FieldTest, DivisionByZeroIsUndefinedAndStaysSo) {
  const V bad = f.div(x(), f.sub(y(), y()));
  EXPECT_TRUE(f.is_undefined(bad));
  EXPECT_TRUE(f.is_undefined(f.exp(f.add(bad, z()))));
  EXPECT_TRUE(f.failure().has_value());
  f.reset_failure();
  EXPECT_FALSE(f.failure().has_value());
}

TEST_F(FieldTest, CallsAndRootsAreFunctions) {
  EXPECT_EQ(f.call(op::Tanh::fn, f.add(x(), y())), f.call(op::Tanh::fn, f.add(y(), x())));
  EXPECT_FALSE(f.call(op::Tanh::fn, x()) == f.call(op::Erf::fn, x()));
  EXPECT_EQ(f.sqrt(f.mul(x(), y())), f.sqrt(f.mul(y(), x())));
  EXPECT_FALSE(f.sqrt(x()) == f.sqrt(y()));
}

TEST_F(FieldTest, ComparisonsHaveOneSpelling) {
  const V chosen = f.choose(Relation::kLess, x(), y(), z(), x());
  EXPECT_EQ(chosen, f.choose(Relation::kLessEqual, y(), x(), x(), z()));
  EXPECT_FALSE(chosen == f.choose(Relation::kLess, y(), x(), z(), x()));
  EXPECT_EQ(f.choose(Relation::kEqual, x(), y(), z(), x()),
            f.choose(Relation::kNotEqual, y(), x(), x(), z()));
  EXPECT_EQ(f.choose(Relation::kLess, x(), x(), y(), z()), z());
  EXPECT_EQ(f.choose(Relation::kLess, x(), y(), z(), z()), z());
}

TEST_F(FieldTest, ImagesDependOnSeedAndKeyOnly) {
  FieldImage again(7), other(8);
  (void)again.exp(again.random(9));
  EXPECT_EQ(again.random(1), x());
  EXPECT_EQ(again.exp(again.random(1)), f.exp(x()));
  EXPECT_FALSE(other.random(1) == x());
}

TEST_F(FieldTest, CastsAreDroppedOrKept) {
  FieldImage eager(7, Rounding::kEager);
  EXPECT_EQ(f.cast(DType::kF16, x()), x());
  EXPECT_EQ(eager.cast(DType::kF32, x()), x());
  EXPECT_FALSE(eager.cast(DType::kF16, x()) == x());
  EXPECT_EQ(eager.cast(DType::kF16, x()), eager.cast(DType::kF16, x()));
  EXPECT_FALSE(f.cast(DType::kI8, x()) == x()) << "a step of the computation";
  EXPECT_EQ(f.cast(DType::kI8, x()), f.cast(DType::kI8, x()));
}

}  // namespace
}  // namespace sundog
