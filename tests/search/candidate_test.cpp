#include "search/candidate.h"

#include <gtest/gtest.h>

#include "core/schedule/memory_plan.h"
#include "search/make_bank.h"
#include "tests/search/programs.h"

namespace sundog::search {
namespace {

TEST(CandidateTest, StructuresBecomeGraphsThatFit) {
  const Program program = load("rms_norm", {{"b", 8}});
  const Device device = *find_device("h200");
  const Machine machine = machine_of(device);
  SearchSpace space;
  space.sizes_per_structure = 3;
  MadeBank made = make_bank(program, {}, 1, space, machine, [] { return false; });
  ASSERT_TRUE(made.usable);
  Limits limits({}, 0, 0, nullptr);
  Quantum quantum(1 << 20, 1 << 24, limits);
  Placement placement(*made.run.bank, made.run.table, machine, space, *made.run.tables);
  PlacementTask task;
  task.kernels = 2;
  const auto found = placement.run(task, 1e30, quantum).found.sorted();
  ASSERT_FALSE(found.empty());
  for (const auto& entry : found) {
    const auto candidates = candidates_of(entry.structure, made.run, space, machine, device);
    EXPECT_LE(candidates.size(), 3u);
    for (const Candidate& c : candidates) {
      EXPECT_TRUE(check(c.graph, program).ok());
      EXPECT_EQ(c.kind, entry.structure.kind);
      EXPECT_EQ(c.graph.kernels.size(), entry.structure.kernels.size());
      EXPECT_EQ(c.predicted_us, candidate_of(c.graph, "", machine).predicted_us);
      for (const Kernel& k : c.graph.kernels) {
        const auto plan = plan_kernel(c.graph, k);
        ASSERT_TRUE(plan.ok());
        EXPECT_TRUE(fits(k, *plan, device).ok());
      }
    }
    for (size_t i = 1; i < candidates.size(); ++i) {
      EXPECT_FALSE(candidates[i].graph == candidates[0].graph);
    }
  }
}

}  // namespace
}  // namespace sundog::search
