#include "core/dtype.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace sundog {
namespace {

bool same(double a, double b) {
  return (std::isnan(a) && std::isnan(b)) ||
         std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b);
}

int width(DType dtype) { return 8 * bytes(dtype); }

TEST(DTypeTest, EveryPatternReadsBack) {
  for (DType dtype : {DType::kF16, DType::kBF16, DType::kF8E4M3, DType::kF8E5M2, DType::kI8}) {
    for (uint64_t bits = 0; bits < uint64_t{1} << width(dtype); ++bits) {
      const double value = decode(dtype, bits);
      EXPECT_TRUE(same(round_to(dtype, value), value) || std::isnan(value)) << name(dtype) << bits;
      if (std::isnan(value)) {
        EXPECT_TRUE(std::isnan(decode(dtype, encode(dtype, value))));
      } else {
        EXPECT_EQ(encode(dtype, value), bits) << name(dtype);
      }
    }
  }
}

TEST(DTypeTest, F16IsTheCompilers) {
  for (uint32_t bits = 0; bits < 1u << 16; ++bits) {
    const auto half = std::bit_cast<_Float16>(static_cast<uint16_t>(bits));
    EXPECT_TRUE(same(decode(DType::kF16, bits), static_cast<double>(half))) << bits;
  }
  std::mt19937_64 random(2);
  for (int i = 0; i < 200000; ++i) {
    const double x =
        std::ldexp(static_cast<double>(random()) - 0x1p63, static_cast<int>(random() % 50) - 90);
    EXPECT_TRUE(same(round_to(DType::kF16, x), static_cast<double>(static_cast<_Float16>(x)))) << x;
  }
  EXPECT_EQ(round_to(DType::kF16, 65519.99), 65504.0);
  EXPECT_EQ(round_to(DType::kF16, 65520.0), std::numeric_limits<double>::infinity());
}

// The value nearest to x by looking at all of them; of two, the one with the even pattern.
double nearest(DType dtype, double x) {
  double best = 0, distance = std::numeric_limits<double>::infinity();
  uint64_t best_bits = 0;
  for (uint64_t bits = 0; bits < uint64_t{1} << (width(dtype) - 1); ++bits) {
    const double value = decode(dtype, bits);
    if (!std::isfinite(value)) continue;
    const double d = std::fabs(value - std::fabs(x));
    if (d > distance || (d == distance && (best_bits & 1) == 0)) continue;
    best = value;
    best_bits = bits;
    distance = d;
  }
  return std::copysign(best, x);
}

TEST(DTypeTest, ProductsOfNarrowTypesAreExact) {
  for (DType a : kAllDTypes) {
    for (DType b : kAllDTypes) {
      const auto product = product_dtype(a, b);
      EXPECT_EQ(product, product_dtype(b, a));
      const bool different = bytes(a) == 2 && bytes(b) == 2 && a != b;
      EXPECT_EQ(product.has_value(), bytes(a) <= 2 && bytes(b) <= 2 && !different)
          << name(a) << " " << name(b);
      if (!product) continue;
      EXPECT_EQ(bytes(*product), 2);
      for (DType x : {a, b}) EXPECT_TRUE(x == *product || is_widening(x, *product)) << name(x);
    }
  }
}

TEST(DTypeTest, EightBitFloatsRoundToTheNearest) {
  std::mt19937_64 random(3);
  for (DType dtype : {DType::kF8E4M3, DType::kF8E5M2}) {
    for (int i = 0; i < 20000; ++i) {
      // Multiples of a quarter of the spacing, so that ties are frequent.
      const int scale = static_cast<int>(random() % 24) - 18;
      const double x = std::ldexp(static_cast<double>(random() % 64) - 32, scale);
      if (std::fabs(x) > max_finite(dtype)) continue;
      EXPECT_TRUE(same(round_to(dtype, x), nearest(dtype, x))) << name(dtype) << " " << x;
    }
  }
  EXPECT_TRUE(std::isnan(round_to(DType::kF8E4M3, 470.0)));
  EXPECT_TRUE(std::isnan(round_to(DType::kF8E4M3, std::numeric_limits<double>::infinity())));
  EXPECT_EQ(round_to(DType::kF8E5M2, 61440.0), std::numeric_limits<double>::infinity());
  EXPECT_EQ(encode(DType::kF8E4M3, 448.0), 0x7eu);
  EXPECT_EQ(encode(DType::kF8E4M3, -0x1p-9), 0x81u);
  EXPECT_EQ(encode(DType::kF8E5M2, 1.0), 0x3cu);
}

TEST(DTypeTest, BF16IsTheUpperHalfOfF32) {
  for (uint32_t bits = 0; bits < 1u << 16; ++bits) {
    const double expected = static_cast<double>(std::bit_cast<float>(bits << 16));
    EXPECT_TRUE(same(decode(DType::kBF16, bits), expected)) << bits;
  }
  std::mt19937_64 random(4);
  for (int i = 0; i < 200000; ++i) {
    const auto bits = static_cast<uint32_t>(random());
    const float x = std::bit_cast<float>(bits);
    if (!std::isfinite(x)) continue;
    const uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;  // ties to even
    EXPECT_EQ(encode(DType::kBF16, static_cast<double>(x)), rounded);
  }
}

TEST(DTypeTest, CastsToIntegersAreKeptUnderAnyRounding) {
  for (const DType to : kAllDTypes) {
    EXPECT_EQ(keeps_cast(Rounding::kWide, to), is_integer(to)) << name(to);
    EXPECT_EQ(keeps_cast(Rounding::kEager, to), to != DType::kF32 && to != DType::kF64) << name(to);
    EXPECT_EQ(is_integer(to), round_to(to, 0.25) == 0) << name(to);
  }
}

// x / s and x * (1 / s) round alike where the real quotient is a tie, and only what is that near to
// one is moved.
TEST(DTypeTest, TiesOfRealNumbersAreTies) {
  std::mt19937_64 random(9);
  for (int i = 0; i < 20000; ++i) {
    const double s = std::ldexp(static_cast<double>(random() >> 11) + 1, -50);
    const double tie = static_cast<double>(static_cast<int>(random() % 200) - 100) + 0.5;
    const double above = std::nextafter(tie, 1e9), below = std::nextafter(tie, -1e9);
    for (const double x : {tie * s / s, tie * s * (1 / s), above, below}) {
      EXPECT_EQ(round_settled(DType::kI8, x), std::nearbyint(tie)) << x;
    }
    EXPECT_EQ(round_settled(DType::kI8, tie + 1e-9), std::ceil(tie));
    EXPECT_EQ(round_settled(DType::kI8, tie - 1e-9), std::floor(tie));
  }
  EXPECT_EQ(round_settled(DType::kI8, 1e300), 127);
  EXPECT_EQ(round_settled(DType::kF16, 1e300), std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(round_settled(DType::kF16, std::nan(""))));
}

TEST(DTypeTest, IntegersSaturate) {
  EXPECT_EQ(round_to(DType::kI8, 2.5), 2.0);
  EXPECT_EQ(round_to(DType::kI8, 3.5), 4.0);
  EXPECT_EQ(round_to(DType::kI8, 1e9), 127.0);
  EXPECT_EQ(round_to(DType::kI8, -1e9), -128.0);
}

TEST(DTypeTest, WideningMeansThatEveryValueIsKept) {
  const DType small[] = {DType::kF16, DType::kBF16, DType::kF8E4M3, DType::kF8E5M2, DType::kI8};
  for (DType from : small) {
    for (DType to : kAllDTypes) {
      bool kept = true;
      for (uint64_t bits = 0; bits < uint64_t{1} << width(from); ++bits) {
        const double value = decode(from, bits);
        if (!std::isnan(value)) kept = kept && round_to(to, value) == value;
      }
      EXPECT_EQ(is_widening(from, to), kept) << name(from) << " to " << name(to);
    }
  }
  EXPECT_TRUE(is_widening(DType::kF32, DType::kF64));
  EXPECT_FALSE(is_widening(DType::kF64, DType::kF32));
}

TEST(DTypeTest, NamesReadBack) {
  for (DType dtype : kAllDTypes) EXPECT_EQ(parse_dtype(name(dtype)), dtype);
  EXPECT_FALSE(parse_dtype("f12").has_value());
}

}  // namespace
}  // namespace sundog
