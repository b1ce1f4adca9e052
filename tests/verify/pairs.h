// The pairs of tests/programs, read for the tests of verify.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "core/text.h"

namespace sundog::verify {

inline std::filesystem::path pairs_folder() {
  return std::filesystem::path(SUNDOG_SOURCE_DIR) / "tests/programs";
}

// Pairs that are easy to get wrong, and pairs that were built to break an argument.
inline std::filesystem::path traps_folder() {
  return std::filesystem::path(SUNDOG_SOURCE_DIR) / "tests/verify/traps";
}

inline std::string read_file(const std::filesystem::path& path) {
  std::ifstream in(path);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

// Files whose name contains one of `parts`, in order.
inline std::vector<std::string> pair_files(const std::vector<std::string>& parts,
                                           const std::filesystem::path& folder = pairs_folder()) {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string file = entry.path().filename().string();
    const auto contains = [&](const std::string& part) {
      return file.find(part) != std::string::npos;
    };
    if (std::any_of(parts.begin(), parts.end(), contains)) files.push_back(file);
  }
  std::sort(files.begin(), files.end());
  return files;
}

// The program that the first line of a pair's text names.
inline Result<Program> program_of(const std::string& text,
                                  const std::filesystem::path& folder = pairs_folder()) {
  const auto reference = program_reference(text);
  if (!reference) return bad_input("no '# program:' line");
  const std::filesystem::path path = folder / reference->path;
  return parse_program(read_file(path), path.string(), reference->defines);
}

inline Program parsed(const std::string& text) {
  auto program = parse_program(text, "test.sd");
  EXPECT_TRUE(program.ok()) << to_string(program.error());
  return *program;
}

}  // namespace sundog::verify
