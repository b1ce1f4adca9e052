#include "core/arithmetic.h"

namespace sundog {

// The test of Miller and Rabin; the first twelve primes as bases decide every n below 2^64
// (Sorenson and Webster 2017).
bool is_prime(uint64_t n) {
  constexpr uint64_t kBases[] = {2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37};
  if (n < 2) return false;
  for (const uint64_t base : kBases) {
    if (n % base == 0) return n == base;
  }
  __extension__ using Wide = unsigned __int128;
  const auto multiply = [n](uint64_t a, uint64_t b) {
    return static_cast<uint64_t>(static_cast<Wide>(a) * b % n);
  };
  uint64_t odd = n - 1;
  int twos = 0;
  for (; odd % 2 == 0; odd /= 2) ++twos;
  for (const uint64_t base : kBases) {
    uint64_t x = 1;
    uint64_t square = base;
    for (uint64_t e = odd; e != 0; e >>= 1, square = multiply(square, square)) {
      if (e & 1) x = multiply(x, square);
    }
    if (x == 1 || x == n - 1) continue;
    bool composite = true;
    for (int i = 1; i < twos && composite; ++i) {
      x = multiply(x, x);
      composite = x != n - 1;
    }
    if (composite) return false;
  }
  return true;
}

}  // namespace sundog
