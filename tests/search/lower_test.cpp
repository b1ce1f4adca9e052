#include "search/lower.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/text.h"
#include "search/bank.h"
#include "search/import.h"
#include "search/kernel_shape.h"
#include "search/limits.h"
#include "search/machine.h"
#include "search/place_kernel.h"
#include "search/rewrite.h"
#include "search/term_table.h"
#include "tests/search/programs.h"

namespace sundog::search {
namespace {

// Every structure that placement keeps can be shaped again and lowered, kernel by kernel.
TEST(LowererTest, PlacedStructuresBecomePlans) {
  const Result<Program> program = parse_program(R"(program norm(n = 4, h = 512, d = 96) {
  input x: f16[n, h]
  input w: f16[h, d]
  y[n, d] = sum[h](x * rsqrt(mean[h](x * x) + 1) * w)
  output y: f16[n, d]
})",
                                                "test.sd", {});
  ASSERT_TRUE(program.ok());
  Bank bank(*program, {});
  const auto outputs = import_program(bank);
  ASSERT_TRUE(outputs.ok());
  const SearchSpace space;
  saturate(bank, space, [] { return false; });
  const Machine machine = machine_of(*find_device("h200"));
  const TermTable table = term_table(bank, *outputs, machine);
  Limits limits({}, 0, 0, nullptr);
  Quantum quantum(1 << 20, 1 << 24, limits);
  PlacementTables tables;
  Placement placement(bank, table, machine, space, tables);
  PlacementTask task;
  task.kernels = 2;
  const PlacementOutcome outcome = placement.run(task, 1e30, quantum);
  EXPECT_TRUE(outcome.rest.empty());
  const auto kept = outcome.found.sorted();
  ASSERT_FALSE(kept.empty());
  for (const auto& entry : kept) {
    Lowerer lowerer(bank, table);
    const auto& kernels = entry.structure.kernels;
    for (size_t k = 0; k < kernels.size(); ++k) {
      EXPECT_FALSE(kernel_shapes(bank, table, kernels[k].body).empty());
      RankSet loaded;
      for (size_t later = k + 1; later < kernels.size(); ++later) {
        for (const BodyItem& item : kernels[later].body.items) {
          if (item.node < 0) loaded.insert(item.term);
        }
      }
      lowerer.add_kernel(kernels[k].body, kernels[k].shape, loaded);
    }
    EXPECT_EQ(lowerer.plan().kernels.size(), kernels.size());
    for (const KernelPlan& plan : lowerer.plan().kernels) {
      EXPECT_FALSE(plan.kernel.computations.empty());
      EXPECT_FALSE(plan.kernel.body.empty());
    }
  }
}

// What each block has of a split axis, and what is joined from all of it, in one kernel: the
// partial maxima that it loads are read both at its own part and at all parts.
TEST(LowerTest, APartIsReadByItselfAndAsAWhole) {
  const Program program = parse(R"(program attention(q = 64, k = 4096, e = 64) {
  input Q: f16[q, e]
  input K: f16[k, e]
  input V: f16[k]
  output O: f32[q] = sum[k](softmax[k](sum[e](Q * K)) * V)
})");
  BankOptions options;
  options.parts = AxisSet::of(1);  // k
  Bank bank(program, options);
  const auto outputs = import_program(bank);
  ASSERT_TRUE(outputs.ok());
  saturate(bank, SearchSpace(), [] { return false; });
  const TermTable table = term_table(bank, *outputs, machine_of(*find_device("h200")));
  const BaseAxis& k = bank.base(1);
  // A term by the kind of a node, what it reads, and the factors of k that it has.
  const auto find = [&](NodeKind kind, int reads, AxisSet factors) {
    for (int rank = 0; rank < table.size(); ++rank) {
      const RankedTerm& t = table.terms[static_cast<size_t>(rank)];
      if (!((t.axes & k.all) == factors)) continue;
      for (size_t n = 0; n < t.nodes.size(); ++n) {
        const auto& in = t.nodes[n].operands;
        const bool does = reads < 0 || std::find(in.begin(), in.end(), reads) != in.end();
        if (t.nodes[n].node.kind == kind && does) return BodyItem{rank, static_cast<int>(n)};
      }
    }
    ADD_FAILURE() << "no such term";
    return BodyItem{};
  };
  const BodyItem part = find(NodeKind::kMax, -1, AxisSet::of(k.part));
  const BodyItem all = find(NodeKind::kMax, part.term, {});
  const BodyItem own = find(NodeKind::kLinear, part.term, k.all);
  const BodyItem shifted = find(NodeKind::kLinear, all.term, k.all);
  const auto& in = table.terms[static_cast<size_t>(own.term)].nodes[static_cast<size_t>(own.node)];
  const int scores = in.operands[0] == part.term ? in.operands[1] : in.operands[0];
  KernelBody body{{own, shifted, all, {part.term, -1}, {scores, -1}}, {own.term, shifted.term}};
  std::sort(body.items.begin(), body.items.end(),
            [](const BodyItem& a, const BodyItem& b) { return a.term > b.term; });
  const auto shapes = kernel_shapes(bank, table, body);
  ASSERT_FALSE(shapes.empty());
  for (const KernelShape& shape : shapes) {
    Lowerer lowerer(bank, table);
    lowerer.add_kernel(body, shape, {});
    const auto& splits = lowerer.plan().kernels[0].splits;
    EXPECT_TRUE(std::any_of(splits.begin(), splits.end(),
                            [](const Split& s) { return s.part != kNoFactor; }));
  }
}

}  // namespace
}  // namespace sundog::search
