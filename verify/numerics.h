// Rounding, overflow and cancellation, by running: what no field sees.
//
// The candidate and the plain program run in the device's precision (f32 operations, storages of
// the µGraph, dtypes of the outputs) and are compared with the program in float64 on ordinary and
// hostile inputs.  An error is max |x - exact| over max |exact| of its row; the plain program's is
// the larger of two, without its written narrowing casts and with them.  The candidate is refused
// where its error exceeds kErrorFactor times the sum of that and the rounding unit of the coarsest
// dtype (integers have none) among the program's inputs and outputs, and kF32Roundings of float32
// besides, or where it is infinite or NaN and the program, with and without its casts, is not.
// Where rounding to integers may fall either way in the program's own float32, either way is right.
#pragma once

#include <limits>
#include <optional>
#include <span>
#include <string>

#include "verify/small_sizes.h"
#include "verify/verdict.h"

namespace sundog::verify {

inline constexpr double kErrorFactor = 4;
// The program's error on a few elements is a sample: it may be next to none where a dozen float32
// operations in another order are right as well. (torch.testing allows 22.)
inline constexpr double kF32Roundings = 16;

struct NumericsResult {
  NumericsEvidence evidence;
  std::string reason;              // why the candidate is refused; empty if it is not
  std::optional<Witness> witness;  // then: the element that is furthest off
};

// require: outputs of integers are cast to them (verify/integer_outputs.h).
NumericsResult compare_numerics(const SmallCase& small, Rounding rounding, uint64_t seed);

// Looks for inputs on which the two differ in float64 by more than rounding explains: 2^-20 times
// the change from float64 to float32 on either side, plus 10^-9 of the values; and by more than the
// roundings of float64 can add up to.  `brief`: ordinary inputs of one seed alone.  After `seconds`
// no more inputs are tried.
std::optional<Witness> find_witness(const SmallCase& small, Rounding rounding, uint64_t seed,
                                    bool brief = false,
                                    double seconds = std::numeric_limits<double>::infinity());

}  // namespace sundog::verify
