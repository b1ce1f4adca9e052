#include "verify/smt.h"

#include <gtest/gtest.h>

namespace sundog::verify {
namespace {

TEST(Smt, AnswersInOrder) {
  const std::vector<SmtAnswer> answers =
      ask({"(declare-const x Int)(assert (< x 0))(assert (> x 0))",
           "(declare-const x Int)(assert (= (* 2 x) 6))", "(assert"});
  ASSERT_EQ(answers.size(), 3u);
  EXPECT_EQ(answers[0].kind, SmtAnswer::kShown);
  EXPECT_EQ(answers[1].kind, SmtAnswer::kRefuted);
  EXPECT_EQ(answers[1].detail, "x = 3");
  EXPECT_EQ(answers[2].kind, SmtAnswer::kUnknown);
  EXPECT_FALSE(answers[2].detail.empty());
}

// A sum of three cubes: nothing that a solver decides.
constexpr const char* kEndless =
    "(declare-const x Int)(declare-const y Int)(declare-const z Int)"
    "(assert (= (+ (* x x x) (* y y y) (* z z z)) 114))";

TEST(Smt, ALimitEndsWhatDoesNotEnd) {
  const std::vector<SmtAnswer> answers = ask(
      {kEndless, "(declare-const x Int)(assert (distinct x x))"}, {.query_s = 0.3, .total_s = 10});
  EXPECT_EQ(answers[0].kind, SmtAnswer::kUnknown);
  EXPECT_EQ(answers[1].kind, SmtAnswer::kShown);
}

TEST(Smt, AChildWithoutMemoryLeavesUnknown) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "under the sanitizer no memory is limited";
#endif
  const std::vector<SmtAnswer> answers =
      ask({"(declare-const x Int)(assert (distinct x x))"}, {.memory_bytes = 1 << 20});
  EXPECT_EQ(answers[0].kind, SmtAnswer::kUnknown);
}

}  // namespace
}  // namespace sundog::verify
