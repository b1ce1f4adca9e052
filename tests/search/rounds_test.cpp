#include "search/rounds.h"

#include <gtest/gtest.h>

#include <set>

#include "search/import.h"
#include "search/rewrite.h"
#include "tests/search/programs.h"

namespace sundog::search {
namespace {

class RoundsTest : public testing::Test {
 protected:
  std::vector<std::unique_ptr<BankRun>> banks(const Program& program) const {
    std::vector<std::unique_ptr<BankRun>> runs;
    for (const AxisSet parts : {AxisSet{}, AxisSet::of(axis(program, "h"))}) {
      auto run = std::make_unique<BankRun>();
      BankOptions options;
      options.parts = parts;
      run->bank = std::make_unique<Bank>(program, options);
      const auto outputs = import_program(*run->bank);
      EXPECT_TRUE(outputs.ok());
      saturate(*run->bank, space_, [] { return false; });
      run->table = term_table(*run->bank, *outputs, machine_);
      runs.push_back(std::move(run));
    }
    return runs;
  }

  static AxisId axis(const Program& program, const std::string& name) {
    AxisId a = 0;
    while (program.axes[a].name != name) ++a;
    return a;
  }

  // After `rounds` rounds, or when nothing is left.
  RoundState state_after(int rounds, int threads, uint64_t memory_bytes = 0) const {
    const Program program = load("lora", {{"b", 8}});
    auto runs = banks(program);
    Limits limits({}, 0, 0, nullptr);
    Workers workers(threads);
    Rounds search(runs, machine_, space_, memory_bytes, limits, workers);
    search.begin(6.5);
    for (int i = 0; i < rounds && search.run(); ++i) search.merge();
    return search.state();
  }

  SearchSpace space_;
  Machine machine_ = machine_of(*find_device("h200"));
};

void expect_same(const RoundState& a, const RoundState& b) {
  EXPECT_EQ(a.tasks, b.tasks);
  EXPECT_EQ(a.kernels, b.kernels);
  EXPECT_EQ(a.counts.states, b.counts.states);
  EXPECT_EQ(a.counts.kernels_priced, b.counts.kernels_priced);
  EXPECT_EQ(a.counts.structures, b.counts.structures);
  EXPECT_EQ(a.counts.cut_by_bound, b.counts.cut_by_bound);
  EXPECT_EQ(a.counts.cut_as_dominated, b.counts.cut_as_dominated);
  EXPECT_EQ(a.counts.cut_as_duplicate, b.counts.cut_as_duplicate);
  EXPECT_EQ(a.counts.cut_unfit, b.counts.cut_unfit);
  EXPECT_EQ(a.emptied, b.emptied);
  const auto x = a.incumbents.sorted(), y = b.incumbents.sorted();
  ASSERT_EQ(x.size(), y.size());
  for (size_t i = 0; i < x.size(); ++i) {
    EXPECT_EQ(x[i].structure.key, y[i].structure.key);
    EXPECT_EQ(x[i].structure.us, y[i].structure.us);
  }
}

TEST_F(RoundsTest, ThreadsDoNotChangeWhatARoundFinds) {
  for (int rounds : {3, 7, 12}) {
    const RoundState one = state_after(rounds, 1);
    expect_same(one, state_after(rounds, 2));
    expect_same(one, state_after(rounds, 16));
  }
}

TEST_F(RoundsTest, TablesThatAreEmptiedChangeNoneOfThat) {
  const RoundState one = state_after(10, 1, 5000);
  EXPECT_GT(one.emptied, 0u);
  expect_same(one, state_after(10, 3, 5000));
}

TEST_F(RoundsTest, TheBestIsFoundWhateverIsForgotten) {
  const RoundState all = state_after(1 << 20, 2);
  EXPECT_TRUE(all.tasks.empty());
  const RoundState little = state_after(1 << 20, 2, 4000);
  EXPECT_TRUE(little.tasks.empty());
  EXPECT_GT(little.emptied, 0u);
  EXPECT_NEAR(little.incumbents.best_us(), all.incumbents.best_us(),
              0.02 * all.incumbents.best_us());
}

// One tree that is larger than all others together does not keep them waiting to its end.
TEST_F(RoundsTest, TreesTakeTurns) {
  const Program program = parse(R"(program p(n = 64, h = 8192) {
  input S: bf16[n, h]
  input T: bf16[n, h]
  ls[n, h] = S - logsumexp[h](S)
  lt[n, h] = T - logsumexp[h](T)
  output loss: f32[n] = sum[h](exp(lt) * (lt - ls))
})");
  auto runs = banks(program);
  Limits limits({}, 0, 400000, nullptr);
  Workers workers(1);
  Rounds search(runs, machine_, space_, 0, limits, workers);
  search.begin(1e30, 1);
  std::set<int> kernels;
  search.trace([&](const TaskTrace& task) { kernels.insert(task.kernels); });
  while (!limits.check() && search.run()) search.merge();
  EXPECT_EQ(limits.reason(), "states");
  EXPECT_EQ(kernels, (std::set<int>{1, 2, 3}));
  EXPECT_GT(search.state().turns, 0u);
}

}  // namespace
}  // namespace sundog::search
