#include "search/completion.h"

#include <gtest/gtest.h>

#include "tests/search/bank_fixture.h"

namespace sundog::search {
namespace {

class CompletionTest : public testing::Test {
 protected:
  float least_us(const RankSet& terms, double wanted_us, Limits& limits) {
    KernelPricer pricer(f_.bank(), f_.table(), f_.machine, f_.space, f_.tables());
    if (wanted_us > 0) pricer.want(wanted_us);
    Quantum quantum(1 << 20, 1 << 24, limits);
    Completion completion(f_.bank(), f_.table(), f_.machine, f_.space, f_.tables(), pricer);
    return static_cast<float>(completion.least_us(terms, quantum, news_));
  }

  RankSet outputs() const {
    RankSet set;
    for (int o : f_.table().outputs) set.insert(o);
    return set;
  }

  BankFixture f_{load("rms_norm", {{"b", 8}})};
  Limits unlimited_{{}, 0, 0, nullptr};
  PlacementNews news_;
};

TEST_F(CompletionTest, OfTheOutputsIsTheBestStructureOfOneKernel) {
  const float least = least_us(outputs(), 0, unlimited_);
  const PlacementOutcome outcome = f_.place(1);
  EXPECT_FLOAT_EQ(least, static_cast<float>(outcome.found.best_us()));
}

// What one task has worked out is paid for by each that uses it in the same round, and all of them
// learn from it: who came first must not matter.
TEST_F(CompletionTest, EveryTaskOfARoundPaysAndLearnsTheSame) {
  const auto ask = [&](PlacementNews& news) {
    KernelPricer pricer(f_.bank(), f_.table(), f_.machine, f_.space, f_.tables());
    Quantum quantum(1 << 20, kStatesOfPrice, unlimited_);
    Completion completion(f_.bank(), f_.table(), f_.machine, f_.space, f_.tables(), pricer);
    completion.least_us(outputs(), quantum, news);
    return std::make_pair(quantum.reached(), completion.counts().priced);
  };
  PlacementNews first, second, later;
  const auto [first_paid, first_priced] = ask(first);
  const auto [second_paid, second_priced] = ask(second);
  EXPECT_TRUE(first_paid && second_paid);
  EXPECT_GT(first_priced, 0u);
  EXPECT_EQ(second_priced, 0u);
  EXPECT_FALSE(first.good_sizes.empty());
  EXPECT_EQ(first.good_sizes, second.good_sizes);
  f_.tables().end_round();
  EXPECT_FALSE(ask(later).first);
  EXPECT_TRUE(later.good_sizes.empty());
}

TEST_F(CompletionTest, OfEachStorableTermIsNoMoreThanItsKernelInAStructureTakes) {
  const PlacementOutcome outcome = f_.place(2);
  int compared = 0;
  for (const auto& entry : outcome.found.sorted()) {
    if (entry.structure.kernels.size() != 2) continue;
    const PlacedKernel& first = entry.structure.kernels.front();
    RankSet stored;
    for (int o : first.body.outputs) stored.insert(o);
    EXPECT_LE(least_us(stored, 0, unlimited_), first.us[entry.structure.choice]);
    ++compared;
  }
  EXPECT_GT(compared, 0);
}

TEST_F(CompletionTest, NoMoreIsLookedForThanIsWanted) {
  const float least = least_us(outputs(), 0, unlimited_);
  f_.tables().clear();
  const uint64_t before = f_.tables().prices().size();
  EXPECT_FLOAT_EQ(least_us(outputs(), least / 4, unlimited_), least / 4);
  EXPECT_EQ(f_.tables().prices().size(), before);
}

// What is cut short is a lower bound, and is not remembered.
TEST_F(CompletionTest, WhereTheSearchEndsNothingIsKept) {
  Limits limits({}, 0, 0, nullptr);
  limits.end(StopReason::kInterrupted);
  const float cut = least_us(outputs(), 0, limits);
  EXPECT_EQ(f_.tables().completions().size(), 0u);
  const float least = least_us(outputs(), 0, unlimited_);
  EXPECT_EQ(f_.tables().completions().size(), 1u);
  EXPECT_LT(cut, least);
}

}  // namespace
}  // namespace sundog::search
