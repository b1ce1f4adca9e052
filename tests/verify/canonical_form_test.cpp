// Each rule: where it applies, and where it must not.
#include "verify/canonical_form.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace sundog::verify {
namespace {

class CanonicalForm : public testing::Test {
 protected:
  VarId variable(DomainId d) { return f_.indices.fresh(d); }
  IndexId at(VarId v) { return f_.indices.of_variable(v); }
  FormId x(VarId v) { return f_.read(0, {at(v)}); }
  FormId y(VarId v) { return f_.read(1, {at(v)}); }
  FormId number(int64_t n) { return f_.constant(Rational::of(n)); }
  FormId negative(FormId a) { return f_.scale(a, Rational::of(-1)); }

  // k = k.o * k.i: the position, and that it lies inside the axis.
  struct Split {
    VarId outer, inner;
    IndexId position;
    FormId inside;
  };
  Split split_k() {
    const VarId outer = variable(outer_), inner = variable(inner_);
    const IndexId p =
        f_.indices.of_atom(f_.indices.atom(IndexAtom::kPosition, split_, {at(outer), at(inner)}));
    const IndexId beyond =
        f_.indices.add(f_.indices.add(p, f_.indices.size(k_), -1), f_.indices.constant(1));
    return {outer, inner, p, f_.condition(IndexRelation::kNotPositive, beyond)};
  }

  Forms f_;
  const DomainId n_ = f_.indices.domain("n"), k_ = f_.indices.domain("k"),
                 outer_ = f_.indices.domain("k.o"), inner_ = f_.indices.domain("k.i");
  const SplitId split_ = f_.indices.split(k_, {outer_, inner_});
  const VarId i_ = f_.indices.variable("i", n_), j_ = f_.indices.variable("j", n_);
};

TEST_F(CanonicalForm, PolynomialsAreMultipliedOut) {
  const FormId a = x(i_), b = y(i_);
  const FormId square = f_.power(f_.add(a, b), 2);
  const FormId terms =
      f_.add(f_.add(f_.power(a, 2), f_.power(b, 2)), f_.scale(f_.multiply(a, b), Rational::of(2)));
  EXPECT_EQ(square, terms);
  EXPECT_NE(square, f_.add(f_.power(a, 2), f_.power(b, 2)));
  EXPECT_EQ(f_.subtract(square, terms), f_.zero());
}

TEST_F(CanonicalForm, ExponentsAdd) {
  const FormId a = x(i_), b = y(i_);
  EXPECT_EQ(f_.multiply(f_.exp(a), f_.exp(b)), f_.exp(f_.add(a, b)));
  EXPECT_EQ(f_.multiply(f_.exp(a), f_.exp(negative(a))), f_.one());
  EXPECT_NE(f_.add(f_.exp(a), f_.exp(b)), f_.exp(f_.add(a, b)));
  EXPECT_EQ(f_.exp(f_.log(a)), a);
  EXPECT_EQ(f_.log(f_.exp(a)), a);
  EXPECT_EQ(f_.exp(f_.scale(f_.log(a), Rational::of(2))), f_.power(a, 2));
}

TEST_F(CanonicalForm, DivisorsAreNormalisedByUnits) {
  const FormId a = x(i_), b = y(i_);
  const FormId d = f_.add(f_.exp(a), f_.exp(b));
  const FormId shifted = f_.multiply(d, f_.exp(negative(a)));
  EXPECT_EQ(f_.inverse(shifted), f_.multiply(f_.inverse(d), f_.exp(a)));
  EXPECT_EQ(f_.inverse(f_.scale(d, Rational::of(3))), f_.scale(f_.inverse(d), Rational{1, 3}));
  EXPECT_TRUE(f_.equal(f_.multiply(d, f_.inverse(d)), f_.one()));
  EXPECT_FALSE(f_.equal(f_.inverse(d), f_.inverse(f_.add(d, f_.one()))));
  EXPECT_FALSE(f_.failure());
  f_.inverse(f_.zero());
  EXPECT_TRUE(f_.failure());
}

TEST_F(CanonicalForm, RootsSquareBack) {
  const FormId a = x(i_);
  const FormId root = f_.sqrt(a);
  EXPECT_EQ(f_.multiply(root, root), a);
  EXPECT_EQ(f_.multiply(f_.inverse(root), f_.inverse(root)), f_.inverse(a));
  EXPECT_NE(f_.sqrt(f_.multiply(a, a)), a);  // |a|
  EXPECT_EQ(f_.sqrt(number(9)), number(3));
  EXPECT_EQ(f_.multiply(f_.sqrt(f_.multiply(a, f_.inverse(f_.size(n_)))), f_.sqrt(f_.size(n_))),
            root);
}

TEST_F(CanonicalForm, SumsAreLinear) {
  const VarId k = variable(k_);
  const FormId body = f_.multiply(x(k), y(i_));
  EXPECT_EQ(f_.sum({k}, body), f_.multiply(y(i_), f_.sum({k}, x(k))));
  EXPECT_NE(f_.sum({k}, f_.multiply(x(k), y(k))),
            f_.multiply(f_.sum({k}, x(k)), f_.sum({k}, y(k))));
  EXPECT_EQ(f_.sum({k}, f_.one()), f_.size(k_));
  EXPECT_EQ(f_.sum({k}, f_.exp(f_.add(x(k), y(i_)))),
            f_.multiply(f_.exp(y(i_)), f_.sum({k}, f_.exp(x(k)))));
}

TEST_F(CanonicalForm, SumsExchangeAndRename) {
  const VarId a = variable(k_), b = variable(n_), c = variable(k_), d = variable(n_);
  const auto z = [&](VarId v, VarId w) { return f_.read(2, {at(v), at(w)}); };
  const FormId left = f_.sum({a}, f_.multiply(x(a), f_.sum({b}, f_.multiply(y(b), z(a, b)))));
  const FormId right = f_.sum({d}, f_.multiply(y(d), f_.sum({c}, f_.multiply(x(c), z(c, d)))));
  EXPECT_EQ(left, right);
  EXPECT_NE(left, f_.sum({a, b}, f_.multiply(f_.multiply(x(a), y(b)), z(a, a))));
  // A sum over another axis of another size is another sum.
  EXPECT_NE(f_.sum({a}, x(a)), f_.sum({b}, x(b)));
}

TEST_F(CanonicalForm, SumsOverPartsOfASplitAreOne) {
  const Split s = split_k();
  const VarId k = variable(k_);
  const FormId whole = f_.sum({k}, x(k));
  const FormId body = f_.multiply(s.inside, f_.read(0, {s.position}));
  EXPECT_EQ(f_.sum({s.outer, s.inner}, body), whole);
  EXPECT_EQ(f_.sum({s.outer}, f_.sum({s.inner}, body)), whole);
  // Not without the mask, and not where a part occurs by itself.
  EXPECT_NE(f_.sum({s.outer, s.inner}, f_.read(0, {s.position})), whole);
  EXPECT_NE(f_.sum({s.outer, s.inner}, f_.multiply(body, y(s.inner))),
            f_.multiply(whole, f_.sum({s.inner}, y(s.inner))));
  EXPECT_NE(f_.sum({s.inner}, body), whole);
}

TEST_F(CanonicalForm, MaximaFlattenShiftAndScale) {
  const Split s = split_k();
  const VarId k = variable(k_);
  const auto all = [&](FormId body) { return *f_.max({{{k}, f_.one(), body}}); };
  const FormId m = all(x(k));
  const FormId part = *f_.max({{{s.inner}, s.inside, f_.read(0, {s.position})}});
  EXPECT_EQ(*f_.max({{{s.outer}, f_.one(), part}}), m);
  EXPECT_NE(part, m);
  EXPECT_EQ(all(f_.add(x(k), y(i_))), f_.add(m, y(i_)));
  EXPECT_EQ(all(f_.scale(x(k), Rational{3, 2})), f_.scale(m, Rational{3, 2}));
  EXPECT_NE(all(negative(x(k))), negative(m));
  EXPECT_NE(all(f_.multiply(x(k), y(i_))), f_.multiply(m, y(i_)));
  EXPECT_EQ(*f_.max({{{}, f_.one(), x(i_)}, {{}, f_.one(), x(i_)}}), x(i_));
  EXPECT_EQ(*f_.max({{{}, f_.one(), x(i_)}, {{}, f_.zero(), y(i_)}}), x(i_));
  EXPECT_FALSE(f_.max({{{}, f_.zero(), y(i_)}}).has_value());
}

// Where a condition holds it holds in exponents, too, and its opposite does not.
TEST_F(CanonicalForm, ConditionsDecideThoseOfExponents) {
  const auto below = [&](VarId v, VarId w, int64_t by) {  // v <= w + by
    const IndexId e = f_.indices.add(at(v), at(w), -1);
    return f_.condition(IndexRelation::kNotPositive, f_.indices.add(e, f_.indices.constant(-by)));
  };
  const FormId c = below(i_, j_, 240), opposite = below(j_, i_, -241), other = below(j_, i_, -242);
  const FormId guarded = f_.exp(f_.add(f_.multiply(c, x(i_)), y(j_)));
  EXPECT_EQ(f_.multiply(c, guarded), f_.multiply(c, f_.exp(f_.add(x(i_), y(j_)))));
  EXPECT_EQ(f_.multiply(opposite, guarded), f_.multiply(opposite, f_.exp(y(j_))));
  EXPECT_NE(f_.multiply(other, guarded), f_.multiply(other, f_.exp(y(j_)))) << "not the opposite";
  EXPECT_NE(f_.multiply(below(i_, j_, 239), guarded),
            f_.multiply(below(i_, j_, 239), f_.exp(y(j_))));
  EXPECT_NE(guarded, f_.exp(f_.add(x(i_), y(j_))));
  const auto maximum = [&](FormId body) { return f_.max({{{i_}, c, body}}); };
  EXPECT_EQ(maximum(f_.multiply(c, x(i_))), maximum(x(i_)));
  EXPECT_NE(maximum(f_.multiply(other, x(i_))), maximum(x(i_)));
}

TEST_F(CanonicalForm, ConditionsAreIdempotentAndSettled) {
  const IndexId i = at(i_), j = at(j_);
  const FormId below = f_.condition(IndexRelation::kNotPositive, f_.indices.add(i, j, -1));
  EXPECT_EQ(f_.multiply(below, below), below);
  const IndexId last =
      f_.indices.add(f_.indices.add(i, f_.indices.size(n_), -1), f_.indices.constant(1));
  EXPECT_EQ(f_.condition(IndexRelation::kNotPositive, last), f_.one());  // i <= n - 1
  const IndexId before = f_.indices.add(last, f_.indices.constant(1));
  EXPECT_NE(f_.condition(IndexRelation::kNotPositive, before), f_.one());  // i <= n - 2
  const FormId above =
      f_.oriented_condition(IndexRelation::kNotPositive,
                            f_.indices.add(f_.indices.add(j, i, -1), f_.indices.constant(1)));
  const FormId oriented =
      f_.oriented_condition(IndexRelation::kNotPositive, f_.indices.add(i, j, -1));
  EXPECT_EQ(f_.add(above, oriented), f_.one());  // j < i or i <= j
}

TEST_F(CanonicalForm, SubstitutionReachesIntoSums) {
  const VarId k = variable(k_);
  const auto z = [&](VarId v, VarId w) { return f_.read(2, {at(v), at(w)}); };
  const FormId row = f_.sum({k}, z(i_, k));
  Forms::IndexMap map{{f_.indices.atom(IndexAtom::kVariable, i_), at(j_)}};
  EXPECT_EQ(f_.substitute(row, map), f_.sum({k}, z(j_, k)));
  EXPECT_EQ(f_.substitute(f_.inverse(f_.add(row, f_.one())), map),
            f_.inverse(f_.add(f_.sum({k}, z(j_, k)), f_.one())));
}

TEST_F(CanonicalForm, SignsAreOfWhatIsCertain) {
  const VarId k = variable(k_);
  EXPECT_EQ(f_.sign(f_.sum({k}, f_.exp(x(k)))), Sign::kPositive);
  EXPECT_EQ(f_.sign(f_.sum({k}, f_.power(x(k), 2))), Sign::kNotNegative);
  EXPECT_EQ(f_.sign(f_.add(f_.power(x(i_), 2), f_.one())), Sign::kPositive);
  EXPECT_EQ(f_.sign(x(i_)), Sign::kUnknown);
  EXPECT_EQ(f_.sign(negative(f_.one())), Sign::kUnknown);
  f_.set_sign(0, Sign::kPositive);
  EXPECT_EQ(f_.sign(x(i_)), Sign::kPositive);
}

// Sums of products of reads, written in any order with any names, are one form.
TEST_F(CanonicalForm, OrderAndNamesDoNotMatter) {
  std::mt19937 dice(7);
  for (int round = 0; round < 60; ++round) {
    // A random product of reads at pairs of bound variables, some equal in structure.
    const size_t count = 2 + dice() % 4;
    std::vector<DomainId> domains;
    for (size_t v = 0; v < count; ++v) domains.push_back(dice() % 2 == 0 ? n_ : k_);
    std::vector<std::pair<size_t, size_t>> reads;
    for (size_t r = 0; r < count + 1; ++r) reads.emplace_back(dice() % count, dice() % count);
    std::vector<FormId> results;
    for (int writing = 0; writing < 4; ++writing) {
      std::vector<VarId> names;
      for (const DomainId d : domains) names.push_back(variable(d));
      std::vector<std::pair<size_t, size_t>> order = reads;
      std::shuffle(order.begin(), order.end(), dice);
      FormId body = f_.one();
      for (const auto& [v, w] : order) {
        body = f_.multiply(body, f_.read(3, {at(names[v]), at(names[w])}));
      }
      std::vector<VarId> binders = names;
      std::shuffle(binders.begin(), binders.end(), dice);
      const size_t cut = dice() % (binders.size() + 1);
      const std::vector<VarId> inner(binders.begin(), binders.begin() + static_cast<long>(cut));
      const std::vector<VarId> outer(binders.begin() + static_cast<long>(cut), binders.end());
      results.push_back(f_.sum(outer, f_.sum(inner, body)));
    }
    for (const FormId each : results) EXPECT_EQ(each, results[0]) << f_.text(each);
    ASSERT_FALSE(f_.failure()) << *f_.failure();
  }
}

TEST_F(CanonicalForm, GrowthEndsInAFailure) {
  Forms small(50, 5);
  const DomainId n = small.indices.domain("n");
  FormId sum = small.one();
  for (uint32_t t = 0; t < 8; ++t) {
    sum = small.add(sum, small.read(t, {small.indices.of_variable(small.indices.fresh(n))}));
  }
  small.power(sum, 6);
  EXPECT_TRUE(small.failure());
}

}  // namespace
}  // namespace sundog::verify
