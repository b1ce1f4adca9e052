#include "core/size_solver.h"

#include <gtest/gtest.h>

#include <numeric>

namespace sundog {
namespace {

constexpr int64_t kFar = 1 << 30;

std::vector<int64_t> up_to(int64_t first, int64_t last) {
  std::vector<int64_t> values(static_cast<size_t>(last - first + 1));
  std::iota(values.begin(), values.end(), first);
  return values;
}

SizeForm of(uint32_t unknown) { return SizeForm::of(unknown); }

TEST(SizeSolverTest, FormsAreCollected) {
  const SizeForm sum = of(0) + of(1) * 2 - of(0);
  EXPECT_EQ(sum, of(1) * 2);
  const SizeForm product = (of(0) - SizeForm::of_constant(1)) * (of(1) + SizeForm::of_constant(3));
  EXPECT_EQ(product.at({5, 7}), 40);
  EXPECT_EQ(product.items.size(), 3u);
  EXPECT_EQ((of(2) * of(0) * of(2)).items[0].unknowns, (std::vector<uint32_t>{0, 2, 2}));
}

// The least original value is chosen first, and what is forced by it is not searched for.
TEST(SizeSolverTest, EqualitiesForceWhatIsLeft) {
  const std::vector<SizeUnknown> unknowns = {
      {4104, up_to(2, 4104)}, {8, up_to(2, 8)}, {4096, up_to(3, 4096)}};
  const std::vector<SizeRelation> relations = {{of(0) - of(1) - of(2), 0, 0}};
  EXPECT_EQ(solve(unknowns, relations), (std::vector<int64_t>{5, 2, 3}));
}

TEST(SizeSolverTest, DistinctValuesArePreferredAndNotDemanded) {
  std::vector<SizeUnknown> unknowns = {{8, up_to(2, 8), true}, {9, up_to(2, 9), true}};
  EXPECT_EQ(solve(unknowns, {}), (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(solve(unknowns, {}, {2, 3, 4}), (std::vector<int64_t>{5, 6}));
  EXPECT_EQ(solve(unknowns, {{of(0) - of(1), 0, 0}}), (std::vector<int64_t>{2, 2}));
  unknowns[0].step = 4;
  EXPECT_EQ(solve(unknowns, {}, {3}), (std::vector<int64_t>{4, 2}));
}

// x * y = z with a bound on z, and values that are not all integers.
TEST(SizeSolverTest, ProductsAndGapsInWhatIsAllowed) {
  const std::vector<SizeUnknown> unknowns = {
      {256, {3, 5, 256}}, {4, up_to(2, 4)}, {1024, up_to(2, 1024)}};
  const std::vector<SizeRelation> relations = {{of(0) * of(1) - of(2), 0, 0}, {of(2), 11, kFar}};
  EXPECT_EQ(solve(unknowns, relations), (std::vector<int64_t>{256, 2, 512}))
      << "3 * 2 and 5 * 2 are too few, and the second is chosen first";
}

TEST(SizeSolverTest, BacktracksWhereTheFirstChoiceLeavesNone) {
  // y = 3 x - 2 where y is one of few.
  const std::vector<SizeUnknown> unknowns = {{10, up_to(2, 10)}, {28, {5, 9, 13, 28}}};
  const std::vector<SizeRelation> relations = {{of(0) * 3 - of(1), 2, 2}};
  EXPECT_EQ(solve(unknowns, relations), (std::vector<int64_t>{5, 13}));
}

TEST(SizeSolverTest, NoValuesNoSolution) {
  EXPECT_EQ(solve({{10, up_to(2, 10)}}, {{of(0), 11, kFar}}), std::nullopt);
  EXPECT_EQ(solve({{10, {10}}}, {{of(0), 2, kFar}}), (std::vector<int64_t>{10}));
}

// Sizes beyond 64 bits when multiplied are no reason to lose a solution.
TEST(SizeSolverTest, HugeSizesDoNotOverflow) {
  const int64_t huge = int64_t{1} << 40;
  const std::vector<SizeUnknown> unknowns = {{huge, {2, huge}}, {huge + 1, {3, huge + 1}}};
  const std::vector<SizeRelation> relations = {{of(0) * of(1), 6, int64_t{1} << 60}};
  EXPECT_EQ(solve(unknowns, relations), (std::vector<int64_t>{2, 3}));
}

}  // namespace
}  // namespace sundog
