#include "core/op.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/field.h"
#include "core/float_algebra.h"

namespace sundog {
namespace {

// What each operator is worth at x = 0.75, y = -1.25, from its definition and not from its body.
std::map<std::string, double> golden() {
  const double x = 0.75, y = -1.25;
  const double cubic = std::sqrt(2 / M_PI) * (x + 0.044715 * std::pow(x, 3));
  return {{"add", x + y},
          {"sub", x - y},
          {"mul", x * y},
          {"div", x / y},
          {"neg", -x},
          {"exp", std::exp(x)},
          {"log", std::log(x)},
          {"sqrt", std::sqrt(x)},
          {"rsqrt", std::pow(x, -0.5)},
          {"max", x},
          {"min", y},
          {"square", x * x},
          {"pow", x},
          {"abs", x},
          {"relu", x},
          {"sigmoid", std::exp(x) / (1 + std::exp(x))},
          {"silu", x * std::exp(x) / (1 + std::exp(x))},
          {"softplus", std::log1p(std::exp(x))},
          {"tanh", std::sinh(x) / std::cosh(x)},
          {"erf", 0.71115563365351508},
          {"sin", 0.68163876002333417},
          {"cos", 0.73168886887382089},
          {"gelu", x * 0.5 * std::erfc(-x / M_SQRT2)},
          {"gelu_tanh", x / (1 + std::exp(-2 * cubic))},
          {"clamp", x},
          {"cast", x}};
}

TEST(OpTest, EveryOperatorHasItsValue) {
  const std::map<std::string, double> expected = golden();
  size_t count = 0;
  for_each_op([&]<class O>() {
    ++count;
    Float64 a;
    const double in[] = {0.75, -1.25};
    const auto row = expected.find(std::string(O::name));
    ASSERT_NE(row, expected.end()) << "no golden row for " << O::name;
    const Op op = O{};
    EXPECT_NEAR(apply(a, op, std::span(in)), row->second, 1e-14) << O::name;
    EXPECT_EQ(name(op), O::name);
    EXPECT_EQ(arity(op), O::arity);
  });
  EXPECT_EQ(count, expected.size());
}

TEST(OpTest, ImagesTellOperatorsApart) {
  FieldImage field(5);
  const FieldImage::Value in[] = {field.random(1), field.random(2)};
  std::map<uint64_t, std::string> seen;
  for_each_op([&]<class O>() {
    const Op op = O{};
    const uint64_t image = identity(apply(field, op, std::span(in)));
    EXPECT_EQ(image, identity(apply(field, op, std::span(in)))) << O::name;
    // x and pow(x, 1), the identity cast; relu and clamp differ from both.
    if (O::name == "cast" || O::name == "pow") {
      EXPECT_EQ(image, identity(in[0]));
      return;
    }
    EXPECT_TRUE(seen.emplace(image, O::name).second) << O::name << " is " << seen[image];
  });
}

TEST(OpTest, PowersAndClampsFollowTheirAttributes) {
  Float64 a;
  const auto at = [&](Op op, double x) { return apply(a, op, std::span<const double>(&x, 1)); };
  for (double exponent : {-2.0, -1.5, -0.5, 0.0, 0.5, 1.0, 2.5, 3.0, 7.0, 32.0}) {
    const Number n = Number::ratio(static_cast<int64_t>(2 * exponent), 2);
    EXPECT_NEAR(at(op::Pow{n}, 1.5), std::pow(1.5, exponent), 1e-9 * std::pow(1.5, exponent));
  }
  EXPECT_NEAR(at(op::Pow{*Number::parse("0.3")}, 1.5), std::pow(1.5, 0.3), 1e-14);
  EXPECT_EQ(at(op::Clamp{Number(-2), Number(6)}, 7.5), 6);
  EXPECT_EQ(at(op::Clamp{Number(-2), Number(6)}, -7.5), -2);
  EXPECT_EQ(at(op::Clamp{Number(-2), Number(6)}, 1.5), 1.5);
  Float64 eager({true, Rounding::kEager});
  const double third[] = {1.0 / 3};
  EXPECT_EQ(apply(eager, Op(op::Cast{DType::kF16}), std::span(third)),
            round_to(DType::kF16, 1.0 / 3));
}

}  // namespace
}  // namespace sundog
