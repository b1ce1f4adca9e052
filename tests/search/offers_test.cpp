#include "search/offers.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "search/make_bank.h"
#include "tests/search/programs.h"

namespace sundog::search {
namespace {

class OffersTest : public testing::Test {
 protected:
  // The structures kept by a whole search of one bank.
  void search(const char* name) {
    program_ = load(name, {{"b", 8}});
    MadeBank made = make_bank(program_, {}, 1, space_, machine_, [] { return false; });
    ASSERT_TRUE(made.usable);
    banks_.push_back(std::make_unique<BankRun>(std::move(made.run)));
    Rounds rounds(banks_, machine_, space_, 0, limits_, workers_);
    rounds.begin(1e30);
    while (rounds.run()) rounds.merge();
    kept_ = rounds.state().incumbents.sorted();
  }

  Offers offers(std::vector<Candidate> finished = {}) {
    return Offers(kept_, std::move(finished), banks_, space_, machine_, device_, workers_, limits_);
  }

  Program program_;
  Device device_ = *find_device("h200");
  Machine machine_ = machine_of(device_);
  SearchSpace space_;
  Limits limits_{{}, 0, 0, nullptr};
  Workers workers_{1};
  std::vector<std::unique_ptr<BankRun>> banks_;
  std::vector<Incumbents::Entry> kept_;
};

TEST_F(OffersTest, AllCandidatesComeInOrderOfTheirTime) {
  for (const char* name : {"rms_norm", "gqa_safe"}) {
    banks_.clear();
    search(name);
    std::vector<Candidate> all;
    for (const Incumbents::Entry& e : kept_) {
      for (Candidate& c : candidates_of(e.structure, *banks_[0], space_, machine_, device_)) {
        all.push_back(std::move(c));
      }
    }
    std::stable_sort(all.begin(), all.end(), [](const Candidate& a, const Candidate& b) {
      return a.predicted_us < b.predicted_us;
    });
    Offers some = offers();
    EXPECT_EQ(some.left(), kept_.size());
    for (const Candidate& expected : all) {
      const auto next = some.next();
      ASSERT_TRUE(next.has_value()) << name;
      EXPECT_TRUE(next->graph == expected.graph) << name;
    }
    EXPECT_FALSE(some.next().has_value());
    EXPECT_EQ(some.left(), 0u);
  }
}

TEST_F(OffersTest, StructuresFarBehindAreNotSizedUntilTheyAreAskedFor) {
  search("rms_norm");
  ASSERT_GE(kept_.size(), 2u);
  kept_[1].structure.us = 100 * kept_[0].structure.us;
  kept_.resize(2);
  Offers two = offers();
  const auto first = two.next();
  ASSERT_TRUE(first.has_value());
  uint64_t of_first = 1;
  while (two.left() > 1) {
    ASSERT_TRUE(two.next().has_value());
    ++of_first;
  }
  kept_.resize(1);
  Offers one = offers();
  EXPECT_TRUE(one.next()->graph == first->graph);
  EXPECT_EQ(one.left() + 1, of_first);
}

TEST_F(OffersTest, WhatIsFinishedHasItsPlaceAmongThem) {
  search("rms_norm");
  Candidate fast, slow;
  fast.kind = "fast";
  fast.predicted_us = 0;
  slow.kind = "slow";
  slow.predicted_us = 1e6;
  Offers all = offers({slow, fast});
  EXPECT_EQ(all.next()->kind, "fast");
  std::string last;
  while (auto c = all.next()) last = c->kind;
  EXPECT_EQ(last, "slow");
}

}  // namespace
}  // namespace sundog::search
