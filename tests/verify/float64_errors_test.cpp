#include "verify/float64_errors.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/verify/pairs.h"
#include "verify/verdict.h"

namespace sundog::verify {
namespace {

std::string chain(int length, const std::string& line) {
  std::string text = "program p(n = 8) { input x: f32[n] y[n] = x ";
  std::string before = "y";
  for (int i = 0; i < length; ++i) {
    std::string next = line;
    for (size_t at; (at = next.find('@')) != std::string::npos;) next.replace(at, 1, before);
    before = "y" + std::to_string(i);
    text += before + "[n] = " + next + " ";
  }
  return text + "output z: f32[n] = " + before + " }";
}

TEST(Float64Errors, ExplainWhatRoundingsAddUpTo) {
  const SmallCase small{parsed(chain(1, "(@ + 1) * (@ - 1)")), parsed(chain(1, "@ * @ - 1")), ""};
  const std::vector<TensorValues<double>> inputs{{{8}, std::vector<double>(8, 1 + 0x1p-23)}};
  const Float64Errors errors(small, Rounding::kWide, inputs);
  EXPECT_TRUE(errors.explain(0, 3, 0x1p-22, 0x1p-22 + 0x1p-52));
  EXPECT_FALSE(errors.explain(0, 3, 0x1p-22, 0x1p-22 + 0x1p-48));
  EXPECT_FALSE(errors.explain(0, 3, 1, std::numeric_limits<double>::infinity()));
}

// x -> x^2 - 1 soon goes to and fro between -1 and 0, where nothing but the roundings of float64 is
// left to compare.
TEST(Float64Errors, WhatIsLeftOfAChainIsNoDifference) {
  for (const int length : {20, 21, 40}) {
    const Program program = parsed(chain(length, "(@ + 1) * (@ - 1)"));
    const Verdict same = verify(program, parsed(chain(length, "@ * @ - 1")));
    EXPECT_NE(same.answer, Verdict::kDifferent) << length << ": " << same.reason;
    const Verdict other = verify(program, parsed(chain(length, "@ * @ - 2")));
    EXPECT_EQ(other.answer, Verdict::kDifferent) << length << ": " << other.reason;
  }
}

}  // namespace
}  // namespace sundog::verify
