#include "codegen/tune.h"

#include <gtest/gtest.h>

#include <limits>

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

}  // namespace
}  // namespace sundog::codegen
