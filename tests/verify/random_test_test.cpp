#include "verify/random_test.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <set>

#include "core/text.h"
#include "tests/verify/pairs.h"
#include "verify/growth.h"

namespace sundog::verify {
namespace {

FieldResult test(const std::string& program, const std::string& candidate,
                 const FieldOptions& options = {}) {
  const Program p = parsed(program), q = parsed(candidate);
  const auto cases = small_cases(p, q);
  EXPECT_TRUE(cases.ok());
  return field_test(*cases, options);
}

const std::string kHead = "program p(n = 5, k = 7) {\n input x: f32[n, k]\n input w: f32[k]\n";

TEST(RandomTest, RunsRoundsUntilTheBoundIsAsAsked) {
  const std::string text = kHead + "output y: f32[n] = sum[k](x * w) }";
  FieldOptions options;
  const FieldResult two = test(text, text, options);
  EXPECT_EQ(two.answer, Sameness::kSame);
  EXPECT_LE(two.evidence.error_bound_log2, -60);
  EXPECT_EQ(two.evidence.primes.size(), static_cast<size_t>(two.evidence.rounds));
  EXPECT_EQ(std::set<uint64_t>(two.evidence.primes.begin(), two.evidence.primes.end()).size(),
            two.evidence.primes.size());
  options.error_log2 = -200;
  const FieldResult more = test(text, text, options);
  EXPECT_GT(more.evidence.rounds, two.evidence.rounds);
  EXPECT_LE(more.evidence.error_bound_log2, -200);
  options.max_rounds = 2;
  const FieldResult few = test(text, text, options);
  EXPECT_EQ(few.answer, Sameness::kUndecided);
  EXPECT_FALSE(few.reason.empty());
}

// A denominator of 600 exponentials takes many seconds; the round is left when its time is up.
TEST(RandomTest, ARoundThatGetsNowhereIsLeft) {
  const Program program = parsed(R"(program p(k = 600) {
    input x: f32[k]
    output y: f32[k] = softmax[k](x) })");
  const SmallCase large{program, program, sizes_text(program)};
  FieldOptions options;
  options.time_limit_s = 60;
  options.round_limit_s = 0.2;
  const auto start = std::chrono::steady_clock::now();
  const FieldResult result = field_test(std::span(&large, 1), options);
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
  EXPECT_EQ(result.answer, Sameness::kUndecided);
  EXPECT_NE(result.reason.find("time limit"), std::string::npos) << result.reason;
  EXPECT_LT(taken.count(), 5);
}

// Programs that agree when inputs are consecutive integers (x[n, k] = 7 n + k is affine) and differ
// else.
TEST(RandomTest, IsNotFooledByWhatConsecutiveIntegersHide) {
  const std::string a = kHead + "output y: f32[n] = sum[k](softmax[k](x) * w) }";
  const std::string b = kHead + "output y: f32[n] = sum[k](softmax[k](w) * w) }";
  const FieldResult r = test(a, b);
  EXPECT_EQ(r.answer, Sameness::kDifferent);
  EXPECT_EQ(r.evidence.rounds, 1);
}

// `line` with the line before it for each @, `length` times; the one at `other_at` is another.
std::string chain(int length, const std::string& line, int other_at = -1,
                  const std::string& other = "") {
  std::string text = "program p(n = 5) { input x: f32[n] y[n] = x ";
  std::string before = "y";
  for (int i = 0; i < length; ++i) {
    std::string next = i == other_at ? other : line;
    for (size_t at; (at = next.find('@')) != std::string::npos;) next.replace(at, 1, before);
    before = "y" + std::to_string(i);
    text += before + "[n] = " + next + " ";
  }
  return text + "output z: f32[n] = " + before + " }";
}

// The degree doubles with each line; 60 lines alone exceed every prime of the test.
TEST(RandomTest, LongChainsOfProductsHaveABound) {
  const std::string line = "x / (1 + @ * @)";
  const std::string text = chain(500, line);
  const FieldResult same = test(text, chain(500, "x * (1 / (@ * @ + 1))", 499, line));
  EXPECT_EQ(same.answer, Sameness::kSame) << same.reason;
  EXPECT_LE(same.evidence.error_bound_log2, -60);
  EXPECT_EQ(test(text, chain(500, line, 499, "x / (1 + 2 * @ * @)")).answer, Sameness::kDifferent);
}

// Degrees, or the sizes of coefficients, double or triple with each line, and every line has
// arguments of roots and logarithms: with all degrees below 2^32 there would be no bound at all.
TEST(RandomTest, LongChainsOfFunctionsHaveABound) {
  const struct {
    std::string line, same, other;
  } kChains[] = {
      {"log(1 + exp(@))", "log(exp(@) + 1)", "log(1 + 2 * exp(@))"},
      {"rsqrt(@ * @ + 1)", "1 / sqrt(1 + @ ^ 2)", "rsqrt(@ * @ + 2)"},
      {"@ / (1 + @ * @)", "@ * (1 / (@ * @ + 1))", "@ / (2 + @ * @)"},
  };
  for (const auto& [line, same, other] : kChains) {
    const FieldResult equal = test(chain(500, line), chain(500, same));
    EXPECT_EQ(equal.answer, Sameness::kSame) << line << ": " << equal.reason;
    EXPECT_LE(equal.evidence.error_bound_log2, -60) << line;
    EXPECT_LE(equal.evidence.rounds, 16) << line;
    EXPECT_EQ(test(chain(500, line), chain(500, same, 250, other)).answer, Sameness::kDifferent);
  }
}

// Less is known of the candidate's degrees, so it passes each limit earlier than the program.
TEST(RandomTest, ValuesAreAbbreviatedWhereTheProgramsAre) {
  const FieldResult r = test(chain(100, "rsqrt(@ * @ + 1)"),  //
                             chain(100, "rsqrt((@ * @ * 3 + 3) / 3)"));
  EXPECT_EQ(r.answer, Sameness::kSame) << r.reason;
  EXPECT_LE(r.evidence.error_bound_log2, -60);
}

TEST(RandomTest, SaysThatUnknownFunctionsTookPart) {
  const std::string line = "sqrt(@ * @ + @ ^ 4)", same = "sqrt(@ * @ * (1 + @ * @))";
  EXPECT_EQ(test(chain(8, line), chain(8, same)).answer, Sameness::kSame);
  const FieldResult r = test(chain(100, line), chain(100, same));
  EXPECT_EQ(r.answer, Sameness::kDifferent);
  EXPECT_NE(r.reason.find("differs where values of too high a degree are unknown functions"),
            std::string::npos)
      << r.reason;
}

TEST(RandomTest, UndefinedIsUndecidedWithTheReason) {
  const std::string a = kHead + "output y: f32[n] = sum[k](x) / (sum[k](w) - sum[k](w)) }";
  const FieldResult r = test(a, a);
  EXPECT_EQ(r.answer, Sameness::kUndecided);
  EXPECT_NE(r.reason.find("division by zero"), std::string::npos) << r.reason;
}

TEST(RandomTest, EagerCastsAreKept) {
  const std::string a = kHead + "output y: f32[n] = sum[k](cast(x, f16) * w) }";
  const std::string b = kHead + "output y: f32[n] = sum[k](x * w) }";
  FieldOptions options;
  EXPECT_EQ(test(a, b, options).answer, Sameness::kSame);
  options.rounding = Rounding::kEager;
  EXPECT_EQ(test(a, b, options).answer, Sameness::kDifferent);
  EXPECT_EQ(test(a, a, options).answer, Sameness::kSame);
}

TEST(RandomTest, NestedExponentialsAreTold) {
  const std::string a = kHead + "output y: f32[n] = sum[k](softmax[k](silu(x)) * w) }";
  const FieldResult r = test(a, a);
  EXPECT_EQ(r.answer, Sameness::kSame);
  EXPECT_TRUE(r.evidence.nested);
  const std::string b = kHead + "output y: f32[n] = sum[k](softmax[k](x) * w) }";
  EXPECT_FALSE(test(b, b).evidence.nested);
}

TEST(RandomTest, AnOrdinaryCandidateTakesFarLessThanASecond) {
  const std::string text = read_file(pairs_folder() / "attention_online.equal.mu");
  const auto program = program_of(text);
  const auto graph = parse_mugraph(text, "online.mu", *program);
  ASSERT_TRUE(graph.ok());
  const auto start = std::chrono::steady_clock::now();
  const auto cases = small_cases(*program, *graph);
  ASSERT_TRUE(cases.ok());
  EXPECT_EQ(field_test(*cases, {}).answer, Sameness::kSame);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  EXPECT_LT(seconds.count(), 2);  // some 30 ms without sanitizers
}

TEST(Growth, BoundsWhatItSays) {
  const Growth a{2, 1, 3, 2}, b{1, 4, 5, 1};
  const Growth sum = growth_of_sum(a, b), product = growth_of_product(a, b);
  EXPECT_EQ(sum.degree, 6);
  EXPECT_EQ(sum.below, 5);
  EXPECT_EQ(product.degree, 3);
  EXPECT_EQ(product.below, 5);
  EXPECT_EQ(growth_of_inverse(a).degree, 1);
  EXPECT_EQ(growth_of_many(a, 3).below, 3);
  EXPECT_GE(std::exp2(log2_sum(3, 5)), 40);
  EXPECT_LT(std::exp2(log2_sum(3, 5)), 40.01);
}

}  // namespace
}  // namespace sundog::verify
