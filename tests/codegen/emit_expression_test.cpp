// How the branches of a select are read.
#include <gtest/gtest.h>

#include <string>

#include "tests/codegen/generate_cases.h"

namespace sundog::codegen {
namespace {

std::string text(int x) { return std::to_string(x); }

int occurrences(const std::string& where, const std::string& what) {
  int count = 0;
  for (size_t at = where.find(what); at != std::string::npos; at = where.find(what, at + 1)) {
    ++count;
  }
  return count;
}

// `axes` are those of the inputs alone.
GenerateCase elementwise_case(const std::string& name, int n, int e, const std::string& axes,
                              const std::string& inputs, const std::string& value) {
  return {name,
          "program p(n = " + text(n) + ", e = " + text(e) + axes + ") {\n" + inputs +
              "  output y: f16[n, e] = " + value + "\n}\n",
          "ugraph g of p {\n  kernel k0 grid(n.o) warps(2) {\n    split n = n.o * n.i(8)\n    "
          "ys[n.i, e] = " +
              value + " : reg f32\n    store ys -> y\n  }\n}\n"};
}

// One more row behind others.
GenerateCase appended_row(int n) {
  const std::string value = "select(n < " + text(n - 1) + ", x[n, e], row[e])";
  return elementwise_case("appended", n, 64, ", k = " + text(n - 1),
                          "  input x: f16[k, e]\n  input row: f16[e]\n", value);
}

// The two halves of each row, exchanged and one negated, as a rotary embedding does; they meet at
// `half`.
GenerateCase rotated(int e, int half) {
  const std::string rest = text(e - half);
  const std::string value = "select(e < " + text(half) + ", 0 - x[n, e + " + rest + "], x[n, e - " +
                            text(half) + "]) * c + x";
  return elementwise_case("rotated", 12, e, "", "  input x: f16[n, e]\n  input c: f16[n, e]\n",
                          value);
}

TEST(EmitExpression, ABranchThatHoldsForAWholeVectorIsReadAsOne) {
  const GenerateOutcome row = run_case(appended_row(21));
  EXPECT_TRUE(row.passed) << row.failure;
  EXPECT_EQ(occurrences(row.cuda, "sd::to_float(*("), 0) << row.cuda;
  // No branch that later loads would have to wait for.
  EXPECT_EQ(occurrences(row.cuda, "sd::load_stream(in_"), 1) << row.cuda;
  EXPECT_EQ(occurrences(row.cuda, ") sd::load_stream("), 0) << row.cuda;

  // Three vectors of x in all: of either branch, and of the sum.
  const GenerateOutcome halves = run_case(rotated(64, 32));
  EXPECT_TRUE(halves.passed) << halves.failure;
  EXPECT_EQ(occurrences(halves.cuda, "sd::to_float(*("), 0) << halves.cuda;
  EXPECT_EQ(occurrences(halves.cuda, ", x + "), 3) << halves.cuda;
}

TEST(EmitExpression, ABranchThatChangesWithinAVectorIsReadOneByOne) {
  const GenerateOutcome outcome = run_case(rotated(64, 27));
  EXPECT_TRUE(outcome.passed) << outcome.failure;
  EXPECT_EQ(occurrences(outcome.cuda, "sd::to_float(*("), 2) << outcome.cuda;
}

TEST(EmitExpression, SelectsWithinSelects) {
  const std::string value =
      "select(n < 3, a[n, e], select(n < 10, b[n - 3, e], select(e < 16, c[e], d[e - 16])))";
  const GenerateOutcome outcome = run_case(elementwise_case(
      "nested", 13, 48, ", i = 3, j = 7, k = 16, l = 32",
      "  input a: f16[i, e]\n  input b: f16[j, e]\n  input c: f16[k]\n  input d: f16[l]\n", value));
  EXPECT_TRUE(outcome.passed) << outcome.failure;
  EXPECT_EQ(occurrences(outcome.cuda, "sd::to_float(*("), 0) << outcome.cuda;
}

TEST(EmitExpression, WhatIsReadAnywayIsNotReadAgainInABranch) {
  const GenerateOutcome outcome = run_case(
      elementwise_case("anyway", 16, 64, "", "  input x: f16[n, e]\n  input c: f16[n, e]\n",
                       "x * c + select(n < 5, x, c)"));
  EXPECT_TRUE(outcome.passed) << outcome.failure;
  EXPECT_EQ(occurrences(outcome.cuda, ", x + "), 1) << outcome.cuda;
}

}  // namespace
}  // namespace sundog::codegen
