#include "verify/prove.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>

#include "core/float_algebra.h"
#include "core/interpret.h"
#include "tests/sanitized.h"
#include "tests/verify/pairs.h"
#include "verify/float_inputs.h"
#include "verify/mutate.h"

namespace sundog::verify {
namespace {

Proof proof_of(const std::string& file) {
  const std::filesystem::path path = pairs_folder() / file;
  const std::string text = read_file(path);
  const auto reference = program_reference(text);
  const std::filesystem::path source = path.parent_path() / reference->path;
  const auto program = parse_program(read_file(source), source.string(), reference->defines);
  EXPECT_TRUE(program.ok());
  if (path.extension() == ".mu") {
    const auto graph = parse_mugraph(text, path.string(), *program);
    EXPECT_TRUE(graph.ok());
    return prove(*program, *graph);
  }
  const auto other = parse_program(text, path.string(), program_reference(text)->defines);
  EXPECT_TRUE(other.ok());
  return prove(*program, *other);
}

class ProvePairs : public testing::TestWithParam<std::string> {};

TEST_P(ProvePairs, AreProvedIfEqual) {
  const Proof proof = proof_of(GetParam());
  if (GetParam().find(".equal.") != std::string::npos) {
    EXPECT_EQ(proof.outcome, Proof::kProved) << proof.reason;
    EXPECT_TRUE(proof.all_sizes);
  } else if (GetParam() == "softmax_unsafe.differ.sd") {
    // Equal over the real numbers, which is all that a proof speaks of; rounding refutes it.
    EXPECT_EQ(proof.outcome, Proof::kProved);
  } else {
    EXPECT_EQ(proof.outcome, Proof::kUnknown);
    EXPECT_FALSE(proof.reason.empty());
  }
  EXPECT_LT(proof.seconds, 10);
  RecordProperty("seconds", std::to_string(proof.seconds));
}

std::string test_name(const testing::TestParamInfo<std::string>& pair) {
  std::string text = pair.param;
  std::replace_if(
      text.begin(), text.end(), [](char c) { return !std::isalnum(c); }, '_');
  return text;
}

INSTANTIATE_TEST_SUITE_P(Programs, ProvePairs,
                         testing::ValuesIn(pair_files({".equal.", ".differ."})), test_name);

// What the search picks for an H200, at full size.
std::vector<std::string> picks() {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(pairs_folder() / "h200")) {
    files.push_back("h200/" + entry.path().filename().string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

INSTANTIATE_TEST_SUITE_P(Picks, ProvePairs, testing::ValuesIn(picks()), test_name);

// --- needs where they hold

Proof proof_of_programs(const std::string& body, const std::string& other) {
  const std::string head =
      "program p(n = 8, k = 6, c = 3) { input X: f32[n, k] input Y: f32[n] input Z: f32[c] ";
  return prove(parsed(head + body + " }"), parsed(head + other + " }"));
}

TEST(Prove, WhatABranchNeedsIsNeededThereAlone) {
  const std::string guarded = "output O: f32[n] = select(n < size(n) - 1, Y[n + 1], 0)";
  const auto outcome = [&](const std::string& other) {
    return proof_of_programs(guarded, other).outcome;
  };
  EXPECT_EQ(outcome("output O: f32[n] = select(n >= size(n) - 1, 0, Y[n + 1])"), Proof::kProved);
  EXPECT_EQ(outcome("output O: f32[n] = select(n + 1 < size(n), 2 * Y[n + 1] - Y[n + 1], 0)"),
            Proof::kProved);
  const std::string root = "output O: f32[n] = select(Y > 0, log(Y), 0)";
  EXPECT_EQ(proof_of_programs(root, "output O: f32[n] = select(Y > 0, log(Y) * 2 / 2, 0)").outcome,
            Proof::kProved);
  EXPECT_EQ(
      proof_of_programs(root, "output O: f32[n] = select(Y > 0, log(Y), 0) + 0 * log(Y)").outcome,
      Proof::kUnknown);
}

// Both branches of each select read the one before: 2^40 ways through the chain.
TEST(Prove, AChainOfSelectsIsLookedThroughOnce) {
  const auto chain = [](const std::string& condition, bool swapped) {
    std::string text = "y0[n] = Y ";
    for (int i = 0; i < 40; ++i) {
      const std::string last = "y" + std::to_string(i), more = last + " + 1";
      text += "y" + std::to_string(i + 1) + "[n] = select(" + condition + std::to_string(i) + ", " +
              (swapped ? last + ", " + more : more + ", " + last) + ") ";
    }
    return text + "output O: f32[n] = y40";
  };
  const Proof proof = proof_of_programs(chain("n <= ", false), chain("n > ", true));
  EXPECT_EQ(proof.outcome, Proof::kProved) << proof.reason;
  EXPECT_LT(proof.seconds, 1);
}

TEST(Prove, NothingIsSaidOfMaximaThatTheProgramGuards) {
  const std::string start = "s[n, k] = select(k < n, X, -inf) m[n] = max[k](s) ";
  const std::string guarded = start + "output O: f32[n] = sum[k](exp(s - select(m == -inf, 0, m)))";
  const std::string bare = start + "output O: f32[n] = sum[k](exp(s - m))";
  const Proof proof = proof_of_programs(guarded, bare);
  EXPECT_EQ(proof.outcome, Proof::kProved);
  EXPECT_TRUE(proof.leaves_out_empty_maxima);
  EXPECT_NE(to_string(proof).find("no maximum is empty"), std::string::npos);
  EXPECT_FALSE(proof_of_programs(bare, guarded).leaves_out_empty_maxima);  // its own need
}

// --- mutants: an oracle of its own says which are wrong

bool is_wrong(const Program& program, const MuGraph& graph) {
  const auto inputs = float_inputs(program, InputKind::kOrdinary, 99);
  const std::span<const TensorValues<double>> in(inputs);
  Float64 algebra({.round_stores = false});
  const auto expected = interpret(algebra, program, in);
  const auto actual = interpret(algebra, graph, program, in);
  if (!actual.ok()) return true;
  for (size_t o = 0; o < expected->size(); ++o) {
    for (size_t i = 0; i < (*expected)[o].values.size(); ++i) {
      const double x = (*expected)[o].values[i], y = (*actual)[o].values[i];
      if (!(std::fabs(x - y) <= 1e-7 * (1 + std::fabs(x)))) return true;
    }
  }
  return false;
}

// SUNDOG_MUTANTS=2000 draws so many for each file; CI draws few, and under the sanitizers fewer.
uint64_t mutants_a_file() {
  const char* wanted = std::getenv("SUNDOG_MUTANTS");
  return wanted == nullptr ? (kSanitized ? 10 : 70) : std::strtoull(wanted, nullptr, 10);
}

TEST(Prove, NoWrongMutantIsProved) {
  int wrong = 0, right = 0, right_proved = 0;
  const uint64_t seeds = mutants_a_file();
  for (const std::string& file : pair_files({".equal.mu"})) {
    const std::string text = read_file(pairs_folder() / file);
    const auto program = program_of(text);
    ASSERT_TRUE(program.ok());
    double elements = 1;
    for (const Axis& axis : program->axes) elements *= static_cast<double>(axis.extent);
    if (elements > 1e5) continue;
    const auto graph = parse_mugraph(text, file, *program);
    ASSERT_TRUE(graph.ok());
    for (uint64_t seed = 1000; seed < 1000 + seeds; ++seed) {
      const auto mutant = mutate(*graph, *program, seed);
      if (!mutant) continue;
      const Proof proof = prove(*program, mutant->graph);
      const bool differs = is_wrong(*program, mutant->graph);
      (differs ? wrong : right) += 1;
      right_proved += !differs && proof.outcome == Proof::kProved;
      if (!differs) continue;
      EXPECT_EQ(proof.outcome, Proof::kUnknown)
          << file << ", seed " << seed << ", " << mutant->what << ": " << to_string(proof);
    }
  }
  EXPECT_GE(wrong, static_cast<int>(std::min<uint64_t>(seeds, 70)) * 4);
  EXPECT_GE(right_proved, right * 9 / 10);
  RecordProperty("wrong", wrong);
  RecordProperty("right", right);
}

// --- pairs that look alike

struct Pair {
  const char* name;
  const char* program;
  const char* candidate;
};

Proof proof_of(const Pair& pair) { return prove(parsed(pair.program), parsed(pair.candidate)); }

#define SD(parameters, body) "program p(" parameters ") {\n" body "\n}"
#define ROWS "input x: f32[n, k]\n"

class AlikePairs : public testing::TestWithParam<Pair> {};

TEST_P(AlikePairs, AreNotProved) {
  const Proof proof = proof_of(GetParam());
  EXPECT_EQ(proof.outcome, Proof::kUnknown) << to_string(proof);
}

const Pair kAlike[] = {
    {"WindowAgainstNone", SD("q = 40, k = 40", "input x: f32[k]\noutput y: f32[q] = sum[k](x)"),
     SD("q = 40, k = 40", "input x: f32[k]\noutput y: f32[q] = sum[k](select(k <= q + 32, x, 0))")},
    {"LongWindowAgainstNone",
     SD("q = 2000, k = 2000", "input x: f32[k]\noutput y: f32[q] = max[k](x)"),
     SD("q = 2000, k = 2000",
        "input x: f32[k]\noutput y: f32[q] = max[k](select(k <= q + 1024, x, -inf))")},
    {"MaximumOverAPart", SD("n = 4, k = 8", ROWS "output y: f32[n] = max[k](x)"),
     SD("n = 4, k = 8", ROWS "output y: f32[n] = max[k](select(k < 7, x, -inf))")},
    {"SumOverAPart", SD("n = 4, k = 8", ROWS "output y: f32[n] = sum[k](x)"),
     SD("n = 4, k = 8", ROWS "output y: f32[n] = sum[k](select(1 <= k, x, 0))")},
    {"NegativeFactorLeavesAMaximum", SD("n = 4, k = 8", ROWS "output y: f32[n] = max[k](-2 * x)"),
     SD("n = 4, k = 8", ROWS "output y: f32[n] = -2 * max[k](x)")},
    {"AFactorOfAnySignLeavesAMaximum",
     SD("n = 4, k = 8", ROWS "input c: f32[n]\noutput y: f32[n] = max[k](c * x)"),
     SD("n = 4, k = 8", ROWS "input c: f32[n]\noutput y: f32[n] = c * max[k](x)")},
    {"AMaximumOfSums", SD("n = 4, k = 8", ROWS "output y: f32[n] = max[k](x + x * x)"),
     SD("n = 4, k = 8", ROWS "output y: f32[n] = max[k](x) + max[k](x * x)")},
    {"ASumOfMaxima", SD("n = 4, k = 8", ROWS "output y: f32[k] = max[n](x)"),
     SD("n = 4, k = 8", ROWS "output y: f32[k] = sum[n](x)")},
    {"TheRootOfASquare", SD("n = 4, k = 8", ROWS "output y: f32[n, k] = sqrt(x * x)"),
     SD("n = 4, k = 8", ROWS "output y: f32[n, k] = x")},
    {"RootsOfProducts", SD("n = 4, k = 8", ROWS "output y: f32[n, k] = sqrt(x * x * x)"),
     SD("n = 4, k = 8", ROWS "output y: f32[n, k] = x * sqrt(x)")},
    {"ProductOfSums", SD("n = 4, k = 8", ROWS "output y: f32[n] = sum[k](x * x)"),
     SD("n = 4, k = 8", ROWS "output y: f32[n] = sum[k](x) * sum[k](x)")},
    {"MeanOfAnotherAxis", SD("n = 4, k = 8", ROWS "output y: f32[n] = mean[k](x)"),
     SD("n = 4, k = 8", ROWS "output y: f32[n] = sum[k](x) / size(n)")},
    {"DivisorAlongTheSum",
     SD("n = 4, k = 8", ROWS "input b: f32[k]\noutput y: f32[n] = sum[k](x / b)"),
     SD("n = 4, k = 8", ROWS "input b: f32[k]\noutput y: f32[n] = sum[k](x) / sum[k](b)")},
    {"RectifiedIsNotPlain", SD("n = 4, k = 8", ROWS "output y: f32[n, k] = relu(x)"),
     SD("n = 4, k = 8", ROWS "output y: f32[n, k] = x")},
    {"MaximaOfExponentials",
     SD("n = 4",
        "input a: f32[n]\ninput b: f32[n]\ninput c: f32[n]\ninput d: f32[n]\n"
        "output y: f32[n] = max(exp(a), exp(b))"),
     SD("n = 4",
        "input a: f32[n]\ninput b: f32[n]\ninput c: f32[n]\ninput d: f32[n]\n"
        "output y: f32[n] = max(exp(c), exp(d))")},
    {"AMultipleOfALargePrime",
     SD("n = 4", "input x: f32[n]\ninput z: f32[n]\noutput y: f32[n] = x"),
     SD("n = 4",
        "input x: f32[n]\ninput z: f32[n]\n"
        "output y: f32[n] = x + 1152921504606846883 * z")},
    {"TransposedRead", SD("n = 6, k = 6", ROWS "output y: f32[n, k] = x"),
     SD("n = 6, k = 6", ROWS "output y: f32[n, k] = x[k, n]")},
    {"ANewDivision", SD("n = 4, k = 8", ROWS "output y: f32[n, k] = x"),
     SD("n = 4, k = 8", ROWS "output y: f32[n, k] = x * x / x")},
    {"ANewLogarithm", SD("n = 4, k = 8", ROWS "output y: f32[n, k] = x"),
     SD("n = 4, k = 8", ROWS "output y: f32[n, k] = log(exp(x)) + 0 * log(x)")},
    {"EpsilonOutside", SD("n = 4, k = 8", ROWS "output y: f32[n] = rsqrt(mean[k](x * x) + 1e-6)"),
     SD("n = 4, k = 8", ROWS "output y: f32[n] = 1 / (sqrt(mean[k](x * x)) + 1e-6)")},
    {"WrongFactorInAProductOfSums",
     SD("n = 4, k = 8", ROWS "input b: f32[n, k]\noutput y: f32[n, k] = (x + b) * x"),
     SD("n = 4, k = 8", ROWS "input b: f32[n, k]\noutput y: f32[n, k] = (x + b) * b")},
    {"OtherWeights",
     SD("k = 8, a = 8, b = 8",
        "input x: f32[k, a]\ninput z: f32[k, b]\n"
        "output y: f32[a, b] = sum[k](x * z)"),
     SD("k = 8, a = 8, b = 8",
        "input x: f32[k, a]\ninput z: f32[k, b]\n"
        "output y: f32[a, b] = sum[k](x * z[a, b])")},
};

INSTANTIATE_TEST_SUITE_P(Pairs, AlikePairs, testing::ValuesIn(kAlike),
                         [](const auto& pair) { return std::string(pair.param.name); });

// --- what must be proved

class EqualPairs : public testing::TestWithParam<Pair> {};

TEST_P(EqualPairs, AreProved) {
  const Proof proof = proof_of(GetParam());
  EXPECT_EQ(proof.outcome, Proof::kProved) << proof.reason;
  EXPECT_TRUE(proof.all_sizes);
}

const Pair kEqual[] = {
    {"PositiveFactorsLeaveAMaximum",
     SD("n = 4, k = 8", ROWS "output y: f32[n] = max[k](3 * x * rsqrt(size(k)) + size(n))"),
     SD("n = 4, k = 8", ROWS "output y: f32[n] = size(n) + 3 / sqrt(size(k)) * max[k](x)")},
    {"ADeclaredSignLeavesAMaximum",
     SD("n = 4, k = 8", ROWS "input c: f32[n] in [0.5, inf]\noutput y: f32[n] = max[k](c * x)"),
     SD("n = 4, k = 8", ROWS "input c: f32[n] in [0.5, inf]\noutput y: f32[n] = c * max[k](x)")},
    {"SafeSoftmax", SD("n = 4, k = 8", ROWS "output y: f32[n, k] = softmax[k](x)"),
     SD("n = 4, k = 8", ROWS "output y: f32[n, k] = exp(x) / sum[k](exp(x))")},
    {"AnyShift", SD("n = 4, k = 8", ROWS "output y: f32[n, k] = softmax[k](x)"),
     SD("n = 4, k = 8", ROWS "output y: f32[n, k] = softmax[k](x + mean[k](x))")},
    {"LogSumExp", SD("n = 4, k = 8", ROWS "output y: f32[n] = log(sum[k](exp(x)))"),
     SD("n = 4, k = 8", ROWS "m[n] = max[k](x)\noutput y: f32[n] = m + log(sum[k](exp(x - m)))")},
    {"ProbabilitiesFromLogSumExp", SD("n = 4, k = 8", ROWS "output y: f32[n, k] = softmax[k](x)"),
     SD("n = 4, k = 8", ROWS "l[n] = log(sum[k](exp(x)))\noutput y: f32[n, k] = exp(x - l)")},
    {"Sigmoids", SD("n = 4, k = 8", ROWS "output y: f32[n, k] = sigmoid(x)"),
     SD("n = 4, k = 8", ROWS "output y: f32[n, k] = exp(x) / (1 + exp(x))")},
    {"Variance", SD("n = 4, k = 8", ROWS "output y: f32[n] = var[k](x)"),
     SD("n = 4, k = 8", ROWS "output y: f32[n] = mean[k](x * x) - mean[k](x) * mean[k](x)")},
    {"Renaming",
     SD("a = 4, b = 8, c = 8",
        "input x: f32[a, b]\ninput z: f32[b, c]\n"
        "output y: f32[a] = sum[b, c](x * z)"),
     SD("a = 4, u = 8, v = 8",
        "input x: f32[a, u]\ninput z: f32[u, v]\n"
        "s[u] = sum[v](z)\noutput y: f32[a] = sum[u](s * x)")},
    {"FullSumsOfProducts",
     SD("a = 4, b = 8", "input x: f32[a, b]\noutput y: f32[] = sum[a, b](x) * sum[a, b](x)"),
     SD("a = 4, b = 8", "input x: f32[a, b]\noutput y: f32[] = sum[a](sum[b](x)) ^ 2")},
    {"OppositeConditions", SD("n = 4, k = 8", ROWS "output y: f32[n, k] = select(k < 3, x, 2 * x)"),
     SD("n = 4, k = 8", ROWS "output y: f32[n, k] = select(k >= 3, 2 * x, x)")},
    {"ExtentsCount", SD("n = 4, k = 8", ROWS "output y: f32[n] = sum[k](x + 1)"),
     SD("n = 4, k = 8", ROWS "output y: f32[n] = size(k) + sum[k](x)")},
    {"Fractions",
     SD("n = 4",
        "input a: f32[n] in [1, 2]\ninput b: f32[n] in [1, 2]\n"
        "output y: f32[n] = 1 / (a + 1) + 1 / (b + 1)"),
     SD("n = 4",
        "input a: f32[n] in [1, 2]\ninput b: f32[n] in [1, 2]\n"
        "output y: f32[n] = (a + b + 2) / ((a + 1) * (b + 1))")},
    {"ShiftedReads",
     SD("n = 8, k = 4", "input x: f32[n]\noutput y: f32[k] = x[k + 2] * x[2 * k + 1]"),
     SD("n = 8, k = 4", "input x: f32[n]\noutput y: f32[k] = x[2 * k + 1] * x[k + 2]")},
    {"NestedMaxima", SD("n = 4, k = 8", ROWS "output y: f32[] = max[n, k](x)"),
     SD("n = 4, k = 8", ROWS "output y: f32[] = max(max[k](max[n](x)), max[n](max[k](x)))")},
};

INSTANTIATE_TEST_SUITE_P(Pairs, EqualPairs, testing::ValuesIn(kEqual),
                         [](const auto& pair) { return std::string(pair.param.name); });

TEST(Prove, OfScalarsNoSizeIsNamed) {
  const Proof proof = proof_of({"", SD("", "input x: f32[]\noutput y: f32[] = x * 2"),
                                SD("", "input x: f32[]\noutput y: f32[] = x + x")});
  EXPECT_EQ(to_string(proof), "proved");
}

TEST(Prove, ALiteralHoldsAtItsSizeOnly) {
  const Proof proof = proof_of({"", SD("n = 4, k = 8", ROWS "output y: f32[n] = mean[k](x)"),
                                SD("n = 4, k = 8", ROWS "output y: f32[n] = sum[k](x) / 8")});
  EXPECT_EQ(proof.outcome, Proof::kProved);
  EXPECT_FALSE(proof.all_sizes);
  EXPECT_EQ(proof.statement, "at n=4 k=8");
}

// Where sizes are numbers, what is joined is its parts.
TEST(Prove, SumsOverTensorsJoinedAreThoseOfTheParts) {
  const auto outcome = [](const char* file) {
    const std::string text = read_file(traps_folder() / file);
    const auto program = program_of(text, traps_folder());
    EXPECT_TRUE(program.ok());
    if (std::string_view(file).ends_with(".mu")) {
      const auto graph = parse_mugraph(text, file, *program);
      EXPECT_TRUE(graph.ok()) << to_string(graph.error());
      return prove(*program, *graph);
    }
    const auto other = parse_program(text, file);
    EXPECT_TRUE(other.ok());
    const Proof proof = prove(*program, *other);
    EXPECT_EQ(prove(*other, *program).outcome, proof.outcome) << file << ", the other way";
    return proof;
  };
  for (const char* file :
       {"joined_sum_parts.equal.sd", "joined_sum_parts.equal.mu", "joined_lse_parts.equal.sd",
        "joined_lse_parts.equal.mu", "joined_max_parts.equal.sd"}) {
    const Proof proof = outcome(file);
    EXPECT_EQ(proof.outcome, Proof::kProved) << file << ": " << proof.reason;
  }
  for (const char* file : {"joined_sum_last.differ.sd", "joined_sum_twice.differ.mu",
                           "joined_lse_unweighted.differ.sd", "joined_max_doubled.differ.sd"}) {
    EXPECT_EQ(outcome(file).outcome, Proof::kUnknown) << file;
  }
}

// In a part that a mask leaves empty the running maximum is minus infinity and what is kept is no
// number; the join weighs it with 0, which does not help.
TEST(Prove, EmptyPartsOfAMaskedSoftmaxAreNotProved) {
  const Program program = parsed(R"(program p(q = 8, k = 8) {
      input x: f32[q, k]
      s[q, k] = select(k <= q, x, -inf)
      m[q] = max[k](s)
      output y: f32[q] = sum[k](exp(s - m))
    })");
  const auto graph = parse_mugraph(R"(ugraph split of p {
      kernel part grid(q, k.s) warps(1) {
        split k = k.s(2) * k.i(4)
        s[k.i] = select(k <= q, x, -inf) : reg f32
        m[] = max[k.i](s) : reg f32
        l[] = sum[k.i](exp(s - m)) : reg f32
        store m -> pm : f32
        store l -> pl : f32
      }
      kernel join grid(q) warps(1) {
        top[] = max[k.s](pm) : reg f32
        total[] = sum[k.s](exp(pm - top) * pl) : reg f32
        store total -> y
      }
    })",
                                   "split.mu", program);
  ASSERT_TRUE(graph.ok()) << to_string(graph.error());
  const Proof proof = prove(program, *graph);
  EXPECT_EQ(proof.outcome, Proof::kUnknown);
  EXPECT_NE(proof.reason.find("finite"), std::string::npos) << proof.reason;
}

// With something finite in the place of an empty maximum it is, as long as what it is subtracted
// from is under the same mask.
TEST(Prove, GuardedPartsOfAMaskedSoftmaxAreProved) {
  const Program program = parsed(R"(program p(q = 8, k = 8) {
      input x: f32[q, k]
      s[q, k] = select(k <= q, x, -inf)
      m[q] = max[k](s)
      output y: f32[q] = sum[k](exp(s - m))
    })");
  const auto outcome = [&](const std::string& mask, const std::string& instead) {
    const auto graph = parse_mugraph(R"(ugraph split of p {
      kernel part grid(q, k.s) warps(1) {
        split k = k.s(2) * k.i(4)
        s[k.i] = select(k <= q, x, -inf) : reg f32
        m[] = max[k.i](s) : reg f32
        e[k.i] = )" + mask + "(exp(s - select(m == -inf, " +
                                         instead + R"(, m))) : reg f32
        l[] = sum[k.i](e) : reg f32
        store m -> pm : f32
        store l -> pl : f32
      }
      kernel join grid(q) warps(1) {
        top[] = max[k.s](pm) : reg f32
        total[] = sum[k.s](exp(pm - top) * pl) : reg f32
        store total -> y
      }
    })",
                                     "split.mu", program);
    EXPECT_TRUE(graph.ok()) << to_string(graph.error());
    return graph.ok() ? prove(program, *graph) : Proof();
  };
  const Proof proof = outcome("value", "0");
  EXPECT_EQ(proof.outcome, Proof::kProved) << proof.reason;
  EXPECT_TRUE(proof.all_sizes);
  EXPECT_EQ(outcome("value", "m").outcome, Proof::kUnknown) << "minus infinity all the same";
}

// Which term of a divisor has the coefficient 1 depends on how the variables are called: on the
// sides of linear attention the one with epsilon, and another.
TEST(Prove, DivisorsAreKnownUpToAFactor) {
  const Program program = parsed(R"(program p(g = 2, n = 4, m = 4, e = 3, f = 2) {
      input Q: f16[g, n, e]
      input K: f16[g, m, e]
      input V: f16[g, m, f]
      qf[g, n, e] = select(Q > 0, Q + 1, exp(min(Q, 0)))
      kf[g, m, e] = select(K > 0, K + 1, exp(min(K, 0)))
      output y: f16[g, n, f] = sum[e](qf * sum[m](kf * V)) / (sum[e](qf * sum[m](kf)) + 1e-6)
    })");
  const auto graph = parse_mugraph(R"(ugraph split of p {
      kernel k0 grid(g, m.s) warps(1) {
        split m = m.s * m.i(2)
        ks[m.i, e] = K : reg f16
        vs[m.i, f] = V : reg f16
        kf[m.i, e] = select(0 < ks, ks + 1, exp(min(ks, 0))) : reg f32
        a[e, f] = sum[m.i](kf * vs) : reg f32
        b[e] = sum[m.i](kf) : reg f32
        store a -> pa : f32
        store b -> pb : f32
      }
      kernel k1 grid(g) warps(1) {
        qs[n, e] = Q : reg f16
        qf[n, e] = select(0 < qs, qs + 1, exp(min(qs, 0))) : reg f32
        ta[e, f] = sum[m.s](pa) : reg f32
        tb[e] = sum[m.s](pb) : reg f32
        above[n, f] = sum[e](qf * ta) : reg f32
        below[n] = sum[e](qf * tb) : reg f32
        o[n, f] = above / (below + 1e-6) : reg f32
        store o -> y
      }
    })",
                                   "split.mu", program);
  ASSERT_TRUE(graph.ok()) << to_string(graph.error());
  const Proof proof = prove(program, *graph);
  EXPECT_EQ(proof.outcome, Proof::kProved) << proof.reason;
  EXPECT_EQ(proof_of_programs("output O: f32[n, k] = X * (sum[k](X) + 1)",
                              "output O: f32[n, k] = X * (sum[k](X) + 1) ^ 2 / (sum[k](X) + 1)")
                .outcome,
            Proof::kUnknown)
      << "that the divisor is not 0 is a need of one side alone";
}

// The h of the sum is not the h that the condition is on: all of x must be other than zero.
TEST(Prove, WhatASumNeedsIsNeededForAllThatItRunsOver) {
  const std::string guarded = "output O: f32[n, k] = select(k < 3, size(k) / X, 0)";
  EXPECT_EQ(proof_of_programs(guarded, "output O: f32[n, k] = select(k < 3, sum[k](X / X) / X, 0)")
                .outcome,
            Proof::kUnknown);
  EXPECT_EQ(
      proof_of_programs(guarded, "output O: f32[n, k] = select(k < 3, X / X * size(k) / X, 0)")
          .outcome,
      Proof::kProved);
}

TEST(Prove, EndsInTime) {
  std::string terms = "x";
  for (int i = 0; i < 40; ++i) terms = "(" + terms + " + x[" + std::to_string(i) + "])";
  const Program p =
      parsed("program p(n = 64) { input x: f32[n]\n output y: f32[n] = (" + terms + ") ^ 9 }");
  const Proof proof = prove(p, p, {.seconds = 0.2});
  EXPECT_LT(proof.seconds, 5);
}

}  // namespace
}  // namespace sundog::verify
