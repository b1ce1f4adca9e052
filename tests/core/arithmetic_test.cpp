#include "core/arithmetic.h"

#include <gtest/gtest.h>

namespace sundog {
namespace {

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

}  // namespace
}  // namespace sundog
