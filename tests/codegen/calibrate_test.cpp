#include "codegen/calibrate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "codegen/compile.h"
#include "tests/codegen/fake_driver.h"

namespace sundog::codegen {
namespace {

// A device on which every launch takes what `cost_us` says and every kernel counts as many cycles.
class Calibrate : public testing::Test {
 protected:
  Calibrate() {
    for (const char* name : {"read_1", "read_2", "read_4", "read_6", "read_8", "make_chain",
                             "empty", "empty_dependent", "grid_barriers", "warp_products_f16",
                             "warp_products_bf16", "follow_chain"}) {
      device_.kernels[name] = [](const std::vector<std::byte*>&) {};
    }
    device_.parameters = {
        {"empty", 0},         {"empty_dependent", 0},   {"strided_reads", 4},
        {"grid_barriers", 2}, {"warp_products_f16", 2}, {"warp_products_bf16", 2}};
    count("shared_reads", 65536);
    count("strided_reads", 1000);
    count("multiply_adds", 524288);
    count("logic_operations", 1048576);
    count("exponentials", 4194304);
    count("block_barriers", 8192 * 40);
    device_.cost_us = {{"read_1", 1000},
                       {"read_2", 500},
                       {"read_4", 400},
                       {"read_6", 300},
                       {"read_8", 250},
                       {"empty", 0.5},
                       {"follow_chain", 1400},
                       {"grid_barriers", 90},
                       {"warp_products_f16", 2000},
                       {"warp_products_bf16", 1000}};
  }

  void count(const char* name, uint64_t cycles) {
    device_.kernels[name] = [cycles](const std::vector<std::byte*>& p) {
      std::memcpy(p[0], &cycles, sizeof cycles);
    };
  }

  Result<Calibration> run() {
    const DriverApi api = fake_driver(device_);
    Result<Gpu> gpu = Gpu::open(api, 0);
    SUNDOG_CHECK(gpu.ok());
    return calibrate(*gpu, "cubin");
  }

  FakeDevice device_;
};

TEST_F(Calibrate, FiguresFollowFromTimesAndCycles) {
  const Result<Calibration> found = run();
  ASSERT_TRUE(found.ok()) << to_string(found.error());
  const Device& d = found->device;
  EXPECT_NEAR(d.hbm.front().second, 1073.7, 0.5) << "1 GiB in 1 ms";
  EXPECT_EQ(d.hbm.front().first, 4096);
  EXPECT_NEAR(d.hbm.back().second, 4295, 1) << "the rate at which depth no longer helps";
  EXPECT_NEAR(d.graph_node_us, 0.5, 1e-3) << "a slope, not what a replay costs";
  EXPECT_NEAR(d.fill_us, 0.7, 1e-3);
  EXPECT_EQ(d.shared_bytes_per_clock_per_sm, 2048);
  EXPECT_EQ(d.fma_per_clock_per_sm, 128);
  EXPECT_EQ(d.alu_per_clock_per_sm, 64);
  EXPECT_EQ(d.sfu_per_clock_per_sm, 16);
  ASSERT_EQ(d.tensor_tflop_per_s.size(), 2u);
  EXPECT_NEAR(d.tensor_tflop_per_s[1].second, 2 * d.tensor_tflop_per_s[0].second, 0.02);
  // A deeper pipeline that is no faster is no entry of the row, but it is told.
  const auto told = std::find_if(found->beside.begin(), found->beside.end(), [](const auto& each) {
    return each.name.find("in flight") != std::string::npos;
  });
  ASSERT_NE(told, found->beside.end());
  EXPECT_NEAR(told->value, 2147, 2);
}

TEST_F(Calibrate, AnErrorOfTheDeviceEndsIt) {
  device_.fail_launch = 700;
  const Result<Calibration> found = run();
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(found.error().code, ErrorCode::kFailed);
}

TEST_F(Calibrate, ArchitecturesFromNinetyOnAreTheirOwn) {
  GpuInfo info;
  info.major = 9;
  EXPECT_EQ(arch_of(info), "sm_90a");
  info.major = 8, info.minor = 6;
  EXPECT_EQ(arch_of(info), "sm_86");
}

TEST_F(Calibrate, ItsKernelsCompileWithoutSpills) {
  for (const char* arch : {"sm_80", "sm_90a"}) {
    const Result<CompiledModule> module = compile(calibration_source(arch), arch, {});
    if (!module.ok() && module.error().code == ErrorCode::kToolMissing) {
      GTEST_SKIP() << module.error().message;
    }
    ASSERT_TRUE(module.ok()) << to_string(module.error());
    for (const KernelResources& kernel : module->kernels) {
      EXPECT_EQ(kernel.spill_store_bytes, 0) << kernel.name;
    }
  }
}

}  // namespace
}  // namespace sundog::codegen
