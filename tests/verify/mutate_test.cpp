#include "verify/mutate.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "core/float_algebra.h"
#include "core/interpret.h"
#include "tests/verify/pairs.h"
#include "verify/float_inputs.h"
#include "verify/verdict.h"

namespace sundog::verify {
namespace {

enum class Oracle { kSame, kDiffers, kFault };

// An oracle of its own: float64 on normal inputs at the size of the file.
Oracle compare(const Program& program, const MuGraph& graph) {
  const auto inputs = float_inputs(program, InputKind::kOrdinary, 99);
  const std::span<const TensorValues<double>> in(inputs);
  Float64 algebra({.round_stores = false});
  const auto expected = interpret(algebra, program, in);
  const auto actual = interpret(algebra, graph, program, in);
  EXPECT_TRUE(expected.ok());
  if (!actual.ok()) return Oracle::kFault;
  for (size_t o = 0; o < expected->size(); ++o) {
    for (size_t i = 0; i < (*expected)[o].values.size(); ++i) {
      const double x = (*expected)[o].values[i], y = (*actual)[o].values[i];
      if (!(std::fabs(x - y) <= 1e-7 * (1 + std::fabs(x)))) return Oracle::kDiffers;
    }
  }
  return Oracle::kSame;
}

TEST(Mutate, NoWrongMutantIsEquivalent) {
  constexpr int kWanted = 150;
  int wrong = 0, different = 0;
  std::set<Mutation> kinds;
  std::set<std::string> sources;
  for (const std::string& file : pair_files({".equal.mu"})) {
    const std::string text = read_file(pairs_folder() / file);
    const auto program = program_of(text);
    ASSERT_TRUE(program.ok());
    const auto graph = parse_mugraph(text, file, *program);
    ASSERT_TRUE(graph.ok());
    int of_file = 0;
    for (uint64_t seed = 0; seed < 400 && of_file < 20; ++seed) {
      const auto mutant = mutate(*graph, *program, seed);
      if (!mutant) continue;
      const Oracle oracle = compare(*program, mutant->graph);
      if (oracle == Oracle::kSame) continue;
      ++of_file;
      kinds.insert(mutant->mutation);
      sources.insert(file);
      const Verdict verdict = verify(*program, mutant->graph);
      EXPECT_NE(verdict.answer, Verdict::kEquivalent)
          << file << ", seed " << seed << ", " << mutant->what << ": " << verdict.reason;
      different += verdict.answer == Verdict::kDifferent;
    }
    wrong += of_file;
  }
  EXPECT_GE(wrong, kWanted);
  EXPECT_GE(different, wrong * 9 / 10);  // most with a witness
  EXPECT_GE(kinds.size(), 7u);
  EXPECT_GE(sources.size(), 5u);
  RecordProperty("mutants", wrong);
  RecordProperty("different", different);
}

TEST(Vary, NoRightVariantIsDifferent) {
  int variants = 0, unknown = 0;
  for (const std::string& file : pair_files({".equal.mu"})) {
    const std::string text = read_file(pairs_folder() / file);
    const auto program = program_of(text);
    ASSERT_TRUE(program.ok());
    const auto graph = parse_mugraph(text, file, *program);
    ASSERT_TRUE(graph.ok());
    int of_file = 0;
    for (uint64_t seed = 0; seed < 40 && of_file < 8; ++seed) {
      const auto variant = vary(*graph, *program, seed);
      if (!variant) continue;
      ++of_file;
      ++variants;
      const Verdict verdict = verify(*program, variant->graph);
      EXPECT_NE(verdict.answer, Verdict::kDifferent)
          << file << ", seed " << seed << ", " << variant->what << ": " << verdict.reason;
      unknown += verdict.answer == Verdict::kUnknown;
    }
  }
  EXPECT_GE(variants, 60);
  EXPECT_LE(unknown * 100, variants);
}

}  // namespace
}  // namespace sundog::verify
