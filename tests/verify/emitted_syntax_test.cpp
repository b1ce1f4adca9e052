#include "verify/emitted_syntax.h"

#include <gtest/gtest.h>

namespace sundog::verify {
namespace {

constexpr const char* kKernel = R"(
namespace sd { void not_a_kernel(); }
extern "C" __global__ void __launch_bounds__(128)
add_k0(const sd::f16* __restrict__ X, float* __restrict__ Y) {
  [[maybe_unused]] const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  sd::Vec<sd::f16, 8> in[2];
  const auto load = [&](int i, int stage) {
#pragma unroll
    for (int e = lane; e < 64; e += 32) sd::cp_async<16>(X + i * 8, Y, e < 3 && i != 2);
  };
  if (lane < 4) { Y[lane] += -2.5e-3f * in[0][1]; } else *(Y + 1) = lane == 1 ? 0.0f : Y[0];
}
#ifndef __CUDACC_RTC__
int launcher() { return }{ ;
#endif
)";

TEST(EmittedSyntax, ReadsKernelsAndNothingElse) {
  const auto functions = parse_emitted(kKernel);
  ASSERT_TRUE(functions.ok()) << functions.error().message;
  ASSERT_EQ(functions->size(), 1u);
  const EmittedFunction& f = (*functions)[0];
  EXPECT_EQ(f.name, "add_k0");
  ASSERT_EQ(f.parameters.size(), 2u);
  EXPECT_EQ(f.parameters[0].type, "sd::f16");
  EXPECT_EQ(f.parameters[1].name, "Y");
  const std::vector<EmittedStatement>& body = f.body[0].body;
  ASSERT_EQ(body.size(), 5u);
  EXPECT_EQ(body[0].name, "lane");
  EXPECT_EQ(body[1].name, "warp");
  EXPECT_EQ(body[2].type, "sd::Vec<sd::f16,8>");
  EXPECT_EQ(body[3].kind, EmittedStatement::kLambda);
  EXPECT_EQ(body[3].parameters, (std::vector<std::string>{"i", "stage"}));
  const EmittedStatement& loop = body[3].body[0].body[0];
  EXPECT_EQ(loop.kind, EmittedStatement::kFor);
  const Expression& copy = loop.body[0].body[0].expressions[0];
  EXPECT_EQ(copy.text, "sd::cp_async");
  EXPECT_EQ(copy.arguments, "16");
  ASSERT_EQ(copy.parts.size(), 3u);
  EXPECT_EQ(copy.parts[2].text, "&&");
  EXPECT_EQ(body[4].kind, EmittedStatement::kIf);
  EXPECT_EQ(body[4].body.size(), 2u);
}

TEST(EmittedSyntax, ProductsBindStrongerThanSums) {
  const auto functions =
      parse_emitted("extern \"C\" __global__ void k(float* x) { x[a + b * c ^ d & 7] = 1; }");
  ASSERT_TRUE(functions.ok());
  const Expression& index = (*functions)[0].body[0].body[0].expressions[0].parts[0].parts[1];
  EXPECT_EQ(index.text, "^");
  EXPECT_EQ(index.parts[0].text, "+");
  EXPECT_EQ(index.parts[0].parts[1].text, "*");
  EXPECT_EQ(index.parts[1].text, "&");
}

TEST(EmittedSyntax, DeclaresPointersToElementsOfEveryWidth) {
  for (const char* type : {"int8_t", "uint16_t", "float", "sd::f16"}) {
    const std::string t = type;
    const auto functions =
        parse_emitted("extern \"C\" __global__ void k(float* x) { " + t +
                      "* const xs = reinterpret_cast<" + t + "*>(arena + 64); }");
    ASSERT_TRUE(functions.ok()) << functions.error().message;
    const EmittedStatement& declared = (*functions)[0].body[0].body[0];
    EXPECT_EQ(declared.kind, EmittedStatement::kDeclaration);
    EXPECT_EQ(declared.name, "xs");
    EXPECT_EQ(declared.type, t + "*");
  }
}

TEST(EmittedSyntax, WhatIsNotUnderstoodIsSaid) {
  for (const char* text : {"extern \"C\" __global__ void k(float* x) { while (1) ; ; } ) }",
                           "extern \"C\" __global__ void k(float* x) { x[1 = 2; }",
                           "extern \"C\" __global__ void k(float* x) { for (int i = 0; i < 3",
                           "extern \"C\" __global__ void"}) {
    const auto functions = parse_emitted(text);
    ASSERT_FALSE(functions.ok()) << text;
    EXPECT_NE(functions.error().message.find("not understood"), std::string::npos);
  }
  const std::string deep(5000, '(');
  EXPECT_FALSE(parse_emitted("extern \"C\" __global__ void k(float* x) { y = " + deep).ok());
}

TEST(EmittedSyntax, WhatStandsInForALibraryIsNoKernelOfADevice) {
  const std::string stand_in =
      "#ifdef SUNDOG_EMULATOR\nextern \"C\" __global__ void in_place(float* x) {\n  x[0] = 1;\n}\n"
      "#endif\n";
  const auto alone = parse_emitted(stand_in);
  ASSERT_TRUE(alone.ok());
  EXPECT_TRUE(alone->empty());
  const auto functions = parse_emitted(stand_in + kKernel + stand_in);
  ASSERT_TRUE(functions.ok()) << functions.error().message;
  ASSERT_EQ(functions->size(), 1u);
  EXPECT_EQ((*functions)[0].name, "add_k0");
}

}  // namespace
}  // namespace sundog::verify
