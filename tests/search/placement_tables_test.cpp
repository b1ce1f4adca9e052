#include "search/placement_tables.h"

#include <gtest/gtest.h>

#include <limits>
#include <thread>

namespace sundog::search {
namespace {

TEST(SharedMapTest, TheFirstOfTwoInsertsStays) {
  SharedMap<int> map;
  EXPECT_EQ(map.find(7), nullptr);
  const auto [first, fresh] = map.insert(7, 1);
  EXPECT_TRUE(fresh);
  const auto [second, again] = map.insert(7, 2);
  EXPECT_FALSE(again);
  EXPECT_EQ(first, second);
  EXPECT_EQ(*map.find(7), 1);
  EXPECT_EQ(map.size(), 1u);
  map.clear();
  EXPECT_EQ(map.size(), 0u);
}

TEST(SharedMapTest, ThreadsFillItTogether) {
  SharedMap<uint64_t> map;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (uint64_t i = 0; i < 5000; ++i) map.insert(i, i * i);
    });
  }
  for (auto& t : threads) t.join();
  EXPECT_EQ(map.size(), 5000u);
  uint64_t entries = 0;
  map.for_each([&](uint64_t key, uint64_t value) {
    EXPECT_EQ(value, key * key);
    ++entries;
  });
  EXPECT_EQ(entries, 5000u);
}

Effort effort(double alu, uint32_t items, uint64_t owner) { return {{0, alu, 0}, items, owner}; }

TEST(PlacementTablesTest, OfKernelsThatAreNoWorseThanEachOtherOneIsKnown) {
  PlacementTables tables;
  PlacementNews a, b;
  a.efforts[1] = {effort(5, 3, 100)};
  b.efforts[1] = {effort(5, 3, 200), effort(4, 9, 300)};
  tables.take(a);
  tables.take(b);
  const auto& known = tables.known().efforts.at(1);
  ASSERT_EQ(known.size(), 2u);
  EXPECT_EQ(known[0].owner, 100u);
  EXPECT_EQ(known[1].owner, 300u);
}

TEST(PlacementTablesTest, CostsThatAreHigherEverywhereAreLeftOut) {
  PlacementTables tables;
  PlacementNews a, b;
  a.reached[9] = {{10, 20}};
  b.reached[9] = {{11, 21}, {9, 22}, {10, 20}};
  tables.take(a);
  tables.take(b);
  EXPECT_EQ(tables.known().reached.at(9).size(), 2u);
}

TEST(PlacementTablesTest, TheBestGoodSizesStayAndOfEqualOnesTheFirst) {
  PlacementTables tables;
  PlacementNews a, b, c;
  a.good_sizes[3] = {{16, 64}, 1, 5};
  b.good_sizes[3] = {{32, 32}, 2, 5};
  c.good_sizes[3] = {{64, 16}, 0, 4};
  tables.take(a);
  tables.take(b);
  EXPECT_EQ(tables.known().good_sizes.at(3), (GoodSizes{{16, 64}, 1, 5}));
  tables.take(c);
  EXPECT_EQ(tables.known().good_sizes.at(3), (GoodSizes{{64, 16}, 0, 4}));
}

TEST(PlacementTablesTest, ClearingGivesTheMemoryBack) {
  PlacementTables tables;
  EXPECT_EQ(tables.bytes(), 0u);
  tables.prices().insert(1, Price{{1.0F}, {{8, 8}}, 2, 0});
  PlacementNews news;
  news.efforts[1] = {effort(5, 3, 100)};
  tables.take(news);
  EXPECT_GT(tables.bytes(), sizeof(Price));
  tables.clear();
  EXPECT_EQ(tables.bytes(), 0u);
}

TEST(PriceTest, FitsIfAnyChoiceDoes) {
  const float infinite = std::numeric_limits<float>::infinity();
  EXPECT_FALSE((Price{{infinite}, {{}}, 0, 0}).fits());
  EXPECT_TRUE((Price{{infinite, 2.0F}, {{}, {1}}, 0, 0}).fits());
}

}  // namespace
}  // namespace sundog::search
