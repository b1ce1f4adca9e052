// Pruning may cost candidates of other kinds, never the best one: on small programs drawn at random
// the search finds as fast a µGraph with its rules as without any.
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "core/text.h"
#include "search/superoptimize.h"
#include "tests/search/programs.h"

namespace sundog::search {
namespace {

constexpr int kPrograms = 200;

// At most four operators of the catalog over axes of at most four values.
Program draw_program(uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto draw = [&](int n) { return static_cast<int>(random() % static_cast<uint64_t>(n)); };
  const std::vector<std::string> bodies = {"exp(%)",
                                           "silu(%)",
                                           "tanh(%)",
                                           "% * %",
                                           "% + g",
                                           "% * g",
                                           "rsqrt(% * % + 1)",
                                           "% - mean[h](%)",
                                           "x * sum[h](%)",
                                           "softmax[h](%)",
                                           "% * max[h](%)",
                                           "relu(%)",
                                           "x + sum[h](% * %)",
                                           "% / (1 + sum[h](% * %))"};
  std::ostringstream text;
  text << "program small(n = " << 1 + draw(4) << ", h = " << 2 + draw(3) << ", d = " << 1 + draw(4)
       << ") {\n  input x: f16[n, h]\n  input w: f16[h, d]\n  input g: f16[h]\n";
  std::string last = "x";
  const int steps = 1 + draw(3);
  for (int i = 0; i < steps; ++i) {
    std::string body = bodies[static_cast<size_t>(draw(static_cast<int>(bodies.size())))];
    for (size_t at; (at = body.find('%')) != std::string::npos;)
      body.replace(at, 1, "(" + last + ")");
    const std::string name = "t" + std::to_string(i);
    text << "  " << name << "[n, h] = " << body << "\n";
    last = name;
  }
  if (draw(2) == 0) {
    text << "  y[n, d] = sum[h](" << last << " * w)\n  output y: f16[n, d]\n}\n";
  } else {
    text << "  y[n, h] = " << last << " + x\n  output y: f16[n, h]\n}\n";
  }
  return parse(text.str());
}

// Not a number if the search did not end by itself: nothing is then known of the optimum.
double best_us(const Program& program, const SearchSpace& space, uint64_t states) {
  SearchOptions options;
  options.max_states = states;
  const auto report = superoptimize(program, *find_device("h200"), space, options);
  EXPECT_TRUE(report.ok());
  if (!report.ok() || report->stop_reason != "exhausted") return std::nan("");
  return report->candidates.front().predicted_us;
}

TEST(PruningSlowTest, KeepsTheBest) {
  int compared = 0;
  for (uint64_t seed = 1; seed <= kPrograms; ++seed) {
    const Program program = draw_program(seed);
    SearchSpace pruned;
    pruned.most_kernels = 2;
    SearchSpace open = pruned;
    open.prune_by_bound = open.prune_duplicates = false;
    open.prune_dominated = open.prune_outclassed = false;
    const double with = best_us(program, pruned, 1500), without = best_us(program, open, 1500);
    if (std::isnan(with) || std::isnan(without)) continue;
    ++compared;
    EXPECT_LE(with, without * 1.001) << "seed " << seed << "\n" << print(program);
  }
  EXPECT_GT(compared, kPrograms / 3);
}

// An output of a higher rank may be stored by a kernel before the last one: the gradient beside the
// parts of the loss.
TEST(PlacementTest, AnOutputIsStoredBesideThePartsOfAnother) {
  SearchOptions options;
  options.parts = false;
  const auto report = superoptimize(parse(R"(program cross_entropy(n = 64, v = 128256) {
  input X: bf16[n, v]
  input T: bf16[n, v]
  ls[n, v] = X - logsumexp[v](X)
  output loss: f32[n] = -sum[v](T * ls)
  output grad: bf16[n, v] = exp(ls) - T
})"),
                                    *find_device("h200"), {}, options);
  ASSERT_TRUE(report.ok());
  const MuGraph& best = report->candidates.front().graph;
  ASSERT_EQ(best.kernels.size(), 3u);
  const auto stores_output = [&](size_t kernel) {
    for (const Store* s : stores_of(best.kernels[kernel])) {
      if (best.tensors[s->tensor].role == TensorRole::kOutput) return true;
    }
    return false;
  };
  EXPECT_TRUE(stores_output(1));
  EXPECT_TRUE(stores_output(2));
  EXPECT_GT(block_count(best.kernels[1]), 132);
  EXPECT_LT(report->candidates.front().predicted_us, 25);
}

}  // namespace
}  // namespace sundog::search
