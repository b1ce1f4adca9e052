// Integer arithmetic that several parts need.
//
//   blocks = ceil_div(extent, tile);
//   double u = static_cast<double>(scramble(key) >> 11) * 0x1p-53;
#pragma once

#include <cstdint>

namespace sundog {

// a / b rounded up.  require: a >= 0, b > 0.
constexpr int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

// a / b rounded down.  require: b > 0.
constexpr int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }

// The finaliser of SplitMix64 (Steele, Lea and Flood 2014): a bijection of words that passes the
// usual statistical tests.
constexpr uint64_t scramble(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// True if n is prime; certain for every 64-bit n.
bool is_prime(uint64_t n);

}  // namespace sundog
