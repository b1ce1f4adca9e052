#include "verify/interface.h"

#include <gtest/gtest.h>

#include "core/text.h"

namespace sundog::verify {
namespace {

Program parsed(const std::string& text) {
  auto p = parse_program(text, "program.sd");
  EXPECT_TRUE(p.ok()) << to_string(p.error());
  return *std::move(p);
}

const char* const kSum = R"(program p(n = 4, k = 8) {
  input x: f16[n, k]
  input w: f16[k]
  output y: f32[n] = sum[k](x * w) })";

TEST(Interface, InputsMayBeLeftOut) {
  const Program sum = parsed(kSum);
  const Program fewer =
      parsed("program p(n = 4, k = 8) { input x: f16[n, k]\n output y: f32[n] = sum[k](x) }");
  EXPECT_EQ(interface_mismatch(sum, fewer), "");
  EXPECT_EQ(interface_mismatch(fewer, sum), "the program has no input 'w'");
  EXPECT_EQ(shared_tensors(sum, fewer).size(), 2u);
}

TEST(Interface, TypesShapesAndOutputsAreNamed) {
  const Program sum = parsed(kSum);
  const Program other = parsed(R"(program p(n = 4, k = 8) {
    input x: f32[n, k]
    output y: f32[n] = sum[k](x) })");
  EXPECT_EQ(interface_mismatch(sum, other), "input 'x' is f32 instead of f16");
  const Program none =
      parsed("program p(n = 4, k = 8) { input x: f16[n, k]\n output z: f32[n] = sum[k](x) }");
  EXPECT_EQ(interface_mismatch(sum, none), "the program has no output 'z'");
}

// Other sizes are no difference of the two, and how to give both the same is said.
TEST(Interface, OtherShapesAreNoQuestion) {
  const Program sum = parsed(kSum);
  EXPECT_TRUE(check_shapes(sum, sum).ok());
  const Program longer = parsed(R"(program p(n = 4, k = 9) {
    input x: f16[n, k]
    input w: f16[k]
    output y: f32[n] = sum[k](x * w) })");
  const Status status = check_shapes(sum, longer);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, ErrorCode::kBadInput);
  EXPECT_NE(status.error().message.find("'x' is [n=4, k=8] in the program"), std::string::npos)
      << status.error().message;
  EXPECT_NE(status.error().hint.find("-D k=8"), std::string::npos) << status.error().hint;
}

}  // namespace
}  // namespace sundog::verify
