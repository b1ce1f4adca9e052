// Tiles that threads write themselves.
#include <gtest/gtest.h>

#include <string>

#include "tests/codegen/generate_cases.h"

namespace sundog::codegen {
namespace {

// Rows of `h` values, centred in f32 and kept in shared memory, where a product reads them again.
GenerateCase centred_rows(int n, int h) {
  const auto text = [](int x) { return std::to_string(x); };
  return {"centred_" + text(h),
          "program p(n = " + text(n) + ", h = " + text(h) +
              ", d = 8) {\n  input x: f16[n, h]\n  input w: f16[d, h]\n  c[n, h] = x - "
              "mean[h](x)\n  output y: f32[n, d] = sum[h](c * w)\n}\n",
          "ugraph g of p {\n  kernel k0 grid(d.o) warps(4) {\n    split d = d.o * d.i(4)\n    "
          "xs[n, h] = x : reg f16\n    ws[d.i, h] = w : shared f16\n    t[n] = sum[h](xs) : reg "
          "f32\n    c[n, h] = xs - t / size(h) : shared f32\n    y[n, d.i] = sum[h](c * ws) : reg "
          "f32\n    store y -> y\n  }\n}\n"};
}

// A thread holds eight neighbours, and a word of shared memory takes four of them in f32.
TEST(EmitLoad, RunsLongerThanAWordAreWrittenInWords) {
  for (const int h : {256, 264, 1600}) {
    const GenerateOutcome outcome = run_case(centred_rows(4, h));
    EXPECT_TRUE(outcome.passed) << outcome.failure;
    EXPECT_NE(outcome.cuda.find("sd::Vec<float, 4> vec[2];"), std::string::npos) << outcome.cuda;
    EXPECT_NE(outcome.cuda.find("+ 4, vec[1]);"), std::string::npos) << outcome.cuda;
  }
}

TEST(EmitLoad, WhatNoWordDividesIsWrittenOneByOne) {
  const GenerateOutcome outcome = run_case(centred_rows(3, 127));
  EXPECT_TRUE(outcome.passed) << outcome.failure;
}

}  // namespace
}  // namespace sundog::codegen
