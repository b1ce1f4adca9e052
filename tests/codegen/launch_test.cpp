#include "codegen/launch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <set>

#include "codegen/compile.h"
#include "codegen/driver.h"
#include "tests/codegen/fake_driver.h"
#include "tests/codegen/twice.h"

namespace sundog::codegen {
namespace {

constexpr int kSize = kTwiceSize;

// y = 2 x, by a plan of one kernel.
class Launch : public testing::Test {
 protected:
  Launch() {
    program_ = twice_program();
    job_.name = "twice";
    job_.plan = twice_plan();
    job_.tolerance = 1e-6;
    device_.kernels["k"] = [](const std::vector<std::byte*>& p) { twice(p[0], p[1]); };
    options_.flush_bytes = 4096;
  }

  CheckData data(uint64_t seed) const { return twice_data(program_, seed); }

  std::vector<GpuReport> run(std::vector<GpuJob> jobs, int ordinal = 0) {
    const DriverApi api = fake_driver(device_);
    Result<Gpu> gpu = Gpu::open(api, ordinal);
    SUNDOG_CHECK(gpu.ok());
    return measure(*gpu, program_, jobs, data(1), data(2), options_);
  }
  GpuReport run() { return run({job_}).front(); }

  Program program_;
  GpuJob job_;
  FakeDevice device_;
  MeasureOptions options_;
};

TEST_F(Launch, RunsOnTheDeviceAskedFor) {
  device_.count = 2;
  const GpuReport report = run({job_}, 1).front();
  EXPECT_EQ(report.failure, "");
  EXPECT_TRUE(report.timed && report.after.passed);
  EXPECT_FALSE(device_.ran_on.empty());
  EXPECT_EQ(std::count(device_.ran_on.begin(), device_.ran_on.end(), 1),
            static_cast<std::ptrdiff_t>(device_.ran_on.size()));
}

TEST_F(Launch, ChecksAndTimesARightKernel) {
  device_.cost_us["k"] = 7;
  const GpuReport report = run();
  EXPECT_EQ(report.failure, "");
  EXPECT_TRUE(report.before.passed);
  EXPECT_TRUE(report.after.passed);
  EXPECT_EQ(report.after.compared, kSize);
  ASSERT_TRUE(report.timed);
  EXPECT_NEAR(report.timing.cold_us, 7, 1e-3);
  EXPECT_NEAR(report.timing.warm_us, 7, 1e-3);
  EXPECT_EQ(report.timing.copies, 64) << "small inputs: as many copies as are allowed";
  EXPECT_EQ(report.timing.calls, 64);
  EXPECT_EQ(report.registers, std::vector<int>{40});
}

TEST_F(Launch, ColdReplaysReadOtherCopiesAndFollowAFlush) {
  device_.kernels["sundog_flush"] = [](const std::vector<std::byte*>& p) {
    ASSERT_EQ(p[1] - p[0], 4096);
  };
  options_.flush_cubin = "flush";
  std::vector<std::byte*> inputs;
  device_.kernels["k"] = [&](const std::vector<std::byte*>& p) {
    inputs.push_back(p[0]);
    twice(p[0], p[1]);
  };
  ASSERT_EQ(run().failure, "");
  EXPECT_EQ(device_.launches["sundog_flush"], 2 * 3 * options_.replays);
  // Somewhere in the log 64 calls in a row have 64 different inputs.
  size_t distinct = 0;
  for (size_t i = 0; i + 64 <= inputs.size(); ++i) {
    const std::set<std::byte*> window(inputs.begin() + static_cast<std::ptrdiff_t>(i),
                                      inputs.begin() + static_cast<std::ptrdiff_t>(i) + 64);
    distinct = std::max(distinct, window.size());
  }
  EXPECT_EQ(distinct, 64u);
}

TEST_F(Launch, SecondRoundRunsInReverse) {
  GpuJob other = job_;
  other.plan.kernels[0].name = "other";
  device_.kernels["other"] = device_.kernels["k"];
  run({job_, other});
  std::vector<std::string> turns;
  for (const std::string& name : device_.order) {
    if (turns.empty() || turns.back() != name) turns.push_back(name);
  }
  // Check, preparation, round 1 and the first of round 2 join up; then the final checks.
  EXPECT_EQ(turns,
            (std::vector<std::string>{"k", "other", "k", "other", "k", "other", "k", "other"}));
}

TEST_F(Launch, RefusesAKernelThatWritesNothing) {
  device_.kernels["k"] = [](const std::vector<std::byte*>&) {};
  const GpuReport report = run();
  EXPECT_NE(report.failure.find("y[0] is "), std::string::npos) << report.failure;
  EXPECT_NE(report.failure.find("nan"), std::string::npos) << report.failure;
  EXPECT_FALSE(report.timed);
}

TEST_F(Launch, RefusesAKernelThatIsRightOnlyTheFirstTime) {
  int call = 0;
  device_.kernels["k"] = [&](const std::vector<std::byte*>& p) {
    twice(p[0], p[1], call++ == 0 ? kSize : kSize - 1);
  };
  const GpuReport report = run();
  EXPECT_EQ(report.failure.rfind("after timing", 0), 0u) << report.failure;
  EXPECT_TRUE(report.before.passed);
}

TEST_F(Launch, RefusesAKernelThatReplaysItsFirstAnswer) {
  std::vector<std::byte> kept;
  device_.kernels["k"] = [&](const std::vector<std::byte*>& p) {
    if (kept.empty()) {
      twice(p[0], p[1]);
      kept.assign(p[1], p[1] + kSize * 4);
    }
    std::memcpy(p[1], kept.data(), kept.size());
  };
  EXPECT_EQ(run().failure.rfind("after timing", 0), 0u);
}

TEST_F(Launch, RefusesAKernelThatWritesTheFirstRowOnly) {
  device_.kernels["k"] = [](const std::vector<std::byte*>& p) { twice(p[0], p[1], kSize / 8); };
  EXPECT_NE(run().failure.find("y[8] is nan"), std::string::npos) << run().failure;
}

TEST_F(Launch, RefusesAKernelThatWritesNan) {
  device_.kernels["k"] = [](const std::vector<std::byte*>& p) {
    twice(p[0], p[1]);
    std::memset(p[1] + 4 * 17, 0xff, 4);
  };
  EXPECT_NE(run().failure.find("y[17] is nan"), std::string::npos);
}

// On a stream of its own a kernel is not done when the launch has been waited for.
TEST_F(Launch, RefusesAKernelThatRunsOnAnotherStream) {
  std::function<void()> pending = [] {};
  device_.kernels["k"] = [&](const std::vector<std::byte*>& p) {
    pending();
    pending = [p] { twice(p[0], p[1]); };
  };
  EXPECT_NE(run().failure.find("y[0] is nan"), std::string::npos);
}

TEST_F(Launch, RefusesAKernelWithItsRowsAndColumnsExchanged) {
  device_.kernels["k"] = [](const std::vector<std::byte*>& p) {
    std::vector<std::byte> right(kSize * 4);
    twice(p[0], right.data());
    for (int i = 0; i < kSize; ++i) {
      std::memcpy(p[1] + 4 * (i % 8 * 8 + i / 8), right.data() + 4 * i, 4);
    }
  };
  EXPECT_NE(run().failure.find("y[1] is"), std::string::npos);
}

TEST_F(Launch, RefusesAKernelThatZeroesItsInputs) {
  device_.kernels["k"] = [](const std::vector<std::byte*>& p) {
    std::memset(p[0], 0, kSize * 4);
    std::memset(p[1], 0, kSize * 4);  // right for those inputs
  };
  EXPECT_FALSE(run().failure.empty());
}

TEST_F(Launch, RefusesAKernelThatChangesItsInput) {
  device_.kernels["k"] = [](const std::vector<std::byte*>& p) {
    twice(p[0], p[1]);
    std::memset(p[0], 0, 4);
  };
  EXPECT_NE(run().failure.find("changed its input x"), std::string::npos);
}

TEST_F(Launch, RefusesAKernelThatWritesBehindABuffer) {
  device_.kernels["k"] = [](const std::vector<std::byte*>& p) {
    twice(p[0], p[1]);
    p[1][kSize * 4 + 8] = std::byte{0};
  };
  EXPECT_NE(run().failure.find("behind the end of output y"), std::string::npos);
  device_.kernels["k"] = [](const std::vector<std::byte*>& p) {
    twice(p[0], p[1]);
    p[2][64] = std::byte{0};
  };
  EXPECT_NE(run().failure.find("behind the end of the workspace"), std::string::npos);
}

TEST_F(Launch, NamesTheCallThatFailed) {
  device_.fail_launch = 700;
  const GpuReport report = run();
  EXPECT_NE(report.failure.find("cuLaunchKernel: CUDA_ERROR_FAKE (700)"), std::string::npos)
      << report.failure;
  device_.fail_launch = 0;
  job_.plan.kernels[0].name = "none";
  EXPECT_NE(run().failure.find("kernel none"), std::string::npos);
  job_.plan.kernels[0].name = "k";
  job_.plan.kernels[0].shared_bytes = 200000;
  EXPECT_NE(run().failure.find("200000 bytes of shared memory"), std::string::npos);
}

TEST_F(Launch, WithoutADriverSaysWhatIsMissing) {
  const Result<GpuInfo> info = probe_gpu(0);
  if (info.ok()) GTEST_SKIP() << "there is a GPU here: " << info->name;
  EXPECT_EQ(info.error().code, ErrorCode::kToolMissing);
  EXPECT_NE(info.error().hint.find("emulator"), std::string::npos);
  const auto reports = measure_in_child(program_, {&job_, 1}, data(1), data(2), options_, {});
  ASSERT_FALSE(reports.ok());
  EXPECT_EQ(reports.error().code, ErrorCode::kToolMissing);
  EXPECT_FALSE(measure_here(program_, {&job_, 1}, data(1), data(2), options_).ok());
}

TEST(FlushKernel, Compiles) {
  const Result<CompiledModule> module = compile(flush_source(), "sm_90a", {});
  if (!module.ok() && module.error().code == ErrorCode::kToolMissing) GTEST_SKIP();
  ASSERT_TRUE(module.ok()) << to_string(module.error());
  EXPECT_EQ(module->kernels.at(0).name, "sundog_flush");
}

}  // namespace
}  // namespace sundog::codegen
