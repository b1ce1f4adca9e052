// exp, log, sqrt with their laws, and the functions without laws as oracles.
//
// An oracle's value is a residue that depends on its arguments as elements, not on how they were
// computed: max(a, max(b, a)) and max(b, a) are the same, max(exp a, exp b) and max(exp c, exp d)
// are not.
#include <algorithm>
#include <cmath>

#include "core/check.h"
#include "verify/group_ring.h"

namespace sundog::verify {

using Value = GroupRing::Value;

namespace {

constexpr const char* kFromUndefined = "it is computed from an undefined value";

uint64_t hash_text(std::string_view text) {
  uint64_t h = 0;
  for (const char c : text) h = prf(h, static_cast<unsigned char>(c));
  return h;
}

double to_double(const Value& a) {
  return static_cast<double>(a.numerator) / static_cast<double>(a.denominator);
}

bool is_rational(const Value& a) { return a.denominator != 0; }

bool less(const Value& a, const Value& b) {  // of rational constants
  return static_cast<__int128_t>(a.numerator) * b.denominator <
         static_cast<__int128_t>(b.numerator) * a.denominator;
}

}  // namespace

// ---- exp and log
// -----------------------------------------------------------------------------------

// exp(k log v + rest) = v^k exp(rest) for whole and half k.
bool GroupRing::split_log(const Term& t, Value* factor) {
  constexpr int kMaxPower = 16;  // in halves
  const Product product = products_[t.product];
  if (t.exponent != 0 || product.size() != 1 || product[0].power != 1) return false;
  const Generator generator = generators_[product[0].generator];
  if (generator.kind != GeneratorKind::kLog) return false;
  const uint64_t twice = field_.add(t.c.p, t.c.p);
  int halves = 0;
  for (int k = 1; k <= kMaxPower && halves == 0; ++k) {
    if (twice == field_.from_int(k)) halves = k;
    if (twice == field_.from_int(-k)) halves = -k;
  }
  if (halves == 0) return false;
  Value power = integer(1);
  for (int i = 0; i < std::abs(halves) / 2; ++i) power = mul(power, generator.argument);
  if (halves % 2 != 0) power = mul(power, sqrt(generator.argument));
  *factor = halves < 0 ? reciprocal(power) : power;
  return true;
}

Value GroupRing::exp(const Value& a) {
  if (a.kind == Kind::kUndefined) return undefined(kFromUndefined);
  if (a.kind == Kind::kPlusInfinity) return a;
  if (a.kind == Kind::kMinusInfinity) return integer(0);
  Value rest = a, factor = integer(1);
  if (a.sum != kPlain) {
    std::vector<Term> kept;
    for (const Term& t : sums_[a.sum]) {
      Value power;
      if (split_log(t, &power)) {
        factor = mul(factor, power);
      } else {
        kept.push_back(t);
      }
    }
    if (kept.size() < sums_[a.sum].size()) rest = make(std::move(kept), a.growth);
  }
  const Value power = make({{exponent(rest), 0, {field_.one(), companion_.one()}}}, {});
  return mul(factor, power);
}

// The logarithm of an element without denominators as a generator.
Value GroupRing::log_of(const Value& a) {
  if (a.sum == kPlain && a.c.p == field_.one()) return integer(0);
  const uint32_t id = intern(a);
  auto known = log_generator_.find(id);
  if (known == log_generator_.end()) {
    const Residue weight = residue(prf(image(a).p, 0x6c));
    known =
        log_generator_.emplace(id, add_generator(GeneratorKind::kLog, interned_[id], weight)).first;
  }
  return product_value(product_id({{known->second, 1}}));
}

// log(c X^e N / D) = log c + e + log N - log D with N and D normalised.
Value GroupRing::log(const Value& a) {
  if (a.kind == Kind::kUndefined) return undefined(kFromUndefined);
  if (a.kind == Kind::kPlusInfinity) return a;
  if (a.kind == Kind::kMinusInfinity) return undefined("logarithm of minus infinity");
  if (is_rational(a) && a.numerator < 0) return undefined("logarithm of a negative number");
  const Cleared cleared = clear(a);
  if (!cleared.complete) {
    fail("the argument of a logarithm has too many terms");
    return integer(0);
  }
  Term single;
  const auto all = terms(cleared.numerator, &single);
  if (all.empty()) {
    Value v;
    v.kind = Kind::kMinusInfinity;
    return v;
  }
  Term unit = all[0];
  Value result = integer(0);
  if (all.size() == 1) {
    const Product product = products_[unit.product];
    const Value half = constant(Number::ratio(1, 2));
    for (const Power& p : product) {
      const Generator generator = generators_[p.generator];
      const Value part = generator.kind == GeneratorKind::kRoot
                             ? mul(half, log(generator.argument))
                             : log_of(product_value(product_id({p})));
      result = add(result, part);
    }
  } else {
    const Value normal = normalised(cleared.numerator, &unit.c, &unit.exponent);
    if (failure_) return integer(0);
    result = add(result, log_of(normal));
  }
  result = add(result, exponents_[unit.exponent].value);
  result = add(result, log_of(plain(unit.c, cleared.numerator.growth)));
  for (const Power& p : cleared.denominators) {
    const Value part = log_of(generators_[p.generator].argument);
    for (uint32_t i = 0; i < p.power; ++i) result = sub(result, part);
  }
  return result;
}

// ---- roots
// -----------------------------------------------------------------------------------------

// sqrt(n/d) = sqrt(n d)/d, with the primes below a limit taken apart, so that sqrt(6) = sqrt(2)
// sqrt(3).
Value GroupRing::root_of_rational(int64_t numerator, int64_t denominator) {
  constexpr int64_t kMaxPrime = 1000;
  Value outside = reciprocal(integer(denominator)), inside = integer(1);
  int64_t left[2] = {numerator, denominator};
  for (int64_t prime = 2; prime <= kMaxPrime; ++prime) {
    int count = 0;
    for (int64_t& n : left) {
      for (; n % prime == 0; n /= prime) ++count;
    }
    for (int i = 0; i < count / 2; ++i) outside = mul(outside, integer(prime));
    if (count % 2 == 1) inside = mul(inside, root_of(integer(prime)));
  }
  for (const int64_t n : left) {
    const auto root = static_cast<int64_t>(std::llround(std::sqrt(static_cast<double>(n))));
    if (root < (int64_t{1} << 31) && root * root == n) {
      outside = mul(outside, integer(root));
    } else {
      inside = mul(inside, root_of(integer(n)));
    }
  }
  return mul(outside, inside);
}

Value GroupRing::root_of(const Value& a) {
  const uint32_t id = intern(a);
  auto known = root_generator_.find(id);
  if (known == root_generator_.end()) {
    const Residue weight = residue(prf(image(a).p, 0x72));
    known = root_generator_.emplace(id, add_generator(GeneratorKind::kRoot, interned_[id], weight))
                .first;
  }
  return product_value(product_id({{known->second, 1}}));
}

Value GroupRing::sqrt(const Value& a) {
  if (a.kind == Kind::kUndefined) return undefined(kFromUndefined);
  if (a.kind == Kind::kPlusInfinity) return a;
  if (a.kind == Kind::kMinusInfinity) return undefined("root of minus infinity");
  if (is_rational(a)) {
    if (a.numerator < 0) return undefined("root of a negative number");
    if (a.numerator == 0) return a;
    return root_of_rational(a.numerator, a.denominator);
  }
  if (a.sum != kPlain && sums_[a.sum].size() == 1) {  // sqrt(c X^e) = sqrt(c) X^(e/2)
    const Term t = sums_[a.sum][0];
    if (t.product == 0 && t.exponent != 0) {
      const Value half = mul(exponents_[t.exponent].value, constant(Number::ratio(1, 2)));
      const Value rest = t.c.p == field_.one() ? integer(1) : root_of(plain(t.c, a.growth));
      return mul(rest, exp(half));
    }
  }
  return root_of(a);
}

// ---- oracles
// ---------------------------------------------------------------------------------------

std::vector<uint32_t> GroupRing::set_of(const Value& a) {
  const uint32_t id = intern(a);
  const auto known = set_of_interned_.find(id);
  return known == set_of_interned_.end() ? std::vector<uint32_t>{id} : known->second;
}

Value GroupRing::max(const Value& a, const Value& b) {
  if (a.kind == Kind::kUndefined || b.kind == Kind::kUndefined) return undefined(kFromUndefined);
  if (a.kind == Kind::kMinusInfinity || b.kind == Kind::kPlusInfinity) return b;
  if (b.kind == Kind::kMinusInfinity || a.kind == Kind::kPlusInfinity) return a;
  if (is_rational(a) && is_rational(b)) return less(a, b) ? b : a;
  const std::vector<uint32_t> left = set_of(a), right = set_of(b);
  std::vector<uint32_t> both;
  std::set_union(left.begin(), left.end(), right.begin(), right.end(), std::back_inserter(both));
  // Of several constants only the largest counts.
  std::optional<uint32_t> largest;
  for (const uint32_t id : both) {
    if (!is_rational(interned_[id])) continue;
    if (!largest || less(interned_[*largest], interned_[id])) largest = id;
  }
  std::erase_if(both, [&](uint32_t id) { return is_rational(interned_[id]) && id != *largest; });
  if (both == left) return a;
  if (both == right) return b;
  const auto known = maxima_.find(both);
  if (known != maxima_.end()) return known->second;
  uint64_t key = 0;
  for (const uint32_t id : both) key += prf(image(interned_[id]).p, 0x6d);
  const Value v = oracle(key);
  set_of_interned_.emplace(intern(v), both);
  maxima_.emplace(std::move(both), v);
  return v;
}

Value GroupRing::call(const Fn& fn, const Value& a) {
  if (a.kind == Kind::kUndefined) return undefined(kFromUndefined);
  if (a.kind != Kind::kFinite) return undefined("a function of an infinite value");
  return oracle(prf(hash_text(fn.name), image(interned_[intern(a)]).p, intern(a)));
}

Value GroupRing::abbreviated(const Value& a) {
  const Growth& g = a.growth;
  const bool small = g.degree + g.below < limits_.growth && g.bits + g.bits_below < limits_.growth;
  if (small && (abbreviated_.empty() || !may_be_interned(a))) return a;
  if (a.kind != Kind::kFinite || is_rational(a)) return a;
  const uint32_t id = intern(a);
  if (small && abbreviated_.count(id) == 0) return a;
  abbreviated_.insert(id);
  Value v = oracle(prf(image(a).p, 0x76, id));
  v.nonnegative = a.nonnegative;
  v.positive = a.positive;
  return v;
}

Value GroupRing::cast(DType to, const Value& a) {
  if (!keeps_cast(rounding_, to)) return a;
  if (a.kind != Kind::kFinite) return a;
  if (is_rational(a) && round_to(to, to_double(a)) == to_double(a)) return a;
  const uint32_t id = intern(a);
  const auto known = rounded_.find(id);
  if (known != rounded_.end() && is_widening(known->second, to)) return a;
  const Value v = oracle(prf(image(interned_[id]).p, 0x63 + static_cast<uint64_t>(to), id));
  rounded_.emplace(intern(v), to);
  return v;
}

// 1 where the comparison holds, else 0, as a random residue.  l <= r is 1 - (r < l), and so on.
Value GroupRing::indicator(Relation relation, const Value& left, const Value& right) {
  const Value difference = sub(left, right);
  switch (relation) {
    case Relation::kLess:
      return oracle(prf(image(difference).p, 0x3c, intern(difference)));
    case Relation::kLessEqual:
      return sub(integer(1), indicator(Relation::kLess, right, left));
    case Relation::kEqual: {
      const uint32_t id = std::min(intern(difference), intern(neg(difference)));
      return oracle(prf(image(interned_[id]).p, 0x3d, id));
    }
    case Relation::kNotEqual:
      return sub(integer(1), indicator(Relation::kEqual, left, right));
  }
  SUNDOG_CHECK(false);
}

Value GroupRing::choose(Relation relation, const Value& left, const Value& right, const Value& then,
                        const Value& otherwise) {
  if (left.kind == Kind::kUndefined || right.kind == Kind::kUndefined) {
    return undefined(kFromUndefined);
  }
  // -1, 0, 1: the order of two extended constants; 2: not known.
  const auto order = [&]() -> int {
    const auto rank = [](const Value& v) {
      return v.kind == Kind::kFinite ? 0 : v.kind == Kind::kPlusInfinity ? 1 : -1;
    };
    if (rank(left) != rank(right)) return rank(left) < rank(right) ? -1 : 1;
    if (rank(left) != 0) return 0;
    if (is_rational(left) && is_rational(right)) return less(left, right) ? -1 : less(right, left);
    const Value difference = sub(left, right);
    return size_of(difference) == 0 ? 0 : 2;
  }();
  if (order != 2) {
    const bool holds = relation == Relation::kLess        ? order < 0
                       : relation == Relation::kLessEqual ? order <= 0
                       : relation == Relation::kEqual     ? order == 0
                                                          : order != 0;
    return holds ? then : otherwise;
  }
  const Value bit = indicator(relation, left, right);
  if (then.kind == Kind::kUndefined || otherwise.kind == Kind::kUndefined) {
    return undefined(kFromUndefined);
  }
  if (then.kind == otherwise.kind && then.kind != Kind::kFinite) return then;
  if (then.kind != Kind::kFinite || otherwise.kind != Kind::kFinite) {
    // No element stands for "infinite where the bit is 0"; a residue keyed by the three does.
    const bool first = then.kind == Kind::kFinite;
    const Value& finite = first ? then : otherwise;
    const Value& infinite = first ? otherwise : then;
    const uint64_t branch = (first ? 2 : 0) + (infinite.kind == Kind::kPlusInfinity ? 1 : 0);
    return oracle(prf(prf(bit.c.p, branch), image(finite).p, intern(finite)));
  }
  return add(otherwise, mul(bit, sub(then, otherwise)));
}

}  // namespace sundog::verify
