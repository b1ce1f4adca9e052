#include "core/text_guards.h"

#include <gtest/gtest.h>

#include "core/text.h"

namespace sundog::text {
namespace {

constexpr AxisId kI = 0, kJ = 1;
const std::vector<int64_t> kExtents = {10, 6};

IndexExpr i(int64_t factor = 1, int64_t constant = 0) {
  return IndexExpr::of(kI) * factor + IndexExpr::of_constant(constant);
}

using Range = std::optional<std::pair<int64_t, int64_t>>;

TEST(TextGuards, ConditionsOnOneAxisCutItsRange) {
  Guards guards;
  EXPECT_EQ(guards.range(i(), kExtents), Range({0, 9}));
  for (const int64_t factor : {1, 2, 3, -1, -2, -3}) {
    for (int64_t constant = -12; constant <= 12; ++constant) {
      for (const Relation relation : {Relation::kLess, Relation::kLessEqual}) {
        for (const bool holds : {true, false}) {
          const IndexCondition c{i(factor, constant), relation};
          Range expected;
          for (int64_t v = 0; v < kExtents[kI]; ++v) {
            if (sundog::holds(relation, factor * v + constant, int64_t{0}) != holds) continue;
            expected = {expected ? expected->first : v, v};
          }
          guards.push(c, holds);
          EXPECT_EQ(guards.range(i(), kExtents), expected) << factor << " i + " << constant;
          guards.pop();
        }
      }
    }
  }
}

TEST(TextGuards, OfSeveralAllHold) {
  Guards guards;
  guards.push({i(1, -7), Relation::kLess}, true);
  guards.push({i(1, -2), Relation::kLess}, false);
  guards.push({IndexExpr::of(kJ) - IndexExpr::of_constant(3), Relation::kLess}, true);
  EXPECT_EQ(guards.range(i(-1, 6) + IndexExpr::of(kJ) * 10, kExtents), Range({0, 24}));
  guards.pop();
  EXPECT_EQ(guards.range(IndexExpr::of(kJ), kExtents), Range({0, 5}));
}

TEST(TextGuards, WhatIsNoRangeSaysNothing) {
  Guards guards;
  guards.push({i() - IndexExpr::of(kJ), Relation::kLess}, true);
  EXPECT_EQ(guards.range(i(), kExtents), Range());
  guards.pop();
  guards.push({i(1, -4), Relation::kEqual}, true);
  EXPECT_EQ(guards.range(i(), kExtents), Range());
  guards.pop();
  guards.push_unknown();
  EXPECT_EQ(guards.range(i(), kExtents), Range());
  guards.pop();
  guards.push({i(1, -4), Relation::kLess}, true);
  const int hidden = guards.hide(AxisSet::of(kI));  // sum[i](x[i]) where i < 4
  EXPECT_EQ(guards.range(i(), kExtents), Range());
  for (int n = 0; n < hidden; ++n) guards.pop();
  EXPECT_EQ(guards.hide(AxisSet::of(kJ)), 0);
  EXPECT_EQ(guards.range(i(), kExtents), Range({0, 3}));
}

std::string error_of(const std::string& body) {
  const auto p = parse_program("program p(a = 100, b = 28, k = 128) {\n" + body + "\n}", "p.sd");
  return p.ok() ? "" : to_string(p.error());
}

// Seen from the text, with the place and what the guard leaves.
TEST(TextGuards, ReadsThatAGuardLeavesOutOfBoundsAreRefused) {
  const std::string head = "input x: f16[a]\ninput z: f16[b]\n";
  EXPECT_EQ(error_of(head + "output y: f16[k] = select(k < 100, x[k], z[k - 100])"), "");
  EXPECT_EQ(error_of(head + "output y: f16[k] = select(k >= 100, z[k - 100], x[k])"), "");
  const std::string late = error_of(head + "output y: f16[k] = select(k < 101, x[k], z[k - 100])");
  EXPECT_NE(late.find("p.sd:4:38: error: this index of 'x' can be out of bounds: it runs from 0 to "
                      "100, the extent is 100"),
            std::string::npos)
      << late;
  EXPECT_NE(late.find("selects around it"), std::string::npos) << late;
  const std::string early = error_of(head + "output y: f16[k] = select(k < 99, x[k], z[k - 100])");
  EXPECT_NE(early.find("'z' can be out of bounds: it runs from -1 to 27"), std::string::npos)
      << early;
  const std::string inner = error_of(head + R"(output y: f16[k] = select(k < 100, x[k],
    select(k < 120, z[k - 100], z[k - 99])))");
  EXPECT_NE(inner.find("'z' can be out of bounds: it runs from 21 to 28"), std::string::npos)
      << inner;
  // Another k than that of the guard.
  EXPECT_EQ(error_of(head + "output y: f16[k] = select(k < 3, sum[a](x), z[0])"), "");
}

}  // namespace
}  // namespace sundog::text
