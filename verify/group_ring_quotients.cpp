// Quotients of sums, and whether a sum over interned denominators is zero: the half of the group
// ring that is no ring.  The essay of group_ring.cpp says why denominators are interned.
#include <algorithm>
#include <cmath>
#include <map>

#include "core/check.h"
#include "verify/group_ring.h"

namespace sundog::verify {

using Value = GroupRing::Value;

namespace {

// A rational constant whose reciprocal is one that fits.
bool is_invertible(const Value& a) { return a.denominator != 0 && a.numerator != 0; }

}  // namespace

// ---- quotients
// -------------------------------------------------------------------------------------

Value GroupRing::div(const Value& a, const Value& b) {
  const bool infinite = b.kind == Kind::kMinusInfinity || b.kind == Kind::kPlusInfinity;
  if (infinite && a.kind == Kind::kFinite) return integer(0);
  if (infinite) return undefined("infinity divided by infinity");
  return mul(a, reciprocal(b));
}

Value GroupRing::reciprocal(const Value& a) {
  if (a.kind != Kind::kFinite) return undefined("it is computed from an undefined value");
  if (a.sum == kPlain) {
    if (a.c.p == 0 && a.c.q == 0) return undefined("division by zero");
    if (a.c.p == 0 || a.c.q == 0) {
      redraw("a denominator is zero at this random point");
      return integer(1);
    }
    Value v =
        plain({field_.inverse(a.c.p), companion_.inverse(a.c.q)}, growth_of_inverse(a.growth));
    if (is_invertible(a)) {
      const int64_t sign = a.numerator < 0 ? -1 : 1;
      v.numerator = sign * a.denominator;
      v.denominator = sign * a.numerator;
    }
    return v;
  }
  const Cleared cleared = clear(a);
  if (!cleared.complete) {
    fail("a denominator has too many terms");
    return integer(1);
  }
  if (size_of(cleared.numerator) == 0) return undefined("division by zero");
  Value v = reciprocal_of_sum(cleared.numerator);
  for (const Power& p : cleared.denominators) {
    for (uint32_t i = 0; i < p.power; ++i) v = mul(v, generators_[p.generator].argument);
  }
  return v;
}

Value GroupRing::reciprocal_of_term(const Term& term, const Growth& growth) {
  if (term.c.q == 0) {
    redraw("a denominator is zero at this random point");
    return integer(1);
  }
  Value v = make({{exponent_inverse(term.exponent),
                   0,
                   {field_.inverse(term.c.p), companion_.inverse(term.c.q)}}},
                 growth_of_inverse(growth));
  const Product product = products_[term.product];
  for (const Power& p : product) {
    const Generator generator = generators_[p.generator];
    if (generator.kind == GeneratorKind::kRoot) {  // 1/S = S/v
      const Value root = product_value(product_id({{p.generator, 1}}));
      v = mul(mul(v, root), reciprocal(generator.argument));
    } else {
      SUNDOG_CHECK(generator.kind == GeneratorKind::kLog);
      const uint32_t one = product_id({{p.generator, 1}});
      const uint32_t inverse = add_generator(
          GeneratorKind::kReciprocal, product_value(one),
          {field_.inverse(generator.weight.p), companion_.inverse(generator.weight.q)});
      v = mul(v, product_value(product_id({{inverse, p.power}})));
    }
  }
  return v;
}

// Splits off the roots and logarithms that all terms share.
Value GroupRing::common_factor(const Value& sum, Term* factor) {
  const auto all = terms(sum, nullptr);
  Product shared = products_[all[0].product];
  for (const Term& t : all) {
    Product both;
    for (const Power& p : products_[t.product]) {
      for (const Power& s : shared) {
        if (s.generator == p.generator) both.push_back({s.generator, std::min(s.power, p.power)});
      }
    }
    shared = std::move(both);
    if (shared.empty()) return sum;
  }
  *factor = {0, product_id(shared), {field_.one(), companion_.one()}};
  std::vector<Term> rest(all.begin(), all.end());
  for (Term& t : rest) {
    Product left;
    for (Power p : products_[t.product]) {
      for (const Power& s : shared) {
        if (s.generator == p.generator) p.power -= s.power;
      }
      if (p.power > 0) left.push_back(p);
    }
    t.product = product_id(left);
  }
  std::sort(rest.begin(), rest.end(),
            [](const Term& x, const Term& y) { return x.key() < y.key(); });
  return make(std::move(rest), sum.growth);
}

Value GroupRing::reciprocal_of_sum(const Value& numerator) {
  Term single;
  const auto all = terms(numerator, &single);
  if (all.size() == 1) return reciprocal_of_term(all[0], numerator.growth);
  Term factor;
  const Value rest = common_factor(numerator, &factor);
  if (factor.product != 0) {
    return mul(reciprocal_of_term(factor, {}), reciprocal_of_sum(rest));
  }
  Value rational;
  if (rationalise(numerator, &rational)) return rational;
  Term unit;
  const Value normal = normalised(numerator, &unit.c, &unit.exponent);
  if (failure_) return integer(1);
  std::vector<uint64_t> key;
  for (const Term& t : terms(normal, nullptr)) {
    key.insert(key.end(), {t.exponent, t.product, t.c.p});
  }
  auto known = reciprocals_.find(key);
  if (known == reciprocals_.end()) {
    const Residue at = image(normal);
    if (at.p == 0 || at.q == 0) {
      redraw("a denominator is zero at this random point");
      return integer(1);
    }
    const uint32_t generator = add_generator(GeneratorKind::kReciprocal, normal,
                                             {field_.inverse(at.p), companion_.inverse(at.q)});
    known = reciprocals_.emplace(std::move(key), generator).first;
  }
  return mul(reciprocal_of_term(unit, numerator.growth),
             product_value(product_id({{known->second, 1}})));
}

// 1/(A + B S) = (A - B S)/(A^2 - B^2 v) without exponentials: numbers with roots keep a canonical
// form.
bool GroupRing::rationalise(const Value& a, Value* result) {
  constexpr int kMaxRoots = 3;
  Product roots;
  const auto all = terms(a, nullptr);
  for (const Term& t : all) {
    if (t.exponent != 0) return false;
    for (const Power& p : products_[t.product]) {
      const Generator& g = generators_[p.generator];
      if (g.kind != GeneratorKind::kRoot || g.argument.sum != kPlain) return false;
      if (std::find(roots.begin(), roots.end(), p) == roots.end()) roots.push_back(p);
    }
  }
  if (roots.empty() || roots.size() > kMaxRoots) return false;
  std::vector<Term> conjugate(all.begin(), all.end());
  for (Term& t : conjugate) {
    const Product& product = products_[t.product];
    if (std::find(product.begin(), product.end(), roots[0]) != product.end()) {
      t.c = {field_.neg(t.c.p), companion_.neg(t.c.q)};
    }
  }
  const Value other = make(std::move(conjugate), a.growth);
  const Value norm = mul(a, other);
  if (size_of(norm) == 0) return false;  // v is the square of something here
  *result = mul(other, reciprocal(norm));
  return true;
}

// Among all terms the one to divide by is chosen by a hash of what the sum becomes: multiples of
// the sum by c X^e become the same.
Value GroupRing::normalised(const Value& sum, Residue* unit, uint32_t* exponent) {
  constexpr size_t kMaxTerms = 1024;  // the choice takes quadratic time
  const auto all = terms(sum, nullptr);
  if (all.size() > kMaxTerms) {
    fail("a denominator has too many terms");
    return sum;
  }
  uint64_t best = ~uint64_t{0};
  size_t chosen = 0;
  uint64_t chosen_inverse = 0;
  for (size_t i = 0; i < all.size(); ++i) {
    const uint64_t inverse = field_.inverse(all[i].c.p);
    uint64_t hash = 0;
    for (const Term& t : all) {
      const uint64_t shift =
          field_.sub(exponents_[t.exponent].residue, exponents_[all[i].exponent].residue);
      hash += prf(shift, field_.mul(t.c.p, inverse), t.product);
    }
    if (hash > best) continue;
    best = hash;
    chosen = i;
    chosen_inverse = inverse;
  }
  *unit = all[chosen].c;
  *exponent = all[chosen].exponent;
  if (unit->q == 0) {
    redraw("a denominator is zero at this random point");
    return sum;
  }
  const Residue scale = {chosen_inverse, companion_.inverse(unit->q)};
  const Value inverse =
      make({{exponent_inverse(*exponent), 0, scale}}, growth_of_inverse(sum.growth));
  return mul(sum, inverse);
}

// ---- zero and equality
// -----------------------------------------------------------------------------

// Multiplies by interned denominators until none is left, first those that every term has.
GroupRing::Cleared GroupRing::clear(const Value& a) {
  Cleared result{a, {}, true};
  while (!failure_) {
    Term single;
    const auto all = terms(result.numerator, &single);
    if (all.size() > limits_.expansion) {
      result.complete = false;
      return result;
    }
    struct Use {
      uint32_t highest = 0;
      size_t full = 0;  // terms with the highest power
    };
    std::map<uint32_t, Use> uses;
    for (const Term& t : all) {
      for (const Power& p : products_[t.product]) {
        if (generators_[p.generator].kind != GeneratorKind::kReciprocal) continue;
        Use& use = uses[p.generator];
        if (p.power > use.highest) use = {p.power, 0};
        use.full += p.power == use.highest;
      }
    }
    if (uses.empty()) return result;
    const auto chosen = std::max_element(
        uses.begin(), uses.end(),
        [](const auto& x, const auto& y) { return x.second.full < y.second.full; });
    const auto [generator, use] = *chosen;
    std::map<uint32_t, std::vector<Term>> by_power;  // by the power that is missing
    for (Term t : all) {
      Product rest;
      uint32_t power = 0;
      for (const Power& p : products_[t.product]) {
        if (p.generator == generator) {
          power = p.power;
        } else {
          rest.push_back(p);
        }
      }
      t.product = product_id(rest);
      by_power[use.highest - power].push_back(t);
    }
    Value next = integer(0);
    const Growth growth = result.numerator.growth;
    for (auto& [missing, part] : by_power) {
      std::sort(part.begin(), part.end(),
                [](const Term& x, const Term& y) { return x.key() < y.key(); });
      Value v = make(std::move(part), growth);
      for (uint32_t i = 0; i < missing; ++i) v = mul(v, generators_[generator].argument);
      next = add(next, v);
    }
    result.numerator = next;
    result.denominators.push_back({generator, use.highest});
  }
  result.complete = false;
  return result;
}

Sameness GroupRing::is_zero(const Value& a) {
  widest_coefficient_ = growth_of_both(widest_coefficient_, a.growth);
  if (a.sum == kPlain) return a.c.p == 0 ? Sameness::kSame : Sameness::kDifferent;
  bool fractions = false;
  for (const Term& t : terms(a, nullptr)) {
    fractions |= has_kind(t.product, GeneratorKind::kReciprocal);
  }
  if (!fractions) return Sameness::kDifferent;
  // The image is a homomorphism: what has another image is another element.
  const bool image_is_zero = image(a).p == 0;
  if (!image_is_zero && !hides_roots(a)) return Sameness::kDifferent;
  const std::optional<std::string> before = failure_;
  const Cleared cleared = clear(a);
  if (!cleared.complete) {
    // The images still speak; what they say is no longer covered by the bound.
    if (!redraw_) failure_ = before;
    if (image_is_zero) image_only_ = true;
    return Sameness::kUndecided;
  }
  widest_coefficient_ = growth_of_both(widest_coefficient_, cleared.numerator.growth);
  return size_of(cleared.numerator) == 0 ? Sameness::kSame : Sameness::kDifferent;
}

Sameness GroupRing::equal(const Value& a, const Value& b) {
  if (a.kind == Kind::kUndefined || b.kind == Kind::kUndefined) return Sameness::kUndecided;
  if (a.kind != b.kind) return Sameness::kDifferent;
  if (a.kind != Kind::kFinite) return Sameness::kSame;
  if (a.sum == kPlain && b.sum == kPlain) {
    widest_coefficient_ = growth_of_both(widest_coefficient_, growth_of_sum(a.growth, b.growth));
    return a.c.p == b.c.p ? Sameness::kSame : Sameness::kDifferent;
  }
  return is_zero(sub(a, b));
}

// Two different functions pass for the same only if two different exponents share a residue, or two
// different arguments of oracles do, or the coefficient that tells them apart vanishes, at the
// random point or because the prime divides it.  docs/verification.md derives the sum.
double GroupRing::error_log2() const {
  const auto pairs = [](double n) { return n * (n + 1) / 2; };
  // Chance of one nonzero difference of two such quotients to vanish.
  const auto vanishes = [&](const Growth& g, double slack) {
    const double degree = double{g.degree} + g.below + slack + 1;
    const double bits = double{g.bits} + g.bits_below + 1;
    return degree / static_cast<double>(field_.modulus()) +
           std::floor(bits / 60) * std::exp2(kPrimeEntropy);
  };
  const double exponents = pairs(static_cast<double>(exponents_.size()));
  const double oracles = pairs(static_cast<double>(interned_.size())) + 1;
  const double bound = exponents * vanishes(widest_exponent_, longest_product_) +
                       oracles * vanishes(widest_coefficient_, 0);
  return std::min(0.0, std::log2(2.02 * bound));  // 2: the draw was not discarded; 1 % for floats
}

}  // namespace sundog::verify
