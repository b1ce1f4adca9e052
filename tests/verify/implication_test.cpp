#include "verify/implication.h"

#include <gtest/gtest.h>

namespace sundog::verify {
namespace {

// k <= q with k = k.o * 8 + k.i and q = q.o * 16 + q.i: the tiles of keys that a causal mask
// leaves.
class ImplicationTest : public testing::Test {
 protected:
  ImplicationTest() {
    const DomainId k = f_.indices.domain("k"), q = f_.indices.domain("q");
    for (const char* name : {"k.o", "k.i", "q.o", "q.i"}) {
      domains_.push_back(f_.indices.domain(name));
      at_.push_back(f_.indices.of_variable(f_.indices.variable(name, domains_.back())));
    }
    const SplitId ks = f_.indices.split(k, {domains_[0], domains_[1]});
    const SplitId qs = f_.indices.split(q, {domains_[2], domains_[3]});
    const auto position = [&](SplitId s, size_t first) {
      return f_.indices.of_atom(
          f_.indices.atom(IndexAtom::kPosition, s, {at_[first], at_[first + 1]}));
    };
    below_ = f_.indices.add(position(ks, 0), position(qs, 2), -1);
    implications_.extents = {{domains_[1], 8}, {domains_[3], 16}};
  }

  // 8 k.o - 16 q.o - most <= 0
  bool leaves(int64_t most) {
    const IndexId tiles =
        f_.indices.add(f_.indices.add(f_.indices.constant(-most), at_[0], 8), at_[2], -16);
    const std::optional<AtomId> mask =
        f_.as_atom(f_.condition(IndexRelation::kNotPositive, below_));
    return implications_.hold(f_, {{{1, {*mask}}}, IndexRelation::kNotPositive, tiles});
  }

  // x (weight) + x (other weight) where the mask does not hold.
  bool difference_leaves(int64_t most, int64_t other) {
    const IndexId tiles =
        f_.indices.add(f_.indices.add(f_.indices.constant(-most), at_[0], 8), at_[2], -16);
    const IndexId above = f_.indices.add(f_.indices.constant(1), below_, -1);
    const std::optional<AtomId> opposite =
        f_.as_atom(f_.condition(IndexRelation::kNotPositive, above));
    return implications_.hold(
        f_, {{{1, {}}, {other, {*opposite}}}, IndexRelation::kNotPositive, tiles});
  }

  Forms f_;
  std::vector<DomainId> domains_;
  std::vector<IndexId> at_;
  IndexId below_ = 0;
  Implications implications_;
};

TEST_F(ImplicationTest, HoldsUpToTheLastRowOfTheTile) {
  EXPECT_TRUE(leaves(15));
  EXPECT_TRUE(leaves(16));
  EXPECT_FALSE(leaves(7));
}

// x - x (not c) is x c.
TEST_F(ImplicationTest, TermsVanishTogether) {
  EXPECT_TRUE(difference_leaves(15, -1));
  EXPECT_FALSE(difference_leaves(7, -1));
  EXPECT_FALSE(difference_leaves(15, -2));
  EXPECT_FALSE(difference_leaves(15, 1));
}

TEST_F(ImplicationTest, NeedsTheExtentsOfInnerFactors) {
  implications_.extents.erase(domains_[1]);
  EXPECT_FALSE(leaves(15));
}

}  // namespace
}  // namespace sundog::verify
