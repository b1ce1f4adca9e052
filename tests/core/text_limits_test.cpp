#include "core/text_limits.h"

#include <gtest/gtest.h>

#include "core/text.h"

namespace sundog::text {
namespace {

TEST(TextLimits, RangesOfIndices) {
  const IndexExpr e = IndexExpr::of(0) * 3 - IndexExpr::of(1) + IndexExpr::of_constant(5);
  EXPECT_EQ(index_range(e, {4, 3}), (std::pair<int64_t, int64_t>(3, 14)));
  EXPECT_EQ(index_range(e, {4, 0}), std::nullopt);
  IndexExpr reversed = IndexExpr::of(0) * -1 - IndexExpr::of_constant(1);
  reversed.sizes = {{0, 1}};
  EXPECT_EQ(index_range(reversed, {7}), (std::pair<int64_t, int64_t>(0, 6)));
}

TEST(TextLimits, RangesStayFinite) {
  const int64_t big = int64_t{1} << 62;
  const IndexExpr e = IndexExpr::of(0) * (int64_t{1} << 50);
  EXPECT_EQ(index_range(e, {big})->second, big);
}

TEST(TextLimits, SizesOfTensors) {
  TensorDecl tensor;
  tensor.dtype = DType::kF16;
  tensor.extents = {int64_t{1} << 30, int64_t{1} << 30};
  EXPECT_TRUE(size_fits(tensor));
  tensor.extents.push_back(4);
  EXPECT_FALSE(size_fits(tensor));
  tensor.extents.push_back(0);  // empty, but the others still overflow
  EXPECT_FALSE(size_fits(tensor));
  tensor.extents = {16};
  tensor.strides = {int64_t{1} << 61};
  EXPECT_FALSE(size_fits(tensor));
  tensor.strides = {0};
  tensor.offset = int64_t{1} << 61;
  EXPECT_FALSE(size_fits(tensor));
}

TEST(TextLimits, Coefficients) {
  EXPECT_TRUE(coefficients_fit(IndexExpr::of(0) * (int64_t{1} << 31)));
  EXPECT_FALSE(coefficients_fit(IndexExpr::of(0) * ((int64_t{1} << 31) + 1)));
  TermGraph terms;
  terms.input(0, {IndexExpr::of(0)});
  terms.push(IndexTerm{IndexExpr::of(0) * (int64_t{1} << 40)});
  EXPECT_FALSE(coefficients_fit(terms, 0));
  EXPECT_TRUE(coefficients_fit(terms, 2));
}

// What is wrong with a kernel of 64 elements that is cut like this.
std::string complaint(const std::string& split) {
  const std::string text =
      "program p(n = 64, h = 4) { input x: f32[n, h] output y: f32[n, h] = 2 * x }";
  const Result<Program> program = parse_program(text, "p.sd", {});
  EXPECT_TRUE(program.ok());
  const Result<MuGraph> graph =
      parse_mugraph("ugraph g of p {\n kernel k grid(n.o) warps(1) {\n" + split +
                        "\n v[n.i, h] = x * 2 : reg f32\n"
                        " store v -> y\n } }",
                    "g.mu", *program);
  return graph.ok() ? "" : to_string(graph.error());
}

TEST(TextLimits, SplitsThatGoFarBeyondTheirAxis) {
  EXPECT_EQ(complaint("split n = n.o * n.i(4096)"), "");
  EXPECT_EQ(complaint("split n = n.o * n.i(65600)"), "");
  EXPECT_NE(complaint("split n = n.o * n.i(65601)").find("g.mu:3:7: error: kernel 'k': axis 'n'"),
            std::string::npos);
  EXPECT_NE(
      complaint("split n = n.o(99999999999) * n.i(16)").find("1599999999984 indices of its 64"),
      std::string::npos);
}

TEST(TextLimits, DepthOfTerms) {
  Program program;
  TermId id = program.terms.constant(Number(1));
  for (int i = 1; i < kMaxTermDepth; ++i) id = program.terms.apply(op::Exp{}, {id});
  EXPECT_TRUE(check_limits(program).ok());
  id = program.terms.apply(op::Exp{}, {id});
  EXPECT_EQ(check_limits(program).error().code, ErrorCode::kLimit);
}

}  // namespace
}  // namespace sundog::text
