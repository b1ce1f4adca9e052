#include "search/size_plan.h"

#include <gtest/gtest.h>

#include "search/sizes.h"
#include "search/unfused.h"
#include "tests/search/programs.h"

namespace sundog::search {
namespace {

class PlanSizerTest : public testing::Test {
 protected:
  // A product and, over its results, a softmax: several kernels.
  Program program_ = parse(R"(program p(n = 64, h = 1024, d = 512) {
  input x: f16[n, h]
  input w: f16[h, d]
  y[n, d] = softmax[d](sum[h](x * w))
  output y: f16[n, d]
})");
  GraphPlan plan_ = unfused_plan(program_);
  Machine machine_ = machine_of(*find_device("h200"));
};

TEST_F(PlanSizerTest, EachKernelHasItsOwnBestSizes) {
  ASSERT_GT(plan_.kernels.size(), 1u);
  PlanSizer sizer(plan_, machine_);
  const auto all = sizer.at({});
  ASSERT_TRUE(all.has_value());
  ASSERT_EQ(all->tiles.size(), plan_.kernels.size());
  double us = 0;
  for (size_t k = 0; k < plan_.kernels.size(); ++k) {
    KernelPlan& kernel = plan_.kernels[k];
    const auto alone = size_kernel(kernel, profile(plan_.graph, kernel), {}, machine_);
    ASSERT_TRUE(alone.has_value());
    EXPECT_EQ(all->tiles[k], alone->tiles);
    us += alone->us;
    const auto part = sizer.at({}, k, 1);
    ASSERT_TRUE(part.has_value());
    EXPECT_EQ(part->us, alone->us);
  }
  EXPECT_DOUBLE_EQ(all->us, us);
  EXPECT_EQ(sizer.misfit(), "");
}

TEST_F(PlanSizerTest, FromItsLastSizesAKernelIsNoSlower) {
  PlanSizer anew(plan_, machine_), last(plan_, machine_, SizeStart::kLast);
  const auto first = last.at({});
  const auto again = last.at({});
  ASSERT_TRUE(first && again);
  EXPECT_LE(again->us, first->us);
  EXPECT_EQ(first->us, anew.at({})->us);
}

TEST_F(PlanSizerTest, TheKernelThatDoesNotFitIsNamed) {
  machine_.registers_per_sm = 1;
  PlanSizer sizer(plan_, machine_);
  EXPECT_FALSE(sizer.at({}).has_value());
  EXPECT_EQ(sizer.misfit(), plan_.kernels[0].kernel.name);
}

}  // namespace
}  // namespace sundog::search
