// Sums and products of formal exponentials over a prime field.
//
// A program with exp cannot be tested by putting residues for its values: exp has no meaning there,
// and what is random about a value must not depend on which side of an equation it stands.  So
// exponentials stay formal: the group ring of the exponents' additive group, in which
// exp(x + y) = exp(x) exp(y) holds by construction and distinct exponentials are linearly
// independent, as they are over the rational functions.  Division leaves the ring; bringing
// everything to one common denominator doubles a sum of sigmoids with each summand.  So
// denominators are interned after a normalisation that all multiples by a unit c X^e share (plain
// and safe softmax have the same one), and are multiplied out only to decide whether a difference
// is zero.  What was tried before: one fraction a value (2^n terms for n sigmoids), and reciprocals
// as opaque atoms (d * (1/d) = 1 is lost).
#include "verify/group_ring.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/check.h"

namespace sundog::verify {
namespace {

using Value = GroupRing::Value;

bool is_rational(const Value& a) { return a.denominator != 0; }

// Sets the rational constant of `result` if it is representable.
void set_rational(Value* result, __int128_t numerator, __int128_t denominator) {
  const auto magnitude = [](__int128_t x) { return x < 0 ? -x : x; };
  __int128_t a = magnitude(numerator), b = denominator;
  while (b != 0) {
    const __int128_t rest = a % b;
    a = b;
    b = rest;
  }
  if (a == 0) return;
  numerator /= a;
  denominator /= a;
  constexpr __int128_t kLimit = static_cast<__int128_t>(1) << 62;
  if (magnitude(numerator) > kLimit || denominator > kLimit) return;
  result->numerator = static_cast<int64_t>(numerator);
  result->denominator = static_cast<int64_t>(denominator);
}

// Bounds within which the products of set_rational cannot overflow.
bool is_small(const Value& a) {
  constexpr int64_t kLimit = int64_t{1} << 62;
  return is_rational(a) && a.numerator <= kLimit && a.numerator >= -kLimit;
}

}  // namespace

GroupRing::GroupRing(uint64_t seed, Rounding rounding, Limits limits)
    : seed_(seed), rounding_(rounding), limits_(limits), field_(3), companion_(3) {
  const PrimeTower primes = draw_primes(seed);
  field_ = PrimeField(primes.p);
  companion_ = PrimeField(primes.q);
  uint64_t base = 1;
  for (uint64_t key = 0; base == 1 || base == field_.one(); ++key) {
    base = field_.power(field_.from_word(prf(seed, key, 0x67)), (primes.p - 1) / primes.q);
    if (base == 0) base = 1;
  }
  for (auto& row : powers_) {
    row[0] = field_.one();
    row[1] = base;
    for (size_t j = 2; j < row.size(); ++j) row[j] = field_.mul(row[j / 2], row[j - j / 2]);
    base = field_.mul(row.back(), base);
  }
  exponents_.push_back({0, field_.one(), integer(0), false, 0});
  exponent_of_residue_.emplace(0, 0);
  products_.emplace_back();
  product_weights_.push_back({field_.one(), companion_.one()});
  product_ids_.emplace(Product{}, 0);
}

// ---- values
// ----------------------------------------------------------------------------------------

std::span<const GroupRing::Term> GroupRing::terms(const Value& a, Term* single) const {
  if (a.sum != kPlain) return sums_[a.sum];
  if (a.c.p == 0) return {};
  *single = {0, 0, a.c};
  return {single, 1};
}

size_t GroupRing::size_of(const Value& a) const {
  return a.sum == kPlain ? (a.c.p != 0) : sums_[a.sum].size();
}

Value GroupRing::plain(Residue c, const Growth& growth) const {
  Value v;
  v.c = c;
  v.growth = growth;
  return v;
}

// `terms` are sorted by key, distinct, with nonzero coefficients.
Value GroupRing::make(std::vector<Term> terms, const Growth& growth) {
  if (terms.empty()) {
    Value zero = plain({0, 0}, growth);
    zero.denominator = 1;
    return zero;
  }
  if (terms.size() == 1 && terms[0].key() == 0) return plain(terms[0].c, growth);
  term_count_ += terms.size();
  if (terms.size() > limits_.terms_of_value || term_count_ > limits_.terms) {
    fail("a value has too many terms");
  }
  Value v = plain({0, 0}, growth);
  v.sum = static_cast<uint32_t>(sums_.size());
  sums_.push_back(std::move(terms));
  return v;
}

Value GroupRing::undefined(const char* reason) {
  if (undefined_reason_.empty()) undefined_reason_ = reason;
  Value v;
  v.kind = Kind::kUndefined;
  return v;
}

bool GroupRing::goes_on(uint64_t products) {
  work_ += products;
  if (work_ > limits_.products) fail("products have too many terms");
  looked_at(products);
  return !failure_;
}

void GroupRing::looked_at(uint64_t elements) {
  constexpr uint64_t kBetweenLooks = 1 << 16;
  since_clock_ += elements;
  if (limits_.seconds <= 0 || since_clock_ <= kBetweenLooks) return;
  since_clock_ = 0;
  const std::chrono::duration<double> since = std::chrono::steady_clock::now() - start_;
  if (since.count() > limits_.seconds) fail("the time limit was reached");
}

void GroupRing::fail(std::string reason) {
  if (!failure_) failure_ = std::move(reason);
}

void GroupRing::redraw(std::string reason) {
  if (!failure_) redraw_ = true;
  fail(std::move(reason));
}

std::optional<std::string> GroupRing::failure() const { return failure_; }

Value GroupRing::integer(int64_t value) {
  Value v = plain({field_.from_int(value), companion_.from_int(value)}, {});
  v.growth.bits = value == 0 ? 0 : static_cast<float>(std::log2(std::fabs(double(value)))) + 1e-5f;
  if (value == std::numeric_limits<int64_t>::min()) return v;  // has no negative
  v.numerator = value;
  v.denominator = 1;
  return v;
}

Value GroupRing::constant(const Number& number) {
  if (number.is_infinite()) {
    Value v;
    v.kind = number.is_negative() ? Kind::kMinusInfinity : Kind::kPlusInfinity;
    return v;
  }
  const Value numerator = integer(number.numerator());
  if (number.numerator() == 0 || (number.denominator() == 1 && number.exponent() == 0)) {
    return numerator;
  }
  const Value denominator = integer(number.denominator());
  Value v = mul(numerator, reciprocal(denominator));
  Value ten = integer(10);
  const int exponent = number.exponent();
  const auto magnitude = static_cast<uint64_t>(std::abs(exponent));
  const Residue power = {field_.power(ten.c.p, magnitude), companion_.power(ten.c.q, magnitude)};
  const float bits = 3.3220f * static_cast<float>(magnitude);
  Value scale = plain(power, {0, 0, bits, 0});
  int64_t exact = 1;
  for (uint64_t i = 0; i < magnitude && exact != 0; ++i) exact = magnitude > 18 ? 0 : exact * 10;
  if (exact != 0) {
    scale.numerator = exact;
    scale.denominator = 1;
  }
  return mul(v, exponent < 0 ? reciprocal(scale) : scale);
}

// ---- sums
// ------------------------------------------------------------------------------------------

Value GroupRing::neg(const Value& a) {
  Value v = a;
  if (a.kind == Kind::kMinusInfinity) v.kind = Kind::kPlusInfinity;
  if (a.kind == Kind::kPlusInfinity) v.kind = Kind::kMinusInfinity;
  if (a.kind != Kind::kFinite) return v;
  v.numerator = -a.numerator;
  v.c = {field_.neg(a.c.p), companion_.neg(a.c.q)};
  if (a.sum == kPlain) return v;
  std::vector<Term> negated = sums_[a.sum];
  for (Term& t : negated) t.c = {field_.neg(t.c.p), companion_.neg(t.c.q)};
  return make(std::move(negated), a.growth);
}

Value GroupRing::add(const Value& a, const Value& b) {
  if (a.kind != Kind::kFinite || b.kind != Kind::kFinite) {
    if (a.kind == Kind::kUndefined || b.kind == Kind::kUndefined) {
      return undefined("it is computed from an undefined value");
    }
    if (a.kind == Kind::kFinite) return b;
    if (b.kind == Kind::kFinite || a.kind == b.kind) return a;
    return undefined("infinity minus infinity");
  }
  if (is_rational(a) && a.numerator == 0) return b;
  if (is_rational(b) && b.numerator == 0) return a;
  if (a.sum == kPlain && b.sum == kPlain) {
    Value v = plain({field_.add(a.c.p, b.c.p), companion_.add(a.c.q, b.c.q)},
                    growth_of_sum(a.growth, b.growth));
    if (is_small(a) && is_small(b) && a.denominator < 1 << 30 && b.denominator < 1 << 30) {
      set_rational(&v,
                   static_cast<__int128_t>(a.numerator) * b.denominator +
                       static_cast<__int128_t>(b.numerator) * a.denominator,
                   static_cast<__int128_t>(a.denominator) * b.denominator);
    }
    return v;
  }
  Term single_a, single_b;
  const auto left = terms(a, &single_a), right = terms(b, &single_b);
  std::vector<Term> out;
  out.reserve(left.size() + right.size());
  bool merged = false;
  size_t i = 0, j = 0;
  while (i < left.size() || j < right.size()) {
    if (j == right.size() || (i < left.size() && left[i].key() < right[j].key())) {
      out.push_back(left[i++]);
    } else if (i == left.size() || right[j].key() < left[i].key()) {
      out.push_back(right[j++]);
    } else {
      merged = true;
      Term t = left[i++];
      t.c = {field_.add(t.c.p, right[j].c.p), companion_.add(t.c.q, right[j].c.q)};
      ++j;
      if (t.c.p != 0) out.push_back(t);
    }
  }
  return make(std::move(out),
              merged ? growth_of_sum(a.growth, b.growth) : growth_of_both(a.growth, b.growth));
}

// ---- products
// --------------------------------------------------------------------------------------

// Gathers products of terms and merges equal ones.
class GroupRing::Collector {
 public:
  explicit Collector(GroupRing& ring) : ring_(ring) {}

  void add(const Term& a, const Term& b) {
    if (!ring_.goes_on(1)) return;
    const Residue c = {ring_.field_.mul(a.c.p, b.c.p), ring_.companion_.mul(a.c.q, b.c.q)};
    const uint32_t e = ring_.exponent_product(a.exponent, b.exponent);
    if (a.product == 0 || b.product == 0) {
      terms_.push_back({e, a.product | b.product, c});
      return;
    }
    const ProductOfTwo& m = ring_.product_of(a.product, b.product);
    if (!m.has_factor) {
      terms_.push_back({e, m.product, c});
      return;
    }
    factor_ = growth_of_both(factor_, m.factor.growth);
    Term single;
    const Term rest{e, m.product, c};
    for (const Term& t : ring_.terms(m.factor, &single)) add(rest, t);
  }

  Value finish(const Growth& growth) {
    if (!ring_.goes_on(terms_.size())) return ring_.plain({0, 0}, growth);
    std::sort(terms_.begin(), terms_.end(),
              [](const Term& x, const Term& y) { return x.key() < y.key(); });
    size_t kept = 0;
    int widest = 1;
    for (size_t i = 0; i < terms_.size();) {
      Term t = terms_[i];
      size_t j = i + 1;
      for (; j < terms_.size() && terms_[j].key() == t.key(); ++j) {
        t.c = {ring_.field_.add(t.c.p, terms_[j].c.p), ring_.companion_.add(t.c.q, terms_[j].c.q)};
      }
      widest = std::max(widest, static_cast<int>(j - i));
      i = j;
      if (t.c.p != 0) terms_[kept++] = t;
    }
    terms_.resize(kept);
    const Growth whole = growth_of_product(growth, factor_);
    return ring_.make(std::move(terms_), widest == 1 ? whole : growth_of_many(whole, widest));
  }

 private:
  GroupRing& ring_;
  std::vector<Term> terms_;
  Growth factor_;  // of what the squares of roots left
};

Value GroupRing::infinite_product(const Value& a, const Value& b) {
  if (a.kind == Kind::kUndefined || b.kind == Kind::kUndefined) {
    return undefined("it is computed from an undefined value");
  }
  const auto sign = [](const Value& x) {
    if (x.kind == Kind::kPlusInfinity) return 1;
    if (x.kind == Kind::kMinusInfinity) return -1;
    return x.numerator > 0 ? 1 : x.numerator < 0 ? -1 : 0;  // 0 also for no rational constant
  };
  const int s = sign(a) * sign(b);
  if (s == 0) return undefined("infinity times a value that may be zero or of either sign");
  Value v;
  v.kind = s > 0 ? Kind::kPlusInfinity : Kind::kMinusInfinity;
  return v;
}

Value GroupRing::mul(const Value& a, const Value& b) {
  if (a.kind != Kind::kFinite || b.kind != Kind::kFinite) return infinite_product(a, b);
  if (is_rational(a) && a.numerator == 0) return a;
  if (is_rational(b) && b.numerator == 0) return b;
  if (is_rational(a) && a.numerator == 1 && a.denominator == 1) return b;
  if (is_rational(b) && b.numerator == 1 && b.denominator == 1) return a;
  const Growth growth = growth_of_product(a.growth, b.growth);
  if (a.sum == kPlain && b.sum == kPlain) {
    Value v = plain({field_.mul(a.c.p, b.c.p), companion_.mul(a.c.q, b.c.q)}, growth);
    if (is_small(a) && is_small(b)) {
      set_rational(&v, static_cast<__int128_t>(a.numerator) * b.numerator,
                   static_cast<__int128_t>(a.denominator) * b.denominator);
    }
    return v;
  }
  if (a.sum == kPlain || b.sum == kPlain) {
    const Residue c = a.sum == kPlain ? a.c : b.c;
    if (c.p == 0) return plain(c, growth);
    std::vector<Term> scaled = sums_[a.sum == kPlain ? b.sum : a.sum];
    for (Term& t : scaled) t.c = {field_.mul(t.c.p, c.p), companion_.mul(t.c.q, c.q)};
    return make(std::move(scaled), growth);
  }
  const auto left = terms(a, nullptr), right = terms(b, nullptr);
  if (failure_ || left.size() * right.size() > 4 * size_t{limits_.terms_of_value}) {
    fail("a product of sums has too many terms");
    return plain({0, 0}, growth);
  }
  Collector collector(*this);
  for (const Term& s : left) {
    for (const Term& t : right) collector.add(s, t);
  }
  return collector.finish(growth);
}

}  // namespace sundog::verify
