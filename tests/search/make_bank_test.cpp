#include "search/make_bank.h"

#include <gtest/gtest.h>

#include <set>

#include "search/term_text.h"
#include "tests/search/programs.h"

namespace sundog::search {
namespace {

class MakeBankTest : public testing::Test {
 protected:
  MadeBank make(const Program& program, AxisSet parts = {}) {
    return make_bank(program, parts, 1, space_, machine_, [this] { return stop_; });
  }
  SearchSpace space_;
  Machine machine_ = machine_of(*find_device("h200"));
  bool stop_ = false;
};

TEST_F(MakeBankTest, HoldsTheTermsThatTheOutputsReach) {
  const Program program = load("rms_norm", {{"b", 8}});
  const MadeBank made = make(program);
  EXPECT_TRUE(made.usable);
  EXPECT_TRUE(made.notes.empty());
  EXPECT_EQ(made.terms, made.run.table.terms.size());
  EXPECT_EQ(made.run.table.outputs.size(), program.outputs.size());
}

// The normalisation's factor is stored, not the sum that it is made of: nothing else reads that. A
// product that a library makes is stored as it comes.
TEST_F(MakeBankTest, TheLastImageOfATermIsStoredInItsPlace) {
  const auto stored = [&](const Program& program) {
    std::set<std::string> names;
    const MadeBank made = make(program);
    const TermTable& table = made.run.table;
    for (int r = 0; r < table.size(); ++r) {
      if (table.terms[static_cast<size_t>(r)].storable) {
        names.insert(term_name(*made.run.bank, table, r));
      }
    }
    return names;
  };
  const auto norm = stored(parse(R"(program norm(n = 64, h = 512, d = 256) {
  input x: f16[n, h]
  input w: f16[h, d]
  q[n] = sum[h](x * x)
  r[n] = rsqrt(q / size(h) + 1e-6)
  y[n, d] = sum[h](x * r * w)
  output y: f16[n, d]
})"));
  EXPECT_TRUE(norm.contains("r"));
  EXPECT_FALSE(norm.contains("q"));
  const auto product = stored(parse(R"(program relu(n = 64, h = 512, d = 256) {
  input x: f16[n, h]
  input w: f16[h, d]
  p[n, d] = sum[h](x * w)
  t[n, d] = max(p, 0)
  y[n] = sum[d](t)
  output y: f32[n]
})"));
  EXPECT_TRUE(product.contains("p"));
}

TEST_F(MakeBankTest, LongReducedAxesMayBeCut) {
  const Program program = load("gqa_safe", {{"b", 8}});
  const MadeBank made = make(program);
  for (AxisSet set : part_sets(*made.run.bank, space_, machine_)) {
    EXPECT_EQ(set.size(), 1);
    for (AxisId a : set) {
      EXPECT_TRUE(made.run.bank->base(a).reduced);
      EXPECT_GT(program.axes[a].extent, space_.shortest_loop);
    }
    EXPECT_TRUE(make(program, set).usable);
  }
  const size_t single = part_sets(*made.run.bank, space_, machine_).size();
  space_.most_split_axes = 0;
  EXPECT_TRUE(part_sets(*made.run.bank, space_, machine_).empty());
  space_.most_split_axes = 2;
  EXPECT_EQ(part_sets(*made.run.bank, space_, machine_).size(), single + single * (single - 1) / 2);
}

TEST_F(MakeBankTest, WhatIsCutShortIsSaid) {
  const Program program = load("gqa_safe", {{"b", 8}});
  stop_ = true;
  const MadeBank made = make(program);
  ASSERT_FALSE(made.notes.empty());
  EXPECT_NE(made.notes[0].find("before it was complete"), std::string::npos);
}

}  // namespace
}  // namespace sundog::search
