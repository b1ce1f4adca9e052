// NOLINT(sundog-mirror): every file of tests/programs and benchmarks/programs
//
// A file is a test; its name says of what: x.equal.sd, x.differ.mu and so on are candidates for the
// program that the first line names, x.reject.sd and x.reject.mu are wrong as the last line says.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

#include "core/float_algebra.h"
#include "core/interpret.h"
#include "core/interpret_mugraph.h"
#include "core/proto.h"
#include "core/text.h"

namespace sundog {
namespace {

namespace fs = std::filesystem;

std::string slurp(const fs::path& path) {
  std::ifstream file(path);
  EXPECT_TRUE(file.good()) << path;
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::vector<fs::path> files(const char* folder, const std::string& ending) {
  std::vector<fs::path> result;
  for (const auto& entry : fs::directory_iterator(fs::path(SUNDOG_SOURCE_DIR) / folder)) {
    if (entry.path().filename().string().ends_with(ending)) result.push_back(entry.path());
  }
  std::sort(result.begin(), result.end());
  EXPECT_FALSE(result.empty()) << folder << " has no *" << ending;
  return result;
}

std::string last_line(const std::string& text) {
  const size_t end = text.find_last_not_of('\n');
  const size_t begin = text.rfind('\n', end);
  return text.substr(begin + 1, end - begin);
}

Program program_of(const fs::path& path) {
  const auto reference = program_reference(slurp(path));
  EXPECT_TRUE(reference.has_value()) << path << " names no program";
  if (!reference) return {};
  const fs::path file = path.parent_path() / reference->path;
  auto program = parse_program(slurp(file), file.filename().string(), reference->defines);
  EXPECT_TRUE(program.ok()) << path << ": " << to_string(program.error());
  return program.ok() ? *program : Program();
}

void expect_round_trip(const Program& program, const fs::path& path) {
  const std::string text = print(program);
  const auto again = parse_program(text, "printed");
  ASSERT_TRUE(again.ok()) << path << ": " << to_string(again.error()) << "\n" << text;
  EXPECT_EQ(*again, program) << path << "\n" << text;
  const auto stored = parse_program_proto(serialize(program));
  ASSERT_TRUE(stored.ok()) << path << ": " << to_string(stored.error());
  EXPECT_EQ(*stored, program) << path;
}

void expect_round_trip(const MuGraph& graph, const Program& program, const fs::path& path) {
  const std::string text = print(graph, program);
  const auto again = parse_mugraph(text, "printed", program);
  ASSERT_TRUE(again.ok()) << path << ": " << to_string(again.error()) << "\n" << text;
  EXPECT_EQ(*again, graph) << path << "\n" << text;
  const auto stored = parse_mugraph_proto(serialize(graph), program);
  ASSERT_TRUE(stored.ok()) << path << ": " << to_string(stored.error());
  EXPECT_EQ(*stored, graph) << path;
}

using Values = std::vector<TensorValues<double>>;

Values random_inputs(const Program& program, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  Values result;
  for (const TensorDecl& input : program.inputs) {
    TensorValues<double> tensor{input.extents, {}};
    for (int64_t i = 0; i < element_count(input); ++i) tensor.values.push_back(normal(random));
    result.push_back(std::move(tensor));
  }
  return result;
}

// The largest difference of an output, by the largest value.
double difference(const Values& a, const Values& b) {
  double worst = 0;
  for (size_t t = 0; t < a.size(); ++t) {
    EXPECT_EQ(a[t].values.size(), b[t].values.size());
    double largest = 0, gap = 0;
    for (size_t i = 0; i < a[t].values.size(); ++i) {
      largest = std::max(largest, std::fabs(a[t].values[i]));
      gap = std::max(gap, std::fabs(a[t].values[i] - b[t].values[i]));
      if (std::isnan(b[t].values[i])) return INFINITY;
    }
    worst = std::max(worst, gap / largest);
  }
  return worst;
}

// How far the candidate in `path` is from its program in float64.
double candidate_difference(const fs::path& path) {
  const Program program = program_of(path);
  const Values inputs = random_inputs(program, 7);
  FloatAlgebra<Precision::kF64> algebra(FloatOptions{.round_stores = false});
  const std::span<const TensorValues<double>> given(inputs);
  const auto expected = interpret(algebra, program, given);
  EXPECT_TRUE(expected.ok()) << path << ": " << to_string(expected.error());
  if (!expected.ok()) return NAN;
  if (path.extension() == ".sd") {
    const auto candidate = parse_program(slurp(path), path.filename().string());
    EXPECT_TRUE(candidate.ok()) << to_string(candidate.error());
    if (!candidate.ok()) return NAN;
    expect_round_trip(*candidate, path);
    const auto got = interpret(algebra, *candidate, given);
    EXPECT_TRUE(got.ok()) << path << ": " << to_string(got.error());
    return got.ok() ? difference(*expected, *got) : NAN;
  }
  const auto graph = parse_mugraph(slurp(path), path.filename().string(), program);
  EXPECT_TRUE(graph.ok()) << to_string(graph.error());
  if (!graph.ok()) return NAN;
  expect_round_trip(*graph, program, path);
  const auto got = interpret(algebra, *graph, program, given);
  EXPECT_TRUE(got.ok()) << path << ": " << to_string(got.error());
  return got.ok() ? difference(*expected, *got) : NAN;
}

TEST(ProgramFiles, BenchmarkProgramsRoundTripWithoutWarnings) {
  for (const fs::path& path : files("benchmarks/programs", ".sd")) {
    std::vector<Error> warnings;
    const auto program = parse_program(slurp(path), path.filename().string(), {}, &warnings);
    ASSERT_TRUE(program.ok()) << to_string(program.error());
    for (const Error& warning : warnings) ADD_FAILURE() << to_string(warning);
    EXPECT_EQ(program->name, path.stem());
    expect_round_trip(*program, path);
  }
}

TEST(ProgramFiles, EqualCandidatesAreEqual) {
  for (const char* ending : {".equal.sd", ".equal.mu"}) {
    for (const fs::path& path : files("tests/programs", ending)) {
      EXPECT_EQ(last_line(slurp(path)), "# expect: equal") << path;
      EXPECT_LT(candidate_difference(path), 1e-9) << path;
    }
  }
}

TEST(ProgramFiles, DifferingCandidatesDiffer) {
  for (const char* ending : {".differ.sd", ".differ.mu"}) {
    for (const fs::path& path : files("tests/programs", ending)) {
      const std::string expected = last_line(slurp(path));
      if (expected == "# expect: different by range") {  // but not over the real numbers
        EXPECT_LT(candidate_difference(path), 1e-9) << path;
        continue;
      }
      EXPECT_EQ(expected, "# expect: different") << path;
      EXPECT_GT(candidate_difference(path), 1e-4) << path;
    }
  }
}

TEST(ProgramFiles, RejectedFilesAreRejectedAsTheySay) {
  const std::string start = "# expect: ";
  for (const char* ending : {".reject.sd", ".reject.mu"}) {
    for (const fs::path& path : files("tests/programs", ending)) {
      const std::string text = slurp(path), name = path.filename().string();
      const std::string expected = last_line(text);
      ASSERT_TRUE(expected.starts_with(start)) << path;
      std::optional<Error> error;
      if (path.extension() == ".mu") {
        const auto graph = parse_mugraph(text, name, program_of(path));
        if (!graph.ok()) error = graph.error();
      } else {
        const auto program = parse_program(text, name);
        if (!program.ok()) error = program.error();
      }
      ASSERT_TRUE(error.has_value()) << path << " was read";
      const std::string message = to_string(*error);
      EXPECT_EQ(message.substr(0, message.find('\n')), name + ":" + expected.substr(start.size()));
    }
  }
}

}  // namespace
}  // namespace sundog
