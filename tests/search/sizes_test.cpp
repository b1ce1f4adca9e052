#include "search/sizes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/text.h"
#include "search/cost.h"
#include "search/finish.h"
#include "search/kernel_plan.h"
#include "search/machine.h"
#include "search/roles.h"
#include "search/superoptimize.h"
#include "search/thread_level.h"
#include "search/unfused.h"
#include "tests/search/programs.h"

namespace sundog::search {
namespace {

Program matmul(int64_t n, int64_t h, int64_t d) {
  Result<Program> program = parse_program(R"(program matmul(n = 8, h = 64, d = 64) {
  input x: f16[n, h]
  input w: f16[h, d]
  y[n, d] = sum[h](x * w)
  output y: f16[n, d]
})",
                                          "test.sd", {{"n", n}, {"h", h}, {"d", d}});
  EXPECT_TRUE(program.ok());
  return std::move(*program);
}

Machine h200() { return machine_of(*find_device("h200")); }

TEST(SizesTest, TileCandidatesLieWithinTheAxis) {
  for (int64_t extent : {1, 2, 3, 7, 48, 127, 257, 2560, 4095, 4096, 65537}) {
    for (const bool looped : {false, true}) {
      const std::vector<int64_t> tiles = tile_candidates(extent, looped, h200());
      ASSERT_FALSE(tiles.empty());
      EXPECT_EQ(std::set<int64_t>(tiles.begin(), tiles.end()).size(), tiles.size());
      EXPECT_GE(*std::min_element(tiles.begin(), tiles.end()), 1);
      EXPECT_LE(*std::max_element(tiles.begin(), tiles.end()), extent);
    }
  }
}

// Steps along two axes make a tile together.
TEST(SizesTest, StepsAreShorterThanTheAtomWhereTwoAxesAreLooped) {
  EXPECT_EQ(tile_candidates(32, true, h200()), (std::vector<int64_t>{16, 32}));
  EXPECT_EQ(tile_candidates(32, true, h200(), /*alone=*/false),
            (std::vector<int64_t>{1, 2, 4, 8, 16, 32}));
}

// A sum over all of a long tensor has no other axis to be spread over.
TEST(SizesTest, VeryLongAxesAreCutIntoPartsForTheWholeDevice) {
  const Machine machine = h200();
  EXPECT_LE(part_candidates(32768, machine).back(), 64);
  EXPECT_GE(part_candidates(1 << 22, machine).back(), 4 * static_cast<int64_t>(machine.sms));
}

// A block that goes through some hundred elements only costs its start again and again.
TEST(SizesTest, TilesAreLongWhereNothingIsReadTwice) {
  const auto longest = [](bool products) {
    return tile_candidates(1 << 20, false, h200(), /*alone=*/true, products).back();
  };
  EXPECT_GT(longest(false), 8 * longest(true));
  const Result<Program> program = parse_program(
      "program gate(n = 7340032) {\n  input x: bf16[n]\n  input y: bf16[n]\n"
      "  output z: bf16[n] = silu(x) * y\n}\n",
      "test.sd");
  ASSERT_TRUE(program.ok());
  const Machine machine = h200();
  GraphPlan plan = unfused_plan(*program);
  ASSERT_EQ(plan.kernels.size(), 1u);
  KernelPlan& kernel = plan.kernels.front();
  const auto sized = size_kernel(kernel, profile(plan.graph, kernel), {}, machine);
  ASSERT_TRUE(sized.has_value());
  const double moved = 3 * 2 * 7340032.0;
  const double start = machine.launch_us + machine.fill_us;
  EXPECT_LT(sized->us, start + 1.1 * moved / hbm_peak(machine)) << "near the time of memory";
}

TEST(SizesTest, FinishedKernelsCoverTheirAxes) {
  for (const auto& [n, h, d] : {std::tuple{8, 64, 64}, {3, 257, 4095}, {1, 127, 48}}) {
    const Program program = matmul(n, h, d);
    const Machine machine = h200();
    GraphPlan plan = unfused_plan(program);
    std::vector<std::vector<int64_t>> tiles;
    for (KernelPlan& k : plan.kernels) {
      const auto sized = size_kernel(k, profile(plan.graph, k), {}, machine);
      ASSERT_TRUE(sized.has_value());
      EXPECT_GT(sized->us, 0);
      tiles.push_back(sized->tiles);
    }
    const MuGraph graph = finish(plan, tiles, {}, machine);
    const Status status = check(graph, program);
    EXPECT_TRUE(status.ok()) << to_string(status.error());
    EXPECT_GT(predict(graph, machine), 0);
  }
}

// Kernels that are cut alike begin at each other's sizes, and the first of them holds whole rows, a
// corner that no single step leaves: the product with its epilogue was priced there and cut off.
TEST(SizesTest, KernelsWithoutRowsLeaveTheSizesOfThoseWithRows) {
  for (const int64_t n : {3, 8, 13, 16}) {
    const Program program = load("own/norm_gated_up", {{"n", n}, {"h", 2056}, {"d", 3000}});
    const auto report =
        superoptimize(program, *find_device("h200"), SearchSpace(), SearchOptions());
    ASSERT_TRUE(report.ok());
    EXPECT_LE(report->candidates.front().graph.kernels.size(), 2u) << n;
  }
}

TEST(CostTest, MoreWorkNeverCostsLess) {
  double last = 0;
  for (int64_t h : {256, 1024, 4096, 16384, 65536}) {
    const Program program = matmul(16, h, 4096);
    GraphPlan plan = unfused_plan(program);
    double us = 0;
    for (KernelPlan& k : plan.kernels) {
      const auto sized = size_kernel(k, profile(plan.graph, k), {}, h200());
      ASSERT_TRUE(sized.has_value());
      us += sized->us;
    }
    EXPECT_GE(us, last);
    last = us;
  }
}

TEST(ThreadLevelTest, TheLongSideOfASkinnyProductIsTheMSide) {
  EXPECT_TRUE(choose_mma(2, 64, 128).swap);
  EXPECT_FALSE(choose_mma(64, 8, 128).swap);
  EXPECT_TRUE(choose_mma(64, 64, 64).use);
  EXPECT_EQ(choose_mma(64, 64, 64).padded, 64.0 * 64 * 64);
  EXPECT_FALSE(choose_mma(1, 1, 1).use);
}

// Of many blocks, long rows of f32 that are read again behind their sums wait in shared memory.
TEST(ThreadLevelTest, LongRowsOfWordsWaitInSharedMemory) {
  const auto storage = [](const std::string& program, std::map<std::string, int64_t> sizes) {
    const auto report =
        superoptimize(load(program, sizes), *find_device("h200"), SearchSpace(), SearchOptions());
    EXPECT_TRUE(report.ok());
    const Kernel& kernel = report->candidates.front().graph.kernels.front();
    for (const Computation& c : kernel.computations) {
      if (c.name == "xs") return c.storage;
    }
    ADD_FAILURE() << program;
    return Storage::kReg;
  };
  EXPECT_EQ(storage("layer_norm_f32", {}), Storage::kShared);
  EXPECT_EQ(storage("softmax_f32", {{"n", 2000}, {"k", 3000}}), Storage::kShared);
  EXPECT_EQ(storage("layer_norm_f32", {{"n", 64}}), Storage::kReg);    // all blocks at once
  EXPECT_EQ(storage("layer_norm_f32", {{"h", 1024}}), Storage::kReg);  // short rows
  EXPECT_EQ(storage("layer_norm_f32", {{"h", 4097}}), Storage::kReg);  // rows that begin anywhere
  EXPECT_EQ(storage("layer_norm", {}), Storage::kReg);                 // of 16 bits
}

TEST(RolesTest, AProductThatIsSummedIsAContraction) {
  const Program program = matmul(8, 64, 64);
  const GraphPlan plan = unfused_plan(program);
  int contractions = 0;
  for (const KernelPlan& k : plan.kernels) {
    for (const Role& role : roles_of(plan.graph, k.kernel))
      contractions += role.contraction ? 1 : 0;
  }
  EXPECT_EQ(contractions, 1);
}

}  // namespace
}  // namespace sundog::search
