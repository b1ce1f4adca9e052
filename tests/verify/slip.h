// A slip in the text of an emitted kernel: one place of it changed.
#pragma once

#include <gtest/gtest.h>

#include <string>

namespace sundog::verify {

struct Slip {
  const char* name;
  const char* from;
  const char* to;
};

// The text with its first `from` replaced, which it must have.
inline std::string with_slip(std::string text, const Slip& slip) {
  const size_t at = text.find(slip.from);
  EXPECT_NE(at, std::string::npos) << slip.name;
  return at == std::string::npos ? text : text.replace(at, std::string(slip.from).size(), slip.to);
}

inline std::string slip_name(const testing::TestParamInfo<Slip>& slip) { return slip.param.name; }

}  // namespace sundog::verify
