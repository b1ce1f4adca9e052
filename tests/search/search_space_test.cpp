// The structures that the literature reports as best, program by program: the search has to find
// each, or one that the cost model ranks before it.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/text.h"
#include "core/via.h"
#include "search/superoptimize.h"
#include "tests/search/programs.h"

namespace sundog::search {
namespace {

using Sizes = std::map<std::string, int64_t>;
using Is = std::function<bool(const MuGraph&)>;

Device h200() { return *find_device("h200"); }

bool has_loop(const Kernel& kernel) {
  return std::any_of(kernel.body.begin(), kernel.body.end(),
                     [](const Statement& s) { return std::holds_alternative<Loop>(s.node); });
}

int accumulators(const Kernel& kernel) {
  int count = 0;
  for (uint32_t c = 0; c < kernel.computations.size(); ++c) {
    count += accumulated_loops(kernel, c).empty() ? 0 : 1;
  }
  return count;
}

int loads_of(const Kernel& kernel, uint32_t tensor) {
  int count = 0;
  for (const Computation& c : kernel.computations) {
    const auto* in = std::get_if<InputTerm>(&kernel.terms[c.value]);
    count += in != nullptr && in->tensor == tensor ? 1 : 0;
  }
  return count;
}

bool on_grid(const Kernel& kernel, const std::string& factor) {
  return std::any_of(kernel.grid.begin(), kernel.grid.end(),
                     [&](AxisId f) { return kernel.factors[f].name == factor; });
}

bool has_parts(const MuGraph& graph) {
  return std::any_of(graph.axes.begin(), graph.axes.end(),
                     [](const MuAxis& a) { return a.kernel != kNone; });
}

// One kernel with a loop in which at least so many sums are accumulated; X is read once.
Is one_loop(int sums) {
  return [sums](const MuGraph& g) {
    return g.kernels.size() == 1 && accumulators(g.kernels[0]) >= sums &&
           loads_of(g.kernels[0], 0) == 1;
  };
}

bool one_kernel(const MuGraph& g) { return g.kernels.size() == 1; }

// A block works on one row, which it loads once.
bool one_row(const MuGraph& g) {
  return g.kernels.size() == 1 && !has_loop(g.kernels[0]) && loads_of(g.kernels[0], 0) == 1;
}

// Keys are cut into parts whose partial results a second kernel joins.
bool split_and_join(const MuGraph& g) {
  return g.kernels.size() == 2 && has_parts(g) && on_grid(g.kernels[0], "k.s");
}

bool split(const MuGraph& g) { return g.kernels.size() == 2 && has_parts(g); }

// Attention in one pass over the keys, which are cut where queries alone do not fill the device.
bool one_pass(const MuGraph& g) {
  if (split(g)) return true;
  const auto rescaled = [](const Computation& c) { return c.rescale != kNone; };
  return g.kernels.size() == 1 &&
         std::any_of(g.kernels[0].computations.begin(), g.kernels[0].computations.end(), rescaled);
}

bool at_most_two(const MuGraph& g) { return g.kernels.size() <= 2; }

// No kernel writes normalised keys or values: the norms are taken where those are read.
bool norms_folded(const MuGraph& g) {
  for (const DeviceTensor& t : g.tensors) {
    if (t.role != TensorRole::kIntermediate) continue;
    for (const std::string& dim : t.decl.dim_names) {
      if (dim == "k") return false;
    }
  }
  return g.kernels.size() <= 2;
}

SearchReport search(const Program& program, bool prune, uint64_t states) {
  SearchOptions options;
  options.max_states = states;
  options.top_k = 10000;
  SearchSpace space;
  space.prune_by_bound = prune;
  if (!prune) space.kept_per_kind = 20;
  auto report = superoptimize(program, h200(), space, options);
  EXPECT_TRUE(report.ok());
  return std::move(*report);
}

const Candidate* find(const SearchReport& report, const Is& is) {
  for (const Candidate& c : report.candidates) {
    if (c.kind != "unfused" && is(c.graph)) return &c;
  }
  return nullptr;
}

void expect_found(const std::string& name, const Sizes& sizes, const Is& is,
                  uint64_t states = 20000) {
  const Program program = load(name, sizes);
  const SearchReport report = search(program, true, states);
  std::string where = name;
  for (const auto& [parameter, value] : sizes)
    where += " " + parameter + "=" + std::to_string(value);
  if (find(report, is) != nullptr) return;
  // Cut off because something is faster by far: then it must be there without the bound.
  const SearchReport all = search(program, false, 4 * states);
  const Candidate* late = find(all, is);
  ASSERT_NE(late, nullptr) << where << ": best is " << report.candidates.front().structure;
  EXPECT_LE(report.candidates.front().predicted_us, late->predicted_us) << where;
}

TEST(RediscoverSlowTest, StructuresOfTheSix) {
  for (int64_t b : {1, 8, 16}) {
    expect_found("rms_norm", {{"b", b}}, one_loop(2));
    expect_found("gated_mlp", {{"b", b}}, one_loop(2));
    expect_found("lora", {{"b", b}}, one_kernel);
    expect_found("n_trans", {{"b", b}}, one_row);
    expect_found("gqa", {{"b", b}}, split_and_join);
    expect_found("qk_norm", {{"b", b}}, norms_folded);
  }
}

TEST(RediscoverSlowTest, SafeForms) {
  for (int64_t b : {1, 8, 16}) {
    for (const char* name : {"gqa_safe", "mha_safe", "mqa_safe"}) {
      expect_found(name, {{"b", b}}, split_and_join);
    }
    expect_found("qk_norm_safe", {{"b", b}}, norms_folded);
  }
}

TEST(RediscoverSlowTest, Rows) {
  for (const char* name : {"layer_norm", "softmax"}) expect_found(name, {}, one_row);
  for (int64_t b : {1, 8, 16}) expect_found("add_rms_norm", {{"b", b}}, one_kernel);
}

TEST(RediscoverSlowTest, SubgraphsAtPromptAndDecodingSizes) {
  for (int64_t s : {16, 32, 64, 128, 256, 512, 1024, 2048, 4096}) {
    const Sizes at = {{"s", s}};
    expect_found("mm", at, at_most_two);
    expect_found("mm_mm", at, split);
    expect_found("mm_rowsum", at, at_most_two);
    expect_found("swiglu", at, one_loop(2));
    expect_found("rms_norm_mm", at, at_most_two);
    for (const char* name : {"mha_prefill", "gqa_prefill", "mqa_prefill"}) {
      expect_found(name, at, one_pass, 8000);
    }
  }
}

// The largest resident memory of this process so far, bytes.
double peak_bytes() {
  std::ifstream status("/proc/self/status");
  std::string word;
  double kb = 0;
  while (status >> word) {
    if (word == "VmHWM:" && status >> kb) break;
  }
  return 1024 * kb;
}

// The spaces of the attentions that norms are folded into are the largest of the structures table.
TEST(RediscoverSlowTest, TheLargestSpacesAreExhausted) {
  for (const char* name : {"qk_norm", "qk_norm_safe"}) {
    for (int64_t b : {1, 8, 16}) {
      const SearchReport report = search(load(name, {{"b", b}}), true, 250000);
      EXPECT_EQ(report.stop_reason, "exhausted") << name << " " << b;
    }
  }
  EXPECT_GT(peak_bytes(), 0);
  EXPECT_LT(peak_bytes(), 2.0 * (int64_t{1} << 30));
}

TEST(RediscoverSlowTest, LatentAttentionIsFused) {
  for (int64_t s : {16, 128}) {
    for (int64_t l : {1024, 4096}) {
      const SearchReport report = search(load("mla", {{"s", s}, {"l", l}}), true, 15000);
      const Candidate& best = report.candidates.front();
      EXPECT_LE(launch_count(best.graph), 4) << s << " " << l;
      EXPECT_LT(best.predicted_us, 0.6 * report.unfused.predicted_us) << s << " " << l;
    }
  }
}

}  // namespace
}  // namespace sundog::search
