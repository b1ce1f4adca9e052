// Whether a difference between a program and a candidate in float64 is one of float64 itself: how
// far the roundings of either side can add up to, by a running error analysis of both.
//
//   const Float64Errors errors(small, rounding, inputs);
//   if (!errors.explain(output, element, expected, actual)) ...   // the two are different
//   functions
//
// It costs several evaluations, so it is asked only where values differ.
#pragma once

#include <vector>

#include "core/interpret.h"
#include "verify/small_sizes.h"

namespace sundog::verify {

class Float64Errors {
 public:
  // Runs both sides.  `inputs`: of the program, in order.
  Float64Errors(const SmallCase& small, Rounding rounding,
                const std::vector<TensorValues<double>>& inputs);

  // Whether element number `element` of an output, of which both values are given, may be one and
  // the same number.  False where nothing is known of a side.
  bool explain(size_t output, size_t element, double expected, double actual) const;

 private:
  using Errors = std::vector<std::vector<double>>;  // one tensor an output; empty: not known
  Errors program_, candidate_;
};

}  // namespace sundog::verify
