// How large the rational functions behind the residues of a field test can be: the quantities that
// the error bound of a verdict is computed from (docs/verification.md).
#pragma once

#include <algorithm>
#include <cmath>

namespace sundog::verify {

// Bounds for a quotient of polynomials with integer coefficients in the random inputs: degrees of
// numerator and denominator, and log2 of the sums of the magnitudes of their coefficients.
struct Growth {
  float degree = 0, below = 0;
  float bits = 0, bits_below = 0;
};

// log2(2^a + 2^b), from above.
inline float log2_sum(float a, float b) {
  const float high = std::max(a, b), gap = std::fabs(a - b);
  if (gap == 0) return high + 1;
  return gap > 16 ? high + 3e-5f : high + std::log2(1 + std::exp2(-gap)) + 1e-5f;
}

inline Growth growth_of_sum(const Growth& a, const Growth& b) {
  return {std::max(a.degree + b.below, b.degree + a.below), a.below + b.below,
          log2_sum(a.bits + b.bits_below, b.bits + a.bits_below), a.bits_below + b.bits_below};
}

inline Growth growth_of_product(const Growth& a, const Growth& b) {
  return {a.degree + b.degree, a.below + b.below, a.bits + b.bits, a.bits_below + b.bits_below};
}

inline Growth growth_of_inverse(const Growth& a) {
  return {a.below, a.degree, a.bits_below, a.bits};
}

// Of a sum of `count` such quotients.
inline Growth growth_of_many(const Growth& a, int count) {
  const auto n = static_cast<float>(count);
  return {a.degree + (n - 1) * a.below, n * a.below,
          a.bits + (n - 1) * a.bits_below + std::log2(n) + 1e-5f, n * a.bits_below};
}

// Of either.
inline Growth growth_of_both(const Growth& a, const Growth& b) {
  return {std::max(a.degree, b.degree), std::max(a.below, b.below), std::max(a.bits, b.bits),
          std::max(a.bits_below, b.bits_below)};
}

}  // namespace sundog::verify
