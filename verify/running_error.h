// A bound of the rounding error of a computation in float32 (or float64, as the interpreter does
// it), carried along while it runs (Wilkinson's running error analysis; Higham, Accuracy and
// Stability, section 3.3).
//
//   RunningError a;
//   auto s = a.add(a.input(1e4), a.input(-9999.5));    // s.value 0.5, s.error 2^-24 * 0.5
//
// A value is what exact arithmetic gives and how far the device can be from it, first and higher
// orders included, if each operation rounds as codegen/primitives.cuh says that it does.  The order
// in which the interpreter of µGraphs adds is that of loops and tiles; inside a tile the device
// adds in a tree or in an unknown order, for which the sequential order is an upper bound up to
// that the partial sums are others.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "core/algebra.h"
#include "core/dtype.h"
#include "core/float_algebra.h"

namespace sundog::verify {

class RunningError {
 public:
  struct Value {
    double value = 0, error = 0;
  };

  // In float64 nothing is rounded where it is stored (FloatOptions::round_stores off).
  explicit RunningError(Rounding rounding = Rounding::kWide, Precision precision = Precision::kF32)
      : rounding_(rounding), is_wide_(precision == Precision::kF64) {}

  Value input(double x) const { return {x, 0}; }
  Value constant(const Number& n) const {
    const double x = n.to_double();
    if (!std::isfinite(x)) return {x, 0};
    if (is_wide_) return {x, n.is_integer() ? 0 : unit() * std::fabs(x)};
    return {x, std::fabs(static_cast<double>(static_cast<float>(x)) - x)};
  }
  Value add(Value x, Value y) const { return rounded(x.value + y.value, x.error + y.error); }
  Value sub(Value x, Value y) const { return add(x, neg(y)); }
  Value neg(Value x) const { return {-x.value, x.error}; }
  Value mul(Value x, Value y) const {
    return rounded(x.value * y.value,
                   std::fabs(x.value) * y.error + std::fabs(y.value) * x.error + x.error * y.error);
  }
  // Two units: a quotient is correctly rounded or a product with an approximate reciprocal.
  Value div(Value x, Value y) const {
    const double left = std::fabs(y.value) - y.error;
    if (!(left > 0)) return lost(x.value / y.value);
    const double quotient = x.value / y.value;
    return rounded(quotient, (x.error + std::fabs(quotient) * y.error) / left, 3);
  }
  // 2 + |1.173 x| units of the last place, and what the argument is off by.
  Value exp(Value x) const {
    const double result = std::exp(x.value);
    if (!std::isfinite(result) || is_minus_infinity(x)) return {result, 0};
    return rounded(result, result * std::expm1(x.error), 4 + 2.4 * std::fabs(x.value));
  }
  Value log(Value x) const {
    const double left = x.value - x.error;
    if (!(left > 0)) return lost(std::log(x.value));
    return rounded(std::log(x.value), x.error / left, 4);
  }
  Value sqrt(Value x) const {
    const double root = std::sqrt(x.value);
    const double least = std::sqrt(std::max(x.value - x.error, 0.0));
    return rounded(root, std::max(root - least, std::sqrt(x.value + x.error) - root), 4);
  }
  Value max(Value x, Value y) const {
    return {std::isnan(x.value) || x.value > y.value ? x.value : y.value,
            std::max(x.error, y.error)};
  }
  Value cast(DType to, Value x) const { return keeps_cast(rounding_, to) ? stepped(to, x) : x; }
  // Lipschitz with constant 1, as all of the catalog are but for erf, whose constant is 2/sqrt(pi).
  Value call(const Fn& fn, Value x) const { return rounded(fn.eval(x.value), 1.13 * x.error, 8); }
  Value choose(Relation relation, Value l, Value r, Value t, Value e) const {
    const Value taken = *decide(relation, l, r) ? t : e;
    const bool certain = std::fabs(l.value - r.value) > l.error + r.error;
    if (certain || (l.error == 0 && r.error == 0)) return taken;
    return {taken.value, std::max(t.error, e.error) + std::fabs(t.value - e.value)};
  }
  std::optional<bool> decide(Relation relation, Value l, Value r) const {
    return holds(relation, l.value, r.value);
  }
  Value store(DType dtype, Value x) const {
    if (is_wide_ || !std::isfinite(x.value)) return x;
    if (is_integer(dtype)) return stepped(dtype, x);
    const double size = std::fabs(x.value) + x.error;
    if (size > max_finite(dtype)) return lost(x.value);
    return {x.value, x.error + unit_roundoff(dtype) * size + spacing(dtype)};
  }
  bool is_minus_infinity(Value x) const {
    return x.value == -std::numeric_limits<double>::infinity();
  }

 private:
  double unit() const { return is_wide_ ? 0x1p-53 : 0x1p-24; }
  // The spacing of the smallest numbers, with which denormals are rounded.
  static double spacing(DType dtype) {
    return dtype == DType::kF16                                 ? 0x1p-25
           : dtype == DType::kF8E4M3 || dtype == DType::kF8E5M2 ? 0x1p-10
                                                                : 0x1p-134;
  }
  // A rounding that belongs to the computation.  It is monotone, so the device has what lies
  // between the roundings of the least and the largest value that it can have rounded.
  static Value stepped(DType to, Value x) {
    const double value = round_settled(to, x.value);
    if (!std::isfinite(x.value) || !std::isfinite(value)) return {value, 0};
    if (!std::isfinite(x.error)) return lost(value);
    const double low = round_to(to, x.value - x.error), high = round_to(to, x.value + x.error);
    if (!std::isfinite(low) || !std::isfinite(high)) return lost(value);
    return {value, std::max(high - value, value - low)};
  }
  static Value lost(double x) { return {x, std::numeric_limits<double>::infinity()}; }
  // A result that is off by `error` before it is rounded, by `units` of the rounding unit.
  Value rounded(double x, double error, double units = 1) const {
    if (!std::isfinite(x)) return {x, 0};
    return {x, error + units * unit() * (std::fabs(x) + error) + (is_wide_ ? 0x1p-1074 : 0x1p-149)};
  }

  Rounding rounding_;
  bool is_wide_;
};

}  // namespace sundog::verify
