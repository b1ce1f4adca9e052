#include "core/number.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/check.h"

// The stored form is a function of the value alone, so that == on the fields is equality of values:
//   an integer that fits      n / 1 * 10^0
//   a terminating decimal     n / 1 * 10^e, n no multiple of 10 and of at most 18 digits
//   anything else             n / d * 10^0 in lowest terms
// A decimal with more digits (1 / 2^40) is kept as a fraction.

namespace sundog {
namespace {

__extension__ typedef unsigned __int128 Wide;
constexpr uint64_t kMaxInt = std::numeric_limits<int64_t>::max();
constexpr Wide kMaxDecimal = 999'999'999'999'999'999;  // 18 digits
constexpr int kMaxExponent = 1000;                     // of a literal

int strip(Wide& value, unsigned factor) {
  int count = 0;
  while (value != 0 && value % factor == 0) {
    value /= factor;
    ++count;
  }
  return count;
}

// value * base^power, or 0 if that exceeds `limit`.
Wide scale(Wide value, unsigned base, int power, Wide limit) {
  for (; power > 0; --power) {
    if (value > limit / base) return 0;
    value *= base;
  }
  return value <= limit ? value : 0;
}

bool parse_digits(std::string_view text, int64_t* value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *value);
  return error == std::errc() && end == text.data() + text.size();
}

std::optional<Number> parse_ratio(std::string_view text, size_t slash) {
  int64_t numerator = 0, denominator = 0;
  if (!parse_digits(text.substr(0, slash), &numerator)) return std::nullopt;
  if (!parse_digits(text.substr(slash + 1), &denominator)) return std::nullopt;
  const int64_t lowest = std::numeric_limits<int64_t>::min();
  if (denominator == 0 || numerator == lowest || denominator == lowest) return std::nullopt;
  return Number::ratio(numerator, denominator);
}

}  // namespace

void Number::normalize() {
  SUNDOG_CHECK(numerator_ != std::numeric_limits<int64_t>::min());
  const bool negative = numerator_ < 0;
  const Wide plain_n = static_cast<Wide>(negative ? -numerator_ : numerator_);
  const Wide plain_d = static_cast<Wide>(denominator_);
  Wide n = plain_n, d = plain_d;
  const int e = exponent_;
  if (n == 0) {
    *this = Number();
    return;
  }
  // value = n / d * 2^twos * 5^fives with n, d prime to 10.
  const int twos = strip(n, 2) - strip(d, 2) + e;
  const int fives = strip(n, 5) - strip(d, 5) + e;
  const auto set = [&](Wide numerator, Wide denominator, int exponent) {
    numerator_ = static_cast<int64_t>(numerator) * (negative ? -1 : 1);
    denominator_ = static_cast<int64_t>(denominator);
    exponent_ = exponent;
  };
  if (d == 1 && twos >= 0 && fives >= 0) {
    const Wide integer = scale(scale(n, 2, twos, kMaxInt), 5, fives, kMaxInt);
    if (integer != 0) return set(integer, 1, 0);
  }
  const int tens = std::min(twos, fives);
  const Wide decimal = scale(scale(n, 2, twos - tens, kMaxDecimal), 5, fives - tens, kMaxDecimal);
  if (d == 1 && decimal != 0) return set(decimal, 1, tens);
  const Wide top = scale(scale(n, 2, twos, kMaxInt), 5, fives, kMaxInt);
  const Wide bottom = scale(scale(d, 2, -twos, kMaxInt), 5, -fives, kMaxInt);
  if (top != 0 && bottom != 0) set(top, bottom, 0);
}

Number Number::ratio(int64_t numerator, int64_t denominator) {
  SUNDOG_CHECK(denominator != 0);
  const int64_t lowest = std::numeric_limits<int64_t>::min();
  SUNDOG_CHECK(numerator != lowest && denominator != lowest);
  const int64_t divisor = std::gcd(numerator, denominator) * (denominator < 0 ? -1 : 1);
  Number result;
  result.numerator_ = numerator / divisor;
  result.denominator_ = denominator / divisor;
  result.normalize();
  return result;
}

std::optional<Number> Number::parse(std::string_view text) {
  if (text == "inf") return infinity();
  if (text == "-inf") return infinity(true);
  if (const size_t slash = text.find('/'); slash != text.npos) return parse_ratio(text, slash);
  const bool negative = !text.empty() && text[0] == '-';
  size_t at = negative ? 1 : 0;
  uint64_t digits = 0;
  int point = 0, seen = 0, trailing_zeros = 0;
  bool after_point = false;
  for (; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '.' && !after_point) {
      after_point = true;
      continue;
    }
    if (c < '0' || c > '9') break;
    ++seen;
    if (c == '0' && after_point) {  // only counts once another digit follows
      ++trailing_zeros;
      continue;
    }
    for (; trailing_zeros > 0; --trailing_zeros, --point) {
      if (digits > kMaxInt / 10) return std::nullopt;
      digits *= 10;
    }
    if (digits > (kMaxInt - static_cast<uint64_t>(c - '0')) / 10) return std::nullopt;
    digits = digits * 10 + static_cast<uint64_t>(c - '0');
    if (after_point) --point;
  }
  if (seen == 0 || (after_point && digits > kMaxDecimal)) return std::nullopt;
  int64_t exponent = 0;
  if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
    ++at;
    if (at < text.size() && text[at] == '+' && at + 1 < text.size() && text[at + 1] != '-') ++at;
    if (!parse_digits(text.substr(at), &exponent)) return std::nullopt;
    if (exponent < -kMaxExponent || exponent > kMaxExponent) return std::nullopt;
    if (digits > kMaxDecimal && exponent != 0) return std::nullopt;
    at = text.size();
  }
  if (at != text.size()) return std::nullopt;
  Number result(static_cast<int64_t>(digits) * (negative ? -1 : 1));
  result.exponent_ = static_cast<int>(exponent) + point;
  result.normalize();
  return result;
}

double Number::to_double() const {
  if (is_infinite()) {
    const double infinite = std::numeric_limits<double>::infinity();
    return numerator_ < 0 ? -infinite : infinite;
  }
  // Where both parts are exact doubles, one operation rounds once (Clinger 1990).
  static constexpr double kPowers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                       1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                       1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
  constexpr int64_t kExact = int64_t{1} << 53;
  const bool small = numerator_ > -kExact && numerator_ < kExact && denominator_ < kExact;
  if (small && exponent_ == 0) {
    return static_cast<double>(numerator_) / static_cast<double>(denominator_);
  }
  if (small && denominator_ == 1 && exponent_ >= -22 && exponent_ <= 22) {
    const double digits = static_cast<double>(numerator_);
    return exponent_ < 0 ? digits / kPowers[-exponent_] : digits * kPowers[exponent_];
  }
  if (denominator_ == 1) {
    const std::string text = std::to_string(numerator_) + "e" + std::to_string(exponent_);
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    static_cast<void>(end);
    if (error == std::errc::result_out_of_range) {
      const double limit = exponent_ < 0 ? 0 : std::numeric_limits<double>::infinity();
      return numerator_ < 0 ? -limit : limit;
    }
    return value;
  }
  return static_cast<double>(static_cast<long double>(numerator_) /
                             static_cast<long double>(denominator_));
}

std::string Number::to_text() const {
  if (is_infinite()) return numerator_ < 0 ? "-inf" : "inf";
  const std::string sign = numerator_ < 0 ? "-" : "";
  std::string digits = std::to_string(numerator_ < 0 ? -numerator_ : numerator_);
  if (denominator_ != 1) return sign + digits + "/" + std::to_string(denominator_);
  int exponent = exponent_;
  const std::string plain = digits;
  const auto with_exponent = [](const std::string& text, int power) {
    return power == 0 ? text : text + "e" + std::to_string(power);
  };
  if (exponent == 0) {  // 1000000 is written 1e6
    while (digits.size() > 1 && digits.back() == '0') {
      digits.pop_back();
      ++exponent;
    }
    const std::string scientific = with_exponent(digits, exponent);
    return sign + (exponent > 3 && scientific.size() < plain.size() ? scientific : plain);
  }
  const std::string scientific = with_exponent(digits, exponent);
  if (exponent > 0) return sign + scientific;
  const int before = static_cast<int>(digits.size()) + exponent;  // digits before the point
  std::string fixed;
  if (before > 0) {
    fixed = digits.substr(0, static_cast<size_t>(before)) + "." +
            digits.substr(static_cast<size_t>(before));
  } else if (before > -20) {
    fixed = "0." + std::string(static_cast<size_t>(-before), '0') + digits;
  } else {
    return sign + scientific;
  }
  return sign + (fixed.size() <= scientific.size() ? fixed : scientific);
}

Number Number::negated() const {
  SUNDOG_CHECK(numerator_ != std::numeric_limits<int64_t>::min());
  Number result = *this;
  result.numerator_ = -numerator_;
  return result;
}

}  // namespace sundog
