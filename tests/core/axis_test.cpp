#include "core/axis.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace sundog {
namespace {

TEST(AxisTest, SetsListTheirMembersInOrder) {
  AxisSet set = AxisSet::of(5) | AxisSet::of(0) | AxisSet::of(63);
  EXPECT_EQ(set.size(), 3);
  std::vector<AxisId> members;
  for (AxisId a : set) members.push_back(a);
  EXPECT_EQ(members, (std::vector<AxisId>{0, 5, 63}));
  set.erase(5);
  EXPECT_FALSE(set.has(5));
  EXPECT_TRUE(set.contains(AxisSet::of(63)));
}

TEST(AxisTest, ExpressionsCancelAndSubstitute) {
  const IndexExpr i = IndexExpr::of(0), j = IndexExpr::of(1);
  EXPECT_EQ((i + j) - i, j);
  EXPECT_EQ(i * 0, IndexExpr{});
  const IndexExpr e = i * 3 + IndexExpr::of_constant(2);
  EXPECT_EQ(substitute(e, {j + IndexExpr::of_constant(1)}), j * 3 + IndexExpr::of_constant(5));
  EXPECT_EQ(evaluate(e, {4, 0}, {}), 14);
  AxisId axis = 9;
  EXPECT_TRUE(j.is_axis(&axis));
  EXPECT_EQ(axis, 1u);
  EXPECT_FALSE(e.is_axis());
}

TEST(AxisTest, RelationsCompare) {
  for (int64_t l : {-1, 0, 1}) {
    for (int64_t r : {-1, 0, 1}) {
      EXPECT_EQ(holds(Relation::kLess, l, r), l < r);
      EXPECT_EQ(holds(Relation::kLessEqual, l, r), l <= r);
      EXPECT_EQ(holds(Relation::kEqual, l, r), l == r);
      EXPECT_EQ(holds(Relation::kNotEqual, l, r), l != r);
    }
  }
  const IndexCondition before_two{IndexExpr::of(0) - IndexExpr::of_constant(2), Relation::kLess};
  EXPECT_TRUE(holds(before_two, {1}, {}));
  EXPECT_FALSE(holds(before_two, {2}, {}));
}

}  // namespace
}  // namespace sundog
