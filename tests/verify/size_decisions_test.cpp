#include "verify/size_decisions.h"

#include <gtest/gtest.h>

#include "core/text.h"
#include "tests/verify/pairs.h"
#include "verify/verdict.h"

namespace sundog::verify {
namespace {

bool decided(const std::string& value) {
  return decided_by_size(parsed(
      "program p(n = 400, k = 8) { input X: f32[n, k] output O: f32[n, k] = " + value + " }"));
}

TEST(SizeDecisions, AreMaximaBranchesAndRoundingsOfIndices) {
  EXPECT_TRUE(decided("X + relu(index(n) - 300)"));
  EXPECT_TRUE(decided("X * min(size(n), 17)"));
  EXPECT_TRUE(decided("X * exp(relu(index(n) - 300))"));
  EXPECT_TRUE(decided("X * abs(index(n) - 5)"));
}

TEST(SizeDecisions, AreNotWhatScalesOrReadsAnInput) {
  EXPECT_FALSE(decided("X * rsqrt(size(k))"));
  EXPECT_FALSE(decided("X + 0.5 * (index(n) - index(k))"));
  EXPECT_FALSE(decided("relu(X + index(n))"));
  EXPECT_FALSE(decided("max(X, 0) / size(n)"));
}

constexpr char kTail[] = R"(program tail(n = 400000, k = 64) {
  input X: f32[n, k]
  input Y: f32[n, k]
  output O: f32[n, k] = X + relu(index(n) - 300000) * Y
})";

constexpr char kHead[] =
    "ugraph tail of tail { kernel k0 grid(n.o) warps(16) { split n = n.o * n.i(256)\n";

// The term is zero at every size that the field test can afford.
TEST(SizeDecisions, ATermThatIsZeroAtSmallSizesIsNotLost) {
  const Program program = parsed(kTail);
  const auto wrong = parse_mugraph(
      std::string(kHead) + "xs[n.i, k] = X : reg f32\n store xs -> O } }", "g.mu", program);
  ASSERT_TRUE(wrong.ok()) << to_string(wrong.error());
  EXPECT_TRUE(decided_by_size(program));
  EXPECT_FALSE(decided_by_size(*wrong));
  const Verdict verdict = verify(program, *wrong);
  EXPECT_NE(verdict.answer, Verdict::kEquivalent) << verdict.reason;
}

// What computes the term is proved for all sizes, and that is enough.
TEST(SizeDecisions, AProofCoversTheDeclaredSizes) {
  const Program program = parsed(kTail);
  const auto right =
      parse_mugraph(std::string(kHead) +
                        "xs[n.i, k] = X : reg f32\n ys[n.i, k] = Y : reg f32\n"
                        "o[n.i, k] = xs + relu(index(n.o * 256 + n.i) - 300000) * ys : reg f32\n"
                        "store o -> O } }",
                    "g.mu", program);
  ASSERT_TRUE(right.ok()) << to_string(right.error());
  EXPECT_TRUE(decided_by_size(*right));
  const Verdict verdict = verify(program, *right);
  EXPECT_EQ(verdict.answer, Verdict::kEquivalent) << verdict.reason;
}

}  // namespace
}  // namespace sundog::verify
