#include "verify/integer_outputs.h"

#include <gtest/gtest.h>

#include "tests/verify/pairs.h"

namespace sundog::verify {
namespace {

TEST(IntegerOutputs, AreCastWhereTheyAreStored) {
  const std::string text = R"(program p(n = 8) {
    input x: f32[n]
    output q: i8[n] = 2 * x
    output y: f32[n] = x
  })";
  const Program program = parsed(text);
  EXPECT_TRUE(has_integer_outputs(program));
  const Program rounded = with_integer_outputs(program);
  EXPECT_EQ(print_term(rounded, rounded.outputs[0].value), "cast(2 * x, i8)");
  EXPECT_EQ(rounded.outputs[1].value, program.outputs[1].value);
  const auto graph = parse_mugraph(R"(ugraph g of p {
    kernel k grid(n.o) warps(1) {
      split n = n.o * n.i(4)
      a[n.i] = x : reg f32
      b[n.i] = 2 * a : reg f32
      store b -> q
      store a -> y
    }
  })",
                                   "g.mu", program);
  ASSERT_TRUE(graph.ok()) << to_string(graph.error());
  const MuGraph stored = with_integer_outputs(*graph);
  EXPECT_TRUE(check(stored, program).ok()) << to_string(check(stored, program).error());
  EXPECT_NE(print(stored, program).find("b_i8[n.i] = cast(b, i8)"), std::string::npos)
      << print(stored, program);
  EXPECT_EQ(stored.kernels[0].computations.size(), 3u) << "the other output is stored as it is";
}

}  // namespace
}  // namespace sundog::verify
