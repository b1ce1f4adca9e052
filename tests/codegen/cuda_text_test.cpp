#include "codegen/cuda_text.h"

#include <gtest/gtest.h>

namespace sundog::codegen {
namespace {

Text name(const std::string& text) { return {text, 0, {}, {}, {}, {}}; }

class CudaTextTest : public testing::Test {
 protected:
  std::string apply(const Op& op, std::vector<Text> in, CudaTextOptions options = {}) {
    CudaText a(out_, options);
    return a.apply(op, std::move(in)).text;
  }
  Writer out_;
};

TEST_F(CudaTextTest, WritesOperatorsWithFewParentheses) {
  const Text x = name("x"), y = name("y"), z = name("z");
  CudaText a(out_, {});
  EXPECT_EQ(a.mul(a.add(x, y), z).text, "(x + y) * z");
  EXPECT_EQ(a.add(a.mul(x, y), z).text, "x * y + z");
  EXPECT_EQ(a.sub(x, a.add(y, z)).text, "x - (y + z)");
  EXPECT_EQ(a.mul(x, a.mul(y, z)).text, "x * (y * z)");
}

TEST_F(CudaTextTest, FindsSingleInstructions) {
  const Text x = name("x"), y = name("y");
  EXPECT_EQ(apply(op::Rsqrt{}, {x}), "sd::rsqrt(x)");
  EXPECT_EQ(apply(op::Sub{}, {x, y}), "x - y");
  EXPECT_EQ(apply(op::Min{}, {x, y}), "sd::min(x, y)");
  EXPECT_EQ(apply(op::Abs{}, {x}), "sd::abs(x)");
  CudaText a(out_, {});
  EXPECT_EQ(a.add(x, a.mul(a.constant(Number(-1)), y)).text, "x - y");
  EXPECT_EQ(a.neg(a.neg(x)).text, "x");
}

TEST_F(CudaTextTest, FoldsConstants) {
  CudaText a(out_, {});
  EXPECT_EQ(a.div(a.constant(Number(1)), a.sqrt(a.constant(Number(64)))).text, "0.125f");
  EXPECT_EQ(a.div(name("x"), a.constant(Number(4))).text, "x * 0.25f");
  EXPECT_EQ(a.mul(name("x"), a.constant(Number(-2))).text, "x * (-2.0f)");
}

TEST_F(CudaTextTest, NamesWhatIsReadTwice) {
  EXPECT_EQ(apply(op::Square{}, {{"x + y", 2, {}, {}, {}, {}}}), "t0 * t0");
  EXPECT_EQ(out_.text(), "const float t0 = x + y;\n");
}

TEST_F(CudaTextTest, LongPowersStayShort) {
  const std::string text = apply(op::Pow{Number(31)}, {name("x")});
  EXPECT_LT(text.size() + out_.text().size(), 600u);
}

TEST_F(CudaTextTest, DividesApproximatelyOnlyWhenAsked) {
  EXPECT_EQ(apply(op::Div{}, {name("x"), name("y")}), "sd::div(x, y)");
  EXPECT_EQ(apply(op::Div{}, {name("x"), name("y")}, {true, Rounding::kWide}),
            "x * sd::reciprocal_fast(y)");
}

TEST_F(CudaTextTest, ExponentsAreOneFusedProduct) {
  CudaText exact(out_, {}), fast(out_, {.fast = true});
  const Text x = name("x[i]"), c = name("c"), y = name("y");
  const auto exponential = [&](CudaText& a, const Text& left) {
    return a.exp(a.sub(left, y)).text;
  };
  EXPECT_EQ(exponential(fast, x), "sd::exp_difference_fast(x[i], y)");
  EXPECT_EQ(exponential(fast, fast.mul(x, c)), "sd::exp_scaled_difference_fast(x[i], c, y)");
  EXPECT_EQ(exponential(fast, fast.mul(c, x)), "sd::exp_scaled_difference_fast(x[i], c, y)");
  EXPECT_EQ(exponential(fast, fast.mul(fast.add(x, c), c)),
            "sd::exp_difference_fast((x[i] + c) * c, y)");
  EXPECT_EQ(exponential(exact, exact.mul(x, c)), "sd::exp(x[i] * c - y)");
}

TEST_F(CudaTextTest, CastsRoundOnlyWhenAsked) {
  EXPECT_EQ(apply(op::Cast{DType::kF16}, {name("x")}), "x");
  EXPECT_EQ(apply(op::Cast{DType::kF16}, {name("x")}, {false, Rounding::kEager}),
            "sd::to_float(sd::from_float<sd::f16>(x))");
  EXPECT_EQ(apply(op::Cast{DType::kI8}, {name("x")}), "sd::to_float(sd::from_float<int8_t>(x))");
}

TEST(CudaTextNames, LiteralsAreFloats) {
  EXPECT_EQ(literal(1), "1.0f");
  EXPECT_EQ(literal(1e-6), "1e-06f");
  EXPECT_EQ(literal(-INFINITY), "sd::bits_float(0xff800000u)");
}

TEST(CudaTextNames, IdentifiersAreLegalAndFree) {
  EXPECT_EQ(identifier("q.i"), "q_i");
  EXPECT_EQ(identifier("as"), "as");
  EXPECT_EQ(identifier("int"), "int_");
  EXPECT_EQ(identifier("lane"), "lane_");
  EXPECT_EQ(identifier("2x"), "x2x");
  EXPECT_EQ(identifier("exp"), "exp");
  EXPECT_EQ(identifier("NAN"), "NAN_");
  EXPECT_EQ(identifier("INT_MAX"), "INT_MAX_");
  EXPECT_EQ(identifier("W1"), "W1");
  EXPECT_EQ(identifier("co_await"), "co_await_");
  EXPECT_EQ(entry_name("cudaMalloc"), "cudaMalloc_");
  EXPECT_EQ(entry_name("cumulative"), "cumulative");
  EXPECT_EQ(entry_name("exp"), "exp_");
  EXPECT_EQ(entry_name("norm"), "norm_");
  EXPECT_EQ(entry_name("maxf"), "maxf_");
  EXPECT_EQ(entry_name("int"), "int_");
  EXPECT_EQ(entry_name("rms_norm"), "rms_norm");
}

TEST(CudaTextLinear, AddsAndFolds) {
  Linear e = Linear::of("i");
  e.add("j", -4);
  e.add("3", 2);
  e.add("i", 1);
  EXPECT_EQ(e.text(), "i * 2 - j * 4 + 6");
  e.add("i", -2);
  EXPECT_EQ(e.text(), "-j * 4 + 6");
  EXPECT_EQ(Linear().text(), "0");
  EXPECT_EQ(Linear::of("i").text(true), "static_cast<int64_t>(i)");
}

}  // namespace
}  // namespace sundog::codegen
