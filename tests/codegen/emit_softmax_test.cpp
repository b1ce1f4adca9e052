// The elementwise part of attention: scales that leave maxima, factors that accumulators share,
// masks that tiles need not test.
#include <gtest/gtest.h>

#include <string>

#include "tests/codegen/generate_cases.h"

namespace sundog::codegen {
namespace {

// Attention of warp groups over tiles of 64 keys, under a mask of q and k if there is one.
// `scale`: what scores are multiplied by, as a term.
GenerateCase attention(const std::string& mask, const std::string& tile_mask,
                       const std::string& trim, const std::string& scale) {
  const std::string score = "t * " + scale;
  const auto masked = [&](const std::string& condition, const std::string& x) {
    return condition.empty() ? x : "select(" + condition + ", " + x + ", -inf)";
  };
  return {"attention",
          "program p(g = 2, q = 192, k = q, e = 64, f = 64) {\n"
          "  input Q: f16[g, q, e]\n  input K: f16[g, k, e]\n  input V: f16[g, k, f]\n"
          "  t[g, q, k] = sum[e](Q * K)\n  s[g, q, k] = " +
              masked(mask, score) +
              "\n  p[g, q, k] = exp(s - max[k](s))\n"
              "  output O: f16[g, q, f] = sum[k](p * V) / sum[k](p)\n}\n",
          "ugraph a of p {\n  kernel k0 grid(g, q.o) warps(4) {\n    split q = q.o * q.i(64)\n"
          "    split k = k.o * k.i(64)\n    qs[q.i, e] = Q : shared f16\n"
          "    c[] = " +
              scale + " : reg f32\n    loop k.o stages(2) bulk" + trim +
              " {\n      ks[k.i, e] = K : shared f16\n      vs[k.i, f] = V : shared f16\n"
              "      t[q.i, k.i] = sum[e](qs * ks) : reg f32 mma(m64n8k16) warps(q.i/4)\n"
              "      m[q.i] = max[k.o, k.i](" +
              masked(tile_mask, "t * c") +
              ") : reg f32\n"
              "      p[q.i, k.i] = exp(" +
              masked(tile_mask, "t * c") + (mask.empty() ? " - m" : " - select(m == -inf, 0, m)") +
              ") : reg f32\n"
              "      l[q.i] = sum[k.o, k.i](p) : reg f32 rescale m\n"
              "      pc[q.i, k.i] = p : reg f16\n"
              "      o[q.i, f] = sum[k.o, k.i](pc * vs) : reg f32 mma(m64n8k16) warps(q.i/4) "
              "rescale m\n    }\n    y[q.i, f] = o / l : reg f32\n    store y -> O\n  }\n}\n"};
}

int count(const std::string& text, const std::string& what) {
  int times = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++times;
  return times;
}

GenerateOutcome expect_exact(const GenerateCase& c) {
  GenerateOutcome outcome = run_exact(c);
  EXPECT_TRUE(outcome.passed) << outcome.failure;
  EXPECT_TRUE(outcome.residues_passed) << outcome.residues;
  return outcome;
}

TEST(EmitSoftmax, APositiveScaleIsTakenOutOfTheMaximumAndPutIntoTheExponent) {
  for (const std::string scale : {"rsqrt(size(e))", "0.3"}) {
    const GenerateOutcome outcome = expect_exact(attention("", "", "", scale));
    EXPECT_EQ(count(outcome.cuda, " = sd::max_of_multiples("), 1) << outcome.cuda;
    EXPECT_EQ(count(outcome.cuda, " = sd::multiple_of_max("), 1);
    EXPECT_EQ(count(outcome.cuda, "sd::exp_scaled_difference_fast(t["), 1);
  }
}

TEST(EmitSoftmax, ANegativeScaleStaysWhereItIs) {
  const GenerateOutcome outcome = expect_exact(attention("", "", "", "(-0.3)"));
  EXPECT_EQ(count(outcome.cuda, " = sd::max_of_multiples("), 0);
}

TEST(EmitSoftmax, AccumulatorsOfOneMaximumShareItsFactors) {
  const std::string cuda = expect_exact(attention("", "", "", "0.3")).cuda;
  EXPECT_EQ(count(cuda, "float l_scale["), 1) << cuda;
  EXPECT_EQ(count(cuda, "o_scale"), 0);
  EXPECT_EQ(count(cuda, "*= l_scale["), 2);
}

TEST(EmitSoftmax, MasksAreTestedInTheTilesThatTheyCut) {
  const std::string causal = "k <= q", tile = "64 * k.o + k.i <= 64 * q.o + q.i";
  const GenerateCase c = attention(causal, tile, " trim(64 * k.o <= 64 * q.o + 63)", "0.3");
  const std::string cuda = expect_exact(c).cuda;
  EXPECT_EQ(count(cuda, "const bool whole_"), 2) << cuda;
  EXPECT_EQ(count(cuda, " = sd::max_of_multiples("), 2);
  // Blocks of many iterations come first.
  EXPECT_NE(cuda.find("q_o = 2 - block % 3;"), std::string::npos) << cuda;
  // Probabilities of tiles that are wrongly taken for whole are found.
  const size_t test = cuda.rfind("const bool whole_");
  const std::string line = cuda.substr(test, cuda.find('\n', test) - test);
  const std::string wrong = line.substr(0, line.find(" <= 0;")) + " <= 64;";
  const GenerateOutcome changed =
      run_exact_changed(c, line.substr(line.find("whole_")), wrong.substr(wrong.find("whole_")));
  EXPECT_FALSE(changed.passed && changed.residues_passed);
}

TEST(EmitSoftmax, AWindowIsWholeBetweenItsEdges) {
  const GenerateCase c =
      attention("q - k < 100", "64 * q.o + q.i - 64 * k.o - k.i < 100", "", "0.3");
  const std::string cuda = expect_exact(c).cuda;
  EXPECT_EQ(count(cuda, "const bool whole_"), 2) << cuda;
  EXPECT_NE(cuda.find("q_o = block % 3;"), std::string::npos) << cuda;
}

}  // namespace
}  // namespace sundog::codegen
