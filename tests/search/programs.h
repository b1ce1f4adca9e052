// Programs for the tests of search: those of benchmarks/programs by name, and from text.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>
#include <map>
#include <sstream>
#include <string>

#include "core/text.h"

namespace sundog::search {

inline Program parse(const std::string& text, const std::string& name = "test.sd",
                     const std::map<std::string, int64_t>& defines = {}) {
  Result<Program> program = parse_program(text, name, defines);
  EXPECT_TRUE(program.ok()) << (program.ok() ? "" : to_string(program.error())) << "\n" << text;
  return std::move(*program);
}

inline Program load(const std::string& name, const std::map<std::string, int64_t>& defines = {}) {
  std::ifstream file(std::string(SUNDOG_SOURCE_DIR) + "/benchmarks/programs/" + name + ".sd");
  std::ostringstream text;
  text << file.rdbuf();
  return parse(text.str(), name + ".sd", defines);
}

}  // namespace sundog::search
