#include "search/lower.h"

#include <gtest/gtest.h>

#include "core/text.h"
#include "search/bank.h"
#include "search/import.h"
#include "search/kernel_shape.h"
#include "search/limits.h"
#include "search/machine.h"
#include "search/place_kernel.h"
#include "search/rewrite.h"
#include "search/term_table.h"

namespace sundog::search {
namespace {

// Every structure that placement keeps can be shaped again and lowered, kernel by kernel.
TEST(LowererTest, PlacedStructuresBecomePlans) {
  const Result<Program> program = parse_program(R"(program norm(n = 4, h = 512, d = 96) {
  input x: f16[n, h]
  input w: f16[h, d]
  y[n, d] = sum[h](x * rsqrt(mean[h](x * x) + 1) * w)
  output y: f16[n, d]
})",
                                                "test.sd", {});
  ASSERT_TRUE(program.ok());
  Bank bank(*program, {});
  const auto outputs = import_program(bank);
  ASSERT_TRUE(outputs.ok());
  const SearchSpace space;
  saturate(bank, space, [] { return false; });
  const Machine machine = machine_of(*find_device("h200"));
  const TermTable table = term_table(bank, *outputs, machine);
  Limits limits({}, 0, 0, nullptr);
  Quantum quantum(1 << 20, 1 << 24, limits);
  PlacementTables tables;
  Placement placement(bank, table, machine, space, tables);
  PlacementTask task;
  task.kernels = 2;
  const PlacementOutcome outcome = placement.run(task, 1e30, quantum);
  EXPECT_TRUE(outcome.rest.empty());
  const auto kept = outcome.found.sorted();
  ASSERT_FALSE(kept.empty());
  for (const auto& entry : kept) {
    Lowerer lowerer(bank, table);
    const auto& kernels = entry.structure.kernels;
    for (size_t k = 0; k < kernels.size(); ++k) {
      EXPECT_FALSE(kernel_shapes(bank, table, kernels[k].body).empty());
      RankSet loaded;
      for (size_t later = k + 1; later < kernels.size(); ++later) {
        for (const BodyItem& item : kernels[later].body.items) {
          if (item.node < 0) loaded.insert(item.term);
        }
      }
      lowerer.add_kernel(kernels[k].body, kernels[k].shape, loaded);
    }
    EXPECT_EQ(lowerer.plan().kernels.size(), kernels.size());
    for (const KernelPlan& plan : lowerer.plan().kernels) {
      EXPECT_FALSE(plan.kernel.computations.empty());
      EXPECT_FALSE(plan.kernel.body.empty());
    }
  }
}

}  // namespace
}  // namespace sundog::search
