#include "search/explain.h"

#include <gtest/gtest.h>

#include "tests/search/programs.h"

namespace sundog::search {
namespace {

class ExplainTest : public testing::Test {
 protected:
  Explanation ask(const StructureQuestion& question) {
    auto e = explain(program_, *find_device("h200"), {}, options_, question);
    EXPECT_TRUE(e.ok());
    return e.ok() ? std::move(*e) : Explanation{};
  }
  Program program_ = parse(R"(program chain(n = 16, h = 512, d = 256, e = 64) {
  input x: f16[n, h]
  input w: f16[h, d]
  input v: f16[d, e]
  a[n, d] = sum[h](x * w)
  y[n, e] = sum[d](a * v)
  output y: f16[n, e]
})");
  SearchOptions options_;
};

TEST_F(ExplainTest, WhatIsNotStoredInThePickHasItsPrice) {
  StructureQuestion stored, fused;
  stored.stored = {"a"};
  fused.nothing_else = true;
  const Explanation two = ask(stored), one = ask(fused);
  EXPECT_TRUE(two.exhausted && one.exhausted);
  ASSERT_FALSE(two.best.empty());
  ASSERT_FALSE(one.best.empty());
  EXPECT_EQ(two.best.find("1 kernel,"), std::string::npos) << two.best;
  EXPECT_NE(one.best.find("1 kernel,"), std::string::npos) << one.best;
  EXPECT_EQ(two.pick, one.pick);
  EXPECT_GT(two.best_us, 0);
  EXPECT_GT(one.best_us, 0);
}

TEST_F(ExplainTest, TheRuleThatLeftItIsNamed) {
  StructureQuestion stored;
  stored.stored = {"a"};
  stored.nothing_else = true;
  const Explanation e = ask(stored);
  uint64_t all = e.structures;
  for (const auto& cut : e.cuts) all += cut.times;
  EXPECT_GT(all, 0u) << "something became of such structures";
  const auto& bound = e.cuts[static_cast<size_t>(PruneRule::kBound)];
  if (bound.times > 0) {
    EXPECT_GE(bound.least_us, 0.9 * e.pick_us);
  }
}

TEST_F(ExplainTest, ATermThatIsComputedAnyhowCostsNothing) {
  program_ = load("rms_norm", {{"b", 8}});
  StructureQuestion computed;
  computed.computed = "O";
  const Explanation e = ask(computed);
  ASSERT_FALSE(e.best.empty());
  EXPECT_LE(e.best_us, 1.02 * e.pick_us);
}

TEST_F(ExplainTest, WhatNoKernelMayStoreIsSaid) {
  program_ = parse(R"(program bent(n = 64, h = 512) {
  input x: f16[n, h]
  a[n, h] = tanh(x)
  y[n] = sum[h](a)
  output y: f32[n]
})");
  StructureQuestion stored;
  stored.stored = {"a"};  // no reduction is below it
  const Explanation e = ask(stored);
  EXPECT_EQ(e.never_stored, std::vector<std::string>{"a"});
  EXPECT_TRUE(e.best.empty());
}

TEST_F(ExplainTest, UnknownNamesAreErrors) {
  StructureQuestion question;
  question.stored = {"a", "nobody"};
  const auto e = explain(program_, *find_device("h200"), {}, options_, question);
  ASSERT_FALSE(e.ok());
  EXPECT_NE(e.error().message.find("nobody"), std::string::npos);
  EXPECT_NE(e.error().hint.find("a,"), std::string::npos);
}

}  // namespace
}  // namespace sundog::search
