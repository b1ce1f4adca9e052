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

// Where the divisor is a sum of products of exps, no addend of it is 1 once maxima are taken off.
TEST(RewriteTest, OnlySumsOfAnExpAloneAreShifted) {
  const auto has_maximum = [](const char* weights) {
    const Program program = parse(std::string(R"(program p(q = 4, k = 256, e = 8, f = 5) {
  input Q: f16[q, e]
  input K: f16[k, e]
  input V: f16[k, f]
  w[q, k] = )") + weights + R"(
  y[q, f] = sum[k](w * V) / sum[k](w)
  output y: f16[q, f]
})");
    Bank bank(program, {});
    EXPECT_TRUE(import_program(bank).ok());
    EXPECT_EQ(saturate(bank, {}, kNever).wrong, 0);
    for (ClassId c = 0; c < bank.size(); ++c) {
      for (const View& v : bank[c].views) {
        if (v.kind == ViewKind::kMax) return true;
      }
    }
    return false;
  };
  EXPECT_TRUE(has_maximum("exp(sum[e](Q * K))"));
  EXPECT_FALSE(has_maximum("sum[e](exp(Q) * exp(K))"));
  EXPECT_FALSE(has_maximum("exp(sum[e](Q * K)) * sum[e](K)"));
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

// exp(s - (m + log z)) is known as exp(s - m) / z, whatever else the exponent has.
TEST(RewriteTest, ALogarithmInAnExponentIsAFactor) {
  const Program program = parse(R"(program logs(n = 4, k = 256) {
  input x: f16[n, k]
  input z: f16[n, k] in [1, 2]
  output a: f16[n, k] = exp(x - logsumexp[k](x))
  output b: f16[n, k] = softmax[k](x)
  output c: f16[n, k] = exp(2 * (x / 2 + log(z) / 2))
  output d: f16[n, k] = exp(x) * z
  output e: f16[n, k] = exp(log(z))
})");
  Bank bank(program, {});
  const auto outputs = import_program(bank);
  ASSERT_TRUE(outputs.ok());
  EXPECT_EQ((*outputs)[0], (*outputs)[1]);
  EXPECT_EQ((*outputs)[2], (*outputs)[3]);
  EXPECT_EQ(bank[(*outputs)[4]].leaf, LeafKind::kInput);
  EXPECT_EQ(bank[(*outputs)[0]].range, 0);
  EXPECT_EQ(saturate(bank, {}, kNever).wrong, 0);
}

// A term may be an addend of its own addends.
TEST(RewriteTest, AnExponentThatIsItsOwnAddendEnds) {
  const Program program = parse(R"(program loops(n = 4) {
  input x: f16[n]
  input y: f16[n]
  t[n] = x - y
  u[n] = t + y
  output a: f16[n] = exp(u + t)
  output b: f16[n] = exp(t - u)
})");
  Bank bank(program, {});
  ASSERT_TRUE(import_program(bank).ok());
  EXPECT_EQ(saturate(bank, {}, kNever).wrong, 0);
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
