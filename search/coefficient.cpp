// Coefficients are kept exact and symbolic, not as field values: a kernel has to write them down,
// and size(h) must stay size(h) when a result is used at another shape.  What does not fit is not a
// coefficient; a rewrite that would need it is not made.
#include "search/coefficient.h"

#include <algorithm>
#include <numeric>
#include <string>

#include "core/check.h"

namespace sundog::search {
namespace {

// What a Number can be written with (core/number.h reads 18 digits).
constexpr int64_t kMost = 100'000'000'000'000'000;
constexpr int kMostExponent = 300;

std::optional<Coefficient> normalized(Coefficient c) {
  if (c.numerator == 0) return Coefficient::of(0);
  if (std::max(std::abs(c.numerator / 2), std::abs(c.denominator / 2)) > kMost) return {};
  if (c.denominator < 0) {
    c.numerator = -c.numerator;
    c.denominator = -c.denominator;
  }
  const int64_t g = std::gcd(c.numerator, c.denominator);
  c.numerator /= g;
  c.denominator /= g;
  while (c.exponent < 0 && c.numerator % 10 == 0) c.numerator /= 10, ++c.exponent;
  while (c.exponent > 0 && c.denominator % 10 == 0) c.denominator /= 10, --c.exponent;
  std::erase_if(c.sizes, [](const auto& s) { return s.second == 0; });
  if (std::max(std::abs(c.numerator), c.denominator) > kMost) return {};
  if (std::abs(c.exponent) > kMostExponent) return {};
  return c;
}

TermId number_term(const Coefficient& c, TermGraph& graph) {
  const TermId ratio = graph.constant(Number::ratio(c.numerator, c.denominator));
  if (c.exponent == 0) return ratio;
  const std::string mantissa = c.denominator == 1 ? std::to_string(c.numerator) : "1";
  const auto scaled = Number::parse(mantissa + "e" + std::to_string(c.exponent));
  SUNDOG_CHECK(scaled.has_value());
  const TermId power = graph.constant(*scaled);
  return c.denominator == 1 ? power : graph.apply(op::Mul{}, {ratio, power});
}

// value * size^power for each size; `is_one`: the value is 1 and need not be written.
TermId scale_by_sizes(const Coefficient& c, TermId value, bool is_one, TermGraph& graph) {
  for (const auto& [axis, power] : c.sizes) {
    const TermId size = graph.size(axis);
    for (int i = 0; i < std::abs(power); ++i) {
      if (power < 0) {
        value = graph.apply(op::Div{}, {value, size});
      } else {
        value = is_one ? size : graph.apply(op::Mul{}, {value, size});
      }
      is_one = false;
    }
  }
  return value;
}

}  // namespace

std::optional<Coefficient> Coefficient::of(const Number& n) {
  if (n.is_infinite()) return {};
  return normalized({n.numerator(), n.denominator(), n.exponent(), {}});
}

Coefficient Coefficient::negated() const {
  Coefficient c = *this;
  c.numerator = -c.numerator;
  return c;
}

std::optional<Coefficient> multiply(const Coefficient& a, const Coefficient& b) {
  const int64_t g1 = std::max<int64_t>(std::gcd(a.numerator, b.denominator), 1);
  const int64_t g2 = std::max<int64_t>(std::gcd(b.numerator, a.denominator), 1);
  Coefficient c;
  if (__builtin_mul_overflow(a.numerator / g1, b.numerator / g2, &c.numerator)) return {};
  if (__builtin_mul_overflow(a.denominator / g2, b.denominator / g1, &c.denominator)) return {};
  if (__builtin_add_overflow(a.exponent, b.exponent, &c.exponent)) return {};
  c.sizes = a.sizes;
  for (const auto& [axis, power] : b.sizes) {
    const auto it =
        std::lower_bound(c.sizes.begin(), c.sizes.end(), std::make_pair(axis, INT32_MIN));
    if (it != c.sizes.end() && it->first == axis) {
      it->second += power;
    } else {
      c.sizes.insert(it, {axis, power});
    }
  }
  return normalized(std::move(c));
}

std::optional<Coefficient> invert(const Coefficient& a) {
  if (a.is_zero()) return {};
  Coefficient c{a.denominator, a.numerator, -a.exponent, a.sizes};
  for (auto& s : c.sizes) s.second = -s.second;
  return normalized(std::move(c));
}

std::optional<Coefficient> add(const Coefficient& a, const Coefficient& b) {
  if (a.is_zero()) return b;
  if (b.is_zero()) return a;
  if (a.sizes != b.sizes) return {};
  Coefficient x = a, y = b;
  // To the smaller power of ten.
  while (x.exponent != y.exponent) {
    Coefficient& high = x.exponent > y.exponent ? x : y;
    if (__builtin_mul_overflow(high.numerator, int64_t{10}, &high.numerator)) return {};
    --high.exponent;
  }
  Coefficient c{0, 0, x.exponent, x.sizes};
  int64_t left = 0, right = 0;
  if (__builtin_mul_overflow(x.numerator, y.denominator, &left)) return {};
  if (__builtin_mul_overflow(y.numerator, x.denominator, &right)) return {};
  if (__builtin_add_overflow(left, right, &c.numerator)) return {};
  if (__builtin_mul_overflow(x.denominator, y.denominator, &c.denominator)) return {};
  return normalized(std::move(c));
}

void append_key(const Coefficient& c, std::vector<uint64_t>& key) {
  key.push_back(static_cast<uint64_t>(c.numerator));
  key.push_back(static_cast<uint64_t>(c.denominator));
  key.push_back(static_cast<uint64_t>(static_cast<int64_t>(c.exponent)));
  key.push_back(c.sizes.size());
  for (const auto& [axis, power] : c.sizes) {
    key.push_back(axis);
    key.push_back(static_cast<uint64_t>(static_cast<int64_t>(power)));
  }
}

TermId to_term(const Coefficient& c, TermGraph& graph) {
  Coefficient number = c;
  number.sizes.clear();
  return scale_by_sizes(c, number_term(number, graph), number.is_one(), graph);
}

TermId scale(const Coefficient& c, TermId x, TermGraph& graph) {
  Coefficient number = c;
  number.sizes.clear();
  TermId value = x;
  if (number.negated().is_one()) {
    value = graph.apply(op::Neg{}, {x});
  } else if (!number.is_one()) {
    value = graph.apply(op::Mul{}, {x, number_term(number, graph)});
  }
  return scale_by_sizes(c, value, false, graph);
}

}  // namespace sundog::search
