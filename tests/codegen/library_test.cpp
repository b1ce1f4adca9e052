#include "codegen/library.h"

#include <gtest/gtest.h>

#include "codegen/generate.h"
#include "codegen/launch.h"
#include "codegen/loaded_plan.h"
#include "core/device.h"
#include "core/text.h"
#include "tests/codegen/fake_driver.h"
#include "tests/codegen/fake_library.h"

namespace sundog::codegen {
namespace {

// x[b, n, h] by columns and w by rows with padding: c = 2 products of 2 x 3 by 3 x 4.
constexpr char kProgram[] =
    "program p(b = 2, n = 2, h = 3, d = 4) {\n"
    "  input x: f32[b, n, h] stride(8, 1, 2) offset 1\n  input w: f32[b, h, d] stride(15, 5, 1)\n"
    "  output O: f32[b, n, d] = sum[h](x * w)\n}\n";
constexpr char kGraph[] =
    "ugraph u of p {\n  kernel g library(gemm) {\n    c[b, n, d] = sum[h](x * w) : reg f32\n"
    "    store c -> O\n  }\n}\n";

class LibraryTest : public testing::Test {
 protected:
  LibraryTest() {
    for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 5) - 1;
    for (size_t i = 0; i < w.size(); ++i) w[i] = static_cast<float>(i % 7) - 2;
  }
  Program program = *parse_program(kProgram, "p.sd", {});
  MuGraph graph = *parse_mugraph(kGraph, "u.mu", program);
  FakeLibrary library;
  LibraryApi api = fake_library(library);
  std::array<float, 16> x{};
  std::array<float, 30> w{};
  std::array<float, 16> y{};

  float expected(size_t b, size_t n, size_t d) const {
    float sum = 0;
    for (size_t h = 0; h < 3; ++h) sum += x[1 + b * 8 + n + h * 2] * w[b * 15 + h * 5 + d];
    return sum;
  }
  void expect_product() const {
    for (size_t i = 0; i < y.size(); ++i) {
      EXPECT_EQ(y[i], expected(i / 8, i / 4 % 2, i % 4)) << i;
    }
  }
};

TEST_F(LibraryTest, AProductIsWhatTheRowsOfTheProgramSay) {
  {
    const Result<LibraryHandle> handle = LibraryHandle::make(api);
    ASSERT_TRUE(handle.ok());
    const Result<LibraryGemm> gemm = library_gemm(graph, graph.kernels[0]);
    ASSERT_TRUE(gemm.ok()) << to_string(gemm.error());
    int stream = 0, workspace = 0;
    ASSERT_TRUE(handle->gemm(*gemm, x.data(), w.data(), y.data(), &workspace, 64, &stream).ok());
    expect_product();
    EXPECT_EQ(library.stream, &stream);
    EXPECT_EQ(library.workspace, &workspace) << "given after the stream, which takes it away";
    EXPECT_EQ(library.calls,
              (std::vector<std::string>{"mode 16", "gemm 4 2 3 of 2, type 0, compute 68"}));
    EXPECT_EQ(library.alive, 1);
  }
  EXPECT_EQ(library.alive, 0);
}

TEST_F(LibraryTest, ItsErrorsAreErrorsWithTheCallsName) {
  library.fail_create = 3;
  EXPECT_NE(to_string(LibraryHandle::make(api).error()).find("cublasCreate failed with status 3"),
            std::string::npos);
  library.fail_create = 0;
  library.fail_gemm = 13;
  const Result<LibraryHandle> handle = LibraryHandle::make(api);
  ASSERT_TRUE(handle.ok());
  const Status status = handle->gemm(*library_gemm(graph, graph.kernels[0]), x.data(), w.data(),
                                     y.data(), nullptr, 0, nullptr);
  ASSERT_FALSE(status.ok());
  EXPECT_NE(to_string(status.error()).find("cublasGemmStridedBatchedEx failed with status 13"),
            std::string::npos);
}

TEST_F(LibraryTest, APlanInAnotherProgramCallsItOnTheCallersStream) {
  FakeDevice device;
  const DriverApi driver = fake_driver(device);
  const Result<Generated> generated = generate(graph, program, *find_device("h200"), {});
  ASSERT_TRUE(generated.ok()) << to_string(generated.error());
  const Result<LoadedPlan> plan = LoadedPlan::load(driver, 0, "cubin", generated->plan, &api);
  ASSERT_TRUE(plan.ok()) << to_string(plan.error());
  void* const inputs[] = {x.data(), w.data()};
  void* const outputs[] = {y.data()};
  std::vector<std::byte> workspace(static_cast<size_t>(generated->plan.workspace_bytes));
  int stream = 0;
  ASSERT_TRUE(plan->launch(inputs, outputs, workspace.data(), &stream).ok());
  expect_product();
  EXPECT_EQ(library.stream, &stream);
  EXPECT_EQ(library.workspace_bytes, size_t{32} << 20);
  EXPECT_TRUE(device.order.empty());
  EXPECT_FALSE(plan->launch(inputs, outputs, nullptr, &stream).ok());
}

TEST_F(LibraryTest, ItIsCheckedAndTimedLikeOurOwn) {
  FakeDevice device;
  const DriverApi driver = fake_driver(device);
  const Result<Generated> generated = generate(graph, program, *find_device("h200"), {});
  ASSERT_TRUE(generated.ok()) << to_string(generated.error());
  const Result<CheckData> first = make_check_data(program, Rounding::kWide, 1e9, 1);
  const Result<CheckData> fresh = make_check_data(program, Rounding::kWide, 1e9, 2);
  ASSERT_TRUE(first.ok() && fresh.ok());
  GpuJob job;
  job.name = "u";
  job.plan = generated->plan;
  job.cubin = "cubin";
  job.tolerance = 1e-5;
  MeasureOptions options;
  options.time = false;
  options.driver = &driver;
  options.library = &api;
  const auto report = measure_here(program, {&job, 1}, *first, *fresh, options);
  ASSERT_TRUE(report.ok()) << to_string(report.error());
  EXPECT_EQ((*report)[0].failure, "");
  EXPECT_TRUE((*report)[0].before.passed);
  library.fail_gemm = 7;
  const auto broken = measure_here(program, {&job, 1}, *first, *fresh, options);
  ASSERT_TRUE(broken.ok());
  EXPECT_NE((*broken)[0].failure.find("status 7"), std::string::npos) << (*broken)[0].failure;
}

}  // namespace
}  // namespace sundog::codegen
