// Interval analysis of programs and µGraphs at their declared sizes: how large an exponent and a
// stored intermediate can become over the declared ranges of the inputs.
//
//   Extremes e = extremes_of(graph, program);
//   if (!e.overflow.empty()) reject(e.overflow);     // "kernel k0: 'p' is stored as f16 ..."
//   if (e.exponent <= kExponentLimit) ...            // no exp can overflow, whatever the inputs
//   if (e.denominator >= kDivisorLimit) ...          // and nothing is divided by 0
//
// An input without a declared range may be anything, and so may what is computed from it, except by
// how it grows: a value that grows like a power of the inputs is left to numerics (every program in
// 16 bits has such intermediates), one that grows like an exponential is an objection, since it
// leaves f16 at 11 where the program's own f32 lasts up to 88.
#pragma once

#include <string>

#include "core/mugraph.h"
#include "core/program.h"

namespace sundog::verify {

// Exponents up to here are safe: exp stays below 2^93, and a sum of 2^34 of them in f32 as well.
inline constexpr double kExponentLimit = 64;

// Divisors at least this far from 0 are safe: no quotient by one overflows that need not.
inline constexpr double kDivisorLimit = 1e-30;

struct Extremes {
  double exponent = 0;     // the largest argument of an exp, at least 0; infinite without a bound
  double denominator = 0;  // the least distance of a divisor from 0; infinite if there is none
  std::string overflow;    // the first intermediate whose storage can overflow; empty if none can
};

Extremes extremes_of(const Program& program, Rounding rounding);
// require: check(graph, program).ok()
Extremes extremes_of(const MuGraph& graph, const Program& program, Rounding rounding);

}  // namespace sundog::verify
