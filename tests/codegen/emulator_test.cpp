#include "codegen/emulator.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "core/dtype.h"
#include "tests/codegen/emulator_helpers.h"

namespace sundog::codegen {
namespace {

// Bits of random f16 values of about unit size.
std::vector<uint16_t> random_halves(size_t count, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  std::vector<uint16_t> values(count);
  for (uint16_t& value : values) value = static_cast<uint16_t>(encode(DType::kF16, normal(random)));
  return values;
}

// --- a GEMM and its bugs ---

constexpr int kM = 100, kN = 128, kK = 96;
constexpr size_t kGemmShared = 2 * 2 * (64 * 40 + 32 * 72);

struct Gemm {
  std::vector<uint16_t> a = random_halves(kM * kK, 1), b = random_halves(kK * kN, 2);
  std::vector<float> c = std::vector<float>(kM * kN, std::nanf(""));

  std::vector<EmulatorBuffer> buffers() { return {input(a), input(b), output(c)}; }

  EmulatorLaunch launch(int unit = 0) const {
    EmulatorLaunch result;
    result.kernel = "gemm";
    result.grid[0] = kN / 64;
    result.grid[1] = (kM + 63) / 64;
    result.block[0] = 128;
    result.shared_bytes = kGemmShared;
    result.args = {0, 1, 2};
    result.unit = unit;
    return result;
  }

  // Largest difference to the product in double, over the largest value of the product.
  double error() const {
    double worst = 0, largest = 0;
    for (int i = 0; i < kM; ++i) {
      for (int j = 0; j < kN; ++j) {
        double sum = 0;
        for (int k = 0; k < kK; ++k) {
          sum += decode(DType::kF16, a[static_cast<size_t>(i * kK + k)]) *
                 decode(DType::kF16, b[static_cast<size_t>(k * kN + j)]);
        }
        const double difference = std::fabs(sum - double{c[static_cast<size_t>(i * kN + j)]});
        worst = std::isnan(difference) ? INFINITY : std::max(worst, difference);
        largest = std::max(largest, std::fabs(sum));
      }
    }
    return worst / largest;
  }
};

// All variants of gemm.cu in one program, compiled once; unit n has BUG n.
class EmulatorGemm : public testing::Test {
 protected:
  static constexpr int kBugs = 17;
  static void SetUpTestSuite() {
    const std::string text = read_kernel("gemm.cu");
    std::vector<std::string> sources;
    for (int bug = 0; bug <= kBugs; ++bug) {
      sources.push_back("#undef BUG\n#define BUG " + std::to_string(bug) + "\n#line 1\n" + text);
    }
    module_ = new Result<EmulatorModule>(EmulatorModule::compile(sources, EmulatorOptions{}));
  }
  static void TearDownTestSuite() { delete module_; }

  EmulatorReport run(Gemm& gemm, int bug, int schedules = 4) {
    EmulatorOptions options;
    options.schedules = schedules;
    return run_kernel(*module_, gemm.launch(bug), gemm.buffers(), options);
  }
  static Result<EmulatorModule>* module_;
};
Result<EmulatorModule>* EmulatorGemm::module_ = nullptr;

TEST_F(EmulatorGemm, TheRightOnePassesInEverySchedule) {
  Gemm gemm;
  const EmulatorReport report = run(gemm, 0, 8);
  EXPECT_TRUE(report.problems.empty()) << join(report.problems);
  EXPECT_LT(gemm.error(), 1e-6);
  EXPECT_EQ(report.barriers, 4u * 3 * 2);  // blocks, stages, two a stage
  EXPECT_EQ(report.collectives, 4u * 4 * 3 * 2 * (4 + 8));
  EXPECT_GT(report.shared_accesses, 0u);
}

struct Bug {
  int number;
  const char* kind;
};

class EmulatorGemmBug : public EmulatorGemm, public testing::WithParamInterface<Bug> {};

TEST_P(EmulatorGemmBug, IsFound) {
  Gemm gemm;
  const EmulatorReport report = run(gemm, GetParam().number);
  EXPECT_TRUE(has_kind(report, GetParam().kind)) << join(report.problems);
}

INSTANTIATE_TEST_SUITE_P(All, EmulatorGemmBug,
                         testing::Values(Bug{1, "shared race"}, Bug{2, "shared race"},
                                         Bug{3, "copy in flight"}, Bug{4, "copy in flight"},
                                         Bug{5, "out of bounds"}, Bug{6, "out of bounds"},
                                         Bug{7, "out of bounds"}, Bug{8, "out of bounds"},
                                         Bug{9, "write to input"}, Bug{10, "global race"},
                                         Bug{11, "divergence"}, Bug{12, "uninitialised read"},
                                         Bug{13, "out of bounds"}, Bug{14, "misaligned"},
                                         Bug{15, "copy in flight"}, Bug{16, "divergence"}),
                         [](const testing::TestParamInfo<Bug>& bug) {
                           return "Bug" + std::to_string(bug.param.number);
                         });

// A wrong row that is still inside the tile breaks no rule: it is the numbers that tell.
TEST_F(EmulatorGemm, AWrongRowInsideTheTileShowsInTheNumbers) {
  Gemm gemm;
  const EmulatorReport report = run(gemm, 17);
  EXPECT_TRUE(report.problems.empty()) << join(report.problems);
  EXPECT_GT(gemm.error(), 0.1);
}

}  // namespace
}  // namespace sundog::codegen
