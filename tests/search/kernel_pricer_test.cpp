#include "search/kernel_pricer.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/search/bank_fixture.h"

namespace sundog::search {
namespace {

// The kernels of the best structures of at most two kernels, all of them priced.
std::vector<PlacedKernel> kernels_of(BankFixture& f) {
  std::vector<PlacedKernel> kernels;
  for (const auto& entry : f.place(2).found.sorted()) {
    for (const PlacedKernel& k : entry.structure.kernels) kernels.push_back(k);
  }
  return kernels;
}

float least(const Price& p) { return *std::min_element(p.us.begin(), p.us.end()); }

TEST(KernelPricerTest, WhatNoWantedStructureCanContainIsOutclassed) {
  BankFixture f(load("rms_norm", {{"b", 8}}));
  const std::vector<PlacedKernel> kernels = kernels_of(f);
  ASSERT_FALSE(kernels.empty());
  for (const PlacedKernel& k : kernels) {
    PlacementTables tables;
    KernelPricer pricer(f.bank(), f.table(), f.machine, f.space, tables);
    const Price first = pricer.price(1, k.body, k.shape);
    EXPECT_FALSE(first.outclassed);  // nothing is known to compare it with
    PlacementNews news;
    news.good_sizes[first.cut] = {first.tiles[0], 0, first.us[0]};
    tables.take(news);
    pricer.want(100 * least(first));
    EXPECT_FALSE(pricer.price(2, k.body, k.shape).outclassed);
    pricer.want(least(first) / 2);
    EXPECT_TRUE(pricer.price(3, k.body, k.shape).outclassed);
    EXPECT_EQ(pricer.counts().priced, 3u);
    EXPECT_EQ(pricer.counts().outclassed, 1u);
  }
}

TEST(KernelPricerTest, LaunchesThatAStructureHasBesidesAreTakenOffWhatIsWanted) {
  BankFixture f(load("rms_norm", {{"b", 8}}));
  KernelPricer pricer(f.bank(), f.table(), f.machine, f.space, f.tables());
  pricer.want(100);
  int alone = 0, others = 0;
  for (const auto& entry : f.place(2).found.sorted()) {
    const size_t n = entry.structure.kernels.size();
    for (const PlacedKernel& k : entry.structure.kernels) {
      const double most = pricer.most_us_of(k.body);
      const double one = f.machine.launch_us + f.machine.fill_us - f.machine.overlap_us;
      EXPECT_DOUBLE_EQ(most, n == 1 ? 100 : 100 - one);
      ++(n == 1 ? alone : others);
    }
  }
  EXPECT_GT(alone, 0);
  EXPECT_GT(others, 0);
}

TEST(KernelPricerTest, BodiesHaveHashesOfTheirOwn) {
  const KernelBody a{{{3, 0}, {1, -1}}, {3}};
  KernelBody b = a, c = a;
  b.items[0].node = 1;
  c.outputs = {3, 1};
  EXPECT_EQ(hash_of(a), hash_of(KernelBody(a)));
  EXPECT_NE(hash_of(a), hash_of(b));
  EXPECT_NE(hash_of(a), hash_of(c));
}

}  // namespace
}  // namespace sundog::search
