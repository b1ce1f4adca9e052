#include "search/trimmed.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <queue>
#include <random>
#include <string>
#include <vector>

#include "core/device.h"
#include "core/text.h"
#include "search/sizes.h"
#include "search/trim_masked.h"

namespace sundog::search {
namespace {

// k.o loops, q.o is on the grid behind g; a query sees the keys up to its own, and where there is
// a window those no more than that many before it.
struct Masked {
  Kernel open;      // its strides are 1
  Kernel finished;  // likewise, at the sizes
  std::vector<int64_t> extents;
};

Masked masked(int64_t q, int64_t q_tile, int64_t k_tile, int64_t window) {
  Masked out;
  const auto make = [&](bool finished) {
    Kernel kernel;
    const int64_t qs = finished ? q_tile : 1, ks = finished ? k_tile : 1;
    kernel.factors = {{"g", 0, 3, 1},
                      {"q.o", 1, (q + q_tile - 1) / q_tile, qs},
                      {"q.i", 1, q_tile, 1},
                      {"k.o", 2, (q + k_tile - 1) / k_tile, ks},
                      {"k.i", 2, k_tile, 1}};
    kernel.grid = {0, 1};
    TermGraph& g = kernel.terms;
    const IndexExpr query = IndexExpr::of(1) * qs + IndexExpr::of(2);
    const IndexExpr key = IndexExpr::of(3) * ks + IndexExpr::of(4);
    const TermId none = g.constant(Number::infinity(true));
    TermId s = g.input(0, {query, key});
    if (window > 0) {
      s = g.push(
          SelectTerm{{query - key - IndexExpr::of_constant(window), Relation::kLess}, s, none});
    }
    s = g.push(SelectTerm{{key - query, Relation::kLessEqual}, s, none});
    Computation c;
    c.name = "m";
    c.axes = {2};
    c.value = g.reduce(ReduceKind::kMax, AxisSet::of(3) | AxisSet::of(4), s);
    kernel.computations.push_back(c);
    kernel.body = {{Loop{3, 1, {}, {{Compute{0}}}}}};
    return kernel;
  };
  out.open = make(false);
  out.finished = make(true);
  trim_masked(out.finished);
  for (const Factor& f : out.finished.factors) out.extents.push_back(f.extent);
  return out;
}

// Iterations of the block of each q.o in which some query sees some key.
std::vector<double> counted(int64_t q, int64_t q_tile, int64_t k_tile, int64_t window) {
  std::vector<double> blocks;
  for (int64_t first = 0; first < q; first += q_tile) {
    double run = 0;
    for (int64_t key = 0; key < q; key += k_tile) {
      bool any = false;
      for (int64_t a = first; a < first + q_tile; ++a) {
        for (int64_t b = key; b < key + k_tile; ++b) {
          any = any || (b <= a && (window == 0 || a - b < window));
        }
      }
      run += any ? 1 : 0;
    }
    blocks.push_back(run);
  }
  return blocks;
}

TEST(TrimmedTest, CountsTheIterationsInWhichAMaskKeepsSomething) {
  for (const int64_t window : {0, 40, 7}) {
    for (const int64_t q_tile : {8, 16, 24}) {
      for (const int64_t k_tile : {4, 16, 40}) {
        const int64_t q = 240;
        const Masked m = masked(q, q_tile, k_tile, window);
        std::vector<double> blocks = counted(q, q_tile, k_tile, window);
        // Along a causal mask alone blocks grow: the longest starts first.
        if (window == 0) std::reverse(blocks.begin(), blocks.end());
        const double mean =
            std::accumulate(blocks.begin(), blocks.end(), 0.0) / static_cast<double>(blocks.size());
        const double most = *std::max_element(blocks.begin(), blocks.end());
        const Iterations open = iterations_at(trims_to_come(m.open, {}), m.extents);
        const Iterations finished = iterations_at(trims_of(m.finished, {}), m.extents);
        for (const Iterations& i : {open, finished}) {
          ASSERT_EQ(i.blocks.size(), blocks.size());
          EXPECT_EQ(i.periods, 3);
          EXPECT_NEAR(i.share[0], mean / static_cast<double>(m.extents[3]), 1e-9);
          EXPECT_NEAR(i.longest, most / mean, 1e-9);
          for (size_t b = 0; b < blocks.size(); ++b) {
            EXPECT_NEAR(i.blocks[b], blocks[b] / mean, 1e-9);
          }
        }
      }
    }
  }
}

TEST(TrimmedTest, ManyBlocksAreSampledEvenly) {
  const Masked m = masked(1 << 15, 16, 16, 0);
  const Iterations i = iterations_at(trims_to_come(m.open, {}), m.extents);
  EXPECT_LE(i.blocks.size(), 64u);
  EXPECT_NEAR(i.share[0], 0.5, 0.01);
  EXPECT_NEAR(i.longest, 2, 0.05);
}

TEST(TrimmedTest, WithoutMasksAllRuns) {
  Masked m = masked(64, 16, 16, 0);
  std::get<Loop>(m.finished.body[0].node).trim.clear();
  const Trims trims = trims_of(m.finished, {});
  EXPECT_TRUE(trims.trimmed.empty());
  EXPECT_EQ(iterations_at(trims, m.extents).share[0], 1);
}

// Gives blocks to places as they become free.
double given_out(const std::vector<double>& blocks, size_t places) {
  std::priority_queue<double, std::vector<double>, std::greater<>> free;
  for (size_t i = 0; i < places; ++i) free.push(0);
  double end = 0;
  for (const double b : blocks) {
    const double start = free.top();
    free.pop();
    free.push(start + b);
    end = std::max(end, start + b);
  }
  return end;
}

TEST(TrimmedTest, TheBusiestPlaceIsNearWhatGivingOutBlocksComesTo) {
  double errors = 0;
  int cases = 0;
  for (const int64_t window : {0, 1024}) {
    for (const int64_t tile : {64, 128, 512}) {
      for (const int heads : {1, 4, 8, 32, 128}) {
        for (const size_t places : {132u, 264u}) {
          Masked m = masked(4096, tile, 64, window);
          m.extents[0] = heads;
          const Iterations i = iterations_at(trims_of(m.finished, {}), m.extents);
          std::vector<double> blocks;
          for (int h = 0; h < heads; ++h) {
            blocks.insert(blocks.end(), i.blocks.begin(), i.blocks.end());
          }
          const double right = given_out(blocks, places);
          const double here =
              busiest_place(i, static_cast<double>(blocks.size()), static_cast<double>(places));
          EXPECT_NEAR(here / right, 1, 0.15)
              << window << " " << tile << " " << heads << " " << places;
          errors += std::abs(here / right - 1);
          ++cases;
        }
      }
    }
  }
  EXPECT_LT(errors / cases, 0.04);
}

TEST(TrimmedTest, WhatConditionsKeepOfAnIndexSpace) {
  const IndexExpr q = IndexExpr::of(0), k = IndexExpr::of(1);
  const IndexCondition causal{k - q, Relation::kLessEqual};
  const IndexCondition near{q - k - IndexExpr::of_constant(256), Relation::kLess};
  EXPECT_NEAR(kept_share({causal}, {4096, 4096}), 0.5, 0.01);
  EXPECT_NEAR(kept_share({causal, near}, {4096, 4096}), 1.0 / 16, 0.005);
  EXPECT_EQ(kept_share({{q - k, Relation::kNotEqual}}, {4096, 4096}), 1);
}

double predicted(const std::string& mask, const std::string& trim) {
  const std::string program = R"(program attention(g = 32, q = 4096, k = 4096, e = 128, f = 128) {
  input Q: bf16[g, q, e]
  input K: bf16[g, k, e]
  input V: bf16[g, k, f]
  s[g, q, k] = )" + mask + R"(
  p[g, q, k] = exp(s - max[k](s))
  output O: bf16[g, q, f] = sum[k](p * V) / sum[k](p)
})";
  const std::string graph = R"(ugraph attention of attention {
  kernel k0 grid(g, q.o) warps(8) {
    split q = q.o * q.i(128)
    split k = k.o * k.i(64)
    qs[q.i, e] = Q : shared bf16
    loop k.o stages(2) bulk )" +
                            trim + R"( {
      ks[k.i, e] = K : shared bf16
      vs[k.i, f] = V : shared bf16
      s[q.i, k.i] = sum[e](qs * ks) : reg f32 mma(m64n8k16) warps(q.i/8)
      m[q.i] = max[k.o, k.i](s) : reg f32
      p[q.i, k.i] = exp(s - m) : reg bf16
      o[q.i, f] = sum[k.o, k.i](p * vs) : reg f32 mma(m64n8k16) warps(q.i/8) rescale m
      l[q.i] = sum[k.o, k.i](p) : reg f32 rescale m
    }
    r[q.i, f] = o / l : reg f32
    store r -> O
  }
})";
  const Result<Program> p = parse_program(program, "p.sd", {});
  EXPECT_TRUE(p.ok()) << (p.ok() ? "" : to_string(p.error()));
  const Result<MuGraph> g = parse_mugraph(graph, "g.mu", *p);
  EXPECT_TRUE(g.ok()) << (g.ok() ? "" : to_string(g.error()));
  return predict(*g, machine_of(*find_device("h200")));
}

TEST(TrimmedTest, CausalAttentionIsPricedAtALittleMoreThanHalf) {
  const double all = predicted("sum[e](Q * K)", "");
  const double half = predicted("sum[e](Q * K)", "trim(64 * k.o <= 128 * q.o + 127)");
  const double window = predicted(
      "sum[e](Q * K)", "trim(64 * k.o <= 128 * q.o + 127, 128 * q.o - 64 * k.o < 512 + 63)");
  EXPECT_GT(half, 0.5 * all);
  EXPECT_LT(half, 0.65 * all);
  EXPECT_LT(window, 0.5 * half);
}

}  // namespace
}  // namespace sundog::search
