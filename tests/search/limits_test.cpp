#include "search/limits.h"

#include <gtest/gtest.h>

#include <atomic>
#include <limits>

namespace sundog::search {
namespace {

TEST(LimitsTest, StatesAreCounted) {
  Limits limits({}, 0, 5, nullptr);
  limits.add_states(4);
  EXPECT_FALSE(limits.reached());
  EXPECT_EQ(limits.states_left(), 1u);
  limits.add_states(3);
  EXPECT_TRUE(limits.reached());
  EXPECT_EQ(limits.states(), 7u);
  EXPECT_EQ(limits.states_left(), 0u);
  EXPECT_EQ(limits.reason(), "states");
}

TEST(LimitsTest, TheClockEndsIt) {
  double now = 10;
  Limits limits([&now] { return now; }, 2, 0, nullptr);
  EXPECT_FALSE(limits.check());
  now = 11;
  EXPECT_FALSE(limits.check());
  EXPECT_DOUBLE_EQ(limits.seconds(), 1);
  now = 12.5;
  EXPECT_TRUE(limits.check());
  EXPECT_EQ(limits.reason(), "budget");
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
  limits.add_states(uint64_t{1} << 40);
  EXPECT_FALSE(limits.check());
  EXPECT_EQ(limits.states_left(), std::numeric_limits<uint64_t>::max());
  EXPECT_EQ(limits.reason(), "exhausted");
}

TEST(LimitsTest, TheFirstReasonStays) {
  Limits limits({}, 0, 1, nullptr);
  limits.end(StopReason::kMemory);
  limits.add_states(1);
  EXPECT_EQ(limits.reason(), "memory");
}

TEST(QuantumTest, StatesAndWorkUseItUp) {
  Limits limits({}, 0, 0, nullptr);
  Quantum few(3, 100, limits);
  for (int i = 0; i < 3; ++i) {
    EXPECT_FALSE(few.reached());
    few.spend();
  }
  EXPECT_TRUE(few.reached());
  EXPECT_FALSE(few.cut());
  EXPECT_EQ(few.used(), 3u);

  Quantum busy(1000, 100, limits);
  busy.spend_work(64);
  EXPECT_FALSE(busy.reached());
  busy.spend_work(64);
  EXPECT_TRUE(busy.reached());
  EXPECT_EQ(busy.used(), 0u);
}

TEST(QuantumTest, TheEndOfTheSearchCutsIt) {
  std::atomic<bool> stop{false};
  Limits limits({}, 0, 0, &stop);
  Quantum quantum(1 << 20, 1 << 20, limits);
  quantum.check();
  EXPECT_FALSE(quantum.reached());
  stop = true;
  for (int i = 0; i < 1000 && !quantum.reached(); ++i) quantum.spend();
  EXPECT_TRUE(quantum.cut());
  EXPECT_LT(quantum.used(), 1000u);
}

}  // namespace
}  // namespace sundog::search
