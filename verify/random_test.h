// The field test: a program and a candidate at random points of random prime fields.
//
//   auto cases = small_cases(program, candidate);
//   FieldResult r = field_test(*cases, options);
//   r.answer == Sameness::kSame      // and r.evidence.error_bound_log2 <= options.error_log2
//
// A candidate that differs is told so in the first round but for a chance that the evidence bounds;
// the test never says kDifferent for two programs that are equal and defined, except through laws
// that it does not know (docs/verification.md), so kDifferent asks for a witness.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "verify/group_ring.h"
#include "verify/ranges.h"
#include "verify/small_sizes.h"
#include "verify/verdict.h"

namespace sundog::verify {

struct FieldOptions {
  double error_log2 = -60;
  uint64_t seed = 1;
  Rounding rounding = Rounding::kWide;
  bool ranges = true;  // also compare range classes
  KnownBounds known;   // of the candidate
  double time_limit_s = 10;
  double round_limit_s = 10;  // a round that takes longer gets nowhere
  int max_rounds = 12;        // for each size set
};

struct FieldResult {
  Sameness answer = Sameness::kUndecided;
  std::string reason;
  size_t failing_case = 0;  // of kDifferent and of a fault
  std::string fault;        // what the candidate does wrong where it has no value at all
  std::string hazard;       // why its range class is worse; empty if it is not
  FieldEvidence evidence;
  RangeEvidence ranges;
};

FieldResult field_test(std::span<const SmallCase> cases, const FieldOptions& options);

}  // namespace sundog::verify
