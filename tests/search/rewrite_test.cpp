#include "search/rewrite.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <string_view>

#include "search/bank.h"
#include "search/import.h"
#include "search/machine.h"
#include "search/range_class.h"
#include "search/term_table.h"
#include "tests/search/programs.h"

namespace sundog::search {
namespace {

const auto kNever = [] { return false; };

TEST(RewriteTest, NoAxiomProposesAnotherValue) {
  for (const char* name : {"rms_norm", "gated_mlp", "lora", "n_trans", "layer_norm", "softmax",
                           "gqa", "gqa_safe", "qk_norm_safe", "mm_mm", "swiglu_down"}) {
    const Program program = load(name);
    for (const bool split : {false, true}) {
      BankOptions options;
      if (split) {
        for (AxisId a = 0; a < program.axes.size(); ++a) options.parts.insert(a);
      }
      Bank bank(program, options);
      const auto outputs = import_program(bank);
      ASSERT_TRUE(outputs.ok()) << name << ": " << to_string(outputs.error());
      const RewriteReport report = saturate(bank, {}, kNever);
      EXPECT_EQ(report.wrong, 0) << name;
      EXPECT_TRUE(report.complete || split) << name;
    }
  }
}

TEST(RewriteTest, AnAxisThatCancelsIsNoWrongAxiom) {
  const Program program = parse(R"(program cancels(n = 3, h = 20) {
  input x: f16[n, h]
  t[n, h] = x - mean[h](x)
  y[n, h] = x - t
  output y: f16[n, h]
})");
  Bank bank(program, {});
  ASSERT_TRUE(import_program(bank).ok());
  EXPECT_EQ(saturate(bank, {}, kNever).wrong, 0);
}

TEST(RewriteTest, EveryAxiomHasASwitchOfItsOwn) {
  std::set<std::string_view> names;
  for (const Axiom& axiom : axioms()) {
    EXPECT_TRUE(names.insert(axiom.name).second);
    EXPECT_FALSE(axiom.statement.empty());
    SearchSpace off;
    off.*axiom.enabled = false;
    const Program program = load("gqa_safe");
    Bank bank(program, {});
    ASSERT_TRUE(import_program(bank).ok());
    EXPECT_EQ(saturate(bank, off, kNever).wrong, 0) << axiom.name;
  }
}

TEST(RewriteTest, SafeAndUnsafeSoftmaxAreTwoTerms) {
  const Program program = parse(R"(program both(n = 4, k = 256) {
  input x: f16[n, k]
  safe[n, k] = softmax[k](x)
  plain[n, k] = exp(x) / sum[k](exp(x))
  output safe: f16[n, k]
  output plain: f16[n, k]
})");
  Bank bank(program, {});
  const auto outputs = import_program(bank);
  ASSERT_TRUE(outputs.ok());
  saturate(bank, {}, kNever);
  ASSERT_NE((*outputs)[0], (*outputs)[1]);
  EXPECT_EQ(bank[(*outputs)[0]].range & kUnboundedExp, 0);
  EXPECT_NE(bank[(*outputs)[1]].range & kUnboundedExp, 0);
}

TEST(RewriteTest, EqualTermsAreOneClass) {
  const Program program = parse(R"(program twice(n = 4, h = 256, d = 8) {
  input x: f16[n, h]
  input r: f16[n]
  input w: f16[h, d]
  a[n, d] = sum[h](x * r * w)
  b[n, d] = r * sum[h](x * w)
  output a: f16[n, d]
  output b: f16[n, d]
})");
  Bank bank(program, {});
  const auto outputs = import_program(bank);
  ASSERT_TRUE(outputs.ok());
  EXPECT_EQ((*outputs)[0], (*outputs)[1]);
}

TEST(TermTableTest, OperandsComeBeforeUsers) {
  const Program program = load("qk_norm_safe");
  Bank bank(program, {});
  const auto outputs = import_program(bank);
  ASSERT_TRUE(outputs.ok());
  saturate(bank, {}, kNever);
  const TermTable table = term_table(bank, *outputs, machine_of(*find_device("h200")));
  ASSERT_FALSE(table.too_large);
  for (int i = 0; i < table.size(); ++i) {
    const RankedTerm& term = table.terms[static_cast<size_t>(i)];
    for (const RankedNode& node : term.nodes) {
      for (int operand : node.operands) EXPECT_LT(operand, i);
    }
    EXPECT_TRUE(term.leaf != LeafKind::kNone || !term.nodes.empty());
  }
}

}  // namespace
}  // namespace sundog::search
