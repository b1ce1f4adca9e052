// The model against the clock: kernels that were timed on an H200 (benchmarks/calibration/h200,
// recorded by benchmarks/calibration/record.sh), in the order and near the times that it predicts.
#include "search/cost.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <numeric>
#include <sstream>
#include <string>
#include <vector>

#include "core/device.h"
#include "core/text.h"
#include "search/machine.h"
#include "search/sizes.h"

namespace sundog::search {
namespace {

struct Timed {
  double predicted = 0, measured = 0;
};

std::string read(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// The first lines: `# program: FILE NAME=VALUE ...` and `# measured_us: T`.
Timed timed(const std::filesystem::path& path, const Machine& machine) {
  const std::string text = read(path);
  std::istringstream lines(text);
  std::string word, file, define;
  Timed out;
  lines >> word >> word >> file;
  std::map<std::string, int64_t> defines;
  while (lines >> define && define != "#") {
    const size_t at = define.find('=');
    defines[define.substr(0, at)] = std::stoll(define.substr(at + 1));
  }
  lines >> word >> out.measured;
  const Result<Program> program = parse_program(read(path.parent_path() / file), file, defines);
  EXPECT_TRUE(program.ok()) << path;
  const Result<MuGraph> graph = parse_mugraph(text, path.string(), *program);
  EXPECT_TRUE(graph.ok()) << path;
  out.predicted = predict(*graph, machine);
  return out;
}

std::map<std::string, std::vector<Timed>> recorded(const std::string& device) {
  const Machine machine = machine_of(*find_device(device));
  std::map<std::string, std::vector<Timed>> out;
  const auto folder = std::filesystem::path(SUNDOG_SOURCE_DIR) / "benchmarks/calibration" / device;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.path().extension() != ".mu") continue;
    out[entry.path().parent_path().filename()].push_back(timed(entry.path(), machine));
  }
  return out;
}

std::vector<double> ranks(const std::vector<double>& values) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return values[a] < values[b]; });
  std::vector<double> out(values.size());
  for (size_t i = 0; i < order.size(); ++i) out[order[i]] = static_cast<double>(i);
  return out;
}

// Spearman's.
double rank_correlation(const std::vector<Timed>& all) {
  std::vector<double> predicted, measured;
  for (const Timed& t : all) predicted.push_back(t.predicted), measured.push_back(t.measured);
  const std::vector<double> a = ranks(predicted), b = ranks(measured);
  const double mean = (static_cast<double>(all.size()) - 1) / 2;
  double ab = 0, aa = 0, bb = 0;
  for (size_t i = 0; i < all.size(); ++i) {
    ab += (a[i] - mean) * (b[i] - mean);
    aa += (a[i] - mean) * (a[i] - mean);
    bb += (b[i] - mean) * (b[i] - mean);
  }
  return ab / std::sqrt(aa * bb);
}

TEST(Cost, RanksAndPredictsKernelsThatWereTimed) {
  std::vector<Timed> all;
  size_t programs = 0, found = 0;
  double error = 0, lost = 0;
  for (auto& [name, kernels] : recorded("h200")) {
    std::sort(kernels.begin(), kernels.end(),
              [](const Timed& a, const Timed& b) { return a.predicted < b.predicted; });
    double best = kernels.front().measured, first_five = best;
    for (size_t i = 0; i < kernels.size(); ++i) {
      best = std::min(best, kernels[i].measured);
      if (i < 5) first_five = std::min(first_five, kernels[i].measured);
      error += std::abs(kernels[i].predicted / kernels[i].measured - 1);
    }
    ++programs;
    found += first_five <= 1.02 * best;
    lost += kernels.front().measured / best - 1;
    all.insert(all.end(), kernels.begin(), kernels.end());
  }
  ASSERT_GE(all.size(), 500u);
  EXPECT_GE(rank_correlation(all), 0.95);
  EXPECT_LE(error / static_cast<double>(all.size()), 0.1);
  // What following the prediction without a clock costs.
  EXPECT_LE(lost / static_cast<double>(programs), 0.06);
  EXPECT_GE(static_cast<double>(found), 0.9 * static_cast<double>(programs));
}

// Of kernels that stream rows many small blocks are the fastest: one starts while others run, and
// the last wave of them still asks for enough.
TEST(Cost, ManySmallBlocksStreamAtTheFullRate) {
  const std::vector<Timed> all = recorded("h200").at("softmax");
  double fastest = 1e9;
  for (const Timed& t : all) fastest = std::min(fastest, t.measured);
  // The mean prediction of those whose times are such shares of the fastest one's: blocks of 128
  // threads, and of 256.
  const auto predicted = [&](double from, double to) {
    double sum = 0, count = 0;
    for (const Timed& t : all) {
      if (t.measured < from * fastest || t.measured > to * fastest) continue;
      sum += t.predicted;
      ++count;
    }
    EXPECT_GE(count, 3);
    return sum / count;
  };
  EXPECT_LT(predicted(1, 1.005), 0.995 * predicted(1.015, 1.03));
}

// Dimensions that follow one another in memory are one, whatever the last of them is.
TEST(Cost, ShortInnermostDimensionsCostNothingWhereMemoryIsReadInOrder) {
  const Machine machine = machine_of(*find_device("h200"));
  const auto predicted = [&](const std::string& shape, const std::string& axes, int64_t u) {
    const std::string text = "program p(n = 1048576, u = " + std::to_string(u) +
                             ") {\n  input x: f32" + shape + "\n  output y: f32" + shape +
                             " = x * 2\n}\n";
    const Result<Program> program = parse_program(text, "p.sd");
    EXPECT_TRUE(program.ok());
    const Result<MuGraph> graph = parse_mugraph(
        "ugraph g of p {\n  kernel k grid(n.o) warps(8) {\n    split n = n.o * n.i(1024)\n"
        "    t" +
            axes + " = x * 2 : reg f32\n    store t -> y\n  }\n}\n",
        "p.mu", *program);
    EXPECT_TRUE(graph.ok()) << (graph.ok() ? "" : to_string(graph.error()));
    return predict(*graph, machine);
  };
  const double plain = predicted("[n]", "[n.i]", 1);
  EXPECT_NEAR(predicted("[n, u]", "[n.i, u]", 1), plain, 0.01 * plain);
  // Three times as much in rows of 12 bytes, and rows that lie apart.
  const double three = predicted("[n, u]", "[n.i, u]", 3);
  EXPECT_LT(three, 4 * plain);
  EXPECT_GT(predicted("[n, u] stride(32, 1)", "[n.i, u]", 3), 1.5 * three);
}

// Rows that no copy engine takes are shifted by threads, and keep one stage on its way; rows of
// four aligned bytes keep several, and cost as many more copies.
TEST(Cost, RowsThatBeginAnywhereCostMore) {
  const auto predicted = [](int64_t d) {
    const Result<Program> program = parse_program(
        "program p(n = 16, h = 4096, d = " + std::to_string(d) +
            ") {\n  input x: f16[n, h]\n  input w: f16[h, d]\n  output y: f32[n, d] = sum[h](x * "
            "w)\n}\n",
        "p.sd");
    EXPECT_TRUE(program.ok());
    const Result<MuGraph> graph = parse_mugraph(
        "ugraph g of p {\n  kernel k grid(d.o) warps(8) {\n    split h = h.o * h.i(128)\n    split "
        "d = d.o * d.i(64)\n    loop h.o stages(4) bulk {\n      xs[n, h.i] = x : shared f16\n     "
        " "
        "ws[h.i, d.i] = w : shared f16\n      t[n, d.i] = sum[h.o, h.i](xs * ws) : reg f32 "
        "mma(m16n8k16) warps(h.i/8)\n    }\n    store t -> y\n  }\n}\n",
        "p.mu", *program);
    EXPECT_TRUE(graph.ok()) << (graph.ok() ? "" : to_string(graph.error()));
    return predict(*graph, machine_of(*find_device("h200")));
  };
  const double engine = predicted(8192), words = predicted(8190), windows = predicted(8191);
  EXPECT_GT(words, 1.02 * engine);
  EXPECT_GT(windows, 1.02 * words);
}

double predicted(const std::string& program_text, const std::string& graph_text) {
  const Result<Program> program = parse_program(program_text, "p.sd");
  EXPECT_TRUE(program.ok());
  const Result<MuGraph> graph = parse_mugraph(graph_text, "p.mu", *program);
  EXPECT_TRUE(graph.ok()) << (graph.ok() ? "" : to_string(graph.error()));
  return predict(*graph, machine_of(*find_device("h200")));
}

// Tensor cores may be idle for all that: a warp starts its next product when the last one is done.
TEST(Cost, AWarpIssuesItsProductsOneAfterTheOther) {
  const auto with = [](const std::string& step, const std::string& warps) {
    return predicted(
        "program p(n = 16, h = 4096, d = 6144) {\n  input x: f16[n, h]\n  input w: f16[h, d]\n"
        "  output y: f16[n, d] = sum[h](x * w)\n}\n",
        "ugraph g of p {\n  kernel k grid(d.o) warps(" + warps + ") {\n    split h = h.o * h.i(" +
            step +
            ")\n    split d = d.o * d.i(192)\n    loop h.o stages(4) bulk {\n"
            "      xs[n, h.i] = x : shared f16\n      ws[h.i, d.i] = w : shared f16\n"
            "      t[n, d.i] = sum[h.o, h.i](xs * ws) : reg f32 mma(m16n8k16) warps(d.i/" +
            warps + ")\n    }\n    store t -> y\n  }\n}\n");
  };
  EXPECT_GT(with("32", "2"), 1.5 * with("64", "4"));
}

// Lanes and warps each have rows of what a product leaves, and columns are added up across them.
TEST(Cost, SumsOverTheRowsOfAProductPassThroughLanesAndWarps) {
  const auto of = [](const std::string& columns, int64_t blocks) {
    return predicted("program p(h = 256, d = " + std::to_string(blocks * std::stoll(columns)) +
                         ", r = 16) {\n  input a: f16[h, r]\n  input b: f16[r, d]\n"
                         "  s[h, d] = sum[r](a * b)\n  output y: f32[d] = sum[h](s)\n}\n",
                     "ugraph g of p {\n  kernel k grid(d.o) warps(16) {\n    split d = d.o * d.i(" +
                         columns +
                         ")\n    as[h, r] = a : shared f16\n    bs[r, d.i] = b : shared f16\n"
                         "    s[h, d.i] = sum[r](as * bs) : reg f32 mma(m16n8k16) warps(h/16)\n"
                         "    t[d.i] = sum[h](s) : reg f32\n    store t -> y\n  }\n}\n");
  };
  EXPECT_GT(of("64", 128), of("16", 128) + 0.3);
}

// A finished kernel that the search would not size so is one that spills, not one that is free.
TEST(Cost, WhatFitsNoRegistersIsSpilled) {
  const Result<Program> program = parse_program(
      "program p(n = 64, k = 4096, e = 64) {\n  input Q: f16[n, e]\n  input K: f16[k, e]\n"
      "  s[n, k] = sum[e](Q * K)\n  output O: f32[n] = sum[k](exp(s) * s)\n}\n",
      "p.sd");
  ASSERT_TRUE(program.ok());
  const auto predicted = [&](int64_t keys) {
    const Result<MuGraph> graph = parse_mugraph(
        "ugraph g of p {\n  kernel k0 grid(n.o) warps(4) {\n    split n = n.o * n.i(16)\n"
        "    split k = k.o * k.i(" +
            std::to_string(keys) +
            ")\n    qs[n.i, e] = Q : shared f16\n    loop k.o {\n"
            "      ks[k.i, e] = K : shared f16\n"
            "      s[n.i, k.i] = sum[e](qs * ks) : reg f32 mma(m16n8k16) warps(k.i/4)\n"
            "      p[n.i, k.i] = exp(s) : reg f32\n      o[n.i] = sum[k.o, k.i](p * s) : reg f32\n"
            "    }\n    store o -> O\n  }\n}\n",
        "p.mu", *program);
    EXPECT_TRUE(graph.ok()) << (graph.ok() ? "" : to_string(graph.error()));
    return predict(*graph, machine_of(*find_device("h200")));
  };
  const double fits = predicted(256), spills = predicted(1024);
  EXPECT_GT(spills, fits / 2);
  EXPECT_TRUE(std::isfinite(spills));
  EXPECT_TRUE(std::isinf(predicted(4096)));  // more shared memory than there is
}

// Four parts of sums, joined by a kernel of its own or by the blocks of clusters.
double joined_us(const char* device, int64_t columns, bool in_cluster) {
  const Result<Program> program =
      parse_program("program p(n = 16, h = 4096, d = " + std::to_string(columns) +
                        ") {\n  input X: f16[n, h]\n  input W: f16[h, d]\n"
                        "  output O: f16[n, d] = sum[h](X * W)\n}\n",
                    "p.sd");
  EXPECT_TRUE(program.ok());
  const Result<MuGraph> graph = parse_mugraph(
      std::string("ugraph g of p {\n  kernel part grid(d.o, h.s) warps(8) {\n"
                  "    split h = h.s(4) * h.o * h.i(256)\n    split d = d.o * d.i(64)\n"
                  "    loop h.o stages(4) bulk {\n      xs[n, h.i] = X : shared f16\n"
                  "      ws[h.i, d.i] = W : shared f16\n"
                  "      acc[n, d.i] = sum[h.o, h.i](xs * ws) : reg f32 mma(m16n8k16) "
                  "warps(h.i/8)\n    }\n    store acc -> t : f32[h.s, n, d]\n  }\n") +
          (in_cluster ? "  kernel join grid(d.o, n.c) warps(8) via cluster {\n"
                        "    split n = n.c(4) * n.i\n    split d = d.o * d.i(64)\n"
                        "    o[n.i, d.i] = sum[h.s](t) : reg f32\n"
                      : "  kernel join grid(n, d.o) warps(1) {\n    split d = d.o * d.i(256)\n"
                        "    o[d.i] = sum[h.s](t) : reg f32\n") +
          "    store o -> O\n  }\n}\n",
      "p.mu", *program);
  EXPECT_TRUE(graph.ok()) << (graph.ok() ? "" : to_string(graph.error()));
  return predict(*graph, machine_of(*find_device(device)));
}

// Clusters save a launch and the way through memory, as long as all of them run at once; their
// waves do not overlap.
TEST(Cost, ClustersWinWhereFewBlocksRun) {
  EXPECT_LT(joined_us("h200", 512, true), 0.95 * joined_us("h200", 512, false));      // 32 blocks
  EXPECT_GT(joined_us("h200", 4096, true), 1.05 * joined_us("h200", 4096, false));    // 256
  EXPECT_GT(joined_us("h200", 16384, true), 1.01 * joined_us("h200", 16384, false));  // 1,024
}

TEST(Cost, ClustersFindTheirPlacesInGroupsOfMultiprocessors) {
  const Machine machine = machine_of(*find_device("h200"));
  EXPECT_TRUE(machine.clusters);
  EXPECT_FALSE(machine_of(*find_device("a100")).clusters);
  EXPECT_EQ(cluster_places(machine, 2, 1), 132);
  double last = 2;
  for (int64_t blocks : {2, 4, 8}) {
    const double places = cluster_places(machine, blocks, 1);
    EXPECT_EQ(std::fmod(places, static_cast<double>(blocks)), 0);
    EXPECT_LT(places / 132, last);
    EXPECT_GT(places, 0.75 * 132);
    last = places / 132;
    // With more blocks on each, less is left over.
    EXPECT_GE(cluster_places(machine, blocks, 4) / (4 * 132), places / 132);
  }
}

// What a block keeps for the others takes its shared memory.
TEST(Cost, KeptPartsTakeSharedMemory) {
  const Result<Program> program = parse_program(
      "program p(n = 64, h = 4096, d = 512) {\n  input X: f16[n, h]\n  input W: f16[h, d]\n"
      "  output O: f16[n, d] = sum[h](X * W)\n}\n",
      "p.sd");
  ASSERT_TRUE(program.ok());
  const auto shared = [&](const std::string& via) {
    const Result<MuGraph> graph = parse_mugraph(
        "ugraph g of p {\n  kernel part grid(d.o, h.s) warps(4) {\n"
        "    split h = h.s(4) * h.o * h.i(64)\n    split d = d.o * d.i(64)\n"
        "    loop h.o stages(2) {\n      xs[n, h.i] = X : shared f16\n"
        "      ws[h.i, d.i] = W : shared f16\n"
        "      acc[n, d.i] = sum[h.o, h.i](xs * ws) : reg f32 mma(m16n8k16) warps(n/4)\n    }\n"
        "    store acc -> t : f32[h.s, n, d]\n  }\n  kernel join grid(d.o) warps(4)" +
            via +
            " {\n    split d = d.o * d.i(64)\n    o[n, d.i] = sum[h.s](t) : reg f32\n"
            "    store o -> O\n  }\n}\n",
        "p.mu", *program);
    EXPECT_TRUE(graph.ok()) << (graph.ok() ? "" : to_string(graph.error()));
    return prices_of(*graph, machine_of(*find_device("h200")))[0].shared_bytes;
  };
  EXPECT_EQ(shared(" via last_block"), shared(""));
  EXPECT_GE(shared(" via cluster"), shared("") + 64 * 64 * 4);
}

}  // namespace
}  // namespace sundog::search
