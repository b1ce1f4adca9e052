#include "core/arithmetic.h"

#include <gtest/gtest.h>

namespace sundog {
namespace {

TEST(ArithmeticTest, DivisionsAreRounded) {
  for (int64_t a = -9; a <= 9; ++a) {
    for (const int64_t b : {1, 2, 3, 7}) {
      const int64_t down = floor_div(a, b);
      EXPECT_TRUE(down * b <= a && a < (down + 1) * b) << a << " / " << b;
      if (a >= 0) {
        EXPECT_EQ(ceil_div(a, b), -floor_div(-a, b));
      }
    }
  }
}

TEST(ArithmeticTest, CeilDivRoundsUp) {
  EXPECT_EQ(ceil_div(0, 7), 0);
  EXPECT_EQ(ceil_div(1, 7), 1);
  EXPECT_EQ(ceil_div(7, 7), 1);
  EXPECT_EQ(ceil_div(8, 7), 2);
}

// The first three outputs of SplitMix64 with seed 0: its state grows by a constant each time.
TEST(ArithmeticTest, ScrambleIsSplitMix64) {
  const uint64_t step = 0x9e3779b97f4a7c15u;
  EXPECT_EQ(scramble(0), 0xe220a8397b1dcdafu);
  EXPECT_EQ(scramble(step), 0x6e789e6aa1b965f4u);
  EXPECT_EQ(scramble(2 * step), 0x06c45d188009454fu);
}

TEST(ArithmeticTest, TellsPrimes) {
  for (uint64_t n = 2; n < 2000; ++n) {
    bool prime = true;
    for (uint64_t d = 2; d * d <= n; ++d) prime &= n % d != 0;
    EXPECT_EQ(is_prime(n), prime) << n;
  }
  EXPECT_TRUE(is_prime((uint64_t{1} << 61) - 1));
  EXPECT_TRUE(is_prime(18446744073709551557u));  // the largest below 2^64
  EXPECT_FALSE(is_prime(18446744073709551615u));
  EXPECT_FALSE(is_prime(uint64_t{4294967291u} * 4294967279u));  // the two largest below 2^32
  EXPECT_FALSE(is_prime(3215031751));           // a strong pseudoprime to the bases 2, 3, 5, 7
  EXPECT_FALSE(is_prime(3825123056546413051));  // and this one to all up to 31
}

}  // namespace
}  // namespace sundog
