// Inputs for comparisons in floating point: ordinary ones, and those on which programs fail.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "core/interpret.h"
#include "core/program.h"

namespace sundog::verify {

enum class InputKind : uint8_t {
  kOrdinary,       // standard normal
  kLarge,          // both signs: products of two reach hundreds
  kLargePositive,  // logits far above what exp can take
  kLargeNegative,  // logits so low that every exp is 0
  kHuge,           // logits of either sign in the ten thousands
  kLargeMean,      // a mean at which squares lose the variance
  kTinyVariance,   // rows that are constant but for the last bits
  kCancelling,     // pairs along a summed axis that cancel but for a small rest
  kCancellingFar,  // the first half of a sum and its second
  kZero,
  kZeroFirst,    // the first input is 0 (a query, a row to be normalised), the others are not
  kOneHot,       // one 1 along the summed axis
  kDenormal,     // below the smallest normal number of the dtype
  kNearMaximum,  // close to the largest value of a 16-bit dtype
};

inline constexpr InputKind kAllInputKinds[] = {
    InputKind::kOrdinary,      InputKind::kLarge,       InputKind::kLargePositive,
    InputKind::kLargeNegative, InputKind::kHuge,        InputKind::kLargeMean,
    InputKind::kTinyVariance,  InputKind::kCancelling,  InputKind::kCancellingFar,
    InputKind::kZero,          InputKind::kZeroFirst,   InputKind::kOneHot,
    InputKind::kDenormal,      InputKind::kNearMaximum,
};

std::string_view name(InputKind kind);  // "large mean"

// What hostile inputs of a program depend on: the dimension of each input that its sums run along,
// the first one that is; the last dimension where there is none.  A scalar has none.
std::vector<size_t> summed_dimensions(const Program& program);

// Values of every input of the program, rounded to its dtype and within its declared range; the
// same for the same seed.
std::vector<TensorValues<double>> float_inputs(const Program& program, InputKind kind,
                                               uint64_t seed);

}  // namespace sundog::verify
