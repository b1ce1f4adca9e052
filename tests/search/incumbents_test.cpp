#include "search/incumbents.h"

#include <gtest/gtest.h>

namespace sundog::search {
namespace {

Structure structure(double us, const std::string& kind, const std::string& key) {
  Structure s;
  s.us = us;
  s.kind = kind;
  s.key = key;
  return s;
}

std::vector<std::string> keys(const Incumbents& incumbents) {
  std::vector<std::string> out;
  for (const auto& e : incumbents.sorted()) out.push_back(e.structure.key);
  return out;
}

TEST(IncumbentsTest, KeepsTheBestOfEachKind) {
  Incumbents i(2, 100);
  EXPECT_EQ(i.best_us(), 100);
  EXPECT_TRUE(i.offer(0, structure(50, "a", "1")));
  EXPECT_FALSE(i.offer(0, structure(60, "a", "2")));
  EXPECT_FALSE(i.offer(0, structure(55, "a", "3")));
  EXPECT_FALSE(i.offer(1, structure(200, "b", "4")));
  EXPECT_TRUE(i.offer(1, structure(40, "b", "5")));
  EXPECT_EQ(i.best_us(), 40);
  EXPECT_EQ(keys(i), (std::vector<std::string>{"5", "1", "3", "4"}));
}

TEST(IncumbentsTest, OfEqualsTheFirstKeyStays) {
  Incumbents i(3);
  i.offer(0, structure(50, "a", "y"));
  i.offer(0, structure(50, "a", "x"));
  i.offer(0, structure(50, "a", "z"));
  EXPECT_EQ(keys(i), std::vector<std::string>{"x"});
}

TEST(IncumbentsTest, TakesInWhatAnotherHolds) {
  Incumbents all(2, 45), task(2, 45);
  all.offer(0, structure(50, "a", "1"));
  task.offer(2, structure(44, "a", "2"));
  task.offer(2, structure(48, "c", "3"));
  EXPECT_TRUE(all.offer_all(task));
  EXPECT_FALSE(all.offer_all(task));
  EXPECT_EQ(keys(all), (std::vector<std::string>{"2", "3", "1"}));
  EXPECT_EQ(all.sorted()[0].bank, 2);
}

}  // namespace
}  // namespace sundog::search
