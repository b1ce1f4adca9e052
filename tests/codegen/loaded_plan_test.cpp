#include "codegen/loaded_plan.h"

#include <gtest/gtest.h>

#include <cstring>

#include "tests/codegen/fake_driver.h"

namespace sundog::codegen {
namespace {

// out = workspace + 1 after workspace = 2 * in, on one float.
LaunchPlan two_kernels() {
  using Kind = PlanArgument::Kind;
  LaunchPlan plan;
  plan.name = "both";
  plan.inputs = {{"x", DType::kF32, 1, 4}};
  plan.outputs = {{"y", DType::kF32, 1, 4}};
  plan.workspace_bytes = 512;
  plan.kernels.resize(3);
  plan.kernels[0].name = "twice";
  plan.kernels[0].arguments = {
      {Kind::kInput, 0, 0}, {Kind::kWorkspace, 0, 256}, {Kind::kWorkspace, 0, 0}};
  plan.kernels[1] = plan.kernels[0];
  plan.kernels[1].grid = {4, 0, 1};  // launched, it would spoil the workspace
  plan.kernels[2].name = "plus_one";
  plan.kernels[2].shared_bytes = 65536;
  plan.kernels[2].arguments = {
      {Kind::kWorkspace, 0, 256}, {Kind::kOutput, 0, 0}, {Kind::kWorkspace, 0, 0}};
  return plan;
}

float& number(std::byte* pointer) { return *reinterpret_cast<float*>(pointer); }

class LoadedPlanTest : public testing::Test {
 protected:
  LoadedPlanTest() {
    device.kernels["twice"] = [](const auto& p) { number(p[1]) = 2 * number(p[0]); };
    device.kernels["plus_one"] = [](const auto& p) { number(p[1]) = number(p[0]) + 1; };
  }
  FakeDevice device;
  DriverApi api = fake_driver(device);
  float x = 3, y = 0;
  alignas(16) std::byte workspace[512] = {};
  void* const inputs[1] = {&x};
  void* const outputs[1] = {&y};
};

TEST_F(LoadedPlanTest, LaunchesInTheCallersStreamAndContext) {
  Result<LoadedPlan> plan = LoadedPlan::load(api, 0, "cubin", two_kernels());
  ASSERT_TRUE(plan.ok()) << to_string(plan.error());
  int other = 0, stream = 0;
  device.current = &other;  // a thread that works with another device
  ASSERT_TRUE(plan->launch(inputs, outputs, workspace, &stream).ok());
  EXPECT_EQ(y, 7);
  EXPECT_EQ(device.order, (std::vector<std::string>{"twice", "plus_one"}));
  EXPECT_EQ(device.stream, &stream);
  EXPECT_EQ(device.current, &other) << "the caller's context is put back";
  EXPECT_TRUE(device.below.empty());
}

TEST_F(LoadedPlanTest, EachDeviceRunsWhatWasLoadedForIt) {
  device.count = 3;
  std::vector<LoadedPlan> plans;
  for (int ordinal : {0, 1, 2}) {
    Result<LoadedPlan> plan = LoadedPlan::load(api, ordinal, "cubin", two_kernels());
    ASSERT_TRUE(plan.ok()) << to_string(plan.error());
    EXPECT_EQ(plan->ordinal(), ordinal);
    EXPECT_EQ(device.current, nullptr) << "loading leaves the context as it was";
    plans.push_back(std::move(*plan));
  }
  for (int current : {1, 0, 2}) {  // whatever device the thread works with
    device.current = device.context(current);
    for (size_t ordinal : {2u, 0u, 1u}) {
      device.ran_on.clear();
      y = 0;
      ASSERT_TRUE(plans[ordinal].launch(inputs, outputs, workspace, nullptr).ok());
      EXPECT_EQ(y, 7);
      EXPECT_EQ(device.ran_on, std::vector<int>(2, static_cast<int>(ordinal)));
      EXPECT_EQ(device.current, device.context(current));
    }
  }
  EXPECT_TRUE(device.below.empty());
  EXPECT_EQ(LoadedPlan::load(api, 3, "cubin", two_kernels()).error().code, ErrorCode::kBadInput);
}

TEST_F(LoadedPlanTest, DependentKernelsHaveLeaveToStartEarly) {
  LaunchPlan plan = two_kernels();
  plan.kernels[2].dependent = true;
  Result<LoadedPlan> loaded = LoadedPlan::load(api, 0, "cubin", plan);
  ASSERT_TRUE(loaded.ok());
  ASSERT_TRUE(loaded->launch(inputs, outputs, workspace, nullptr).ok());
  EXPECT_EQ(device.dependent, std::vector<std::string>{"plus_one"});
  EXPECT_EQ(y, 7);
  // A driver that does not know it runs them in turn.
  api.launch_ex = nullptr;
  ASSERT_TRUE(loaded->launch(inputs, outputs, workspace, nullptr).ok());
  EXPECT_EQ(device.dependent.size(), 1u);
  EXPECT_EQ(device.order.size(), 4u);
}

TEST_F(LoadedPlanTest, MapsAreMadeOfTheCallersPointers) {
  LaunchPlan plan = two_kernels();
  plan.kernels[0].arguments[0].map = PlanTensorMap{"", DType::kF32, 0, 0, {1}, {4}, {1}};
  Result<LoadedPlan> loaded = LoadedPlan::load(api, 0, "cubin", plan);
  ASSERT_TRUE(loaded.ok());
  EXPECT_FALSE(loaded->launch(inputs, outputs, workspace, nullptr).ok()) << "an old driver";
  // The bits begin with the address, which is all that the kernel looks at.
  api.tensor_map_encode = [](void* bits, int, unsigned, void* address, const uint64_t*,
                             const uint64_t*, const unsigned*, const unsigned*, int, int, int,
                             int) { return std::memcpy(bits, &address, sizeof address), 0; };
  ASSERT_TRUE(loaded->launch(inputs, outputs, workspace, nullptr).ok());
  EXPECT_EQ(y, 7);
}

TEST_F(LoadedPlanTest, ErrorsSayWhat) {
  EXPECT_EQ(LoadedPlan::load(api, 1, "cubin", two_kernels()).error().code, ErrorCode::kBadInput);
  LaunchPlan missing = two_kernels();
  missing.kernels[0].name = "absent";
  const Result<LoadedPlan> absent = LoadedPlan::load(api, 0, "cubin", missing);
  ASSERT_FALSE(absent.ok());
  EXPECT_NE(absent.error().message.find("cuModuleGetFunction"), std::string::npos);
  EXPECT_TRUE(device.below.empty()) << "a failure leaves the context as it was";

  Result<LoadedPlan> plan = LoadedPlan::load(api, 0, "cubin", two_kernels());
  ASSERT_TRUE(plan.ok());
  EXPECT_FALSE(plan->launch(inputs, outputs, nullptr, nullptr).ok()) << "no workspace";
  device.fail_launch = 700;
  const Status failed = plan->launch(inputs, outputs, workspace, nullptr);
  ASSERT_FALSE(failed.ok());
  EXPECT_NE(failed.error().message.find("cuLaunchKernel: CUDA_ERROR_FAKE (700)"),
            std::string::npos);
}

}  // namespace
}  // namespace sundog::codegen
