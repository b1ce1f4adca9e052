#include "core/join.h"

#include <gtest/gtest.h>

namespace sundog {
namespace {

TEST(JoinTest, PutsTheSeparatorBetween) {
  EXPECT_EQ(join({}), "");
  EXPECT_EQ(join({"b"}), "b");
  EXPECT_EQ(join({"b", "", "h"}), "b, , h");
  EXPECT_EQ(join({"x", "y"}, " * "), "x * y");
}

}  // namespace
}  // namespace sundog
