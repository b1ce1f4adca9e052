// NOLINT(sundog-mirror): codegen/emulator/banks.h, through kernels whose conflicts are known.
#include <gtest/gtest.h>

#include "codegen/emulator.h"
#include "tests/codegen/emulator_helpers.h"

namespace sundog::codegen {
namespace {

class EmulatorBanks : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    module_ = new Result<EmulatorModule>(
        EmulatorModule::compile(read_kernel("banks.cu"), EmulatorOptions{}));
  }
  static void TearDownTestSuite() { delete module_; }

  // Turns of the read alone, and how many of them are conflicts.
  static std::pair<uint64_t, uint64_t> of(const std::string& kernel, int step) {
    std::vector<int> steps = {step};
    std::vector<uint32_t> out(32);
    const EmulatorReport report =
        run_kernel(*module_, launch_all(kernel, 1, 32, 4096, 2), {input(steps), output(out)}, {});
    EXPECT_TRUE(report.problems.empty()) << join(report.problems);
    if (report.banks.size() != 1) {
      ADD_FAILURE() << report.banks.size() << " launches were counted";
      return {};
    }
    EXPECT_EQ(report.banks[0].kernel, kernel);
    return {report.banks[0].turns - 32, report.banks[0].conflicts};
  }
  static Result<EmulatorModule>* module_;
};
Result<EmulatorModule>* EmulatorBanks::module_ = nullptr;

using Counted = std::pair<uint64_t, uint64_t>;

TEST_F(EmulatorBanks, WordsInOneBankTakeATurnEach) {
  EXPECT_EQ(of("of_words", 0), (Counted{1, 0})) << "one word for all";
  EXPECT_EQ(of("of_words", 1), (Counted{1, 0}));
  EXPECT_EQ(of("of_words", 2), (Counted{2, 1}));
  EXPECT_EQ(of("of_words", 3), (Counted{1, 0})) << "an odd step meets all banks";
  EXPECT_EQ(of("of_words", 8), (Counted{8, 7}));
  EXPECT_EQ(of("of_words", 32), (Counted{32, 31}));
}

TEST_F(EmulatorBanks, TwoHalvesOfAWordAreOneWord) {
  EXPECT_EQ(of("of_halves", 1), (Counted{1, 0}));
  EXPECT_EQ(of("of_halves", 2), (Counted{1, 0}));
  EXPECT_EQ(of("of_halves", 4), (Counted{2, 1}));
}

TEST_F(EmulatorBanks, WideReadsTakeATurnForEachQuarterOfTheWarp) {
  EXPECT_EQ(of("of_four_words", 1), (Counted{4, 0}));
  EXPECT_EQ(of("of_four_words", 2), (Counted{8, 4}));
  EXPECT_EQ(of("of_four_words", 8), (Counted{32, 28}));
}

TEST_F(EmulatorBanks, LanesThatDoNotTakePartAskForNothing) {
  EXPECT_EQ(of("by_half_of_the_lanes", 1), (Counted{1, 0}));
  EXPECT_EQ(of("by_half_of_the_lanes", 16), (Counted{16, 15}));
}

TEST_F(EmulatorBanks, RowsOfMatricesAreReadEightAtATime) {
  EXPECT_EQ(of("of_matrices", 1), (Counted{4, 0})) << "rows of 16 bytes, one behind the other";
  EXPECT_EQ(of("of_matrices", 8), (Counted{32, 28})) << "rows of 128 bytes, one above the other";
  EXPECT_EQ(of("of_matrices", 9), (Counted{4, 0})) << "padded by 16 bytes";
}

}  // namespace
}  // namespace sundog::codegen
