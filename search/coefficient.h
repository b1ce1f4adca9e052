// Exact coefficients of views: a rational times powers of ten and of axis sizes.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "core/field.h"
#include "core/number.h"
#include "core/term.h"

namespace sundog::search {

// numerator / denominator * 10^exponent * product of size(axis)^power.  Lowest terms; the
// denominator is positive.  Operations give nothing where 64 bits do not hold the result.
struct Coefficient {
  int64_t numerator = 1;
  int64_t denominator = 1;
  int exponent = 0;
  std::vector<std::pair<AxisId, int>> sizes;  // by axis, powers not 0

  static Coefficient of(int64_t n) { return {n, 1, 0, {}}; }
  static std::optional<Coefficient> of(const Number& n);  // nothing for infinities
  static Coefficient of_size(AxisId axis) { return {1, 1, 0, {{axis, 1}}}; }

  bool is_zero() const { return numerator == 0; }
  bool is_one() const { return *this == Coefficient{}; }
  bool is_negative() const { return numerator < 0; }
  Coefficient negated() const;
  bool operator==(const Coefficient&) const = default;
};

std::optional<Coefficient> multiply(const Coefficient& a, const Coefficient& b);
std::optional<Coefficient> invert(const Coefficient& a);
std::optional<Coefficient> add(const Coefficient& a, const Coefficient& b);

// Words that identify the coefficient, appended to `key`.
void append_key(const Coefficient& c, std::vector<uint64_t>& key);

// The coefficient as a term; `scale` is its product with one.
TermId to_term(const Coefficient& c, TermGraph& graph);
TermId scale(const Coefficient& c, TermId x, TermGraph& graph);

}  // namespace sundog::search
