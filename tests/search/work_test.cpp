#include "search/work.h"

#include <gtest/gtest.h>

#include "core/op.h"

namespace sundog::search {
namespace {

TEST(Work, WhatNeighboursShareIsDoneOnce) {
  TermGraph g;
  const AxisId row = 0, column = 1;
  const TermId scale = g.local(0, AxisSet::of(row));
  const TermId x = g.local(1, AxisSet::of(row) | AxisSet::of(column));
  const TermId root = g.apply(op::Exp{}, {scale});
  const TermId y = g.apply(op::Mul{}, {root, x});
  const Work every = work_of(g, y), of_rows = work_of(g, y, g.axes(y));
  EXPECT_EQ(every.sfu, 1);
  EXPECT_EQ(of_rows.sfu, 1.0 / 8);
  EXPECT_EQ(of_rows.alu, 1 + 1.0 / 8);
  EXPECT_EQ(work_of(g, root, g.axes(root)).sfu, 1);
  // A reduction goes over what it reduces.
  const TermId sum = g.reduce(ReduceKind::kSum, AxisSet::of(column), y);
  EXPECT_EQ(work_of(g, sum, g.axes(y)).alu, of_rows.alu + 1);
}

// exp(x * c - m) is a product and an exponential, the maximum of x * c one comparison a value.
TEST(Work, ScalesOfSoftmaxAreFree) {
  TermGraph g;
  const AxisId row = 0, column = 1;
  const AxisSet both = AxisSet::of(row) | AxisSet::of(column);
  const TermId x = g.local(0, both), c = g.local(1, {}), m = g.local(2, AxisSet::of(row));
  const TermId s = g.apply(op::Mul{}, {x, c});
  const TermId p = g.apply(op::Exp{}, {g.apply(op::Sub{}, {s, m})});
  EXPECT_EQ(work_of(g, p, both).alu, 1);
  EXPECT_EQ(work_of(g, p, both).sfu, 1);
  EXPECT_EQ(work_of(g, g.reduce(ReduceKind::kMax, AxisSet::of(column), s), both).alu, 1);
  EXPECT_EQ(work_of(g, g.reduce(ReduceKind::kSum, AxisSet::of(column), s), both).alu, 2);
  // A factor of each row is not taken out.
  const TermId by_row = g.apply(op::Mul{}, {x, m});
  EXPECT_EQ(work_of(g, g.reduce(ReduceKind::kMax, AxisSet::of(column), by_row), both).alu, 2);
}

}  // namespace
}  // namespace sundog::search
