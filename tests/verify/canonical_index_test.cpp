#include "verify/canonical_index.h"

#include <gtest/gtest.h>

namespace sundog::verify {
namespace {

TEST(CanonicalIndex, EqualExpressionsAreOne) {
  Indices x;
  const DomainId n = x.domain("n"), m = x.domain("m", 6);
  const IndexId i = x.of_variable(x.variable("i", n)), j = x.of_variable(x.variable("j", m));
  const IndexId a = x.add(x.add(i, j, 4), x.constant(3)), b = x.add(x.add(x.constant(3), j, 4), i);
  EXPECT_EQ(a, b);
  EXPECT_EQ(x.add(a, b, -1), x.constant(0));
  EXPECT_NE(x.add(i, j), x.add(i, j, 2));
  EXPECT_EQ(x.size(m), x.constant(6));
  EXPECT_NE(x.size(n), x.constant(6));
  EXPECT_EQ(x.text(x.add(i, x.size(n), -1)), "i - |n|");
  EXPECT_EQ(x.free(a).size(), 2u);
}

TEST(CanonicalIndex, PositionsAreOpaque) {
  Indices x;
  const DomainId axis = x.domain("k"), outer = x.domain("k.o"), inner = x.domain("k.i");
  const SplitId split = x.split(axis, {outer, inner});
  const IndexId o = x.of_variable(x.variable("k.o", outer));
  const IndexId i = x.of_variable(x.variable("k.i", inner));
  const IndexAtomId p = x.atom(IndexAtom::kPosition, split, {o, i});
  EXPECT_EQ(p, x.atom(IndexAtom::kPosition, split, {o, i}));
  EXPECT_NE(p, x.atom(IndexAtom::kPosition, split, {i, o}));
  EXPECT_FALSE(x.as_variable(x.of_atom(p)));
  EXPECT_TRUE(x.as_variable(o));
}

TEST(CanonicalIndex, HashesFollowColoursNotNames) {
  Indices x;
  const DomainId n = x.domain("n");
  const VarId v = x.variable("v", n), w = x.variable("w", n);
  const IndexId i = x.of_variable(v), j = x.of_variable(w);
  EXPECT_NE(x.hash(i, {}), x.hash(j, {}));
  EXPECT_EQ(x.hash(i, {{v, 5}}), x.hash(j, {{w, 5}}));
  EXPECT_NE(x.hash(i, {{v, 5}}), x.hash(j, {{w, 6}}));
}

TEST(CanonicalIndex, SaysThatItOverflowed) {
  Indices x;
  const IndexId large = x.constant(int64_t{1} << 62);
  EXPECT_FALSE(x.overflow());
  x.add(large, large, 4);
  EXPECT_TRUE(x.overflow());
}

}  // namespace
}  // namespace sundog::verify
