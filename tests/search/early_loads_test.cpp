#include "search/early_loads.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/device.h"
#include "search/superoptimize.h"
#include "tests/search/programs.h"

namespace sundog::search {
namespace {

// Loads of B and C stand behind the reduction that does not need them.
constexpr const char* kProgram = R"(
program p(n = 8, h = 256) {
  input A: f16[n, h]
  input B: f16[n, h]
  input C: f16[h]
  y[n, h] = rms[h](A) * B + C
  output Y: f16[n, h] = y
})";
constexpr const char* kGraph = R"(
ugraph p of p {
  kernel k grid(n) warps(1) {
    as[h] = A : reg f16
    t[] = sum[h](as * as) : reg f32
    bs[h] = B : reg f16
    cs[h] = C : shared f16
    o[h] = as * rsqrt(t / size(h)) * bs + cs : reg f32
    store o -> Y
  }
})";

std::vector<std::string> order(const Kernel& kernel) {
  std::vector<std::string> names;
  for (const Statement& s : kernel.body) {
    const auto* compute = std::get_if<Compute>(&s.node);
    names.push_back(compute == nullptr ? "store" : kernel.computations[compute->computation].name);
  }
  return names;
}

MuGraph graph_of(const Program& program) {
  Result<MuGraph> graph = parse_mugraph(kGraph, "p.mu", program);
  EXPECT_TRUE(graph.ok()) << (graph.ok() ? "" : to_string(graph.error()));
  return std::move(*graph);
}

TEST(EarlyLoads, AllStandBeforeWhatIsComputed) {
  const Program program = parse(kProgram);
  MuGraph graph = graph_of(program);
  start_loads_early(graph, graph.kernels[0], /*registers=*/true);
  EXPECT_EQ(order(graph.kernels[0]),
            (std::vector<std::string>{"as", "bs", "cs", "t", "o", "store"}));
}

TEST(EarlyLoads, RegistersAreLeftWhereTheyAreDear) {
  const Program program = parse(kProgram);
  MuGraph graph = graph_of(program);
  start_loads_early(graph, graph.kernels[0], /*registers=*/false);
  EXPECT_EQ(order(graph.kernels[0]),
            (std::vector<std::string>{"cs", "as", "t", "bs", "o", "store"}));
}

void expect_loads_first(const Program& program) {
  const Result<SearchReport> report =
      superoptimize(program, *find_device("h200"), SearchSpace(), SearchOptions());
  ASSERT_TRUE(report.ok());
  const MuGraph& best = report->candidates.front().graph;
  ASSERT_EQ(best.kernels.size(), 1u);
  const Kernel& kernel = best.kernels[0];
  bool computed = false;
  for (const Statement& s : kernel.body) {
    const auto* compute = std::get_if<Compute>(&s.node);
    if (compute == nullptr) continue;
    const TermId value = kernel.computations[compute->computation].value;
    const bool load = std::holds_alternative<InputTerm>(kernel.terms[value]);
    EXPECT_FALSE(load && computed) << kernel.computations[compute->computation].name;
    computed = computed || !load;
  }
}

TEST(EarlyLoads, RowsWaitForMemoryOnce) {
  expect_loads_first(load("n_trans", {{"b", 8}}));
  // Of more blocks than run at once, too.
  expect_loads_first(load("layer_norm", {}));
}

}  // namespace
}  // namespace sundog::search
