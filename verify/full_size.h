// The two at the sizes that were declared, in float64: what tests at small sizes cannot see, such
// as a literal that is right at one size alone.
//
// A candidate that is a program is evaluated as the program is (core/evaluate.h), where that is too
// much work at the last indices of the output axes; of a µGraph the last block of the last kernel
// and one that is drawn are interpreted, with the blocks of earlier kernels that store what these
// read, and what they write is compared.
#pragma once

#include <optional>
#include <string>

#include "core/evaluate.h"
#include "verify/small_sizes.h"
#include "verify/verdict.h"

namespace sundog::verify {

struct FullSizeResult {
  bool ran = false;
  std::string skipped;   // why it did not run
  int64_t compared = 0;  // output elements
  std::optional<Witness> witness;
};

// `most_work`: index values of terms that may be visited on either side (about 10^7 a second for a
// µGraph); beyond it only a part of the outputs is compared, or nothing.
// `scale`: what the inputs, of variance 1, are multiplied by; small ones show the constants beside
// sums of many squares.
// require: interface_mismatch() of the two is empty.
FullSizeResult full_size_check(const Program& program, const Candidate& candidate,
                               Rounding rounding, uint64_t seed, double most_work,
                               double scale = 1);

// The error model of every comparison in floating point: whether `actual` differs from `expected`
// by more than rounding explains, that is 2^-20 times what either changes between float64 and
// float32, plus 10^-9 of the values.  False where the program itself is not finite.
bool beyond_rounding(double expected, double actual, double expected32, double actual32);

}  // namespace sundog::verify
