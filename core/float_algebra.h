// Floating-point meanings of scalars.
//
//   FloatAlgebra<Precision::kF64>   every operation in float64: the reference
//   FloatAlgebra<Precision::kF32>   every operation rounded to float32: the device
//
// What is stored narrower is rounded where the interpreter says so, unless `round_stores` is off
// (the reference, in which only the last bits of inputs matter).  Which casts round is a matter of
// `rounding` (keeps_cast in core/dtype.h).
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "core/algebra.h"
#include "core/check.h"

namespace sundog {

enum class Precision : uint8_t { kF64, kF32 };

struct FloatOptions {
  bool round_stores = true;
  Rounding rounding = Rounding::kWide;
};

template <Precision P>
class FloatAlgebra {
 public:
  using Value = double;
  explicit FloatAlgebra(FloatOptions options = {}) : options_(options) {}

  double constant(const Number& n) const { return rounded(n.to_double()); }
  double add(double x, double y) const { return rounded(x + y); }
  double sub(double x, double y) const { return rounded(x - y); }
  double mul(double x, double y) const { return rounded(x * y); }
  double neg(double x) const { return -x; }
  double div(double x, double y) const { return rounded(x / y); }
  double exp(double x) const { return rounded(std::exp(x)); }
  double log(double x) const { return rounded(std::log(x)); }
  double sqrt(double x) const { return rounded(std::sqrt(x)); }
  // A NaN stays one, whichever side it is on.
  double max(double x, double y) const { return x > y || std::isnan(x) ? x : y; }
  double cast(DType to, double x) const {
    if (!keeps_cast(options_.rounding, to)) return x;
    return P == Precision::kF32 ? round_to(to, x) : round_settled(to, x);
  }
  double call(const Fn& fn, double x) const { return rounded(fn.eval(x)); }
  double choose(Relation relation, double l, double r, double t, double e) const {
    return *decide(relation, l, r) ? t : e;
  }

  std::optional<bool> decide(Relation relation, double l, double r) const {
    return holds(relation, l, r);
  }
  double store(DType dtype, double x) const {
    return options_.round_stores ? round_to(dtype, x) : x;
  }
  bool is_minus_infinity(double x) const { return x == -std::numeric_limits<double>::infinity(); }

 private:
  static double rounded(double x) {
    if constexpr (P == Precision::kF32) return static_cast<double>(static_cast<float>(x));
    return x;
  }
  FloatOptions options_;
};

using Float64 = FloatAlgebra<Precision::kF64>;
using Float32 = FloatAlgebra<Precision::kF32>;

}  // namespace sundog
