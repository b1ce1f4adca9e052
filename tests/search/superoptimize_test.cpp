#include "search/superoptimize.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <map>
#include <random>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "core/text.h"
#include "core/via.h"
#include "tests/search/expect_right.h"
#include "tests/search/programs.h"

namespace sundog::search {
namespace {

Device h200() { return *find_device("h200"); }

SearchOptions limited(uint64_t states) {
  SearchOptions options;
  options.max_states = states;
  options.top_k = 16;
  return options;
}

void expect_all_right(const Program& program, uint64_t states) {
  const Result<SearchReport> report = superoptimize(program, h200(), {}, limited(states));
  ASSERT_TRUE(report.ok()) << to_string(report.error());
  ASSERT_FALSE(report->candidates.empty());
  expect_right(program, report->unfused.graph);
  for (const Candidate& c : report->candidates) expect_right(program, c.graph);
}

// Partial sums may be joined by the last block of a group: offered beside a launch of its own, with
// the tiles of the kernel that makes the parts, and right.
TEST(SuperoptimizeTest, OffersJoinsByLastBlocks) {
  const Program program = parse(
      "program p(n = 8, h = 8192, d = 96) {\n  input X: f16[n, h]\n  input W: f16[h, d]\n"
      "  output O: f16[n, d] = sum[h](X * W)\n}\n");
  const auto joined = [&](const SearchSpace& space) {
    SearchOptions options = limited(3000);
    options.top_k = 64;
    const Result<SearchReport> report = superoptimize(program, h200(), space, options);
    std::vector<Candidate> found;
    for (const Candidate& c : report->candidates) {
      if (c.graph.kernels.back().via == Via::kLastBlock) found.push_back(c);
    }
    return found;
  };
  const std::vector<Candidate> found = joined({});
  ASSERT_FALSE(found.empty());
  for (const Candidate& c : found) {
    EXPECT_EQ(launch_count(c.graph), 1);
    EXPECT_NE(c.structure.find("the last block of grid("), std::string::npos) << c.structure;
    EXPECT_GT(c.predicted_us, 0);
  }
  expect_right(program, found[0].graph);
  SearchSpace without;
  without.last_block = false;
  EXPECT_TRUE(joined(without).empty());
}

SearchSpace with_clusters() {
  SearchSpace space;
  space.cluster = true;
  return space;
}

std::vector<Candidate> joined_in_clusters(const SearchReport& report) {
  std::vector<Candidate> found;
  for (const Candidate& c : report.candidates) {
    const auto& all = c.graph.kernels;
    if (std::any_of(all.begin(), all.end(),
                    [](const Kernel& k) { return k.via == Via::kCluster; })) {
      found.push_back(c);
    }
  }
  return found;
}

SearchReport many_candidates(const Program& program, const Device& device,
                             const SearchSpace& space = {}, int threads = 1) {
  SearchOptions options = limited(3000);
  options.top_k = 200;
  options.threads = threads;
  Result<SearchReport> report = superoptimize(program, device, space, options);
  EXPECT_TRUE(report.ok());
  return std::move(*report);
}

// Likewise by the blocks of a cluster, each with its share.
TEST(SuperoptimizeTest, OffersJoinsByClusters) {
  const Program sums = parse(
      "program p(n = 8, h = 2048, d = 96) {\n  input X: f16[n, h]\n  input W: f16[h, d]\n"
      "  output O: f16[n, d] = sum[h](X * W) * rsqrt(mean[h](X * X) + 1)\n}\n");
  const Program attention = load("gqa_safe", {{"g", 2}, {"q", 32}, {"k", 1024}});
  for (const Program* program : {&sums, &attention}) {
    const std::vector<Candidate> found =
        joined_in_clusters(many_candidates(*program, h200(), with_clusters()));
    ASSERT_FALSE(found.empty()) << program->name;
    for (const Candidate& c : found) {
      const auto joined = static_cast<uint32_t>(c.graph.kernels.size() - 1);
      const Result<Arrival> arrival = arrival_of(c.graph, joined);
      ASSERT_TRUE(arrival.ok()) << to_string(arrival.error());
      EXPECT_LE(arrival->count, kMostClusterBlocks);
      EXPECT_GT(arrival->shares, 1) << print(c.graph, *program);
      EXPECT_FALSE(kept_in_cluster(c.graph, joined).empty());
      EXPECT_NE(c.structure.find("the blocks of a cluster, grid("), std::string::npos);
      EXPECT_NE(c.kind.find("/cluster"), std::string::npos) << c.kind;
      EXPECT_TRUE(fits_device(c.graph, h200()));
      EXPECT_FALSE(fits_device(c.graph, *find_device("a100")));
    }
    expect_right(*program, found[0].graph);
    EXPECT_TRUE(joined_in_clusters(many_candidates(*program, h200())).empty()) << "by default";
    SearchSpace alone = with_clusters();  // one switch leaves the other alone
    alone.last_block = false;
    EXPECT_FALSE(joined_in_clusters(many_candidates(*program, h200(), alone)).empty());
    const SearchReport older = many_candidates(*program, *find_device("a100"), with_clusters());
    EXPECT_TRUE(joined_in_clusters(older).empty());
    EXPECT_FALSE(older.candidates.empty());
  }
}

TEST(SuperoptimizeSlowTest, ClustersAreTheSameForAnyNumberOfThreads) {
  const Program program = load("gqa_safe", {{"g", 2}, {"q", 32}, {"k", 1024}});
  const SearchReport one = many_candidates(program, h200(), with_clusters());
  ASSERT_FALSE(joined_in_clusters(one).empty());
  for (int threads : {2, 16}) {
    const SearchReport many = many_candidates(program, h200(), with_clusters(), threads);
    ASSERT_EQ(one.candidates.size(), many.candidates.size());
    for (size_t i = 0; i < one.candidates.size(); ++i) {
      EXPECT_EQ(one.candidates[i].graph, many.candidates[i].graph) << i;
      EXPECT_EQ(one.candidates[i].predicted_us, many.candidates[i].predicted_us) << i;
    }
  }
}

int loops_in(const std::vector<Statement>& body) {
  int count = 0;
  for (const Statement& s : body) {
    if (const auto* loop = std::get_if<Loop>(&s.node)) count += 1 + loops_in(loop->body);
  }
  return count;
}

bool rescales(const Kernel& kernel) {
  for (const Computation& c : kernel.computations) {
    if (c.rescale != kNone) return true;
  }
  return false;
}

TEST(SuperoptimizeTest, EveryCandidateComputesTheProgram) {
  expect_all_right(load("rms_norm", {{"n", 3}, {"h", 300}, {"d", 40}}), 20000);
  expect_all_right(load("gated_mlp", {{"n", 3}, {"h", 257}, {"d", 48}}), 20000);
  expect_all_right(load("lora", {{"n", 7}, {"h", 130}, {"r", 5}, {"d", 60}}), 20000);
  expect_all_right(load("n_trans", {{"n", 3}, {"h", 127}}), 20000);
  expect_all_right(load("layer_norm", {{"n", 5}, {"h", 260}}), 5000);
  expect_all_right(load("softmax", {{"n", 5}, {"k", 509}}), 5000);
  expect_all_right(load("add_rms_norm", {{"n", 3}, {"h", 410}}), 5000);
  expect_all_right(load("gqa_safe", {{"g", 2}, {"q", 9}, {"e", 8}, {"f", 8}, {"k", 300}}), 5000);
}

// Two loops of a kernel over one axis have a running maximum each.
TEST(SuperoptimizeTest, LoopsInSequenceRescaleByTheirOwnMaxima) {
  const Program program = parse(R"(program p(b = 4, v = 700) {
    input p: f32[b, v]
    input q: f32[b, v]
    l[b, v] = p - max[v](p)
    s[b] = sum[v](exp(l))
    d[b] = sum[v](exp(l) / s * (l - log(s) - q))
    output d: f32[b]
  })");
  const auto report = superoptimize(program, h200(), {}, limited(100000));
  ASSERT_TRUE(report.ok());
  for (const std::string& note : report->notes) {
    EXPECT_EQ(note.find("lowered wrongly"), std::string::npos) << note;
  }
  expect_all_right(program, 100000);
}

TEST(SuperoptimizeTest, FusesEachProgramAtEveryBatch) {
  for (const char* name : {"rms_norm", "gated_mlp", "lora", "n_trans", "add_rms_norm"}) {
    for (int64_t b : {1, 8, 16}) {
      const Program program = load(name, {{"b", b}});
      SearchOptions options = limited(100000);
      options.top_k = 100;
      SearchSpace space;
      space.prune_by_bound = false;  // the model may rank another structure first
      const auto report = superoptimize(program, h200(), space, options);
      ASSERT_TRUE(report.ok()) << to_string(report.error());
      EXPECT_LE(report->candidates.front().predicted_us, report->unfused.predicted_us) << name;
      const bool one_kernel =
          std::any_of(report->candidates.begin(), report->candidates.end(),
                      [](const Candidate& c) { return c.graph.kernels.size() == 1; });
      EXPECT_TRUE(one_kernel) << name << " at b = " << b;
      EXPECT_GE(report->candidates.front().predicted_us, report->bound_us * 0.999);
    }
  }
}

TEST(SuperoptimizeTest, SafeAttentionIsFoundOnline) {
  SearchSpace space;
  space.most_split_axes = 0;
  space.most_kernels = 1;
  const Program program = load("gqa_safe", {{"b", 8}});
  const auto report = superoptimize(program, h200(), space, limited(100000));
  ASSERT_TRUE(report.ok()) << to_string(report.error());
  const bool online =
      std::any_of(report->candidates.begin(), report->candidates.end(), [](const Candidate& c) {
        return c.graph.kernels.size() == 1 && rescales(c.graph.kernels[0]) &&
               loops_in(c.graph.kernels[0].body) == 1;
      });
  EXPECT_TRUE(online);
}

// Probabilities by the logarithm that the backward pass wants; and a maximum that a sink, which all
// queries attend to without a value, has a share in.
TEST(SuperoptimizeTest, AttentionIsFoundOnlineHoweverItsMaximumIsWritten) {
  const std::string head = R"(program attention(g = 16, q = 128, e = 64, k = 4096) {
  input Q: f16[g, q, e]
  input K: f16[g, k, e]
  input V: f16[g, k, e]
  input sink: f32[g]
  s[g, q, k] = sum[e](Q * K) * 0.125
)";
  const std::string by_logarithm = R"(  l[g, q] = logsumexp[k](s)
  output O: f16[g, q, e] = sum[k](exp(s - l) * V)
  output L: f32[g, q] = l
})";
  const std::string with_sink = R"(  m[g, q] = max(sink, max[k](s))
  p[g, q, k] = exp(s - m)
  output O: f16[g, q, e] = sum[k](p * V) / (sum[k](p) + exp(sink - m))
})";
  SearchSpace space;
  space.most_split_axes = 0;
  space.most_kernels = 1;
  for (const std::string& rest : {by_logarithm, with_sink}) {
    const Program program = parse(head + rest);
    const auto report = superoptimize(program, h200(), space, limited(20000));
    ASSERT_TRUE(report.ok()) << to_string(report.error());
    const Candidate& best = report->candidates.front();
    ASSERT_EQ(best.graph.kernels.size(), 1u) << rest;
    EXPECT_TRUE(rescales(best.graph.kernels[0])) << rest;
    EXPECT_EQ(loops_in(best.graph.kernels[0].body), 1) << rest;
    EXPECT_LT(best.predicted_us, report->unfused.predicted_us / 3) << rest;
  }
  const std::string small = "program attention(g = 2, q = 3, e = 4, k = 130)";
  for (const std::string& rest : {by_logarithm, with_sink}) {
    expect_all_right(parse(small + head.substr(head.find(" {")) + rest), 4000);
  }
}

// What joins the parts of the keys has them in registers, in every thread those of its own sums.
TEST(SuperoptimizeTest, PartsOfAttentionAreJoinedInRegisters) {
  for (int64_t b : {1, 8}) {
    const Program program = load("gqa_safe", {{"b", b}});
    const auto report = superoptimize(program, h200(), {}, limited(4000));
    ASSERT_TRUE(report.ok()) << to_string(report.error());
    const MuGraph& best = report->candidates.front().graph;
    ASSERT_EQ(best.kernels.size(), 2u);
    for (const Computation& c : best.kernels[1].computations) {
      EXPECT_EQ(c.storage, Storage::kReg) << c.name << " at b = " << b;
    }
  }
}

TEST(SuperoptimizeTest, WithoutTheOnlineRuleAttentionIsNotRescaled) {
  SearchSpace space;
  space.most_split_axes = 0;
  space.most_kernels = 1;
  space.online = false;
  const Program program = load("gqa_safe", {{"b", 8}});
  const auto report = superoptimize(program, h200(), space, limited(100000));
  ASSERT_TRUE(report.ok()) << to_string(report.error());
  for (const Candidate& c : report->candidates) {
    for (const Kernel& k : c.graph.kernels) EXPECT_FALSE(rescales(k));
  }
}

TEST(SuperoptimizeSlowTest, TheSameStatesGiveTheSameAnswer) {
  for (const auto& [name, states] : {std::pair{"rms_norm", 0}, std::pair{"rms_norm", 500},
                                     std::pair{"gqa_safe", 20000}, std::pair{"qk_norm", 10000}}) {
    const Program program = load(name, {{"b", 8}});
    const auto one = superoptimize(program, h200(), {}, limited(static_cast<uint64_t>(states)));
    for (int threads : {2, 16}) {
      SearchOptions options = limited(static_cast<uint64_t>(states));
      options.threads = threads;
      const auto many = superoptimize(program, h200(), {}, options);
      ASSERT_TRUE(one.ok() && many.ok());
      EXPECT_EQ(one->states, many->states);
      EXPECT_EQ(one->rounds, many->rounds);
      EXPECT_EQ(one->kernels_priced, many->kernels_priced);
      EXPECT_EQ(one->structures, many->structures);
      EXPECT_EQ(one->pruned, many->pruned);
      EXPECT_EQ(one->stop_reason, many->stop_reason);
      EXPECT_EQ(one->kept_undecided, many->kept_undecided);
      EXPECT_EQ(one->notes, many->notes);
      ASSERT_EQ(one->candidates.size(), many->candidates.size());
      for (size_t i = 0; i < one->candidates.size(); ++i) {
        EXPECT_EQ(one->candidates[i].graph, many->candidates[i].graph);
        EXPECT_EQ(one->candidates[i].predicted_us, many->candidates[i].predicted_us);
      }
    }
  }
}

TEST(SuperoptimizeTest, LimitsEndInAnAnswer) {
  const Program program = load("gqa_safe", {{"b", 1}});
  const auto few = superoptimize(program, h200(), {}, limited(50));
  ASSERT_TRUE(few.ok());
  EXPECT_EQ(few->stop_reason, "states");
  EXPECT_FALSE(few->candidates.empty());

  const std::atomic<bool> stop{true};
  SearchOptions stopped = limited(0);
  stopped.stop = &stop;
  const auto none = superoptimize(program, h200(), {}, stopped);
  ASSERT_TRUE(none.ok());
  EXPECT_EQ(none->stop_reason, "interrupted");
  EXPECT_FALSE(none->candidates.empty());

  double now = 0;
  SearchOptions timed = limited(0);
  timed.budget_s = 1;
  timed.clock = [&now] { return now += 0.01; };
  const auto late = superoptimize(program, h200(), {}, timed);
  ASSERT_TRUE(late.ok());
  EXPECT_EQ(late->stop_reason, "budget");
  EXPECT_FALSE(late->candidates.empty());
}

TEST(SuperoptimizeTest, RefusedCandidatesAreNotOffered) {
  const Program program = load("rms_norm", {{"b", 1}});
  SearchOptions options = limited(2000);
  options.accept = [](const Candidate& c) { return c.graph.kernels.size() != 1; };
  const auto report = superoptimize(program, h200(), {}, options);
  ASSERT_TRUE(report.ok());
  for (const Candidate& c : report->candidates) EXPECT_NE(c.graph.kernels.size(), 1u);
  EXPECT_GT(report->rejected, 0u);
}

// What is to be beaten prunes from the beginning, and what beats it is found all the same.
TEST(SuperoptimizeTest, WhatIsToBeBeatenChangesNoAnswerThatBeatsIt) {
  const Program program = load("rms_norm", {{"b", 1}});
  SearchOptions options;
  const auto any = superoptimize(program, h200(), {}, options);
  ASSERT_TRUE(any.ok());
  const Candidate& best = any->candidates.front();
  options.most_us = 1.01 * best.predicted_us;
  const auto faster = superoptimize(program, h200(), {}, options);
  ASSERT_TRUE(faster.ok());
  EXPECT_TRUE(faster->candidates.front().graph == best.graph);
  options.most_us = 0.5 * best.predicted_us;
  const auto none = superoptimize(program, h200(), {}, options);
  ASSERT_TRUE(none.ok());
  EXPECT_LT(none->kernels_priced, any->kernels_priced);
}

TEST(SuperoptimizeTest, SlowAcceptanceEndsInAnAnswerAndSaysSo) {
  const Program program = load("rms_norm", {{"b", 1}});
  double now = 0;
  SearchOptions options = limited(2000);
  options.clock = [&now] { return now; };
  options.accept_s = 10;
  options.accept = [&now](const Candidate&) {
    now += 8;
    return true;
  };
  const auto report = superoptimize(program, h200(), {}, options);
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report->candidates.size(), 3u);  // the unfused one among them, which is not asked for
  EXPECT_GT(report->kept_undecided, 0u);
  EXPECT_EQ(report->notes.size(), 1u);
}

// Every line of a program may use the one before twice: terms are shared, and whoever walks them
// without noting where it was takes 2^40 steps.
TEST(SuperoptimizeTest, SharedTermsAreVisitedOnce) {
  std::string text = "program shared(n = 64, h = 8) {\n  input X: f32[n, h]\n  a0[n, h] = X\n";
  for (int i = 0; i < 40; ++i) {
    const std::string before = "a" + std::to_string(i);
    text += "  a" + std::to_string(i + 1) + "[n, h] = tanh(" + before + ") * " + before + "\n";
  }
  text += "  s[n] = sum[h](a40 * a40)\n  output Y: f32[n, h] = a40 * s\n}\n";
  const auto program = parse_program(text, "shared.sd", {});
  ASSERT_TRUE(program.ok()) << to_string(program.error());
  const auto report = superoptimize(*program, h200(), {}, limited(2000));
  ASSERT_TRUE(report.ok());
  EXPECT_FALSE(report->candidates.empty());
}

// Beyond what is searched by default: two axes cut into parts.
TEST(SuperoptimizeTest, TwoAxesMayBeCutIntoParts) {
  const Program chain = load("mm_mm", {{"s", 16}, {"l", 300}, {"g", 2}, {"e", 300}, {"f", 20}});
  SearchSpace space;
  space.most_split_axes = 2;
  space.prune_by_bound = false;
  const auto split = superoptimize(chain, h200(), space, limited(20000));
  ASSERT_TRUE(split.ok());
  size_t parts = 0;
  for (const Candidate& c : split->candidates) {
    parts = std::max(parts, c.graph.axes.size() - chain.axes.size());
    expect_right(chain, c.graph);
  }
  EXPECT_EQ(parts, 2u);
}

TEST(SuperoptimizeTest, OddProgramsHaveAnAnswer) {
  expect_all_right(parse(R"(program shift(n = 9, m = 8) {
  input x: f16[n]
  y[m] = x[m + 1] - x[m]
  output y: f16[m]
})"),
                   1000);
  expect_all_right(parse(R"(program window(n = 12, w = 3, i = 10) {
  input x: f16[n]
  y[i] = sum[w](x[i + w]) / 3
  output y: f16[i]
})"),
                   1000);
  expect_all_right(parse(R"(program joined(a = 5, b = 4, c = 9) {
  input x: f16[a]
  input y: f16[b]
  z[c] = select(c < size(a), x[c], y[c - size(a)])
  output z: f16[c]
})"),
                   1000);
  expect_all_right(parse(R"(program empty(n = 4, k = 0) {
  input x: f16[n, k]
  y[n] = sum[k](x) + 1
  output y: f16[n]
})"),
                   1000);
  expect_all_right(parse(R"(program gram(k = 7, q = 7, h = 130) {
  input x: f16[k, h]
  y[k, h] = x * rsqrt(mean[h](x * x) + 1)
  g[k, q] = sum[h](y[k, h] * y[q, h])
  output g: f16[k, q]
})"),
                   1000);
}

// Programs drawn from the catalog: a chain of operators, sums and products over two axes.
Program random_program(uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto draw = [&](int n) { return static_cast<int>(random() % static_cast<uint64_t>(n)); };
  const char* unary[] = {"exp(%)", "silu(%)", "sigmoid(%)",       "tanh(%)",     "relu(%)",
                         "abs(%)", "% * %",   "rsqrt(% * % + 1)", "softplus(%)", "% + 0.5"};
  std::ostringstream text;
  text << "program random(n = " << 1 + draw(6) << ", h = " << 2 + draw(300)
       << ", d = " << 1 + draw(40)
       << ") {\n  input x: f16[n, h]\n  input w: f16[h, d]\n  input g: f16[h]\n";
  std::vector<std::string> rows{"x", "x * g", "x + g"};  // over n, h
  const int steps = 1 + draw(4);
  for (int i = 0; i < steps; ++i) {
    std::string body = unary[draw(10)];
    const std::string operand =
        "(" + rows[static_cast<size_t>(draw(static_cast<int>(rows.size())))] + ")";
    for (size_t at; (at = body.find('%')) != std::string::npos;) body.replace(at, 1, operand);
    if (draw(3) == 0) body = "x * (mean[h](" + body + "))";
    if (draw(4) == 0) body = "softmax[h](" + body + ")";
    const std::string name = "t" + std::to_string(i);
    text << "  " << name << "[n, h] = " << body << "\n";
    rows.push_back(name);
  }
  if (draw(2) == 0) {
    text << "  y[n, d] = sum[h](" << rows.back() << " * w)\n  output y: f16[n, d]\n}\n";
  } else {
    text << "  y[n, h] = " << rows.back() << " - g\n  output y: f16[n, h]\n}\n";
  }
  return parse(text.str());
}

class RandomProgramTest : public testing::TestWithParam<int> {};

TEST_P(RandomProgramTest, EveryCandidateComputesIt) {
  expect_all_right(random_program(static_cast<uint64_t>(GetParam())), 500);
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomProgramTest, testing::Range(1, 41));

// Heads and their width are as good as one axis: whole heads a step, copied ahead.
TEST(SuperoptimizeTest, AReducedAxisInTwoPartsCostsWhatItDoesAsOne) {
  const Program heads = load("linear_heads");
  const Program whole = parse(
      "program whole(b = 16, h = 4096, d = 4096) {\n  input x: bf16[b, h]\n  input w: bf16[d, h]\n "
      " "
      "output y: bf16[b, d] = sum[h](x * w)\n}\n");
  const auto best = [](const Program& program) {
    const Result<SearchReport> report = superoptimize(program, h200(), {}, limited(20000));
    EXPECT_TRUE(report.ok());
    return report.ok() ? report->candidates.front().predicted_us : 0;
  };
  EXPECT_LE(best(heads), 1.02 * best(whole));
}

// Weights of 8 bits come as they are, in half the time, and are multiplied by tensor cores,
// whatever they meet and however they lie.
TEST(SuperoptimizeTest, WeightsOfEightBitsAreReadAsTheyAre) {
  const auto best = [](const std::string& x, const std::string& w) {
    const Program program = parse("program p(n = 16, h = 4096, d = 6144) {\n  input x: " + x +
                                  "[n, h]\n  input w: " + w +
                                  "\n  input s: f32[d]\n  output y: f16[n, d] = sum[h](x * w) * "
                                  "s\n}\n");
    Result<SearchReport> report = superoptimize(program, h200(), {}, limited(2000));
    EXPECT_TRUE(report.ok());
    return std::move(report->candidates.front());
  };
  const double wide = best("f16", "f16[d, h]").predicted_us;
  for (const auto& [x, w] : {std::pair("f16", "f8e4m3[d, h]"), std::pair("f16", "f8e5m2[h, d]"),
                             std::pair("bf16", "i8[d, h]"), std::pair("f8e4m3", "f8e4m3[d, h]")}) {
    const Candidate c = best(x, w);
    EXPECT_LT(c.predicted_us, 0.7 * wide) << x << " " << w << ": " << c.structure;
    bool product = false;
    for (const Kernel& kernel : c.graph.kernels) {
      for (const Computation& computation : kernel.computations) {
        product |= computation.mma != MmaAtom::kNoAtom;
      }
    }
    EXPECT_TRUE(product) << x << " " << w << ": " << c.structure;
  }
}

// Layers whose weights are too large for one to be made inside the next.
Program layers(int count) {
  std::string inputs = "  input X: f16[n, h0]\n", sums, last = "X", sizes;
  for (int i = 1; i <= count; ++i) {
    const std::string from = "h" + std::to_string(i - 1), to = "h" + std::to_string(i);
    const std::string w = "W" + std::to_string(i), y = "y" + std::to_string(i);
    sizes += ", " + to + " = 2048";
    inputs += "  input " + w + ": f16[" + from + ", " + to + "]\n";
    sums += "  " + y + "[n, " + to + "] = max(sum[" + from + "](" + last + " * " + w + "), 0)\n";
    last = y;
  }
  return parse("program layers(n = 16, h0 = 2048" + sizes + ") {\n" + inputs + sums + "  output " +
               last + ": f16[n, h" + std::to_string(count) + "]\n}\n");
}

TEST(SuperoptimizeTest, KernelsAreAsManyAsPay) {
  for (int count : {4, 5}) {
    const Program program = layers(count);
    SearchSpace space;
    space.most_split_axes = 0;  // a product in parts would be two kernels
    SearchSpace few = space;
    few.most_kernels = 3;
    SearchOptions options;
    const Result<SearchReport> many = superoptimize(program, h200(), space, options);
    const Result<SearchReport> three = superoptimize(program, h200(), few, options);
    const Candidate& best = many->candidates.front();
    EXPECT_EQ(best.graph.kernels.size(), static_cast<size_t>(count)) << best.structure;
    EXPECT_NE(best.kind, "unfused");
    EXPECT_LT(best.predicted_us, 0.8 * three->candidates.front().predicted_us);
  }
}

// Attention is best in two kernels: nothing larger than three is looked at.
TEST(SuperoptimizeSlowTest, KernelsThatDoNotPayAreNotSearched) {
  const Program program = load("gqa_safe", {{"b", 8}});
  SearchSpace few, all;
  few.most_kernels = 3;
  all.most_kernels = 4;
  all.prune_more_kernels = false;
  const auto states = [&](const SearchSpace& space) {
    return superoptimize(program, h200(), space, SearchOptions())->states;
  };
  EXPECT_EQ(states({}), states(few));
  EXPECT_LT(states(few), states(all));
}

}  // namespace
}  // namespace sundog::search
