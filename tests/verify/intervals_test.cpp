#include "verify/intervals.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/verify/pairs.h"
#include "verify/verdict.h"

namespace sundog::verify {
namespace {

double exponent_of(const std::string& body, const std::string& ranges = "") {
  return extremes_of(parsed("program p(n = 4, k = 100) { input x: f32[n, k]" + ranges +
                            "\n input y: f32[n]" + ranges + "\n" + body + " }"),
                     Rounding::kWide)
      .exponent;
}

TEST(Intervals, ExponentsOverDeclaredRanges) {
  EXPECT_EQ(exponent_of("output z: f32[n, k] = exp(x - y)", " in [-2, 3]"), 5);
  EXPECT_EQ(exponent_of("output z: f32[n, k] = exp(-2 * x)", " in [-2, 3]"), 4);
  EXPECT_EQ(exponent_of("output z: f32[n] = exp(sum[k](x))", " in [-2, 3]"), 300);
  EXPECT_EQ(exponent_of("output z: f32[n] = exp(mean[k](x))", " in [-2, 3]"), 3);
  EXPECT_EQ(exponent_of("output z: f32[n, k] = exp(x * x)", " in [-4, 3]"), 16);
  EXPECT_EQ(exponent_of("output z: f32[n, k] = exp(x)", " in [-4, 3]"), 3);
  EXPECT_NEAR(exponent_of("output z: f32[n, k] = exp(exp(x))", " in [-1, 1]"), std::exp(1), 1e-9);
  EXPECT_EQ(exponent_of("output z: f32[n, k] = exp(10 * tanh(x))"), 10);
  EXPECT_TRUE(std::isinf(exponent_of("output z: f32[n, k] = exp(x)")));
  EXPECT_TRUE(std::isinf(exponent_of("output z: f32[n, k] = exp(x)", " in [0, inf]")));
  EXPECT_EQ(exponent_of("output z: f32[n, k] = exp(-x)", " in [0, inf]"), 0);
}

TEST(Intervals, ExponentsLessTheirMaximum) {
  EXPECT_EQ(exponent_of("output z: f32[n, k] = exp(x - max[k](x))"), 0);
  EXPECT_EQ(exponent_of("output z: f32[n, k] = exp(0.5 * x - 0.5 * max[k](x))"), 0);
  EXPECT_EQ(exponent_of("output z: f32[n, k] = exp(0.5 * (x - max(y, max[k](x))))"), 0);
  EXPECT_EQ(exponent_of("output z: f32[n, k] = exp(-max[k](x) + x)"), 0);
  EXPECT_TRUE(std::isinf(exponent_of("output z: f32[n, k] = exp(max[k](x) - x)")));
  EXPECT_TRUE(std::isinf(exponent_of("output z: f32[n, k] = exp(x - max[k](y + 0 * x))")));
}

// A row of which all is masked has no maximum, and its exponents are still at most 0.
TEST(Intervals, AGuardedMaximumIsOne) {
  const std::string masked = "s[n, k] = select(n < k, x, -inf) m[n] = max[k](s) ";
  const auto with = [&](const std::string& guarded) {
    return exponent_of(masked + "output z: f32[n, k] = exp(s - (" + guarded + "))");
  };
  EXPECT_EQ(with("m"), 0);
  EXPECT_EQ(with("select(m == -inf, 0, m)"), 0);
  EXPECT_EQ(with("select(m != -inf, m, 0)"), 0);
  EXPECT_TRUE(std::isinf(with("select(m == 0, 0, m)")));
  EXPECT_TRUE(std::isinf(with("select(m == -inf, m, 0)")));
  EXPECT_TRUE(std::isinf(with("select(m == -inf, y, m)")));
}

TEST(Intervals, CastsThatAreKept) {
  EXPECT_EQ(exponent_of("output z: f32[n, k] = exp(cast(x, i8))"), 127);
  EXPECT_EQ(exponent_of("output z: f32[n, k] = exp(cast(x, i8))", " in [-2, 3.4]"), 3);
  EXPECT_EQ(exponent_of("output z: f32[n, k] = exp(cast(x, f16) - x)"), 0) << "dropped";
  EXPECT_EQ(exponent_of("output z: f32[n, k] = exp(cast(x, i8) - x)", " in [-2, 3]"), 5);
}

TEST(Intervals, DivisorsOverDeclaredRanges) {
  const auto divisor_of = [](const std::string& body) {
    return extremes_of(
               parsed("program p(n = 4, k = 100) { input x: f32[n, k] in [-2, 3]\n" + body + " }"),
               Rounding::kWide)
        .denominator;
  };
  EXPECT_TRUE(std::isinf(divisor_of("output z: f32[n, k] = x * x")));
  EXPECT_EQ(divisor_of("output z: f32[n, k] = 1 / x"), 0);
  EXPECT_EQ(divisor_of("output z: f32[n, k] = 1 / (x + 3)"), 1);
  EXPECT_EQ(divisor_of("output z: f32[n, k] = 1 / (x - 5)"), 2);
  EXPECT_NEAR(divisor_of("output z: f32[n] = 1 / sum[k](exp(x))"), std::exp(-2), 1e-9);
}

// Without its maximum an exponential leaves f16 long before it leaves f32.
constexpr const char* kUnsafe = R"(
  program unsafe(q = 4, k = 24, e = 3, f = 5) {
    input Q: f16[q, e]RANGE
    input K: f16[k, e]RANGE
    input V: f16[k, f]
    p[q, k] = exp(sum[e](Q * K))
    output O: f16[q, f] = sum[k](p * V) / sum[k](p)
  })";
constexpr const char* kTwoTiles = R"(
  ugraph unsafe of unsafe {
    kernel k0 grid(q) warps(4) {
      split k = k.o * k.i(8)
      loop k.o {
        vs[k.i, f] = V : shared f16
        s[k.i] = sum[e](Q * K) : reg f32
        p[k.i] = exp(s) : shared TYPE
        l[] = sum[k.o, k.i](p) : reg f32
        o[f] = sum[k.o, k.i](p * vs) : reg f32
      }
      out[f] = o / l : reg f32
      store out -> O
    }
  })";

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  for (size_t at; (at = text.find(what)) != std::string::npos;) text.replace(at, what.size(), by);
  return text;
}

Verdict verdict_of(const std::string& type, const std::string& range) {
  const Program program = parsed(replaced(kUnsafe, "RANGE", range));
  const auto graph = parse_mugraph(replaced(kTwoTiles, "TYPE", type), "test.mu", program);
  EXPECT_TRUE(graph.ok()) << to_string(graph.error());
  return verify(program, *graph);
}

TEST(Intervals, AnExponentialStoredInHalfPrecisionIsRefused) {
  EXPECT_EQ(verdict_of("f32", "").answer, Verdict::kEquivalent) << verdict_of("f32", "").reason;
  const Verdict half = verdict_of("f16", "");
  EXPECT_NE(half.answer, Verdict::kEquivalent);
  EXPECT_NE(half.reason.find("'p' is stored as f16, which ends at 65504"), std::string::npos)
      << half.reason;
}

TEST(Intervals, DeclaredRangesAllowWhatCannotOverflow) {
  EXPECT_EQ(verdict_of("f16", " in [-1, 1]").answer, Verdict::kEquivalent)
      << verdict_of("f16", " in [-1, 1]").reason;
  EXPECT_NE(verdict_of("f16", " in [-2, 2]").answer, Verdict::kEquivalent) << "exp(12) is 162755";
}

// Who runs the program as it stands gets the overflow of its own casts.
TEST(Intervals, ACastThatTheProgramWritesIsALicence) {
  const auto answer_of = [](const std::string& p, const std::string& type) {
    std::string text = replaced(kUnsafe, "RANGE", "");
    const std::string as_written = "exp(sum[e](Q * K))";
    text.replace(text.find(as_written), as_written.size(), p);
    const Program program = parsed(text);
    const auto graph = parse_mugraph(replaced(kTwoTiles, "TYPE", type), "test.mu", program);
    EXPECT_TRUE(graph.ok()) << to_string(graph.error());
    return verify(program, *graph).answer;
  };
  EXPECT_EQ(answer_of("cast(exp(sum[e](Q * K)), f16)", "f16"), Verdict::kEquivalent);
  EXPECT_NE(answer_of("exp(cast(sum[e](Q * K), f16))", "f16"), Verdict::kEquivalent)
      << "another value";
  EXPECT_NE(answer_of("cast(exp(sum[e](Q * K)), bf16)", "f16"), Verdict::kEquivalent)
      << "a wider type";
}

// 1 + exp(-x) is an exponential and at least 1: x over it grows like x alone.
TEST(Intervals, AQuotientByALargeDivisorIsBounded) {
  const auto overflow_of = [](const std::string& value) {
    const Program program = parsed("program p(n = 4) { input x: f16[n] output y: f16[n] = " +
                                   replaced(value, "xs", "x") + " }");
    const auto graph =
        parse_mugraph("ugraph p of p { kernel k grid(n) { xs[] = x : reg f16 t[] = " + value +
                          " : shared f16 store t -> y } }",
                      "test.mu", program);
    EXPECT_TRUE(graph.ok()) << to_string(graph.error());
    return extremes_of(*graph, program, Rounding::kWide).overflow;
  };
  EXPECT_EQ(overflow_of("silu(xs)"), "");
  EXPECT_EQ(overflow_of("sigmoid(xs)"), "");
  EXPECT_EQ(overflow_of("xs / (2 + exp(xs) + exp(-xs))"), "");
  EXPECT_NE(overflow_of("xs * (1 + exp(-xs))"), "");
  EXPECT_NE(overflow_of("xs / exp(-xs)"), "");
  EXPECT_NE(overflow_of("1 / (0.00001 + exp(xs))"), "") << "reaches 100000";
}

TEST(Intervals, PartsStoredInHalfPrecisionCount) {
  const Program program = parsed(
      "program p(n = 3, k = 64) { input x: f16[n, k] in [0, 10]\n"
      " output y: f32[n] = sum[k](exp(x)) }");
  const auto graph = parse_mugraph(R"(
    ugraph p of p {
      kernel a grid(n, k.s) {
        split k = k.s(4) * k.i(16)
        s[] = sum[k.i](exp(x)) : reg f32
        store s -> parts : f16[k.s, n]
      }
      kernel b grid(n) {
        s[] = sum[k.s](parts) : reg f32
        store s -> y
      }
    })",
                                   "test.mu", program);
  ASSERT_TRUE(graph.ok()) << to_string(graph.error());
  const Extremes extremes = extremes_of(*graph, program, Rounding::kWide);
  EXPECT_EQ(extremes.exponent, 10);
  EXPECT_NE(extremes.overflow.find("kernel a: 's' is stored as f16"), std::string::npos)
      << extremes.overflow;
}

}  // namespace
}  // namespace sundog::verify
