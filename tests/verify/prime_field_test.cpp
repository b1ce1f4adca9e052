#include "verify/prime_field.h"

#include <gtest/gtest.h>

#include <set>

#include "core/arithmetic.h"

namespace sundog::verify {
namespace {

TEST(PrimeField, ArithmeticAgreesWithWideIntegers) {
  const uint64_t p = draw_primes(3).p;
  const PrimeField f(p);
  for (uint64_t i = 0; i < 2000; ++i) {
    const uint64_t a = prf(1, i) % p, b = prf(2, i) % p;
    const uint64_t x = f.from_int(static_cast<int64_t>(a)), y = f.from_int(static_cast<int64_t>(b));
    EXPECT_EQ(f.to_int(x), a);
    EXPECT_EQ(f.to_int(f.mul(x, y)), static_cast<uint64_t>(static_cast<__uint128_t>(a) * b % p));
    EXPECT_EQ(f.to_int(f.add(x, y)), (a + b) % p);
    EXPECT_EQ(f.add(f.sub(x, y), y), x);
    EXPECT_EQ(f.add(x, f.neg(x)), 0u);
    if (x != 0) {
      EXPECT_EQ(f.mul(x, f.inverse(x)), f.one());
    }
  }
  EXPECT_EQ(f.inverse(0), 0u);
  EXPECT_EQ(f.inverse(f.one()), f.one());
  EXPECT_EQ(f.inverse(f.from_int(-1)), f.from_int(-1));
  EXPECT_EQ(f.inverse(1), f.power(1, p - 2));
  EXPECT_EQ(f.inverse(p - 1), f.power(p - 1, p - 2));
  EXPECT_EQ(f.add(f.from_int(-5), f.from_int(5)), 0u);
}

TEST(PrimeField, DrawsTowersOfDifferentPrimes) {
  std::set<uint64_t> seen;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const PrimeTower t = draw_primes(seed);
    EXPECT_TRUE(is_prime(t.p));
    EXPECT_TRUE(is_prime(t.q));
    EXPECT_EQ((t.p - 1) % t.q, 0u);
    EXPECT_EQ(t.p >> 60, 1u);
    EXPECT_TRUE(seen.insert(t.p).second);
    EXPECT_EQ(draw_primes(seed).p, t.p);
  }
}

}  // namespace
}  // namespace sundog::verify
