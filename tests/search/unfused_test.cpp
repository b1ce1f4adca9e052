#include "search/unfused.h"

#include <gtest/gtest.h>

#include "core/text.h"
#include "tests/search/programs.h"

namespace sundog::search {
namespace {

size_t kernels(const char* text) { return unfused_plan(parse(text)).kernels.size(); }

TEST(UnfusedTest, IsCutAtReductions) {
  EXPECT_EQ(kernels(R"(program p(n = 8, h = 16, d = 8) {
    input x: f16[n, h]
    input w: f16[h, d]
    r[n] = rsqrt(mean[h](x * x) + 1)
    y[n, d] = sum[h](x * r * w)
    output y: f16[n, d]
  })"),
            3u);  // the mean, what is multiplied, the product
}

// A library does not launch a kernel for a number.
TEST(UnfusedTest, WhatReadsNoInputIsNoKernel) {
  const char* scaled = R"(program p(n = 8, h = 16, d = 8) {
    input x: f16[n, h]
    input w: f16[h, d]
    scale = 1 / sqrt(size(h))
    y[n, d] = sum[h](x * w * scale)
    output y: f16[n, d]
  })";
  const GraphPlan plan = unfused_plan(parse(scaled));
  for (const KernelPlan& kernel : plan.kernels) {
    EXPECT_FALSE(kernel.splits.empty()) << kernel.kernel.name << " computes a number";
  }
}

}  // namespace
}  // namespace sundog::search
