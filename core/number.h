// Exact constants.  A literal such as 1e-6 is kept as the rational that it denotes, so that field
// evaluation is exact and printing gives back what was read.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace sundog {

// numerator / denominator * 10^exponent, in lowest terms, or plus or minus infinity
// (denominator 0).  The denominator is positive otherwise.
class Number {
 public:
  constexpr Number() = default;
  constexpr explicit Number(int64_t integer) : numerator_(integer) {}
  // Reduces the fraction; denominator must not be 0.
  static Number ratio(int64_t numerator, int64_t denominator);
  static constexpr Number infinity(bool negative = false) {
    Number n;
    n.numerator_ = negative ? -1 : 1;
    n.denominator_ = 0;
    return n;
  }
  // Decimal text with optional fraction and exponent, "inf", or a ratio "a/b" of integers; nothing
  // if it is not one or has over 18 significant digits.
  static std::optional<Number> parse(std::string_view text);

  constexpr bool is_infinite() const { return denominator_ == 0; }
  constexpr bool is_negative() const { return numerator_ < 0; }
  constexpr bool is_integer() const { return denominator_ == 1 && exponent_ >= 0; }
  constexpr int64_t numerator() const { return numerator_; }
  constexpr int64_t denominator() const { return denominator_; }
  constexpr int exponent() const { return exponent_; }

  double to_double() const;
  std::string to_text() const;  // shortest text that parse() reads back
  Number negated() const;

  constexpr bool operator==(const Number&) const = default;

 private:
  void normalize();
  int64_t numerator_ = 0;
  int64_t denominator_ = 1;
  int exponent_ = 0;
};

}  // namespace sundog
