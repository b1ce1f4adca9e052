#include "search/kernel_pricer.h"

#include <gtest/gtest.h>

#include <cmath>

#include "search/superoptimize.h"
#include "tests/search/bank_fixture.h"
#include "tests/search/random_programs.h"

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

// check(fixture, kernel, tables, pricer with these tables, the price that it gave the kernel)
template <class Check>
void for_each_priced(Check check) {
  BankFixture f(load("rms_norm", {{"b", 8}}));
  const std::vector<PlacedKernel> kernels = kernels_of(f);
  ASSERT_FALSE(kernels.empty());
  for (const PlacedKernel& k : kernels) {
    PlacementTables tables;
    KernelPricer pricer(f.bank(), f.table(), f.machine, f.space, tables);
    const Price first = pricer.price(1, k.body, k.shape);
    check(f, k, tables, pricer, first);
  }
}

TEST(KernelPricerTest, WhatNoWantedStructureCanContainIsOutclassed) {
  for_each_priced([](BankFixture&, const PlacedKernel& k, PlacementTables& tables,
                     KernelPricer& pricer, const Price& first) {
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
  });
}

// Sizes with which the kernel does not fit, or that were bad for the kernel that they are of, do
// not show that it is slow.
TEST(KernelPricerTest, WhatDoesNotFitAtAnothersSizesIsNotOutclassedForThat) {
  for_each_priced([](BankFixture& f, const PlacedKernel& k, PlacementTables&, KernelPricer&,
                     const Price& first) {
    const std::vector<int64_t> whole(first.tiles[0].size(), 8192);
    const auto outclassed_at = [&](const std::vector<int64_t>& tiles, double us, double wanted) {
      PlacementTables others;
      PlacementNews news;
      news.good_sizes[first.cut] = {tiles, 0, static_cast<float>(us)};
      others.take(news);
      KernelPricer with(f.bank(), f.table(), f.machine, f.space, others);
      with.want(wanted);
      return with.price(2, k.body, k.shape).outclassed;
    };
    EXPECT_FALSE(outclassed_at(whole, 1, 1e6));  // it fits at smaller ones, and that is good enough
    if (least(first) < 4 * f.machine.launch_us) return;
    EXPECT_TRUE(outclassed_at(whole, 1, least(first) / 2));
    EXPECT_FALSE(outclassed_at(whole, 1000, least(first) / 2));
  });
}

// The rule of kernels that are outclassed saves time and nothing else.
void expect_nothing_hidden(const Program& program, const Device& device) {
  SearchOptions options;
  options.max_states = 1000000;
  SearchSpace open;
  open.prune_outclassed = false;
  const auto with = superoptimize(program, device, {}, options);
  const auto without = superoptimize(program, device, open, options);
  ASSERT_TRUE(with.ok() && without.ok());
  const double best = without->candidates.front().predicted_us;
  EXPECT_LE(with->candidates.front().predicted_us, 1.0005 * best)
      << program.name << " on " << device.name << "\n"
      << without->candidates.front().structure;
}

TEST(KernelPricerSlowTest, OutclassedKernelsHideNothing) {
  // On an A100 16 % were lost: 64 rows of keys fit where the rival had 128.
  expect_nothing_hidden(load("qk_norm", {{"b", 16}}), *find_device("a100"));
  for (const int64_t s : {64, 1024, 4096}) {
    expect_nothing_hidden(load("mm_rowsum", {{"s", s}}), *find_device("h200"));
  }
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    RandomProgramLimits limits;
    limits.most_extent = 6000;
    limits.most_elements = 3e8;
    expect_nothing_hidden(draw_from_catalog(seed, limits), *find_device("h200"));
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
