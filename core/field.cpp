#include "core/field.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>

#include "core/check.h"

// P is a safe prime, so the squares modulo P form a group of prime order Q and x -> G^x maps sums
// of residues modulo Q to products of residues modulo P.  Keeping each value modulo both primes
// gives a homomorphism from rational functions of inputs and of exponentials of such functions. The
// idea of testing equality of tensor programs over two primes is Mirage's (Wu et al., OSDI 2025);
// there an exponent is lost after one exponential, and so it is here.  A maximum is the set of its
// arguments, flattened, so that it is associative, commutative and idempotent.
//
// Both primes lie just below a power of two, 2^61 - c and 2^60 - d: a product is reduced by folding
// its upper half down, c times it, twice.

namespace sundog {
namespace {

__extension__ typedef unsigned __int128 Wide;

template <int kBits, uint64_t kModulus>
struct Residue {
  static constexpr uint64_t kMask = (uint64_t{1} << kBits) - 1;
  static constexpr uint64_t kFold = kMask + 1 - kModulus;

  static uint64_t mul(uint64_t a, uint64_t b) {
    const Wide product = static_cast<Wide>(a) * b;
    const Wide once = (product & kMask) + (product >> kBits) * kFold;
    const uint64_t twice =
        (static_cast<uint64_t>(once) & kMask) + static_cast<uint64_t>(once >> kBits) * kFold;
    return twice >= kModulus ? twice - kModulus : twice;
  }
  static uint64_t add(uint64_t a, uint64_t b) {
    const uint64_t sum = a + b;
    return sum >= kModulus ? sum - kModulus : sum;
  }
  static uint64_t neg(uint64_t a) { return a == 0 ? 0 : kModulus - a; }
  static uint64_t power(uint64_t base, uint64_t exponent) {
    uint64_t result = 1;
    for (; exponent != 0; exponent >>= 1, base = mul(base, base)) {
      if ((exponent & 1) != 0) result = mul(result, base);
    }
    return result;
  }
  static uint64_t inverse(uint64_t a) { return power(a, kModulus - 2); }
  static uint64_t of(const Number& n) {
    const auto magnitude = static_cast<uint64_t>(std::llabs(n.numerator()));
    uint64_t value = magnitude % kModulus;
    if (n.denominator() != 1) {
      value = mul(value, inverse(static_cast<uint64_t>(n.denominator()) % kModulus));
    }
    if (n.exponent() != 0) {
      const uint64_t tens = power(10, static_cast<uint64_t>(std::abs(n.exponent())));
      value = mul(value, n.exponent() > 0 ? tens : inverse(tens));
    }
    return n.is_negative() ? neg(value) : value;
  }
};

using ModP = Residue<61, FieldImage::kP>;
using ModQ = Residue<60, FieldImage::kQ>;

bool is_infinite(FieldImage::Value x) { return x.p >= FieldImage::kPlusInfinity; }
bool is_mark(FieldImage::Value x) { return x.p >= FieldImage::kUndefined; }
bool is_zero(FieldImage::Value x) { return x.p == 0 && x.q == 0; }

enum OracleKind : uint64_t { kInput = 1, kLog, kSqrt, kMaximum, kCast, kCall, kChoice, kExponent };

uint64_t hash_of(const Number& n) {
  return mix(mix(static_cast<uint64_t>(n.numerator()), static_cast<uint64_t>(n.denominator())),
             static_cast<uint64_t>(n.exponent()));
}

uint64_t hash_of(std::string_view text) {  // FNV-1a
  uint64_t h = 0xcbf29ce484222325ull;
  for (char c : text) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3ull;
  return h;
}

}  // namespace

uint64_t mix(uint64_t seed, uint64_t key) {
  uint64_t x = seed * 0xd1342543de82ef95ull + key + 0x9e3779b97f4a7c15ull;
  for (int round = 0; round < 2; ++round) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
    x = (x ^ (x >> 31)) + seed;
  }
  return x;
}

FieldImage::FieldImage(uint64_t seed, Rounding rounding) : seed_(seed), rounding_(rounding) {
  uint64_t base = mix(seed, 0) % (kP - 3) + 2;  // neither 0 nor 1 nor -1
  base = ModP::mul(base, base);                 // a square: of order Q
  for (auto& row : powers_) {
    row[0] = 1;
    for (size_t j = 1; j < row.size(); ++j) row[j] = ModP::mul(row[j - 1], base);
    base = ModP::mul(row.back(), base);
  }
}

FieldImage::Value FieldImage::oracle(uint64_t kind, uint64_t key) const {
  const uint64_t word = mix(mix(seed_, kind), key);
  return {mix(word, 1) % kP, mix(word, 2) % kQ};
}

FieldImage::Value FieldImage::random(uint64_t key) const { return oracle(kInput, key); }

FieldImage::Value FieldImage::undefined(const char* reason) {
  if (!failure_) failure_ = reason;
  return {kUndefined, kUndefined};
}

FieldImage::Value FieldImage::signed_infinity(int sign) const {
  const uint64_t mark = sign < 0 ? kMinusInfinity : kPlusInfinity;
  return {mark, mark};
}

FieldImage::Value FieldImage::constant(const Number& n) {
  if (n.is_infinite()) return signed_infinity(n.is_negative() ? -1 : 1);
  if (n == Number(0)) return {0, 0};
  if (n == Number(1)) return {1, 1};
  const uint64_t key = hash_of(n);
  const auto known = constants_.find(key);
  if (known != constants_.end() && known->second.number == n) return known->second.value;
  const Value value{ModP::of(n), ModQ::of(n)};
  constants_.insert_or_assign(key, Constant{n, value});
  signs_.emplace(value.p, n.is_negative() ? -1 : 1);
  return value;
}

int FieldImage::sign_if_known(Value x) const {
  if (x.p == 1 || x.p == kPlusInfinity) return 1;
  if (x.p == kMinusInfinity) return -1;
  if (const auto known = signs_.find(x.p); known != signs_.end()) return known->second;
  return exponent_of_.contains(x.p) ? 1 : 0;  // exponentials are positive
}

FieldImage::Value FieldImage::add(Value x, Value y) {
  if (!is_mark(x) && !is_mark(y)) return {ModP::add(x.p, y.p), ModQ::add(x.q, y.q)};
  if (is_undefined(x) || is_undefined(y)) return {kUndefined, kUndefined};
  if (is_infinite(x) && is_infinite(y) && x.p != y.p) {
    return undefined("an infinity is subtracted from itself");
  }
  return is_infinite(x) ? x : y;
}

FieldImage::Value FieldImage::neg(Value x) const {
  if (!is_mark(x)) return {ModP::neg(x.p), ModQ::neg(x.q)};
  if (is_undefined(x)) return x;
  return signed_infinity(x.p == kMinusInfinity ? 1 : -1);
}

FieldImage::Value FieldImage::mul(Value x, Value y) {
  if (!is_mark(x) && !is_mark(y)) return {ModP::mul(x.p, y.p), ModQ::mul(x.q, y.q)};
  if (is_undefined(x) || is_undefined(y)) return {kUndefined, kUndefined};
  const int sign = sign_if_known(x) * sign_if_known(y);
  if (sign == 0) return undefined("an infinity is multiplied by a value of unknown sign");
  return signed_infinity(sign);
}

FieldImage::Value FieldImage::div(Value x, Value y) {
  if (is_undefined(x) || is_undefined(y)) return {kUndefined, kUndefined};
  if (is_infinite(y)) {
    return is_infinite(x) ? undefined("an infinity is divided by an infinity") : Value{0, 0};
  }
  if (y.p == 0 || y.q == 0) return undefined("a division by zero");
  if (is_infinite(x)) {
    const int sign = sign_if_known(x) * sign_if_known(y);
    return sign == 0 ? undefined("an infinity is divided by a value of unknown sign")
                     : signed_infinity(sign);
  }
  return {ModP::mul(x.p, ModP::inverse(y.p)), ModQ::mul(x.q, ModQ::inverse(y.q))};
}

FieldImage::Value FieldImage::exp(Value x) {
  if (is_undefined(x)) return x;
  if (x.p == kMinusInfinity) return {0, 0};
  if (x.p == kPlusInfinity) return x;
  if (is_zero(x)) return {1, 1};
  if (const auto known = power_of_.find(x.p); known != power_of_.end()) return known->second;
  uint64_t power = 1;
  uint64_t exponent = x.q;
  for (const auto& row : powers_) {
    if ((exponent & 255) != 0) power = ModP::mul(power, row[exponent & 255]);
    exponent >>= 8;
  }
  const Value value{power, oracle(kExponent, power).q};
  exponent_of_.emplace(power, x);
  return value;
}

FieldImage::Value FieldImage::log(Value x) {
  if (is_undefined(x) || x.p == kPlusInfinity) return x;
  if (x.p == kMinusInfinity) return undefined("the logarithm of a negative infinity");
  if (is_zero(x)) return signed_infinity(-1);
  if (x.p == 1) return {0, 0};
  if (const auto known = exponent_of_.find(x.p); known != exponent_of_.end()) return known->second;
  const Value value = oracle(kLog, x.p);
  power_of_.emplace(value.p, x);
  return value;
}

FieldImage::Value FieldImage::sqrt(Value x) {
  if (is_undefined(x) || x.p == kPlusInfinity || is_zero(x) || x.p == 1) return x;
  if (x.p == kMinusInfinity) return undefined("the square root of a negative infinity");
  return oracle(kSqrt, x.p);
}

FieldImage::Value FieldImage::max(Value x, Value y) {
  if (is_undefined(x) || is_undefined(y)) return {kUndefined, kUndefined};
  if (x.p == y.p || x.p == kPlusInfinity || y.p == kMinusInfinity) return x;
  if (y.p == kPlusInfinity || x.p == kMinusInfinity) return y;
  const auto set_of = [this](Value v) {
    const auto known = members_.find(v.p);
    return known == members_.end() ? std::vector<uint64_t>{v.p} : known->second;
  };
  const std::vector<uint64_t> left = set_of(x), right = set_of(y);
  std::vector<uint64_t> both;
  std::set_union(left.begin(), left.end(), right.begin(), right.end(), std::back_inserter(both));
  if (both == left) return x;
  if (both == right) return y;
  uint64_t key = both.size();
  for (uint64_t member : both) key = mix(key, member);
  const Value value = oracle(kMaximum, key);
  members_.emplace(value.p, std::move(both));
  return value;
}

FieldImage::Value FieldImage::cast(DType to, Value x) {
  if (!keeps_cast(rounding_, to) || is_mark(x) || is_zero(x)) return x;
  return oracle(kCast, mix(static_cast<uint64_t>(to), x.p));
}

FieldImage::Value FieldImage::call(const Fn& fn, Value x) {
  if (is_undefined(x)) return x;
  return oracle(kCall, mix(hash_of(fn.name), x.p));
}

std::optional<bool> FieldImage::decide(Relation relation, Value l, Value r) const {
  if (is_undefined(l) || is_undefined(r)) return std::nullopt;
  if (l.p != r.p && !is_infinite(l) && !is_infinite(r)) return std::nullopt;
  const bool below = l.p != r.p && (l.p == kMinusInfinity || r.p == kPlusInfinity);
  switch (relation) {
    case Relation::kLess:
      return below;
    case Relation::kLessEqual:
      return below || l.p == r.p;
    case Relation::kEqual:
      return l.p == r.p;
    case Relation::kNotEqual:
      return l.p != r.p;
  }
  SUNDOG_CHECK(false);
}

FieldImage::Value FieldImage::choose(Relation relation, Value l, Value r, Value t, Value e) {
  if (const std::optional<bool> taken = decide(relation, l, r)) return *taken ? t : e;
  if (is_undefined(l) || is_undefined(r)) return {kUndefined, kUndefined};
  if (t.p == e.p) return t;
  // One spelling of each condition: l <= r is the opposite of r < l, and == has no order.
  if (relation == Relation::kLessEqual) return choose(Relation::kLess, r, l, e, t);
  if (relation == Relation::kNotEqual) return choose(Relation::kEqual, l, r, e, t);
  if (relation == Relation::kEqual && l.p > r.p) std::swap(l, r);
  const uint64_t condition = mix(mix(static_cast<uint64_t>(relation), l.p), r.p);
  if (is_undefined(t) || is_undefined(e)) return {kUndefined, kUndefined};
  if (is_infinite(t) || is_infinite(e)) {
    return oracle(kChoice, mix(mix(condition, t.p), e.p));
  }
  const Value share = oracle(kChoice, condition);
  return add(e, mul(share, sub(t, e)));
}

}  // namespace sundog
