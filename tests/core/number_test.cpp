#include "core/number.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <limits>
#include <random>

namespace sundog {
namespace {

TEST(NumberTest, EqualValuesAreEqualHoweverTheyAreWritten) {
  EXPECT_EQ(Number::parse("0.5"), Number::ratio(1, 2));
  EXPECT_EQ(Number::parse("5e-1"), Number::ratio(-2, -4));
  EXPECT_EQ(Number::parse("1000"), Number(1000));
  EXPECT_EQ(Number::parse("1e3"), Number(1000));
  EXPECT_EQ(Number::parse("2.50"), Number::ratio(5, 2));
  EXPECT_EQ(Number::parse("-0.0"), Number(0));
  EXPECT_EQ(Number::parse("1/3"), Number::ratio(2, 6));
  EXPECT_NE(Number::parse("1/3"), Number::parse("0.333333333333333333"));
  EXPECT_EQ(Number::parse("-inf"), Number::infinity(true));
  EXPECT_EQ(Number::ratio(3, 1), Number(3));
}

TEST(NumberTest, RefusesWhatIsNoNumber) {
  for (const char* text : {"", "-", ".", "1.2.3", "1e", "e5", "0x10", "1 ", "1/0", "1/-", "nan",
                           "1234567890123456789.5", "99999999999999999999", "1e99999", "--1",
                           "-9223372036854775808/1", "1e+-5"}) {
    EXPECT_FALSE(Number::parse(text).has_value()) << text;
  }
}

TEST(NumberTest, TextIsShortAndReadsBack) {
  EXPECT_EQ(Number::parse("1e-6")->to_text(), "1e-6");
  EXPECT_EQ(Number::parse("0.000001")->to_text(), "1e-6");
  EXPECT_EQ(Number::parse("0.044715")->to_text(), "0.044715");
  EXPECT_EQ(Number(4096).to_text(), "4096");
  EXPECT_EQ(Number(-1).to_text(), "-1");
  EXPECT_EQ(Number::ratio(-1, 3).to_text(), "-1/3");
  EXPECT_EQ(Number::parse("12.5")->to_text(), "12.5");
  EXPECT_EQ(Number::infinity(true).to_text(), "-inf");
}

TEST(NumberTest, RandomNumbersReadBackAndConvertExactly) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 20000; ++i) {
    const auto digits = static_cast<int64_t>(random() >> (4 + random() % 60));
    const int exponent = static_cast<int>(random() % 60) - 30;
    const std::string text =
        std::to_string(digits % 1'000'000'000'000'000'000) + "e" + std::to_string(exponent);
    const auto number = Number::parse(text);
    ASSERT_TRUE(number.has_value()) << text;
    EXPECT_EQ(number->to_double(), std::strtod(text.c_str(), nullptr)) << text;
    EXPECT_EQ(Number::parse(number->to_text()), *number) << text;
    EXPECT_EQ(number->negated().negated(), *number);
    const Number fraction = Number::ratio(digits, static_cast<int64_t>(random() >> 2) + 1);
    EXPECT_EQ(Number::parse(fraction.to_text()), fraction);
  }
  const Number largest(std::numeric_limits<int64_t>::max());
  EXPECT_EQ(Number::parse(largest.to_text()), largest);
}

TEST(NumberTest, IntegersAreKnown) {
  EXPECT_TRUE(Number::parse("1e30")->is_integer());
  EXPECT_TRUE(Number(-4).is_integer());
  EXPECT_FALSE(Number::ratio(1, 2).is_integer());
  EXPECT_FALSE(Number::infinity().is_integer());
}

}  // namespace
}  // namespace sundog
