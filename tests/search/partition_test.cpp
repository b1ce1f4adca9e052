#include "search/partition.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "core/float_algebra.h"
#include "core/interpret.h"
#include "core/text.h"
#include "search/join.h"
#include "search/search_parts.h"
#include "search/superoptimize.h"
#include "tests/search/expect_right.h"
#include "tests/search/programs.h"

namespace sundog::search {
namespace {

Device h200() { return *find_device("h200"); }

Program small_mlp() { return load("mlp_block", {{"b", 3}, {"h", 40}, {"f", 52}}); }

Program small_attention() {
  return load("attention_block", {{"n", 3}, {"h", 24}, {"g", 2}, {"e", 8}, {"k", 37}});
}

// As expect_right, with each element compared by itself.
void expect_each_right(const Program& program, const MuGraph& graph) {
  const Status status = check(graph, program);
  ASSERT_TRUE(status.ok()) << to_string(status.error()) << "\n" << print(graph, program);
  const auto inputs = random_inputs(program, 5);
  Float64 a({.round_stores = false, .rounding = Rounding::kWide});
  const auto want = interpret(a, program, std::span(inputs));
  const auto have = interpret(a, graph, program, std::span(inputs));
  ASSERT_TRUE(want.ok() && have.ok()) << print(graph, program);
  for (size_t o = 0; o < want->size(); ++o) {
    for (size_t i = 0; i < (*want)[o].values.size(); ++i) {
      EXPECT_NEAR((*want)[o].values[i], (*have)[o].values[i],
                  1e-9 * std::max(1.0, std::fabs((*want)[o].values[i])));
    }
  }
}

TEST(PartitionTest, PartsAreProgramsAndReadWhatEarlierOnesMake) {
  const Machine machine = machine_of(h200());
  for (const Program& program : {small_mlp(), small_attention()}) {
    for (const bool narrow : {true, false}) {
      const auto found = partitions(program, machine, narrow, 4);
      ASSERT_FALSE(found.empty());
      for (size_t i = 1; i < found.size(); ++i) {
        EXPECT_LE(found[i - 1].estimate_us, found[i].estimate_us);
      }
      for (const Partition& partition : found) {
        EXPECT_GE(partition.parts.size(), 2u);
        std::vector<bool> made(program.inputs.size(), true);
        made.resize(program.inputs.size() + program.outputs.size() +
                    partition.intermediates.size());
        for (const ProgramPart& part : partition.parts) {
          const Status ok = check(part.program);
          EXPECT_TRUE(ok.ok()) << to_string(ok.error()) << print(part.program);
          const size_t inputs = part.program.inputs.size();
          for (size_t t = 0; t < inputs; ++t) EXPECT_TRUE(made[part.tensors[t]]);
          for (size_t t = inputs; t < part.tensors.size(); ++t) made[part.tensors[t]] = true;
        }
        for (size_t t = 0; t < made.size(); ++t) EXPECT_TRUE(made[t]) << t;
        for (const TensorDecl& t : partition.intermediates) {
          EXPECT_TRUE(narrow || t.dtype == DType::kF32);
        }
      }
    }
  }
}

TEST(PartitionTest, JoinedPartsComputeTheWhole) {
  for (const Program& program : {small_mlp(), small_attention()}) {
    SearchOptions options;
    const PartsFound found = search_parts(program, h200(), {}, options, 0, 40000);
    ASSERT_FALSE(found.candidates.empty());
    for (const Candidate& c : found.candidates) expect_each_right(program, c.graph);
  }
}

// One part is the whole: there is nothing to cut.
TEST(PartitionTest, OneReductionIsNotCut) {
  const Program program = load("mm");
  EXPECT_EQ(count_products(program), 1);
  EXPECT_TRUE(partitions(program, machine_of(h200()), true, 4).empty());
}

// Where a dozen cuts leave parts that are too large, nothing is weighed.
TEST(PartitionTest, VeryLongProgramsAreLeftAtOnce) {
  const auto parts_of = [](int norms) {
    std::string text = "program p(n = 8, h = 64) {\n  input x0: f16[n, h]\n";
    for (int i = 0; i < norms; ++i) {
      const std::string x = "x" + std::to_string(i);
      text += "  x" + std::to_string(i + 1) + "[n, h] = " + x + " * rsqrt(mean[h](" + x + " * " +
              x + ") + 1)\n";
    }
    text += "  output y: f16[n, h] = x" + std::to_string(norms) + "\n}";
    return partitions(parse(text), machine_of(h200()), true, 2).size();
  };
  EXPECT_EQ(parts_of(13), 2u);
  // Places that are all alike; as many as the parts may have at most.
  for (int norms : {14, 20, 40, 65, 78}) EXPECT_GE(parts_of(norms), 1u) << norms;
  EXPECT_EQ(parts_of(300), 0u);
}

// Gradients of rows and of columns share no blocks, whatever the order of the outputs; a norm and
// its statistics do, and so do outputs that nothing is reduced for.
TEST(PartitionTest, OutputsWithoutASharedGridComeApart) {
  const Machine machine = machine_of(h200());
  const Program backward = load("layer_norm_backward");
  EXPECT_FALSE(outputs_share_a_grid(backward, machine));
  const Program mixed = parse(R"(program mixed(n = 64, h = 48) {
  input x: f16[n, h]
  input y: f16[n, h]
  s[n] = sum[h](x * y)
  output a: f32[h] = sum[n](x * s)
  output b: f16[n, h] = y * s
  output c: f32[h] = max[n](x)
})");
  EXPECT_FALSE(outputs_share_a_grid(mixed, machine));
  for (const Program& program : {backward, mixed}) {
    const auto found = partitions(program, machine, false, 4);
    ASSERT_FALSE(found.empty());
    for (const Partition& partition : found) {
      for (const ProgramPart& part : partition.parts) {
        EXPECT_TRUE(outputs_share_a_grid(part.program, machine)) << print(part.program);
      }
    }
  }
  EXPECT_TRUE(outputs_share_a_grid(load("layer_norm"), machine));
  EXPECT_TRUE(outputs_share_a_grid(parse(R"(program stats(n = 64, h = 48) {
  input x: f16[n, h]
  m[n] = mean[h](x)
  output m: f32[n]
  output y: f16[n, h] = x - m
  output z: f16[n, h] = 2 * x
})"),
                                   machine));
}

TEST(PartitionTest, GradientsOfANormTakeAKernelForRowsAndOneForColumns) {
  const Program program = load("layer_norm_backward", {{"n", 96}, {"h", 80}});
  SearchOptions options;
  options.max_states = 20000;
  const auto report = superoptimize(program, h200(), {}, options);
  ASSERT_TRUE(report.ok()) << to_string(report.error());
  EXPECT_LE(report->candidates.front().graph.kernels.size(), 3u);
  for (const Candidate& c : report->candidates) expect_each_right(program, c.graph);
}

constexpr const char* kDivergence = R"(program divergence(n = 64, v = 128256) {
  input S: bf16[n, v]
  input T: bf16[n, v]
  ls[n, v] = S - logsumexp[v](S)
  lt[n, v] = T - logsumexp[v](T)
  output loss: f32[n] = sum[v](exp(lt) * (lt - ls))
  output grad: bf16[n, v] = exp(ls) - exp(lt)
})";

// The statistics of rows first, then all that is made of them, in one pass each.
TEST(PartitionTest, StatisticsOfRowsAreCutFromWhatTheyAreFor) {
  bool any = false;
  for (const Partition& p : partitions(parse(kDivergence), machine_of(h200()), false, 2)) {
    any = any || (p.parts.size() == 2 && p.parts[0].program.outputs.size() == 2 &&
                  p.parts[1].program.outputs.size() == 2);
  }
  EXPECT_TRUE(any);
}

TEST(PartitionTest, DivergenceAndGradientTakeTwoPasses) {
  SearchOptions options;
  options.max_states = 100000;
  const auto report = superoptimize(parse(kDivergence), h200(), {}, options);
  ASSERT_TRUE(report.ok());
  EXPECT_LT(report->candidates.front().predicted_us, report->unfused.predicted_us / 2.5);
  EXPECT_EQ(report->candidates.front().graph.kernels.size(), 4u);
}

// What was visited for the parts counts as well as what the search of the whole comes to.
TEST(PartitionTest, StatesOfPartsAreReported) {
  SearchOptions options;
  options.max_states = 2000;
  const auto report = superoptimize(load("mlp_block"), h200(), {}, options);
  ASSERT_TRUE(report.ok());
  uint64_t of_parts = 0;
  for (const std::string& note : report->notes) {
    const size_t at = note.find("searches, ");
    if (at != std::string::npos) of_parts = std::stoull(note.substr(at + 10));
  }
  EXPECT_GT(of_parts, 0u);
  EXPECT_GE(report->states, options.max_states + of_parts);
}

TEST(PartitionSlowTest, BlocksOfATransformerAreFused) {
  for (const char* name : {"mlp_block", "attention_block"}) {
    const Program program = load(name);
    SearchOptions options;
    options.max_states = 30000;
    const auto report = superoptimize(program, h200(), {}, options);
    ASSERT_TRUE(report.ok()) << to_string(report.error());
    const Candidate& best = report->candidates.front();
    EXPECT_LT(best.graph.kernels.size(), report->unfused.graph.kernels.size()) << name;
    EXPECT_LT(best.predicted_us, 0.7 * report->unfused.predicted_us) << name;
  }
}

}  // namespace
}  // namespace sundog::search
