// Every pair of tests/programs: NAME.equal.{sd,mu} and NAME.differ.{sd,mu} against the program that
// their first line names.
#include "verify/verdict.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <cmath>
#include <filesystem>

#include "tests/sanitized.h"
#include "tests/verify/pairs.h"

namespace sundog::verify {
namespace {

class Pairs : public testing::TestWithParam<std::string> {};

TEST_P(Pairs, HaveTheirVerdict) {
  const std::filesystem::path path = pairs_folder() / GetParam();
  const std::string text = read_file(path);
  const auto program = program_of(text);
  ASSERT_TRUE(program.ok()) << to_string(program.error());
  const auto start = std::chrono::steady_clock::now();
  Verdict verdict;
  if (path.extension() == ".mu") {
    const auto graph = parse_mugraph(text, path.string(), *program);
    ASSERT_TRUE(graph.ok()) << to_string(graph.error());
    verdict = verify(*program, *graph);
  } else {
    const auto other = parse_program(text, path.string(), program_reference(text)->defines);
    ASSERT_TRUE(other.ok()) << to_string(other.error());
    verdict = verify(*program, *other);
  }
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const bool equal = GetParam().find(".equal.") != std::string::npos;
  EXPECT_EQ(name(verdict.answer), equal ? "equivalent" : "different") << verdict.reason;
  if (equal) {
    EXPECT_LE(verdict.field.error_bound_log2, -60);
    EXPECT_GE(verdict.field.rounds, 2);
  } else {
    EXPECT_TRUE(verdict.witness.has_value());
  }
  EXPECT_LT(seconds, 20);  // slow machines and sanitizers included
  RecordProperty("seconds", std::to_string(seconds));
}

std::string test_name(const testing::TestParamInfo<std::string>& pair) {
  std::string text = pair.param;
  std::replace_if(
      text.begin(), text.end(), [](char c) { return !std::isalnum(c); }, '_');
  return text;
}

INSTANTIATE_TEST_SUITE_P(Programs, Pairs, testing::ValuesIn(pair_files({".equal.", ".differ."})),
                         test_name);

// Every program of benchmarks/programs is itself, at its full size.
class Itself : public testing::TestWithParam<std::string> {};

TEST_P(Itself, IsEquivalent) {
  const auto path =
      std::filesystem::path(SUNDOG_SOURCE_DIR) / "benchmarks/programs" / (GetParam() + ".sd");
  const auto program = parse_program(read_file(path), path.string());
  ASSERT_TRUE(program.ok()) << to_string(program.error());
  const Verdict verdict = verify(*program, *program);
  EXPECT_EQ(verdict.answer, Verdict::kEquivalent) << verdict.reason;
  EXPECT_FALSE(verdict.field.image_only);
  EXPECT_LE(verdict.field.error_bound_log2, -60);
}

std::vector<std::string> benchmark_programs() {
  std::vector<std::string> names;
  const auto folder = std::filesystem::path(SUNDOG_SOURCE_DIR) / "benchmarks/programs";
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".sd") names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

INSTANTIATE_TEST_SUITE_P(Programs, Itself,
                         testing::ValuesIn(third_if_sanitized(benchmark_programs())), test_name);

// A wrong program that consecutive integers as inputs cannot tell from the right one, at full size.
TEST(Verdict, WrongQkNormIsDifferentWithAWitness) {
  const std::string text = read_file(pairs_folder() / "qk_norm_wrong.differ.sd");
  const auto program = program_of(text);
  ASSERT_TRUE(program.ok());
  const auto wrong = parse_program(text, "wrong.sd", program_reference(text)->defines);
  ASSERT_TRUE(wrong.ok());
  const auto start = std::chrono::steady_clock::now();
  const Verdict verdict = verify(*program, *wrong);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  EXPECT_EQ(verdict.answer, Verdict::kDifferent);
  ASSERT_TRUE(verdict.witness.has_value());
  EXPECT_GT(std::fabs(verdict.witness->expected - verdict.witness->actual), 1e-3);
  EXPECT_NE(to_string(*verdict.witness).find("instead of"), std::string::npos);
  EXPECT_LT(seconds.count(), 1);
}

Program parsed(const std::string& text) {
  auto program = parse_program(text, "test.sd");
  EXPECT_TRUE(program.ok()) << to_string(program.error());
  return *program;
}

constexpr const char* kTwoPass = R"(
  program variance(n = 6, h = 40) {
    input x: f32[n, h]
    m[n] = mean[h](x)
    v[n] = mean[h]((x - m) * (x - m))
    y[n, h] = (x - m) * rsqrt(v + 1e-5)
    output y: f32[n, h]
  })";
constexpr const char* kOnePass = R"(
  program variance(n = 6, h = 40) {
    input x: f32[n, h]
    m[n] = mean[h](x)
    v[n] = mean[h](x * x) - m * m
    y[n, h] = (x - m) * rsqrt(v + 1e-5)
    output y: f32[n, h]
  })";

TEST(Verdict, OnePassVarianceIsRefusedForATwoPassProgram) {
  const Verdict verdict = verify(parsed(kTwoPass), parsed(kOnePass));
  EXPECT_NE(verdict.answer, Verdict::kEquivalent);
  EXPECT_NE(verdict.reason.find("equal over the real numbers"), std::string::npos)
      << verdict.reason;
  EXPECT_EQ(verify(parsed(kOnePass), parsed(kTwoPass)).answer, Verdict::kEquivalent);
  VerifyOptions field_alone;
  field_alone.numerics = false;
  EXPECT_EQ(verify(parsed(kTwoPass), parsed(kOnePass), field_alone).answer, Verdict::kEquivalent);
}

// At the declared size no ordinary input shows it: 4095 squares are beside it.
TEST(Verdict, AnEpsilonBesideManySquaresIsSeen) {
  const auto cosine = [](const std::string& epsilon) {
    return parsed(
        "program p(n = 8, h = 4095) { input x: f32[n, h]\n input y: f32[n, h]\n"
        " output o: f32[n] = sum[h](x * y) * rsqrt(sum[h](x * x) * sum[h](y * y) + " +
        epsilon + ") }");
  };
  const Verdict wrong = verify(cosine("1e-12"), cosine("1e-2"), VerifyOptions());
  EXPECT_EQ(wrong.answer, Verdict::kDifferent) << wrong.reason;
  ASSERT_TRUE(wrong.witness.has_value());
  EXPECT_EQ(wrong.witness->sizes, "n=8 h=4095");
  EXPECT_EQ(verify(cosine("1e-12"), cosine("1e-12"), VerifyOptions()).answer, Verdict::kEquivalent);
}

TEST(Verdict, OtherInterfacesAreDifferent) {
  const Program p = parsed("program p(n = 4) { input x: f32[n]\n output y: f32[n] = x + x }");
  const Program q = parsed("program p(n = 4) { input x: f32[n]\n output z: f32[n] = 2 * x }");
  const Program r = parsed("program p(n = 4) { input x: f16[n]\n output y: f32[n] = 2 * x }");
  const Program s = parsed("program p(n = 5) { input x: f32[n]\n output y: f32[n] = 2 * x }");
  const Program t = parsed("program p(n = 4) { input x: f32[n]\n output y: f32[n] = 2 * x }");
  EXPECT_EQ(verify(p, q).answer, Verdict::kDifferent);
  EXPECT_EQ(verify(p, r).answer, Verdict::kDifferent);
  EXPECT_EQ(verify(p, s).answer, Verdict::kDifferent);
  EXPECT_EQ(verify(p, t).answer, Verdict::kEquivalent);
}

// What the field does not know is unknown, never different: the two are equal.
TEST(Verdict, UnknownLawsGiveNoWitness) {
  const Program p =
      parsed("program p(n = 4) { input x: f32[n]\n output y: f32[n] = max(2 * x, 4) }");
  const Program q =
      parsed("program p(n = 4) { input x: f32[n]\n output y: f32[n] = 2 * max(x, 2) }");
  const Verdict verdict = verify(p, q);
  EXPECT_EQ(verdict.answer, Verdict::kUnknown);
  EXPECT_FALSE(verdict.witness.has_value());
}

// Whether the answer takes a proof or not, and whether it is one.
TEST(Verdict, AProofThatIsAskedForIsAttempted) {
  const Program program = parsed(
      "program p(n = 64, h = 256) { input x: f32[n, h]\n output y: f32[n] = sum[h](x * x) }");
  const Program other = parsed(
      "program p(n = 64, h = 256) { input x: f32[n, h]\n output y: f32[n] = sum[h](x * x * 1) }");
  VerifyOptions options;
  for (const bool exact : {true, false}) {
    options.exact_at_declared_sizes = exact;
    options.prove = true;
    EXPECT_EQ(verify(program, other, options).proof, "proved for all sizes of n, h") << exact;
    options.prove = false;
    EXPECT_EQ(verify(program, other, options).proof, "not attempted") << exact;
  }
}

TEST(Verdict, WitnessesWriteNoNumberInOneWay) {
  Witness witness;
  witness.output = "y";
  witness.element = {1, 2};
  witness.actual = -std::nan("");
  witness.expected = 0.25;
  EXPECT_EQ(to_string(witness).find("y[1, 2] is nan instead of 0.25 in "), 0U)
      << to_string(witness);
}

TEST(Verdict, IsTheSameForTheSameSeed) {
  const Program p = parsed(kTwoPass);
  VerifyOptions options;
  options.seed = 5;
  const Verdict a = verify(p, p, options), b = verify(p, p, options);
  EXPECT_EQ(a.field.primes, b.field.primes);
  EXPECT_EQ(a.field.error_bound_log2, b.field.error_bound_log2);
  options.seed = 6;
  EXPECT_NE(a.field.primes, verify(p, p, options).field.primes);
}

}  // namespace
}  // namespace sundog::verify
