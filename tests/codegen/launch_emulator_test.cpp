#include "codegen/launch_emulator.h"

#include <gtest/gtest.h>

#include "core/text.h"

namespace sundog::codegen {
namespace {

// y = 2 x + 1 through a workspace, by two kernels.  FIRST and SECOND are their bodies.
std::string source(const std::string& first, const std::string& second) {
  return R"(
extern "C" __global__ void first(const float* x, float* half_way) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  )" + first +
         R"(
}
extern "C" __global__ void second(const float* half_way, float* y) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  )" + second +
         R"(
}
)";
}

class LaunchEmulator : public testing::Test {
 protected:
  LaunchEmulator() {
    Result<Program> program = parse_program(R"(program twice(n = 128) {
      input x: f32[n]
      output y: f32[n] = 2 * x + 1
    })",
                                            "twice.sd");
    SUNDOG_CHECK(program.ok());
    program_ = std::move(*program);
    using Kind = PlanArgument::Kind;
    plan_.inputs = {{"x", DType::kF32, 128, 512}};
    plan_.outputs = {{"y", DType::kF32, 128, 512}};
    plan_.workspace_bytes = 1024;
    plan_.kernels = {
        {"first", {2, 1, 1}, 64, 0, {{Kind::kInput, 0, 0}, {Kind::kWorkspace, 0, 512}}},
        {"second", {2, 1, 1}, 64, 0, {{Kind::kWorkspace, 0, 512}, {Kind::kOutput, 0, 0}}}};
  }

  Result<EmulatedRun> run(const std::string& first, const std::string& second) {
    const FloatTensor x = draw_input(program_.inputs[0], 1, 0);
    CheckData data;
    data.inputs = {to_memory(program_.inputs[0], x)};
    data.expected.resize(1);
    for (const double value : x.f64) data.expected[0].values.push_back(2 * value + 1);
    return run_on_emulator(program_, plan_, source(first, second), data, 1e-6, {});
  }

  Program program_;
  LaunchPlan plan_;
};

TEST_F(LaunchEmulator, RunsKernelsInOrderThroughTheWorkspace) {
  const auto result = run("half_way[i] = 2 * x[i];", "y[i] = half_way[i] + 1;");
  ASSERT_TRUE(result.ok()) << to_string(result.error());
  EXPECT_TRUE(result->passed()) << result->failure();
  EXPECT_EQ(result->check.compared, 128);
  EXPECT_LT(result->check.max_rel_error, 1e-6);
}

TEST_F(LaunchEmulator, SeesWrongAndMissingOutputs) {
  auto result = run("half_way[i] = 2 * x[i];", "y[i] = half_way[i] + (i == 77);");
  ASSERT_TRUE(result.ok()) << to_string(result.error());
  EXPECT_FALSE(result->passed());
  EXPECT_NE(result->check.failure.find("127 of 128"), std::string::npos) << result->check.failure;
  result = run("half_way[i] = 2 * x[i];", "if (i != 5) y[i] = half_way[i] + 1;");
  ASSERT_TRUE(result.ok()) << to_string(result.error());
  EXPECT_NE(result->check.failure.find("y[5] is nan"), std::string::npos) << result->failure();
}

TEST_F(LaunchEmulator, SeesAWorkspaceThatIsLeft) {
  const auto result = run("half_way[i + 64] = 2 * x[i];", "y[i] = half_way[i] + 1;");
  ASSERT_TRUE(result.ok()) << to_string(result.error());
  EXPECT_FALSE(result->problems.empty());
}

TEST_F(LaunchEmulator, ReportsWhatDoesNotCompile) {
  const auto result = run("undeclared(i);", "");
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, ErrorCode::kFailed);
}

}  // namespace
}  // namespace sundog::codegen
