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
  kLargeMean,      // a mean at which squares lose the variance
  kCancelling,     // pairs that cancel but for a small rest
  kZero,
  kOneHot,       // one 1 a row
  kDenormal,     // below the smallest normal number of the dtype
  kNearMaximum,  // close to the largest value of a 16-bit dtype
};

inline constexpr InputKind kAllInputKinds[] = {
    InputKind::kOrdinary,      InputKind::kLarge,     InputKind::kLargePositive,
    InputKind::kLargeNegative, InputKind::kLargeMean, InputKind::kCancelling,
    InputKind::kZero,          InputKind::kOneHot,    InputKind::kDenormal,
    InputKind::kNearMaximum,
};

std::string_view name(InputKind kind);  // "large mean"

// Values of every input of the program, rounded to its dtype and within its declared range; the
// same for the same seed.
std::vector<TensorValues<double>> float_inputs(const Program& program, InputKind kind,
                                               uint64_t seed);

}  // namespace sundog::verify
