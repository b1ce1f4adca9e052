#include "core/text_suggest.h"

#include <gtest/gtest.h>

namespace sundog::text {
namespace {

TEST(TextSuggest, FindsTheNearestWord) {
  EXPECT_EQ(nearest("sigmiod", {"silu", "sigmoid", "size"}), "sigmoid");  // neighbours swapped
  EXPECT_EQ(nearest("weigth", {"weight", "height"}), "weight");
  EXPECT_EQ(nearest("x", {"X"}), "X");
  EXPECT_EQ(nearest("hh", {"d", "h"}), "h");
  EXPECT_EQ(nearest("abc", {"abd", "abe"}), "abd");  // the first of equals
}

TEST(TextSuggest, GuessesNothingFarOff) {
  EXPECT_EQ(nearest("x", {"y", "z"}), std::nullopt);
  EXPECT_EQ(nearest("matrix", {"vector", "max"}), std::nullopt);
  EXPECT_EQ(nearest("a", {}), std::nullopt);
}

TEST(TextSuggest, ListsWhatIsKnownWhenItCannotGuess) {
  EXPECT_EQ(suggestion("weigth", {"weight"}), "did you mean 'weight'?");
  EXPECT_EQ(suggestion("q", {"alpha", "beta"}), "known here: alpha, beta");
  EXPECT_EQ(suggestion("q", {}), "");
  const std::string many = suggestion("qqqq", std::vector<std::string>(30, "name"));
  EXPECT_TRUE(many.ends_with(", ...")) << many;
}

}  // namespace
}  // namespace sundog::text
