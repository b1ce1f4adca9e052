// Every pair of tests/programs: NAME.equal.{sd,mu} and NAME.differ.{sd,mu} against the program that
// their first line names.
#include "verify/verdict.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "core/text.h"

namespace sundog::verify {
namespace {

namespace fs = std::filesystem;

std::string read_file(const fs::path& path) {
  std::ifstream in(path);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

std::vector<std::string> pair_files() {
  std::vector<std::string> files;
  for (const auto& entry : fs::directory_iterator(fs::path(SUNDOG_SOURCE_DIR) / "tests/programs")) {
    const std::string file = entry.path().filename().string();
    if (file.find(".equal.") != std::string::npos || file.find(".differ.") != std::string::npos) {
      files.push_back(file);
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

class Pairs : public testing::TestWithParam<std::string> {};

TEST_P(Pairs, HaveTheirVerdict) {
  const fs::path path = fs::path(SUNDOG_SOURCE_DIR) / "tests/programs" / GetParam();
  const std::string text = read_file(path);
  const auto reference = program_reference(text);
  ASSERT_TRUE(reference.has_value()) << "no '# program:' line";
  const fs::path program_path = path.parent_path() / reference->path;
  const auto program =
      parse_program(read_file(program_path), program_path.string(), reference->defines);
  ASSERT_TRUE(program.ok()) << to_string(program.error());
  const auto start = std::chrono::steady_clock::now();
  Verdict verdict;
  if (path.extension() == ".mu") {
    const auto graph = parse_mugraph(text, path.string(), *program);
    ASSERT_TRUE(graph.ok()) << to_string(graph.error());
    verdict = verify(*program, *graph);
  } else {
    const auto other = parse_program(text, path.string(), reference->defines);
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

INSTANTIATE_TEST_SUITE_P(Programs, Pairs, testing::ValuesIn(pair_files()), test_name);

}  // namespace
}  // namespace sundog::verify
