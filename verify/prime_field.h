// Arithmetic modulo a prime of up to 61 bits (Montgomery's form), and the pairs of primes that the
// field test draws.
//
//   PrimeTower primes = draw_primes(seed);
//   PrimeField f(primes.p);
//   uint64_t half = f.inverse(f.from_int(2));
//
// A residue is kept as x * 2^64 mod p, so that a product costs two multiplications and no division;
// 0 is 0, equality is equality of words, and a uniformly random word below p is a uniformly random
// residue.
#pragma once

#include <cstdint>

namespace sundog::verify {

// A pseudo-random function of a seed and a key: every random choice of a test is one of its values,
// so that a test can be replayed and nothing depends on the order of evaluation.
uint64_t prf(uint64_t seed, uint64_t key, uint64_t second = 0);

class PrimeField {
 public:
  // `modulus` is an odd prime below 2^61.
  explicit PrimeField(uint64_t modulus);

  uint64_t modulus() const { return modulus_; }
  uint64_t one() const { return one_; }

  uint64_t add(uint64_t a, uint64_t b) const {
    const uint64_t r = a + b;
    return r >= modulus_ ? r - modulus_ : r;
  }
  uint64_t sub(uint64_t a, uint64_t b) const { return a >= b ? a - b : a + modulus_ - b; }
  uint64_t neg(uint64_t a) const { return a == 0 ? 0 : modulus_ - a; }
  uint64_t mul(uint64_t a, uint64_t b) const {
    __extension__ using Wide = unsigned __int128;
    const Wide product = static_cast<Wide>(a) * b;
    const uint64_t m = static_cast<uint64_t>(product) * negative_inverse_;
    const auto r = static_cast<uint64_t>((product + static_cast<Wide>(m) * modulus_) >> 64);
    return r >= modulus_ ? r - modulus_ : r;
  }
  uint64_t power(uint64_t a, uint64_t exponent) const;
  uint64_t inverse(uint64_t a) const;  // of 0: 0

  uint64_t from_int(int64_t value) const;
  // The number in [0, modulus) that a residue stands for.
  uint64_t to_int(uint64_t residue) const { return mul(residue, 1); }
  // A residue from a random word.
  uint64_t from_word(uint64_t word) const { return word % modulus_; }

 private:
  uint64_t modulus_;
  uint64_t negative_inverse_;  // -1 / modulus mod 2^64
  uint64_t one_;               // 2^64 mod modulus
  uint64_t square_;            // 2^128 mod modulus
};

// Primes 2^60 < p < 2^61 and q (55 bits) with q a divisor of p - 1, so that the residues modulo p
// have a subgroup of order q and x -> g^x carries sums modulo q to products modulo p.
struct PrimeTower {
  uint64_t p = 0, q = 0;
};
PrimeTower draw_primes(uint64_t seed);

// No p is drawn with a probability above 2^kPrimeEntropy: p determines q, since p - 1 has at most
// one prime factor above its square root, and about 2^47.5 primes q of 55 bits lead to a p (of
// 60,000 odd numbers that were drawn 1,353 did, one in 44).
inline constexpr double kPrimeEntropy = -47;

}  // namespace sundog::verify
