// Exact fractions of 128-bit integers: the coefficients of canonical forms.  What does not fit is
// said, never rounded: a proof that meets it ends as "unknown".
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/number.h"

namespace sundog::verify {

__extension__ typedef __int128 Int128;
__extension__ typedef unsigned __int128 UInt128;

// numerator / denominator in lowest terms, the denominator positive.
struct Rational {
  Int128 numerator = 0, denominator = 1;

  static Rational of(int64_t value) { return {value, 1}; }
  bool is_zero() const { return numerator == 0; }
  bool is_one() const { return numerator == 1 && denominator == 1; }
  bool is_integer() const { return denominator == 1; }
  int sign() const { return numerator < 0 ? -1 : numerator > 0; }
  bool operator==(const Rational&) const = default;
};

// Nothing if the result does not fit.  require: the divisor is not zero.
std::optional<Rational> add(const Rational& a, const Rational& b);
std::optional<Rational> multiply(const Rational& a, const Rational& b);
std::optional<Rational> divide(const Rational& a, const Rational& b);
std::optional<Rational> of_number(const Number& number);  // require: finite

// The largest positive rational that both are integer multiples of.  require: neither is zero.
std::optional<Rational> common_measure(const Rational& a, const Rational& b);

// The square root, if it is rational.
std::optional<Rational> root(const Rational& a);

std::string to_text(const Rational& a);

}  // namespace sundog::verify
