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
    return static_cast<float>(completion.least_us(terms, quantum));
  }

  RankSet outputs() const {
    RankSet set;
    for (int o : f_.table().outputs) set.insert(o);
    return set;
  }

  BankFixture f_{load("rms_norm", {{"b", 8}})};
  Limits unlimited_{{}, 0, 0, nullptr};
};

TEST_F(CompletionTest, OfTheOutputsIsTheBestStructureOfOneKernel) {
  const float least = least_us(outputs(), 0, unlimited_);
  const PlacementOutcome outcome = f_.place(1);
  EXPECT_FLOAT_EQ(least, static_cast<float>(outcome.found.best_us()));
  // Placement finds its kernels priced.
  EXPECT_EQ(outcome.counts.kernels_priced, 0u);
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
