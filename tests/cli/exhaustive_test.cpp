// NOLINT(sundog-mirror): search and verification together against tests/cli/brute_force.h.
//
// On tiny programs everything can be tried.  No µGraph that a second, exhaustive search finds and
// the verifier accepts may be cheaper than what search reports; and search with its prunings finds
// as good a one as without.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "core/text.h"
#include "search/superoptimize.h"
#include "tests/cli/brute_force.h"
#include "tests/search/random_programs.h"
#include "verify/verdict.h"

namespace sundog::search {
namespace {

constexpr int kPrograms = 200;
constexpr int kPerCase = 25;
constexpr int kMostSteps = 4;
// Of the price: what constant factors may cost that are multiplied in later than they could be.
constexpr double kTolerance = 1e-3, kToleranceOfSlow = 8e-2;

bool is_equivalent(const Program& program, const MuGraph& graph) {
  if (!check(graph, program).ok()) return false;
  verify::VerifyOptions options;
  options.full_size_work = 0;
  options.numerics_work = 1 << 12;
  return verify::verify(program, graph, options).answer == verify::Verdict::kEquivalent;
}

// A device on which nothing is free: a handful of elements take as long as a launch, so that the
// order of the prices depends on every byte and operation.  There search is compared with all
// placements of the program as it is written: what a handful of operations are worth is a matter
// of the model, and of axioms that no workload needs (the maximum of relus is the relu of the
// maximum).
Device slow_device() {
  Device d = *find_device("h200");
  d.name = "slow";
  d.sms = 4;
  for (auto& [in_flight, rate] : d.hbm) rate *= 1e-5;
  d.l2_gb_per_s *= 1e-5;
  d.fma_per_clock_per_sm *= 1e-3;
  d.sfu_per_clock_per_sm *= 1e-3;
  return d;
}

Candidate best_of(const Program& program, const Device& device, const SearchSpace& space) {
  SearchOptions options;
  options.max_states = 200000;
  options.top_k = 1;
  options.accept = [&](const Candidate& c) { return is_equivalent(program, c.graph); };
  const auto report = superoptimize(program, device, space, options);
  EXPECT_TRUE(report.ok());
  EXPECT_EQ(report->stop_reason, "exhausted");
  return report->candidates.front();
}

SearchSpace small_space(bool prune) {
  SearchSpace space;
  space.shortest_loop = 1;
  space.store_anything = true;
  space.most_kernels = 3;  // as the other search
  space.prune_by_bound = space.prune_duplicates = space.prune_dominated = space.prune_outclassed =
      prune;
  return space;
}

struct Effort {
  uint64_t programs = 0, lines = 0, priced = 0;
};

// µGraphs of a program that are right and cost less than `limit`, of all placements of `lines`.
std::vector<MuGraph> cheaper(const Program& program, const Device& device, double limit,
                             const std::vector<TermId>& leaves,
                             const std::vector<std::vector<Step>>& lines, Effort& effort) {
  const Machine machine = machine_of(device);
  std::vector<MuGraph> found;
  for (const auto& steps : lines) {
    EveryPlacement placement(program, leaves, steps, machine);
    placement.run(limit, [&](double, const std::function<MuGraph()>& make) {
      MuGraph graph = make();
      if (predict(graph, machine) >= limit || !is_equivalent(program, graph)) return;
      found.push_back(std::move(graph));
    });
    effort.priced += placement.priced();
  }
  return found;
}

void compare(const Program& program, Effort& effort) {
  StraightLines lines(program, kMostSteps);
  if (lines.trivial()) return;
  const auto all = lines.all();
  ASSERT_FALSE(all.empty());  // the program itself at least
  ++effort.programs;
  effort.lines += all.size();
  for (const bool slow : {false, true}) {
    const Device device = slow ? slow_device() : *find_device("h200");
    const Candidate best = best_of(program, device, small_space(true));
    const Candidate unpruned = best_of(program, device, small_space(false));
    const double limit = best.predicted_us * (1 - (slow ? kToleranceOfSlow : kTolerance));
    EXPECT_GE(unpruned.predicted_us, limit) << print(unpruned.graph, program) << "against\n"
                                            << print(best.graph, program);
    for (const MuGraph& graph : cheaper(program, device, limit, lines.leaves(),
                                        slow ? lines.as_written(all) : all, effort)) {
      ADD_FAILURE() << predict(graph, machine_of(device)) << " us against " << best.predicted_us
                    << " on " << device.name << "\n"
                    << print(graph, program) << "against\n"
                    << print(best.graph, program);
    }
  }
}

// The check can fail: a report that is a tenth worse would be found out.
TEST(ExhaustiveTest, AWorseReportIsFoundOut) {
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    RandomProgramLimits limits;
    limits.most_operators = 3;
    limits.least_extent = 2;
    limits.most_extent = 4;
    limits.indices = false;
    limits.outputs = 1;
    const Program program = draw_from_catalog(seed, limits);
    SCOPED_TRACE(print(program));
    StraightLines lines(program, 3);
    if (lines.trivial()) continue;
    const auto all = lines.all();
    Effort effort;
    const Device device = *find_device("h200");
    const double us = best_of(program, device, small_space(true)).predicted_us;
    EXPECT_FALSE(cheaper(program, device, 1.1 * us, lines.leaves(), all, effort).empty());
  }
}

class ExhaustiveSlowTest : public testing::TestWithParam<int> {};

TEST_P(ExhaustiveSlowTest, NothingCheaperIsRight) {
  RandomProgramLimits limits;
  limits.most_operators = kMostSteps;
  limits.least_extent = 2;  // an axis of one value is not taken for none
  limits.most_extent = 4;
  limits.indices = false;
  limits.outputs = 1;
  Effort effort;
  for (int i = 0; i < kPerCase; ++i) {
    const auto seed = static_cast<uint64_t>(1000 + GetParam() * kPerCase + i);
    const Program program = draw_from_catalog(seed, limits);
    SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + print(program));
    compare(program, effort);
    if (HasFailure()) return;
  }
  EXPECT_GE(effort.programs, kPerCase * 9 / 10);
  EXPECT_GE(effort.priced, 1000 * effort.programs);  // the comparison is one
  RecordProperty("lines", std::to_string(effort.lines));
  RecordProperty("priced", std::to_string(effort.priced));
}

INSTANTIATE_TEST_SUITE_P(Programs, ExhaustiveSlowTest, testing::Range(0, kPrograms / kPerCase));

}  // namespace
}  // namespace sundog::search
