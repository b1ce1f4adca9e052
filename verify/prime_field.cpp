// Montgomery multiplication (Montgomery 1985) and the deterministic Miller-Rabin test whose bases
// are known to suffice for 64-bit numbers (Sorenson and Webster 2015).
#include "verify/prime_field.h"

#include "core/arithmetic.h"
#include "core/check.h"

namespace sundog::verify {

uint64_t prf(uint64_t seed, uint64_t key, uint64_t second) {
  return scramble(scramble(scramble(seed) ^ key) + scramble(second ^ 0x5851f42d4c957f2du));
}

PrimeField::PrimeField(uint64_t modulus) : modulus_(modulus) {
  SUNDOG_CHECK(modulus % 2 == 1 && modulus > 2 && modulus >> 61 == 0);
  uint64_t inverse = modulus;  // right in the lowest 3 bits; each step doubles their number
  for (int i = 0; i < 5; ++i) inverse *= 2 - modulus * inverse;
  negative_inverse_ = ~inverse + 1;
  __extension__ using Wide = unsigned __int128;
  one_ = static_cast<uint64_t>((static_cast<Wide>(1) << 64) % modulus);
  square_ = static_cast<uint64_t>(static_cast<Wide>(one_) * one_ % modulus);
}

uint64_t PrimeField::power(uint64_t a, uint64_t exponent) const {
  uint64_t result = one_;
  for (; exponent != 0; exponent >>= 1) {
    if (exponent & 1) result = mul(result, a);
    a = mul(a, a);
  }
  return result;
}

// Euclid's algorithm: half the time of the power modulus - 2, whose squarings wait for one another.
// The signed factors stay below the modulus in magnitude.
uint64_t PrimeField::inverse(uint64_t a) const {
  if (a == 0 || a == one_) return a;
  uint64_t high = modulus_, low = a;
  int64_t factor_of_high = 0, factor_of_low = 1;  // high = factor_of_high * a, likewise low
  while (low != 0) {
    const uint64_t quotient = high / low;
    const uint64_t rest = high - quotient * low;
    const int64_t factor = factor_of_high - static_cast<int64_t>(quotient) * factor_of_low;
    high = low;
    low = rest;
    factor_of_high = factor_of_low;
    factor_of_low = factor;
  }
  const uint64_t inverse = factor_of_high < 0 ? factor_of_high + modulus_ : factor_of_high;
  return mul(mul(inverse, square_), square_);  // a is x * 2^64: twice 2^128 / 2^64
}

uint64_t PrimeField::from_int(int64_t value) const {
  const bool negative = value < 0;
  const uint64_t magnitude = negative ? ~static_cast<uint64_t>(value) + 1 : value;
  const uint64_t residue = mul(magnitude % modulus_, square_);
  return negative ? neg(residue) : residue;
}

PrimeTower draw_primes(uint64_t seed) {
  for (uint64_t trial = 0;; ++trial) {
    // 2^54 < q < 2^55 and 64 <= k < 128: p = k q + 1 lies around 2^60 to 2^62.
    const uint64_t q = ((uint64_t{1} << 54) + (prf(seed, trial, 1) >> 10)) | 1;
    if (!is_prime(q)) continue;
    for (uint64_t k = 64; k < 128; k += 2) {
      const uint64_t p = k * q + 1;
      if (p >> 60 == 1 && is_prime(p)) return {p, q};
    }
  }
}

}  // namespace sundog::verify
