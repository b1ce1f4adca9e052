#include "verify/rational.h"

#include <algorithm>
#include <cmath>

#include "core/check.h"

namespace sundog::verify {
namespace {

Int128 magnitude(Int128 a) { return a < 0 ? -a : a; }

Int128 gcd(Int128 a, Int128 b) {
  a = magnitude(a);
  b = magnitude(b);
  while (b != 0) {
    const Int128 rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

std::optional<Rational> reduced(Int128 numerator, Int128 denominator) {
  SUNDOG_CHECK(denominator != 0);
  const Int128 common = gcd(numerator, denominator);
  if (denominator < 0) {
    numerator = -numerator;
    denominator = -denominator;
  }
  return Rational{numerator / common, denominator / common};
}

bool product(Int128 a, Int128 b, Int128* result) { return !__builtin_mul_overflow(a, b, result); }

std::string digits(Int128 value) {
  std::string text;
  for (Int128 rest = magnitude(value); rest != 0; rest /= 10) {
    text.push_back(static_cast<char>('0' + static_cast<int>(rest % 10)));
  }
  if (value < 0) text.push_back('-');
  std::reverse(text.begin(), text.end());
  return text.empty() ? "0" : text;
}

}  // namespace

std::optional<Rational> add(const Rational& a, const Rational& b) {
  const Int128 common = gcd(a.denominator, b.denominator);
  Int128 left, right, numerator, denominator;
  if (!product(a.numerator, b.denominator / common, &left)) return std::nullopt;
  if (!product(b.numerator, a.denominator / common, &right)) return std::nullopt;
  if (__builtin_add_overflow(left, right, &numerator)) return std::nullopt;
  if (!product(a.denominator, b.denominator / common, &denominator)) return std::nullopt;
  return reduced(numerator, denominator);
}

std::optional<Rational> multiply(const Rational& a, const Rational& b) {
  if (a.is_zero() || b.is_zero()) return Rational();
  const Int128 x = gcd(a.numerator, b.denominator), y = gcd(b.numerator, a.denominator);
  Int128 numerator, denominator;
  if (!product(a.numerator / x, b.numerator / y, &numerator)) return std::nullopt;
  if (!product(a.denominator / y, b.denominator / x, &denominator)) return std::nullopt;
  return reduced(numerator, denominator);
}

std::optional<Rational> divide(const Rational& a, const Rational& b) {
  SUNDOG_CHECK(!b.is_zero());
  return multiply(a, *reduced(b.denominator, b.numerator));
}

std::optional<Rational> of_number(const Number& number) {
  SUNDOG_CHECK(!number.is_infinite());
  Rational result{number.numerator(), number.denominator()};
  const Rational ten = number.exponent() < 0 ? Rational{1, 10} : Rational{10, 1};
  for (int i = std::abs(number.exponent()); i > 0; --i) {
    const std::optional<Rational> next = multiply(result, ten);
    if (!next) return std::nullopt;
    result = *next;
  }
  return result;
}

std::optional<Rational> common_measure(const Rational& a, const Rational& b) {
  Int128 denominator;
  const Int128 common = gcd(a.denominator, b.denominator);
  if (!product(a.denominator, b.denominator / common, &denominator)) return std::nullopt;
  return reduced(gcd(a.numerator, b.numerator), denominator);
}

std::optional<Rational> root(const Rational& a) {
  if (a.sign() < 0) return std::nullopt;
  const auto exact = [](Int128 square) -> std::optional<Int128> {
    auto guess = static_cast<Int128>(std::sqrt(static_cast<long double>(square)));
    for (Int128 r = guess < 2 ? 0 : guess - 2; r <= guess + 2; ++r) {
      Int128 again;
      if (product(r, r, &again) && again == square) return r;
    }
    return std::nullopt;
  };
  const auto n = exact(a.numerator), d = exact(a.denominator);
  if (!n || !d) return std::nullopt;
  return Rational{*n, *d};
}

std::string to_text(const Rational& a) {
  return a.denominator == 1 ? digits(a.numerator)
                            : digits(a.numerator) + "/" + digits(a.denominator);
}

}  // namespace sundog::verify
