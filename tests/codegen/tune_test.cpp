#include "codegen/tune.h"

#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <limits>
#include <thread>

#include "tests/codegen/fake_driver.h"
#include "tests/codegen/twice.h"

namespace sundog::codegen {
namespace {

using Times = std::vector<std::optional<double>>;

TEST(Tune, TheFirstWithinTheBandWins) {
  EXPECT_EQ(pick_in_band(Times{10.1, 10.0, 9.95}, 0.02), 0u);
  EXPECT_EQ(pick_in_band(Times{10.3, 10.1, 10.0}, 0.02), 1u);
  EXPECT_EQ(pick_in_band(Times{std::nullopt, 12.0, 10.0, 10.0}, 0.02), 2u);
  EXPECT_EQ(pick_in_band(Times{10.0, 9.0}, 0), 1u);
}

TEST(Tune, WithoutATimeNothingWins) {
  EXPECT_EQ(pick_in_band(Times{}, 0.02), std::nullopt);
  EXPECT_EQ(pick_in_band(Times{std::nullopt}, 0.02), std::nullopt);
  EXPECT_EQ(pick_in_band(Times{std::numeric_limits<double>::quiet_NaN()}, 0.02), std::nullopt);
}

TEST(Tune, WithoutAGpuOrACompilerItIsAnErrorAndNotAFailedCandidate) {
  TuneCandidate candidate;
  candidate.cuda = "extern \"C\" __global__ void k() {}";
  TuneOptions options;
  options.arch = "sm_90a";
  const Result<TuneResult> result = tune({}, {&candidate, 1}, {}, {}, options);
  if (result.ok()) GTEST_SKIP() << "there is a GPU here";
  EXPECT_EQ(result.error().code, ErrorCode::kToolMissing);
}

TEST(Tune, ACandidateThatDoesNotCompileIsReportedWithItsError) {
  TuneCandidate candidate;
  candidate.cuda = "extern \"C\" __global__ void k() { nonsense }";
  TuneOptions options;
  options.arch = "sm_90a";
  const Result<TuneResult> result = tune({}, {&candidate, 1}, {}, {}, options);
  if (!result.ok()) GTEST_SKIP() << result.error().message;
  EXPECT_EQ(result->entries[0].failed_at, TuneStage::kCompile);
  EXPECT_NE(result->entries[0].failure.find("nonsense"), std::string::npos);
  EXPECT_FALSE(result->best.has_value());
}

// --- candidates that hang, crash or corrupt cost only themselves ---

struct Bad {
  const char* name;
  const char* body;      // of the kernel, in CUDA
  int64_t shared_bytes;  // that the plan asks for
  const char*
      on_a_fake;  // what its report says where the driver is a fake; null: only a GPU shows it
  FakeKernel fake;
};

// As without a sanitizer, which would turn the signal into an exit of its own.
void crash() {
  std::signal(SIGSEGV, SIG_DFL);
  std::raise(SIGSEGV);
}

constexpr const char* kRight = "y[threadIdx.x] = 2 * x[threadIdx.x];";

std::vector<Bad> bad_candidates() {
  return {
      {"loops for ever", "while (*(volatile const float*)x != 12345.0f) y[0] = 1;", 0, "exceeded",
       [](const std::vector<std::byte*>&) { std::this_thread::sleep_for(std::chrono::hours(1)); }},
      {"writes where no memory is", "y[(1ll << 40) + threadIdx.x] = 1;", 0, "signal 11",
       [](const std::vector<std::byte*>&) { crash(); }},
      {"asks for more shared memory than a block may have", kRight, 300 * 1024, nullptr, {}},
      {"reads beyond its shared memory",
       "extern __shared__ float s[]; y[threadIdx.x] = ((volatile float*)s)[(1 << 24) + "
       "threadIdx.x];",
       1024,
       nullptr,
       {}},
      {"traps", "asm volatile(\"trap;\");", 0, nullptr, {}},
      {"writes behind its output", "y[threadIdx.x] = 2 * x[threadIdx.x]; y[64 + threadIdx.x] = 1;",
       0, "behind the end of output y",
       [](const std::vector<std::byte*>& p) {
         twice(p[0], p[1]);
         p[1][4 * kTwiceSize] = std::byte{1};
       }},
      {"changes its input", "y[threadIdx.x] = 2 * x[threadIdx.x]; ((float*)x)[threadIdx.x] = 0;", 0,
       "changed its input x",
       [](const std::vector<std::byte*>& p) {
         twice(p[0], p[1]);
         p[0][0] ^= std::byte{1};
       }},
      {"writes nothing", "", 0, "y", [](const std::vector<std::byte*>&) {}},
  };
}

TuneCandidate candidate_of(const std::string& name, const std::string& body, int64_t shared_bytes) {
  TuneCandidate candidate;
  candidate.name = name;
  candidate.plan = twice_plan();
  candidate.plan.kernels[0].shared_bytes = shared_bytes;
  candidate.cuda =
      "extern \"C\" __global__ void k(const float* x, float* y, char*) { " + body + " }";
  candidate.tolerance = 1e-6;
  return candidate;
}

// Right ones first, last and between all others: each of those must be timed.
std::vector<TuneCandidate> with_right_ones(const std::vector<Bad>& bad) {
  std::vector<TuneCandidate> candidates = {candidate_of("right", kRight, 0)};
  for (const Bad& each : bad) {
    candidates.push_back(candidate_of(each.name, each.body, each.shared_bytes));
    candidates.push_back(candidate_of("right", kRight, 0));
  }
  return candidates;
}

void expect_only_right_ones_timed(const TuneResult& result,
                                  const std::vector<TuneCandidate>& candidates) {
  ASSERT_EQ(result.entries.size(), candidates.size());
  for (size_t i = 0; i < candidates.size(); ++i) {
    const TuneEntry& entry = result.entries[i];
    if (candidates[i].name == "right") {
      EXPECT_EQ(entry.failure, "") << i;
      EXPECT_TRUE(entry.report.timed) << i;
    } else {
      EXPECT_EQ(entry.failed_at, TuneStage::kCheck) << candidates[i].name;
      EXPECT_NE(entry.failure, "") << candidates[i].name;
      EXPECT_FALSE(entry.report.timed) << candidates[i].name;
    }
  }
  ASSERT_TRUE(result.best.has_value());
  EXPECT_EQ(candidates[*result.best].name, "right");
}

TuneOptions short_options(double seconds) {
  TuneOptions options;
  options.arch = "sm_90a";
  options.measure.flush_bytes = 4096;
  options.measure.replays = 4;
  options.run.seconds = seconds;
  return options;
}

TEST(Tune, CandidatesThatHangCrashOrCorruptCostOnlyThemselves) {
  std::vector<Bad> bad = bad_candidates();
  std::erase_if(bad, [](const Bad& each) { return each.on_a_fake == nullptr; });
  std::vector<TuneCandidate> candidates = with_right_ones(bad);
  // One kernel each, told apart by its name.
  FakeDevice device;
  for (size_t i = 0; i < candidates.size(); ++i) {
    const std::string name = "k" + std::to_string(i);
    candidates[i].plan.kernels[0].name = name;
    candidates[i].cuda = "extern \"C\" __global__ void " + name + "() {}";
    device.kernels[name] = [](const std::vector<std::byte*>& p) { twice(p[0], p[1]); };
    if (i % 2 == 1) device.kernels[name] = bad[i / 2].fake;
  }
  const DriverApi api = fake_driver(device);
  const Program program = twice_program();
  TuneOptions options = short_options(2);
  options.measure.driver = &api;
  const Result<TuneResult> result =
      tune(program, candidates, twice_data(program, 1), twice_data(program, 2), options);
  if (!result.ok()) GTEST_SKIP() << result.error().message;  // no compiler
  expect_only_right_ones_timed(*result, candidates);
  for (size_t i = 0; i < bad.size(); ++i) {
    const std::string& failure = result->entries[2 * i + 1].failure;
    EXPECT_NE(failure.find(bad[i].on_a_fake), std::string::npos) << bad[i].name << ": " << failure;
  }
}

TEST(Tune, OnAGpuTooTheyCostOnlyThemselves) {
  const Result<GpuInfo> gpu = probe_gpu(0);
  if (!gpu.ok()) GTEST_SKIP() << gpu.error().message;
  const std::vector<TuneCandidate> candidates = with_right_ones(bad_candidates());
  const Program program = twice_program();
  TuneOptions options = short_options(10);
  options.arch = "sm_" + std::to_string(gpu->major) + std::to_string(gpu->minor);
  options.measure.flush_bytes = 64 << 20;
  const Result<TuneResult> result =
      tune(program, candidates, twice_data(program, 1), twice_data(program, 2), options);
  ASSERT_TRUE(result.ok()) << to_string(result.error());
  expect_only_right_ones_timed(*result, candidates);
  for (const TuneEntry& entry : result->entries) {
    if (!entry.failure.empty()) std::printf("  %s\n", entry.failure.c_str());
  }
}

}  // namespace
}  // namespace sundog::codegen
