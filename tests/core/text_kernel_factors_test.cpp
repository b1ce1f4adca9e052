#include "core/text_kernel_factors.h"

#include <gtest/gtest.h>

namespace sundog::text {
namespace {

// y[b] = sum[h.o, h.i](x), with b and h.s unused factors around.
Kernel example() {
  Kernel kernel;
  kernel.factors = {{"u", 3, 5, 1}, {"h.o", 1, 4, 2}, {"b", 0, 3, 1}, {"h.i", 1, 2, 1}};
  kernel.grid = {2};
  AxisSet h = AxisSet::of(1);
  h.insert(3);
  const TermId x =
      kernel.terms.input(0, {IndexExpr::of(2), IndexExpr::of(1) * 2 + IndexExpr::of(3)});
  Computation c;
  c.name = "y";
  c.value = kernel.terms.reduce(ReduceKind::kSum, h, x);
  kernel.computations = {c};
  Loop loop;
  loop.factor = 1;
  loop.body = {{Compute{0}}};
  kernel.body = {{loop}, {Store{0, 1, {IndexExpr::of(2)}}}};
  return kernel;
}

TEST(TextKernelFactors, ListsThoseInUseByAxis) {
  EXPECT_EQ(factors_in_use(example()), (std::vector<AxisId>{2, 1, 3}));
}

TEST(TextKernelFactors, OneFactorInUseKeepsAllOfItsAxis) {
  Kernel kernel = example();
  kernel.computations.clear();
  kernel.terms = TermGraph();
  std::get<Loop>(kernel.body[0].node).body.clear();
  EXPECT_EQ(factors_in_use(kernel), (std::vector<AxisId>{2, 1, 3}));
}

TEST(TextKernelFactors, RenumbersEverything) {
  Kernel kernel = example();
  EXPECT_EQ(keep_factors(kernel, {2, 1, 3}), (std::vector<AxisId>{kNone, 1, 0, 2}));
  ASSERT_EQ(kernel.factors.size(), 3u);
  EXPECT_EQ(kernel.factors[0].name, "b");
  EXPECT_EQ(kernel.grid, (std::vector<AxisId>{0}));
  const auto& input = std::get<InputTerm>(kernel.terms[0]);
  EXPECT_EQ(input.index[0], IndexExpr::of(0));
  EXPECT_EQ(input.index[1], IndexExpr::of(1) * 2 + IndexExpr::of(2));
  EXPECT_EQ(std::get<ReduceTerm>(kernel.terms[1]).axes, AxisSet(0b110));
  EXPECT_EQ(std::get<Loop>(kernel.body[0].node).factor, 1u);
  EXPECT_EQ(std::get<Store>(kernel.body[1].node).index[0], IndexExpr::of(0));
}

}  // namespace
}  // namespace sundog::text
