#include "search/kernel_shape.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "search/finish.h"
#include "search/lower.h"
#include "search/make_bank.h"
#include "search/sizes.h"
#include "search/superoptimize.h"
#include "tests/search/expect_right.h"
#include "tests/search/programs.h"

namespace sundog::search {
namespace {

const char* const kChain = R"(program chain(m = 24, k = 40, l = 56, n = 24) {
  input A: f16[m, k]
  input B: f16[k, l]
  input C: f16[l, n]
  output O: f16[m, n] = sum[l](max(sum[k](A * B), 0) * C)
})";

const char* const kAttention = R"(program attention(q = 20, k = 72, e = 40, f = 24) {
  input Q: f16[q, e]
  input K: f16[k, e]
  input V: f16[k, f]
  output O: f16[q, f] = sum[k](softmax[k](sum[e](Q * K)) * V)
})";

// Queries are normalised along the head dimension before they are multiplied: what varies along the
// inner axis alone is made in each body that reads it.
const char* const kNormalised = R"(program normalised(q = 20, k = 72, e = 40, f = 24) {
  input Q: f16[q, e]
  input K: f16[k, e]
  input V: f16[k, f]
  output O: f16[q, f] = sum[k](softmax[k](sum[e](Q * rsqrt(mean[e](Q * Q) + 1) * K)) * V)
})";

const char* const kRows = R"(program rows(m = 24, k = 56, n = 72) {
  input A: f16[m, k]
  input B: f16[k, n]
  output O: f32[m] = sum[n](max(sum[k](A * B), 0))
})";

// Rows of queries share their norms with all tiles of outputs.
const char* const kNorm = R"(program norm(n = 20, h = 56, d = 200) {
  input X: f16[n, h]
  input W: f16[h, d]
  output O: f16[n, d] = sum[h](X * rsqrt(mean[h](X * X) + 1) * W)
})";

int nests(const std::vector<Statement>& body, int around = 0) {
  int count = 0;
  for (const Statement& s : body) {
    const auto* loop = std::get_if<Loop>(&s.node);
    if (loop != nullptr) count += around + nests(loop->body, 1);
  }
  return count;
}

// Every structure of one kernel, with steps of 16 along everything.
std::vector<MuGraph> structures(const Program& program, bool nested) {
  const Machine machine = machine_of(*find_device("h200"));
  SearchSpace space;
  space.shortest_loop = 16;
  space.nested_loops = space.nested_parallel_loops = nested;
  space.prune_by_bound = space.prune_outclassed = false;
  space.kept_per_kind = 20;
  MadeBank made = make_bank(program, {}, 1, space, machine, [] { return false; });
  EXPECT_TRUE(made.usable);
  Limits limits({}, 0, 0, nullptr);
  Quantum quantum(1 << 20, 1 << 24, limits);
  Placement placement(*made.run.bank, made.run.table, machine, space, *made.run.tables);
  PlacementTask task;
  task.kernels = 1;
  std::vector<MuGraph> graphs;
  for (const auto& entry : placement.run(task, 1e30, quantum).found.sorted()) {
    const PlacedKernel& kernel = entry.structure.kernels[0];
    Lowerer lowerer(*made.run.bank, made.run.table);
    lowerer.add_kernel(kernel.body, kernel.shape, {});
    std::vector<int64_t> tiles(lowerer.plan().kernels[0].splits.size(), 16);
    tiles.push_back(1);
    graphs.push_back(finish(lowerer.take(), {tiles}, {}, machine));
  }
  return graphs;
}

class NestTest : public testing::TestWithParam<const char*> {};

TEST_P(NestTest, EachComputesTheProgram) {
  const Program program = parse(GetParam());
  int with_nests = 0;
  for (const MuGraph& graph : structures(program, true)) {
    expect_right(program, graph);
    with_nests += nests(graph.kernels[0].body) > 0 ? 1 : 0;
  }
  EXPECT_GT(with_nests, 0);
}

TEST_P(NestTest, ThereIsNoneWhereTheSpaceHasNone) {
  const Program program = parse(GetParam());
  for (const MuGraph& graph : structures(program, false)) {
    EXPECT_EQ(nests(graph.kernels[0].body), 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Programs, NestTest,
                         testing::Values(kChain, kAttention, kNormalised, kRows, kNorm));

// Scores take steps along the head dimension for each block of keys, and never the other way round.
TEST(KernelShapeTest, TheInnerLoopIsTheOneThatIsReducedFirst) {
  for (const MuGraph& graph : structures(parse(kAttention), true)) {
    const Kernel& kernel = graph.kernels[0];
    for (const Statement& s : kernel.body) {
      const auto* loop = std::get_if<Loop>(&s.node);
      if (loop == nullptr || nests(loop->body, 1) == 0) continue;
      EXPECT_NE(graph.axes[kernel.factors[loop->factor].axis].name, "e");
    }
  }
}

// A product too deep to be held whose results are too many to be stored: without bulk copies, which
// inner loops do without, a nest is best.
TEST(KernelShapeTest, ANestIsBestWhereItSavesALargeIntermediate) {
  const Program program = parse(R"(program rows(m = 1024, k = 1024, n = 65536) {
  input A: f16[m, k]
  input B: f16[k, n]
  output O: f32[m] = sum[n](max(sum[k](A * B), 0))
})");
  SearchSpace deep;
  deep.library_gemm = false;  // which is faster still, with the intermediate
  SearchSpace flat = deep;
  flat.nested_loops = false;
  const auto best = [&](const SearchSpace& space) {
    return superoptimize(program, *find_device("a100"), space, {})->candidates.front();
  };
  const Candidate nested = best(deep), without = best(flat);
  EXPECT_GT(nests(nested.graph.kernels[0].body), 0);
  EXPECT_NE(nested.structure.find(" around loop(k.o) "), std::string::npos) << nested.structure;
  EXPECT_LT(nested.predicted_us, 0.9 * without.predicted_us);
}

}  // namespace
}  // namespace sundog::search
