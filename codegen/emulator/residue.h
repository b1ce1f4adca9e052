// Numbers for an exact check of kernels: residues in place of floats, as wide as what they stand
// in for.  docs/verification.md has the argument.
//
// A real number x is known by its residues modulo a tower of primes p[0] > p[1] > ..., with
// p[i] = 2 p[i + 1] + 1: sums and products go residue by residue, and exp(x) modulo p[i] is
// g[i] ^ (x modulo p[i + 1]) for a g[i] of that order, so that exp(x + y) = exp(x) exp(y) holds.
// What has no value (the last residue of an exponential, a division by a residue of 0) is absent,
// and so is all that is computed from it.  Functions without laws are pseudo-random functions of
// each residue; a maximum is the greatest in a pseudo-random order of the residues, which is as
// associative, commutative and idempotent as the real one.
//
// All residues of a number are one code, in mixed radix.  It is the same code in storage of every
// width, which is why the primes are small: a tile of f16 holds codes of 16 bits, and whatever
// moves bytes (copies, ldmatrix, shuffles, swizzles) moves residues without knowing it.  Zero is
// the code 0, as zeroed memory has it.  The highest codes of a width are infinities and, all bits
// set, what no number was written to.
#ifndef SUNDOG_EMULATOR_RESIDUE_H
#define SUNDOG_EMULATOR_RESIDUE_H

#include <cstdint>

namespace sd::emulator {

using Code = uint32_t;

// Which bit patterns mean 1: emitted text has these as operands of products.
enum class CodeStorage : uint8_t { kByte, kF16, kBf16, kOther16, kWord };

__extension__ typedef unsigned __int128 Long;

class ResidueField {
 public:
  static constexpr int kMostPrimes = 3;
  static constexpr Code kUnwritten = 0xffffffffu, kMinusInfinity = 0xfffffffeu,
                        kPlusInfinity = 0xfffffffdu;

  // The residues of a number; prime(i) in place of one that is absent.
  struct Parts {
    uint32_t at[kMostPrimes];
  };

  // A tower as above, of `count` primes.  The seed chooses the roots g, the orders and functions.
  ResidueField() = default;
  ResidueField(const uint32_t* primes, int count, uint64_t seed);

  int count() const { return count_; }
  uint32_t prime(int i) const { return prime_[i]; }
  // Codes of numbers are below this.
  Code codes() const { return codes_; }
  static bool is_number(Code x) { return x < kPlusInfinity; }

  Parts parts(Code x) const;
  Code code(const Parts& parts) const;
  Code absent() const { return codes_ - 1; }
  // A number of this tower that only `key` and the seed decide.
  Code random(uint64_t key) const;
  // The simplest fraction that rounds to x in float32, so that 1 / 3 is a third; x itself where it
  // is an integer, or tiny.
  Code constant(float x) const;
  Code integer(int64_t x) const;

  Code add(Code x, Code y) const;
  Code sub(Code x, Code y) const { return add(x, neg(y)); }
  Code neg(Code x) const;
  Code mul(Code x, Code y) const;  // an infinity times a number is that infinity
  // sum + a[0] * b[0] + ... + a[count - 1] * b[count - 1], for a count of at most 16.
  Code dot(Code sum, const Code* a, const Code* b, int count) const;
  Code div(Code x, Code y) const { return mul(x, inverse(y)); }
  Code inverse(Code x) const;
  Code exp(Code x) const;
  Code log(Code x) const;  // of the magnitude
  // sqrt(x y) = sqrt(x) sqrt(y) and sqrt(x)^2 is x or -x, but for residues of 0, whose root is 1:
  // a number that is not 0 has many of them, and its root is to have an inverse.
  Code sqrt(Code x) const;
  Code max(Code x, Code y) const;
  Code min(Code x, Code y) const { return neg(max(neg(x), neg(y))); }
  // A function without laws, and the number of one that is called so.
  Code call(uint64_t which, Code x) const;
  static uint64_t function(const char* name) {
    uint64_t number = 16;
    for (; *name != '\0'; ++name) number = scramble(number + static_cast<unsigned char>(*name));
    return number;
  }
  // Equality, and an order without meaning.  `*sure` becomes false where a residue that decides is
  // absent.
  bool equal(Code x, Code y, bool* sure) const;
  bool less(Code x, Code y, bool* sure) const;

  // x * y modulo prime(i), of residues (which have at most 16 bits).
  uint32_t product(uint32_t x, uint32_t y, int i) const {
    const uint32_t z = x * y;
    return z - quotient(z, of_prime_[i]) * prime_[i];
  }

  // To and from the bits that lie in memory.
  uint32_t store(CodeStorage storage, Code x) const;
  Code load(CodeStorage storage, uint32_t bits) const;

 private:
  static uint64_t scramble(uint64_t x) {
    x ^= x >> 32;
    x *= 0xd6e8feb86659fd93u;
    x ^= x >> 32;
    x *= 0xd6e8feb86659fd93u;
    return x ^ x >> 32;
  }
  uint64_t key(uint64_t which, int i, uint32_t value) const {
    return scramble(scramble(seed_ ^ which * 0x9e3779b97f4a7c15u) + static_cast<uint64_t>(i) +
                    (uint64_t{value} << 8));
  }
  uint32_t modulo(uint64_t x, int i) const { return static_cast<uint32_t>(x % prime_[i]); }
  // x / d for a d with the given reciprocal, ceil(2^64 / d): exact for x below 2^32.
  static uint32_t quotient(uint32_t x, uint64_t reciprocal) {
    return static_cast<uint32_t>(static_cast<Long>(reciprocal) * x >> 64);
  }
  uint32_t power(uint32_t base, uint32_t exponent, int i) const;
  uint32_t logarithm(uint32_t x, int i) const;
  bool higher(uint32_t x, uint32_t y, int i) const;
  // work(i, x) for the residues that are there; x itself if it is no number.
  template <class Work>
  Code each(Code x, const Work& work) const;
  // work(i, x, y) likewise; both are numbers.
  template <class Work>
  Code each(Code x, Code y, const Work& work) const;
  static uint32_t swap(uint32_t x, uint32_t a, uint32_t b) { return x == a ? b : x == b ? a : x; }
  uint32_t swapped(CodeStorage storage, uint32_t bits) const;

  uint64_t seed_ = 0;
  int32_t count_ = 0;
  uint32_t prime_[kMostPrimes] = {}, root_[kMostPrimes] = {};
  uint64_t of_prime_[kMostPrimes] = {}, of_radix_[kMostPrimes] = {};  // reciprocals; prime + 1
  Code codes_ = 0, one_ = 0;
};

// --- codes

inline ResidueField::Parts ResidueField::parts(Code x) const {
  Parts result{};
  for (int i = 0; i < count_; ++i) {
    const uint32_t rest = quotient(x, of_radix_[i]);
    result.at[i] = x - rest * (prime_[i] + 1);
    x = rest;
  }
  return result;
}

inline Code ResidueField::code(const Parts& parts) const {
  Code x = 0;
  for (int i = count_; i-- > 0;) x = x * (prime_[i] + 1) + parts.at[i];
  return x;
}

template <class Work>
inline Code ResidueField::each(Code x, const Work& work) const {
  if (!is_number(x)) return x;
  Parts p = parts(x);
  for (int i = 0; i < count_; ++i) {
    if (p.at[i] != prime_[i]) p.at[i] = work(i, p.at[i]);
  }
  return code(p);
}

template <class Work>
inline Code ResidueField::each(Code x, Code y, const Work& work) const {
  Parts p = parts(x);
  const Parts q = parts(y);
  for (int i = 0; i < count_; ++i) {
    const bool absent = p.at[i] == prime_[i] || q.at[i] == prime_[i];
    p.at[i] = absent ? prime_[i] : work(i, p.at[i], q.at[i]);
  }
  return code(p);
}

inline uint32_t ResidueField::power(uint32_t base, uint32_t exponent, int i) const {
  uint32_t result = 1;
  for (; exponent > 0; exponent >>= 1) {
    if (exponent & 1) result = product(result, base, i);
    base = product(base, base, i);
  }
  return result;
}

inline ResidueField::ResidueField(const uint32_t* primes, int count, uint64_t seed)
    : seed_(seed), count_(count), codes_(1) {
  for (int i = 0; i < count; ++i) {
    prime_[i] = primes[i];
    of_prime_[i] = ~uint64_t{0} / primes[i] + 1;
    of_radix_[i] = ~uint64_t{0} / (primes[i] + 1) + 1;
  }
  for (int i = 0; i < count; ++i) {
    codes_ *= prime_[i] + 1;
    // Of a number and its negative one is a square, and of prime order unless it is 1.
    for (uint64_t next = 0; root_[i] < 2; ++next) {
      const uint32_t x = 1 + modulo(key(1, i, static_cast<uint32_t>(next)), i) % (prime_[i] - 1);
      root_[i] = product(x, x, i);
    }
  }
  Parts ones{};
  for (int i = 0; i < count; ++i) ones.at[i] = 1;
  one_ = code(ones);
}

inline Code ResidueField::random(uint64_t key_of) const {
  Parts p{};
  for (int i = 0; i < count_; ++i) {
    p.at[i] = modulo(scramble(key(2, i, 0) ^ scramble(key_of)), i);
  }
  return code(p);
}

inline Code ResidueField::integer(int64_t x) const {
  Parts p{};
  const uint64_t size = x < 0 ? 0 - static_cast<uint64_t>(x) : static_cast<uint64_t>(x);
  for (int i = 0; i < count_; ++i) {
    const uint32_t r = modulo(size, i);
    p.at[i] = x < 0 && r != 0 ? prime_[i] - r : r;
  }
  return code(p);
}

// --- arithmetic

inline Code ResidueField::neg(Code x) const {
  if (x == kMinusInfinity) return kPlusInfinity;
  if (x == kPlusInfinity) return kMinusInfinity;
  return each(x, [this](int i, uint32_t v) { return v == 0 ? 0 : prime_[i] - v; });
}

inline Code ResidueField::add(Code x, Code y) const {
  if (is_number(x) && is_number(y)) {
    return each(x, y, [this](int i, uint32_t v, uint32_t w) {
      return v + w >= prime_[i] ? v + w - prime_[i] : v + w;
    });
  }
  if (x == kUnwritten || y == kUnwritten) return kUnwritten;
  if (is_number(x) || is_number(y)) return is_number(x) ? y : x;
  return x == y ? x : absent();
}

inline Code ResidueField::mul(Code x, Code y) const {
  if (is_number(x) && is_number(y)) {
    return each(x, y, [this](int i, uint32_t v, uint32_t w) { return product(v, w, i); });
  }
  if (x == kUnwritten || y == kUnwritten) return kUnwritten;
  if (is_number(x) || is_number(y)) {
    const Code number = is_number(x) ? x : y;
    return number == 0 ? absent() : is_number(x) ? y : x;
  }
  return x == y ? kPlusInfinity : kMinusInfinity;
}

inline Code ResidueField::dot(Code sum, const Code* a, const Code* b, int count) const {
  uint64_t total[kMostPrimes] = {};
  bool absent[kMostPrimes] = {}, numbers = is_number(sum);
  for (int k = 0; k < count; ++k) {
    numbers &= is_number(a[k]) && is_number(b[k]);
    const Parts p = parts(a[k]), q = parts(b[k]);
    for (int i = 0; i < count_; ++i) {
      absent[i] |= p.at[i] == prime_[i] || q.at[i] == prime_[i];
      total[i] += p.at[i] * q.at[i];
    }
  }
  if (!numbers) {
    for (int k = 0; k < count; ++k) sum = add(sum, mul(a[k], b[k]));
    return sum;
  }
  Parts result = parts(sum);
  for (int i = 0; i < count_; ++i) {
    absent[i] |= result.at[i] == prime_[i];
    result.at[i] = absent[i] ? prime_[i] : modulo(result.at[i] + total[i], i);
  }
  return code(result);
}

inline Code ResidueField::inverse(Code x) const {
  if (x == kPlusInfinity || x == kMinusInfinity) return 0;
  return each(
      x, [this](int i, uint32_t v) { return v == 0 ? prime_[i] : power(v, prime_[i] - 2, i); });
}

inline Code ResidueField::exp(Code x) const {
  if (x == kMinusInfinity) return 0;
  if (!is_number(x)) return x;
  Parts p = parts(x);
  for (int i = 0; i + 1 < count_; ++i) {
    p.at[i] = p.at[i + 1] == prime_[i + 1] ? prime_[i] : power(root_[i], p.at[i + 1], i);
  }
  p.at[count_ - 1] = prime_[count_ - 1];
  return code(p);
}

// The exponent that gives x or -x, of which one is a square.
inline uint32_t ResidueField::logarithm(uint32_t x, int i) const {
  uint32_t exponent = 0;
  for (uint32_t y = 1; y != x && y != prime_[i] - x; y = product(y, root_[i], i)) ++exponent;
  return exponent;
}

inline Code ResidueField::log(Code x) const {
  if (x == 0) return kMinusInfinity;
  if (!is_number(x)) return x;
  const Parts from = parts(x);
  Parts p = from;
  p.at[0] = prime_[0];
  for (int i = 0; i + 1 < count_; ++i) {
    const bool has = from.at[i] != prime_[i] && from.at[i] != 0;
    p.at[i + 1] = has ? logarithm(from.at[i], i) : prime_[i + 1];
  }
  return code(p);
}

inline Code ResidueField::sqrt(Code x) const {
  return each(x, [this](int i, uint32_t v) {
    if (v == 0) return uint32_t{1};
    if (prime_[i] % 4 == 3) return power(v, (prime_[i] + 1) / 4, i);
    return modulo(key(3, i, v), i);
  });
}

inline bool ResidueField::higher(uint32_t x, uint32_t y, int i) const {
  const uint64_t a = key(4, i, x), b = key(4, i, y);
  return a != b ? a > b : x > y;
}

inline Code ResidueField::max(Code x, Code y) const {
  if (is_number(x) && is_number(y)) {
    return each(x, y, [this](int i, uint32_t v, uint32_t w) { return higher(v, w, i) ? v : w; });
  }
  if (x == kUnwritten || y == kUnwritten) return kUnwritten;
  if (x == kPlusInfinity || y == kPlusInfinity) return kPlusInfinity;
  return x == kMinusInfinity ? y : x;
}

inline Code ResidueField::call(uint64_t which, Code x) const {
  if (x == kUnwritten) return x;
  if (!is_number(x)) return absent();
  return each(x, [&](int i, uint32_t v) { return modulo(key(which, i, v), i); });
}

inline bool ResidueField::equal(Code x, Code y, bool* sure) const {
  if (!is_number(x) || !is_number(y)) return x == y;
  const Parts p = parts(x), q = parts(y);
  for (int i = 0; i < count_; ++i) {
    if (p.at[i] != prime_[i] && q.at[i] != prime_[i]) return p.at[i] == q.at[i];
    *sure = false;
  }
  return false;
}

inline bool ResidueField::less(Code x, Code y, bool* sure) const {
  if (!is_number(x) || !is_number(y)) {
    return x != y && (x == kMinusInfinity || y == kPlusInfinity);
  }
  const Parts p = parts(sub(x, y));
  for (int i = 0; i < count_; ++i) {
    if (p.at[i] == 0) return false;
    if (p.at[i] != prime_[i]) return higher(prime_[i] - p.at[i], p.at[i], i);
    *sure = false;
  }
  return false;
}

// --- storage

inline uint32_t ResidueField::swapped(CodeStorage storage, uint32_t bits) const {
  if (storage == CodeStorage::kF16) return swap(bits, one_, 0x3c00);
  if (storage == CodeStorage::kBf16) return swap(bits, one_, 0x3f80);
  return bits;
}

inline uint32_t ResidueField::store(CodeStorage storage, Code x) const {
  if (storage == CodeStorage::kWord) return x;
  if (storage == CodeStorage::kByte) return x & 0xffu;
  return swapped(storage, x & 0xffffu);
}

inline Code ResidueField::load(CodeStorage storage, uint32_t bits) const {
  if (storage != CodeStorage::kWord) {
    const uint32_t mask = storage == CodeStorage::kByte ? 0xffu : 0xffffu;
    bits = swapped(storage, bits & mask);
    if (bits >= mask - 2) bits |= ~mask;
  }
  return is_number(bits) && bits >= codes_ ? kUnwritten : bits;
}

// --- constants

namespace fractions {

struct Fraction {
  Long numerator, denominator;
};

// The fraction with the least denominator in [low, high].
inline Fraction simplest(Fraction low, Fraction high) {
  const Long whole = low.numerator / low.denominator;
  if (whole * low.denominator == low.numerator) return {whole, 1};
  if ((whole + 1) * high.denominator <= high.numerator) return {whole + 1, 1};
  const Fraction rest = simplest({high.denominator, high.numerator - whole * high.denominator},
                                 {low.denominator, low.numerator - whole * low.denominator});
  return {whole * rest.numerator + rest.denominator, rest.numerator};
}

}  // namespace fractions

inline Code ResidueField::constant(float x) const {
  if (x != x) return kUnwritten;
  if (x - x != 0) return x > 0 ? kPlusInfinity : kMinusInfinity;
  const float size = x < 0 ? -x : x;
  if (size < 0x1p24f && static_cast<float>(static_cast<int32_t>(size)) == size) {
    return integer(static_cast<int32_t>(x));
  }
  uint32_t bits;
  static_assert(sizeof bits == sizeof size);
  __builtin_memcpy(&bits, &size, sizeof bits);
  const int exponent = static_cast<int>(bits >> 23) - 150;  // of the last bit
  const uint32_t mantissa = bits >> 23 == 0 ? bits << 1 : (bits & 0x7fffffu) | 0x800000u;
  fractions::Fraction value{mantissa, 1};
  int twos = exponent;
  if (exponent >= -64 && exponent < 0) {
    const Long below = Long{2} << -exponent;
    value = fractions::simplest({2 * mantissa - 1, below}, {2 * mantissa + 1, below});
    twos = 0;
  }
  Parts p{};
  for (int i = 0; i < count_; ++i) {
    const auto n = static_cast<uint32_t>(value.numerator % prime_[i]);
    const auto d = static_cast<uint32_t>(value.denominator % prime_[i]);
    const uint32_t two = power(2, static_cast<uint32_t>(twos < 0 ? -twos : twos), i);
    const uint32_t below = product(d, twos < 0 ? two : 1, i);
    const uint32_t above = product(n, twos < 0 ? 1 : two, i);
    p.at[i] = below == 0 ? prime_[i] : product(above, power(below, prime_[i] - 2, i), i);
  }
  const Code code_of = code(p);
  return x < 0 ? neg(code_of) : code_of;
}

}  // namespace sd::emulator

#endif  // SUNDOG_EMULATOR_RESIDUE_H
