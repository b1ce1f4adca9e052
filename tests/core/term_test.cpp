#include "core/term.h"

#include <gtest/gtest.h>

#include "tests/core/examples.h"

namespace sundog {
namespace {

using examples::at;

TEST(TermTest, EqualTermsAreOne) {
  TermGraph g;
  const TermId x = g.input(0, {at(0), at(1)});
  EXPECT_EQ(g.input(0, {at(0), at(1)}), x);
  EXPECT_NE(g.input(0, {at(1), at(0)}), x);
  EXPECT_NE(g.input(1, {at(0), at(1)}), x);
  EXPECT_NE(g.input(0, {at(0), at(1) + IndexExpr::of_constant(1)}), x);
  const TermId half = g.apply(op::Pow{Number::ratio(1, 2)}, {x});
  EXPECT_NE(g.apply(op::Pow{Number(2)}, {x}), half);
  EXPECT_NE(g.apply(op::Sqrt{}, {x}), half);
  EXPECT_EQ(g.apply(op::Pow{*Number::parse("0.5")}, {x}), half);
  EXPECT_NE(g.reduce(ReduceKind::kSum, AxisSet::of(0), x),
            g.reduce(ReduceKind::kMax, AxisSet::of(0), x));
}

TEST(TermTest, AxesFollowFromOperands) {
  TermGraph g;
  const TermId x = g.input(0, {at(0), at(1) * 2 + at(2)});
  EXPECT_EQ(g.axes(x), AxisSet(0b111));
  const TermId s = g.reduce(ReduceKind::kSum, AxisSet(0b110), x);
  EXPECT_EQ(g.axes(s), AxisSet(0b001));
  const TermId y = g.apply(op::Add{}, {s, g.push(IndexTerm{at(3)})});
  EXPECT_EQ(g.axes(y), AxisSet(0b1001));
  const TermId z = g.push(SelectTerm{{at(4) - at(5), Relation::kLess}, s, y});
  EXPECT_EQ(g.axes(z), AxisSet(0b111001));
  EXPECT_EQ(g.axes(g.size(7)), AxisSet());
}

TEST(TermTest, ReachableIsInOrderAndComplete) {
  TermGraph g;
  const TermId x = g.input(0, {at(0)});
  const TermId unused = g.input(1, {at(0)});
  const TermId y = g.apply(op::Exp{}, {x});
  const TermId z = g.apply(op::Mul{}, {y, x});
  const TermId roots[] = {z};
  EXPECT_EQ(reachable(g, roots), (std::vector<TermId>{x, y, z}));
  const TermId both[] = {unused, y};
  EXPECT_EQ(reachable(g, both), (std::vector<TermId>{x, unused, y}));
}

TEST(TermTest, SubstitutionRenamesBoundAxesThatWouldCapture) {
  TermGraph g;
  // sum[1](x[0, 1]) with 0 replaced by 1 must not become sum[1](x[1, 1]).
  const TermId s = g.reduce(ReduceKind::kSum, AxisSet::of(1), g.input(0, {at(0), at(1)}));
  std::vector<AxisId> asked;
  const auto fresh = [&](AxisId a) {
    asked.push_back(a);
    return AxisId{9};
  };
  const TermId t = substitute_axes(g, s, {at(1), at(1)}, fresh);
  EXPECT_EQ(asked, std::vector<AxisId>{1});
  EXPECT_EQ(t, g.reduce(ReduceKind::kSum, AxisSet::of(9), g.input(0, {at(1), at(9)})));
  EXPECT_EQ(g.axes(t), AxisSet::of(1));
}

TEST(TermTest, SubstitutionLeavesBoundAxesAlone) {
  TermGraph g;
  const auto no_fresh = [](AxisId) -> AxisId {
    ADD_FAILURE();
    return 0;
  };
  const TermId x = g.input(0, {at(0), at(1)});
  const TermId s = g.reduce(ReduceKind::kSum, AxisSet::of(1), x);
  EXPECT_EQ(substitute_axes(g, s, {at(0), at(5)}, no_fresh), s);
  const TermId both = g.apply(op::Mul{}, {s, x});  // 1 is bound on the left, free on the right
  EXPECT_EQ(substitute_axes(g, both, {at(0), at(5)}, no_fresh),
            g.apply(op::Mul{}, {s, g.input(0, {at(0), at(5)})}));
  const IndexExpr split = at(2) * 4 + at(3);
  EXPECT_EQ(substitute_axes(g, s, {split, at(1)}, no_fresh),
            g.reduce(ReduceKind::kSum, AxisSet::of(1), g.input(0, {split, at(1)})));
}

}  // namespace
}  // namespace sundog
