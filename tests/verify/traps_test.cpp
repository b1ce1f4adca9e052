// NOLINT(sundog-mirror): every pair of tests/verify/traps
//
// x.VERDICT.{sd,mu} is a candidate for the program that its first line names; a program by itself
// has no verdict in its name.  A line `# rounding: eager` keeps casts in place.
//   equal    equivalent, with the error bound asked for
//   differ   different, with a witness
//   refused  equal over the real numbers or undecided, and never accepted
//   unknown  unknown
//   unsure   equal by a law that the field test need not know: never different
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <set>

#include "tests/verify/pairs.h"
#include "verify/verdict.h"

namespace sundog::verify {
namespace {

Verdict verdict_of(const std::string& file) {
  const std::filesystem::path path = traps_folder() / file;
  const std::string text = read_file(path);
  const auto program = program_of(text, traps_folder());
  EXPECT_TRUE(program.ok()) << to_string(program.error());
  if (!program.ok()) return {};
  VerifyOptions options;
  if (text.find("# rounding: eager") != std::string::npos) options.rounding = Rounding::kEager;
  if (path.extension() == ".mu") {
    const auto graph = parse_mugraph(text, file, *program);
    EXPECT_TRUE(graph.ok()) << to_string(graph.error());
    return graph.ok() ? verify(*program, *graph, options) : Verdict();
  }
  const auto other = parse_program(text, file, program_reference(text)->defines);
  EXPECT_TRUE(other.ok()) << to_string(other.error());
  return other.ok() ? verify(*program, *other, options) : Verdict();
}

class Traps : public testing::TestWithParam<std::string> {};

TEST_P(Traps, HaveTheirVerdict) {
  const std::string& file = GetParam();
  const Verdict verdict = verdict_of(file);
  const auto is = [&](const char* part) { return file.find(part) != std::string::npos; };
  const std::string answer(name(verdict.answer));
  if (is(".equal.")) {
    EXPECT_EQ(answer, "equivalent") << verdict.reason;
    EXPECT_LE(verdict.field.error_bound_log2, -60);
  } else if (is(".differ.")) {
    EXPECT_EQ(answer, "different") << verdict.reason;
    EXPECT_TRUE(verdict.witness.has_value());
  } else if (is(".refused.")) {
    EXPECT_NE(answer, "equivalent") << verdict.reason;
  } else if (is(".unknown.")) {
    EXPECT_EQ(answer, "unknown") << verdict.reason;
  } else {
    EXPECT_NE(answer, "different") << verdict.reason;
  }
  EXPECT_FALSE(verdict.reason.empty());
}

std::vector<std::string> traps() {
  return pair_files({".equal.", ".differ.", ".refused.", ".unknown.", ".unsure."}, traps_folder());
}

std::string test_name(const testing::TestParamInfo<std::string>& trap) {
  std::string text = trap.param;
  std::replace_if(
      text.begin(), text.end(), [](char c) { return !std::isalnum(c); }, '_');
  return text;
}

// Programs with long windows take seconds each, and one of them is like another.
bool is_slow(const std::string& file) {
  return file.starts_with("sliding_") && file.ends_with(".sd") && file != "sliding_512.differ.sd";
}

std::vector<std::string> those_of_traps(bool slow) {
  std::vector<std::string> files = traps();
  std::erase_if(files, [&](const std::string& file) { return is_slow(file) != slow; });
  return files;
}

INSTANTIATE_TEST_SUITE_P(Files, Traps, testing::ValuesIn(those_of_traps(false)), test_name);
INSTANTIATE_TEST_SUITE_P(SlowFiles, Traps, testing::ValuesIn(those_of_traps(true)), test_name);

// A misspelt verdict would be a file that nobody tests.
TEST(TrapFiles, AreAllTestsOrProgramsOfTests) {
  std::set<std::string> known;
  for (const std::string& file : traps()) {
    known.insert(file);
    const auto reference = program_reference(read_file(traps_folder() / file));
    ASSERT_TRUE(reference.has_value()) << file;
    known.insert(reference->path);
  }
  for (const auto& entry : std::filesystem::directory_iterator(traps_folder())) {
    EXPECT_TRUE(known.count(entry.path().filename().string()) != 0) << entry.path();
  }
}

}  // namespace
}  // namespace sundog::verify
