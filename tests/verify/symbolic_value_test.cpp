#include "verify/symbolic_value.h"

#include <gtest/gtest.h>

#include "core/op.h"

namespace sundog::verify {
namespace {

class SymbolicValue : public testing::Test {
 protected:
  Symbolic read(uint32_t tensor) {
    return a_.finite(f_.read(tensor, {f_.indices.of_variable(i_)}));
  }
  Symbolic masked(uint32_t tensor) { return {read(tensor).form, mask_}; }
  bool same(const Symbolic& x, const Symbolic& y) { return x.form == y.form && x.guard == y.guard; }

  Forms f_;
  SymbolicAlgebra a_{f_, Rounding::kWide};
  const VarId i_ = f_.indices.variable("i", f_.indices.domain("n"));
  const FormId mask_ =
      f_.condition(IndexRelation::kNotPositive,
                   f_.indices.add(f_.indices.of_variable(i_), f_.indices.constant(-3)));
};

TEST_F(SymbolicValue, OperatorsOfTheCatalogHaveForms) {
  const Symbolic x = read(0);
  const Symbolic operands[] = {x};
  const Symbolic silu = apply(a_, Op(op::Silu{}), std::span<const Symbolic>(operands));
  const Symbolic sigmoid = apply(a_, Op(op::Sigmoid{}), std::span<const Symbolic>(operands));
  EXPECT_TRUE(same(silu, a_.mul(x, sigmoid)));
  EXPECT_TRUE(a_.take_needs().empty());  // 1 + exp(-x) is positive
}

TEST_F(SymbolicValue, MinusInfinityIsMaskedByExp) {
  EXPECT_EQ(a_.exp(a_.minus_infinity()).form, f_.zero());
  EXPECT_EQ(a_.exp(masked(0)).form, f_.multiply(mask_, f_.exp(read(0).form)));
  EXPECT_TRUE(same(a_.max(a_.minus_infinity(), read(0)), read(0)));
  EXPECT_TRUE(same(a_.add(masked(0), read(1)), {f_.add(read(0).form, read(1).form), mask_}));
  const Symbolic two = a_.constant(Number(2));
  EXPECT_EQ(a_.mul(masked(0), two).guard, mask_);
  EXPECT_FALSE(f_.failure());
  a_.mul(masked(0), read(1));  // of any sign
  EXPECT_TRUE(f_.failure());
}

TEST_F(SymbolicValue, OperationsSayWhatTheyNeed) {
  const Symbolic x = read(0), one = a_.constant(Number(1));
  a_.div(one, x);
  a_.sqrt(x);
  a_.log(x);
  a_.sqrt(a_.mul(x, x));
  const std::vector<Need> needs = a_.take_needs();
  ASSERT_EQ(needs.size(), 3u);
  EXPECT_EQ(needs[0], (Need{Need::kNonZero, x.form, f_.one()}));
  EXPECT_EQ(needs[1], (Need{Need::kNotNegative, x.form, f_.one()}));
  EXPECT_EQ(needs[2], (Need{Need::kPositive, x.form, f_.one()}));
}

TEST_F(SymbolicValue, NeedsHoldWhereTheOperationIsEvaluated) {
  const Symbolic x = read(0), one = a_.constant(Number(1));
  const FormId before = a_.evaluate_given(mask_);
  EXPECT_EQ(before, f_.one());
  a_.div(one, x);
  a_.evaluate_given(f_.zero());  // nowhere
  a_.div(one, read(1));
  const std::vector<Need> needs = a_.take_needs();
  ASSERT_EQ(needs.size(), 1u);
  EXPECT_EQ(needs[0], (Need{Need::kNonZero, x.form, mask_}));
}

TEST_F(SymbolicValue, AMaximumThatMayBeEmptyIsNeededFinite) {
  const VarId k = f_.indices.fresh(f_.indices.domain_of(i_));
  const FormId body = f_.read(0, {f_.indices.of_variable(k)});
  const Symbolic full = a_.maximum({{{k}, f_.one(), body}});
  Forms::IndexMap map{{f_.indices.atom(IndexAtom::kVariable, i_), f_.indices.of_variable(k)}};
  const Symbolic some = a_.maximum({{{k}, f_.substitute(mask_, map), body}});
  const Symbolic minus = a_.constant(Number(-1));
  a_.mul(minus, full);
  EXPECT_TRUE(a_.take_needs().empty());
  a_.mul(minus, some);
  const std::vector<Need> needs = a_.take_needs();
  ASSERT_EQ(needs.size(), 1u);
  EXPECT_EQ(needs[0], (Need{Need::kFinite, some.form, f_.one()}));
  // What stands in for it where it is empty changes nothing else.
  const Symbolic zero = a_.constant(Number(0)), empty = a_.minus_infinity();
  EXPECT_TRUE(same(a_.choose(Relation::kEqual, some, empty, zero, some), some));
  EXPECT_EQ(a_.take_needs(), needs);
  a_.exp(some);  // 0 where it is empty
  EXPECT_TRUE(a_.take_needs().empty());
}

TEST_F(SymbolicValue, WhatIsRoundedAgainToTheSameOrAWiderTypeStays) {
  SymbolicAlgebra a(f_, Rounding::kEager);
  const Symbolic x = read(0), once = a.cast(DType::kF16, x);
  EXPECT_FALSE(same(once, x));
  EXPECT_TRUE(same(a.cast(DType::kF16, once), once));
  EXPECT_TRUE(same(a.cast(DType::kF32, once), once));
  EXPECT_FALSE(same(a.cast(DType::kBF16, once), once));
  EXPECT_FALSE(same(a.cast(DType::kF16, a.add(once, once)), a.add(once, once)));
  EXPECT_FALSE(same(a.cast(DType::kF16, a.cast(DType::kBF16, x)), once)) << "rounded twice";
}

}  // namespace
}  // namespace sundog::verify
