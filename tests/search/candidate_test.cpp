#include "search/candidate.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "core/schedule/memory_plan.h"
#include "search/make_bank.h"
#include "search/superoptimize.h"
#include "tests/search/programs.h"

namespace sundog::search {
namespace {

TEST(CandidateTest, StructuresBecomeGraphsThatFit) {
  const Program program = load("rms_norm", {{"b", 8}});
  const Device device = *find_device("h200");
  const Machine machine = machine_of(device);
  SearchSpace space;
  space.sizes_per_structure = 3;
  space.cluster = true;
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
    EXPECT_LE(candidates.size(), 3u + 3);  // one in clusters and two in f32
    for (const Candidate& c : candidates) {
      EXPECT_TRUE(check(c.graph, program).ok());
      EXPECT_TRUE(c.kind.starts_with(entry.structure.kind)) << c.kind;
      EXPECT_EQ(c.graph.kernels.size(), entry.structure.kernels.size());
      EXPECT_EQ(c.predicted_us, candidate_of(c.graph, "", machine).predicted_us);
      for (const Kernel& k : c.graph.kernels) {
        if (k.kind != KernelKind::kGraphDefined) continue;
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

// X * g for tensor cores is kept in f16, which what is large does not fit: the same structure in
// f32 is there, too.
TEST(CandidateTest, WhatNumbersMayRefuseIsOfferedInF32) {
  const Program program = parse(R"(program scaled(n = 16, h = 1024, d = 1024) {
  input x: f16[n, h]
  input g: f16[h]
  input w: f16[h, d]
  y[n, d] = sum[h](x * g * w)
  output y: f16[n, d]
})");
  SearchOptions options;
  options.max_states = 2000;
  options.top_k = 100;
  const auto report = superoptimize(program, *find_device("h200"), {}, options);
  ASSERT_TRUE(report.ok());
  const auto is_narrow = [](const Candidate& c) {
    for (const Kernel& k : c.graph.kernels) {
      for (const Computation& made : k.computations) {
        const bool load = std::holds_alternative<InputTerm>(k.terms[made.value]);
        if (!load && made.dtype == DType::kF16) return true;
      }
    }
    return false;
  };
  int narrow = 0, wide = 0;
  for (const Candidate& c : report->candidates) {
    if (c.kind == "unfused" || c.graph.kernels.size() > 1) continue;
    ++(is_narrow(c) ? narrow : wide);
  }
  EXPECT_GT(narrow, 0);
  EXPECT_GT(wide, 0);
}

// What computations other than loads are stored as.
std::set<DType> made_dtypes(const MuGraph& graph) {
  std::set<DType> out;
  for (const Kernel& k : graph.kernels) {
    for (const Computation& made : k.computations) {
      if (!std::holds_alternative<InputTerm>(k.terms[made.value])) out.insert(made.dtype);
    }
  }
  return out;
}

std::vector<Candidate> candidates_of(const std::string& text) {
  SearchOptions options;
  options.max_states = 3000;
  options.top_k = 100;
  auto report = superoptimize(parse(text), *find_device("h200"), {}, options);
  EXPECT_TRUE(report.ok());
  return std::move(report->candidates);
}

// A sum that is an operand of another product grows with what it sums over, where its addends fit:
// it alone is offered in f32, too.
TEST(CandidateTest, SumsAloneAreOfferedInF32) {
  int sums = 0;
  for (const Candidate& c : candidates_of(R"(program p(g = 16, q = 512, k = q, e = 64, f = 64) {
  input Q: f16[g, q, e]
  input K: f16[g, k, e]
  input V: f16[g, k, f]
  kv[g, e, f] = sum[k](relu(K) * V)
  y[g, q, f] = sum[e](relu(Q) * kv)
  output y: f16[g, q, f]
})")) {
    if (!c.kind.ends_with(" f32 sums")) continue;
    ++sums;
    EXPECT_TRUE(made_dtypes(c.graph).contains(DType::kF16)) << c.structure;
    for (const Kernel& k : c.graph.kernels) {
      for (const Computation& made : k.computations) {
        if (!std::holds_alternative<LocalTerm>(k.terms[made.value])) continue;
        EXPECT_EQ(made.dtype, DType::kF32) << c.structure;
      }
    }
  }
  EXPECT_GT(sums, 0);
}

// An exp without a bound overflows f16 and not bf16.
TEST(CandidateTest, UnboundedExponentialsAreNarrowInBf16Alone) {
  for (const DType dtype : {DType::kF16, DType::kBF16}) {
    const std::string t(name(dtype));
    int narrow = 0, fused = 0;
    for (const Candidate& c : candidates_of(
             "program p(g = 16, k = 512, e = 64, f = 64) {\n  input K: " + t +
             "[g, k, e]\n  input V: " + t +
             "[g, k, f]\n  y[g, e, f] = sum[k](exp(K) * V)\n  output y: f32[g, e, f]\n}")) {
      fused += c.kind == "unfused" ? 0 : 1;
      narrow += made_dtypes(c.graph).contains(dtype) ? 1 : 0;
    }
    EXPECT_GT(fused, 0);
    EXPECT_EQ(narrow > 0, dtype == DType::kBF16) << t;
  }
}

// A row of which several values are kept in registers fits with more warps only, and the sizes that
// are best by the guess of registers may not fit: others of the same structure do.
TEST(CandidateTest, LongRowsInF32AreHeldByMoreWarps) {
  for (const char* name : {"layer_norm_f32", "softmax_f32"}) {
    for (int64_t n : {8, 4096}) {
      const Program program = load(name, {{"n", n}});
      SearchOptions options;
      options.max_states = 2000;
      const auto report = superoptimize(program, *find_device("h200"), {}, options);
      ASSERT_TRUE(report.ok());
      const Candidate& best = report->candidates.front();
      EXPECT_EQ(best.graph.kernels.size(), 1u) << name << " " << n;
      EXPECT_LT(best.predicted_us, 1.5 * report->bound_us + 1) << name << " " << n;
    }
  }
}

}  // namespace
}  // namespace sundog::search
