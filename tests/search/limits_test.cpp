#include "search/limits.h"

#include <gtest/gtest.h>

#include <atomic>

namespace sundog::search {
namespace {

TEST(LimitsTest, StatesAreCounted) {
  Limits limits({}, 0, 5, nullptr);
  int spent = 0;
  while (!limits.spend()) ++spent;
  EXPECT_GE(spent, 4);
  EXPECT_LE(limits.states(), 6u);
  EXPECT_EQ(limits.reason(), "states");
}

TEST(LimitsTest, TheClockEndsIt) {
  double now = 10;
  Limits limits([&now] { return now; }, 2, 0, nullptr);
  EXPECT_FALSE(limits.check());
  now = 11;
  limits.note_best();
  EXPECT_FALSE(limits.check());
  now = 12.5;
  EXPECT_TRUE(limits.check());
  EXPECT_EQ(limits.reason(), "budget");
  EXPECT_DOUBLE_EQ(limits.time_to_best(), 1);
}

TEST(LimitsTest, AWordFromOutsideEndsIt) {
  std::atomic<bool> stop{false};
  Limits limits({}, 0, 0, &stop);
  EXPECT_FALSE(limits.check());
  stop = true;
  EXPECT_TRUE(limits.check());
  EXPECT_EQ(limits.reason(), "interrupted");
}

TEST(LimitsTest, WithoutLimitsNothingEndsIt) {
  Limits limits({}, 0, 0, nullptr);
  for (int i = 0; i < 100000; ++i) ASSERT_FALSE(limits.spend());
  EXPECT_FALSE(limits.reached());
}

}  // namespace
}  // namespace sundog::search
