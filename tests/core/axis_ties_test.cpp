#include "core/axis_ties.h"

#include <gtest/gtest.h>

namespace sundog {
namespace {

using Form = AxisTies::Form;

TEST(AxisTies, ComposeAlongChains) {
  AxisTies ties(4);
  EXPECT_EQ(ties.of(2), (Form{2, 1, 0}));
  ASSERT_TRUE(ties.tie(1, 0, 2, 3));   // e1 = 2 e0 + 3
  ASSERT_TRUE(ties.tie(2, 1, 1, -1));  // e2 = e1 - 1
  ASSERT_TRUE(ties.tie(3, 2, 3));      // e3 = 3 e2
  EXPECT_EQ(ties.of(2), (Form{0, 2, 2}));
  EXPECT_EQ(ties.of(3), (Form{0, 6, 6}));
  EXPECT_EQ(ties.of(3).at(5), 36);
}

TEST(AxisTies, JoinClassesThatHaveMembersAlready) {
  AxisTies ties(4);
  ASSERT_TRUE(ties.tie(1, 0, 1, 4));  // e1 = e0 + 4
  ASSERT_TRUE(ties.tie(3, 2, 1, 7));  // e3 = e2 + 7
  ASSERT_TRUE(ties.tie(1, 3));        // so e0 = e2 + 3
  const int64_t root = 10;
  EXPECT_EQ(ties.of(1).at(root), ties.of(3).at(root));
  EXPECT_EQ(ties.of(0).at(root), ties.of(2).at(root) + 3);
  EXPECT_EQ(ties.of(3).root, 0U) << "the smallest is the root where each could be";
}

TEST(AxisTies, TakeTheFinerOfTwoScalesAsRoot) {
  AxisTies ties(4);
  ASSERT_TRUE(ties.tie(1, 0, 4));  // e1 = 4 e0
  ASSERT_TRUE(ties.tie(3, 2, 2));  // e3 = 2 e2
  ASSERT_TRUE(ties.tie(3, 1));     // so e2 = 2 e0
  EXPECT_EQ(ties.of(2), (Form{0, 2, 0}));
  AxisTies other(4);
  ASSERT_TRUE(other.tie(1, 0, 2));
  ASSERT_TRUE(other.tie(3, 2, 4));
  ASSERT_TRUE(other.tie(3, 1));  // e0 = 2 e2
  EXPECT_EQ(other.of(0), (Form{2, 2, 0}));
}

TEST(AxisTies, RefuseWhatOneFunctionCannotSay) {
  AxisTies ties(3);
  ASSERT_TRUE(ties.tie(1, 0, 1, 2));
  EXPECT_TRUE(ties.tie(1, 0, 1, 2)) << "known already";
  EXPECT_FALSE(ties.tie(1, 0, 1, 3));
  EXPECT_FALSE(ties.tie(1, 0, 2));
  AxisTies parity(4);
  ASSERT_TRUE(parity.tie(1, 0, 2));
  ASSERT_TRUE(parity.tie(3, 2, 2));
  EXPECT_FALSE(parity.tie(3, 1, 1, 1)) << "2 e2 = 2 e0 + 1";
  EXPECT_EQ(parity.of(2).root, 2U) << "nothing was changed";
}

}  // namespace
}  // namespace sundog
