// NOLINT(sundog-mirror): the second half of emulator_test, on kernels of its own.
//
// The emulator on kernels that are wrong in one way each, on input that is, and on its limits.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <cmath>
#include <filesystem>

#include "codegen/emulator.h"
#include "tests/codegen/emulator_helpers.h"

namespace sundog::codegen {
namespace {

// faults.cu, compiled once with checks and once without.
class EmulatorFaults : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    const std::string text = read_kernel("faults.cu");
    EmulatorOptions options;
    checked_ = new Result<EmulatorModule>(EmulatorModule::compile(text, options));
    options.race_check = false;
    fast_ = new Result<EmulatorModule>(EmulatorModule::compile(text, options));
  }
  static void TearDownTestSuite() {
    delete checked_;
    delete fast_;
  }

  // Runs a kernel with one output of 128 words, which starts at 0.
  EmulatorReport run(const std::string& kernel, uint32_t grid, uint32_t block,
                     bool checked = true) {
    std::fill(out_.begin(), out_.end(), 0.0f);
    EmulatorOptions options;
    options.race_check = checked;
    options.time_limit_s = time_limit_;
    return run_kernel(checked ? *checked_ : *fast_, launch_all(kernel, grid, block, 1024, 1),
                      {output(out_)}, options);
  }
  // The same with an input of 512 words before it.
  EmulatorReport run_with_input(const std::string& kernel, uint32_t block, size_t misalignment,
                                bool checked = true) {
    std::vector<float> x(512, 1.0f);
    std::vector<EmulatorBuffer> buffers{input(x), output(out_)};
    buffers[0].misalignment = misalignment;
    EmulatorOptions options;
    options.race_check = checked;
    return run_kernel(checked ? *checked_ : *fast_, launch_all(kernel, 1, block, 1024, 2), buffers,
                      options);
  }

  std::vector<float> out_ = std::vector<float>(128);
  double time_limit_ = 60;
  static Result<EmulatorModule>*checked_, *fast_;
};
Result<EmulatorModule>* EmulatorFaults::checked_ = nullptr;
Result<EmulatorModule>* EmulatorFaults::fast_ = nullptr;

#define EXPECT_KIND(report, kind)                                   \
  do {                                                              \
    const EmulatorReport report_ = (report);                        \
    EXPECT_TRUE(has_kind(report_, kind)) << join(report_.problems); \
  } while (false)
#define EXPECT_CLEAN(report)                                         \
  do {                                                               \
    const EmulatorReport report_ = (report);                         \
    EXPECT_TRUE(report_.problems.empty()) << join(report_.problems); \
  } while (false)

TEST_F(EmulatorFaults, LanesOfAWarpNeedSyncWarp) {
  EXPECT_KIND(run("lane_race", 1, 64), "shared race");
  EXPECT_KIND(run("shuffle_is_no_fence", 1, 32), "shared race");
  EXPECT_CLEAN(run("lane_exchange", 1, 64));
}

TEST_F(EmulatorFaults, RacesAreByByteAndByWarp) {
  EXPECT_CLEAN(run("bytes_of_one_word", 1, 128));
  EXPECT_KIND(run("read_then_write", 1, 96), "shared race");
  EXPECT_KIND(run("read_then_write", 1, 32), "shared race");
}

TEST_F(EmulatorFaults, ThreadsThatNeverMeet) {
  EXPECT_KIND(run("missing_lanes", 1, 32), "deadlock");
  EXPECT_KIND(run("half_a_barrier", 1, 128), "deadlock");
  EXPECT_KIND(run("different_collectives", 1, 32), "divergence");
  EXPECT_KIND(run("wrong_count", 1, 64), "bad barrier");
  EXPECT_CLEAN(run("early_return", 1, 96));
  EXPECT_EQ(out_[0], 2.0f);
  EXPECT_EQ(out_[95], 1.0f);
}

TEST_F(EmulatorFaults, ThreadsThatNeverEnd) {
  time_limit_ = 0.3;
  EXPECT_KIND(run("forever", 1, 32), "timeout");
  EXPECT_KIND(run("forever", 1, 32, false), "timeout");
}

TEST_F(EmulatorFaults, OutOfBounds) {
  EXPECT_KIND(run("just_past", 1, 128), "out of bounds");
  EXPECT_KIND(run("wild", 1, 32), "out of bounds");
  EXPECT_KIND(run_with_input("just_before", 32, 0), "out of bounds");
}

// Without checks a buffer still stands alone, so what goes far astray faults and is said so.
TEST_F(EmulatorFaults, WildAccessWithoutChecks) {
  const EmulatorReport report = run("wild", 1, 32, false);
  EXPECT_TRUE(has_kind(report, "out of bounds") || has_kind(report, "crash"))
      << join(report.problems);
}

TEST_F(EmulatorFaults, Alignment) {
  EXPECT_KIND(run_with_input("misaligned_vector", 32, 0), "misaligned");
  EXPECT_KIND(run_with_input("misaligned_vector", 32, 0, false), "misaligned");
  EXPECT_CLEAN(run_with_input("vector", 32, 0));
  EXPECT_CLEAN(run_with_input("vector", 32, 16));
  EXPECT_KIND(run_with_input("vector", 32, 8), "misaligned");
  EXPECT_CLEAN(run_with_input("misaligned_vector", 32, 12));
}

TEST_F(EmulatorFaults, SharedIsNotGlobal) {
  EXPECT_KIND(run("shared_as_global", 1, 32), "wrong space");
}

TEST_F(EmulatorFaults, CrashesAreReported) {
  EXPECT_KIND(run("deep", 1, 32, false), "crash");
  EXPECT_KIND(run("divides", 1, 32), "crash");
}

TEST_F(EmulatorFaults, BlocksMustNotReadOneAnother) {
  EXPECT_KIND(run("reads_other_block", 4, 1), "global race");
}

TEST_F(EmulatorFaults, AtomicsRaceWithNobody) {
  EXPECT_CLEAN(run("adds", 10, 64));
  EXPECT_EQ(out_[0], 10.0f * 63 * 64 / 2);
}

TEST_F(EmulatorFaults, ALaunchSeesTheOneBefore) {
  std::vector<float> x(256), middle(256), y(256);
  for (size_t i = 0; i < 256; ++i) x[i] = static_cast<float>(i);
  const std::vector<EmulatorBuffer> buffers{input(x), output(middle), output(y)};
  EmulatorLaunch launches[2];
  launches[0] = launch_all("first_half", 4, 64, 0, 0);
  launches[0].args = {0, 1};
  launches[1] = launch_all("second_half", 2, 128, 0, 0);
  launches[1].args = {1, 2};
  Result<EmulatorReport> report = (*checked_)->run(launches, buffers, EmulatorOptions{});
  ASSERT_TRUE(report.ok()) << to_string(report.error());
  EXPECT_TRUE(report->problems.empty()) << join(report->problems);
  for (size_t i = 0; i < 256; ++i) EXPECT_EQ(y[i], 2 * (x[255 - i] + 1));
}

// The report does not depend on how many blocks ran at a time.
// Blocks of dependent launches start early, but not those of all at once: their threads' stacks
// would be more mappings than a process may have.
TEST_F(EmulatorFaults, AChainOfDependentLaunchesMayBeLong) {
  ASSERT_TRUE(checked_->ok());
  constexpr int kLaunches = 200;
  std::vector<float> sums(3 * 256, 0.0f);
  EmulatorLaunch launch = launch_all("one_more", 3, 256, 0, 1);
  std::vector<EmulatorLaunch> launches(kLaunches, launch);
  for (int i = 1; i < kLaunches; ++i) launches[static_cast<size_t>(i)].dependent = true;
  EmulatorOptions options;
  const auto report = (*checked_)->run(launches, std::vector{output(sums)}, options);
  ASSERT_TRUE(report.ok()) << to_string(report.error());
  EXPECT_CLEAN(*report);
  for (float sum : sums) EXPECT_EQ(sum, kLaunches);
}

TEST_F(EmulatorFaults, ReportsAreDeterministic) {
  std::vector<std::string> first;
  for (const int threads : {1, 2, 4, 1}) {
    EmulatorOptions options;
    options.threads = threads;
    const EmulatorReport report =
        run_kernel(*checked_, launch_all("lane_race", 9, 64, 1024, 1), {output(out_)}, options);
    ASSERT_FALSE(report.problems.empty());
    EXPECT_NE(report.problems[0].find("kernel lane_race, block (0, 0, 0)"), std::string::npos)
        << report.problems[0];
    if (first.empty()) first.push_back(report.problems[0]);
    EXPECT_EQ(report.problems[0], first[0]);
  }
}

TEST_F(EmulatorFaults, ProblemsNameTheLine) {
  const std::string text = read_kernel("faults.cu");
  const size_t at = text.find("// another lane of the same warp");
  const auto line =
      1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n');
  const EmulatorReport report = run("lane_race", 1, 32);
  EXPECT_NE(join(report.problems).find("line " + std::to_string(line) + ":"), std::string::npos)
      << join(report.problems);
}

// A last block that does not wait for its own warps, or does not fence, sees unfinished parts.
TEST(EmulatorLastBlock, NeedsBarrierAndFence) {
  for (const char* bug : {"BUG_NO_BARRIER", "BUG_NO_FENCE"}) {
    std::vector<float> parts(10 * 64), sum(64);
    std::vector<uint32_t> counter(1);
    EmulatorOptions options;
    options.scalar_defs = {std::string(bug) + "=1"};
    const auto module = EmulatorModule::compile(read_kernel("primitives.cu"), options);
    EXPECT_KIND(run_kernel(module, launch_all("last_block", 10, 64, 16, 3),
                           {output(parts), output(counter), output(sum)}, options),
                "global race");
  }
}

// --- input that is wrong ---

TEST_F(EmulatorFaults, BadLaunchesAreErrors) {
  const EmulatorLaunch good = launch_all("adds", 1, 32, 0, 1);
  const std::vector<EmulatorBuffer> buffers{output(out_)};
  const auto code = [&](const EmulatorLaunch& launch) {
    const Result<EmulatorReport> report =
        (*checked_)->run({&launch, 1}, buffers, EmulatorOptions{});
    EXPECT_FALSE(report.ok());
    return report.ok() ? ErrorCode::kIo : report.error().code;
  };
  EmulatorLaunch launch = good;
  launch.kernel = "nobody";
  EXPECT_EQ(code(launch), ErrorCode::kBadInput);
  launch = good;
  launch.unit = 1;
  EXPECT_EQ(code(launch), ErrorCode::kBadInput);
  launch = good;
  launch.args = {1};
  EXPECT_EQ(code(launch), ErrorCode::kBadInput);
  launch = good;
  launch.block[0] = 1025;
  EXPECT_EQ(code(launch), ErrorCode::kBadInput);
  launch = good;
  launch.grid[1] = 65536;
  EXPECT_EQ(code(launch), ErrorCode::kBadInput);
  launch = good;
  launch.shared_bytes = 300000;
  EXPECT_EQ(code(launch), ErrorCode::kBadInput);
  launch = good;
  launch.cluster[0] = 2;  // of one block
  EXPECT_EQ(code(launch), ErrorCode::kBadInput);
  launch.grid[0] = 16;
  launch.cluster[0] = 16;
  EXPECT_EQ(code(launch), ErrorCode::kUnsupported);
}

TEST_F(EmulatorFaults, WrongNumberOfArgumentsIsAProblem) {
  EmulatorLaunch launch = launch_all("adds", 1, 32, 0, 1);
  launch.args = {0, 0};
  EXPECT_KIND(run_kernel(*checked_, launch, {output(out_)}, EmulatorOptions{}), "bad launch");
}

TEST_F(EmulatorFaults, ChecksCannotBeAskedOfAModuleWithoutThem) {
  const EmulatorLaunch launch = launch_all("adds", 1, 32, 0, 1);
  const std::vector<EmulatorBuffer> buffers{output(out_)};
  const Result<EmulatorReport> report = (*fast_)->run({&launch, 1}, buffers, EmulatorOptions{});
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.error().code, ErrorCode::kBadInput);
}

TEST(EmulatorCompile, SaysWhatTheCompilerSaid) {
  const auto module = EmulatorModule::compile(
      "#include \"primitives.cuh\"\nextern \"C\" __global__ void k(float* x) {\n  x[0] = "
      "nobody;\n}\n",
      EmulatorOptions{});
  ASSERT_FALSE(module.ok());
  EXPECT_EQ(module.error().code, ErrorCode::kFailed);
  EXPECT_NE(module.error().message.find("unit_0.cu:3:"), std::string::npos)
      << module.error().message;
  EXPECT_NE(module.error().message.find("nobody"), std::string::npos) << module.error().message;
}

TEST(EmulatorCompile, ASourceWithoutKernelIsRefused) {
  const auto module = EmulatorModule::compile("int x;\n", EmulatorOptions{});
  ASSERT_FALSE(module.ok());
  EXPECT_EQ(module.error().code, ErrorCode::kBadInput);
}

TEST(EmulatorCompile, AMissingCompilerIsNamed) {
  setenv("SUNDOG_CXX", "/nowhere/c++", 1);
  const auto module = EmulatorModule::compile(read_kernel("faults.cu"), EmulatorOptions{});
  unsetenv("SUNDOG_CXX");
  ASSERT_FALSE(module.ok());
  EXPECT_EQ(module.error().code, ErrorCode::kToolMissing);
  EXPECT_NE(module.error().message.find("/nowhere/c++"), std::string::npos);
}

// Pasted primitives that somebody edited are what runs.
TEST(EmulatorCompile, EditedPrimitivesAreUsed) {
  std::ifstream file(std::string(SUNDOG_SOURCE_DIR) + "/codegen/primitives.cuh");
  std::stringstream stream;
  stream << file.rdbuf();
  std::string text = stream.str();
  const std::string kernel =
      "extern \"C\" __global__ void k(float* x) { x[threadIdx.x] = sd::to_float(sd::f8e5m2{0x3c}); "
      "}\n";
  const std::string body = "return f16_to_float(bits_f16(static_cast<uint16_t>(x.bits << 8)));";
  for (const bool edited : {false, true}) {
    if (edited) {
      ASSERT_NE(text.find(body), std::string::npos);
      text.replace(text.find(body), body.size(), "return 42.0f + 0.0f * x.bits;");
    }
    std::vector<float> x(32);
    const auto module = EmulatorModule::compile(text + kernel, EmulatorOptions{});
    EXPECT_CLEAN(run_kernel(module, launch_all("k", 1, 32, 0, 1), {output(x)}, EmulatorOptions{}));
    EXPECT_EQ(x[5], edited ? 42.0f : 1.0f);
  }
}

}  // namespace
}  // namespace sundog::codegen
