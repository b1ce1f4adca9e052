// Range classes: what a field cannot see of exponents and roots.
//
// Over the real numbers softmax with and without its maximum are equal, and so are the one-pass and
// the two-pass variance; in floating point one of each fails.  A RangeRing is a GroupRing that also
// knows, by construction,
//   - of an exponent whether it is at most 0: x - M with M a maximum over a set that contains x,
//   running
//     maxima and maxima of partial results included, times a positive constant;
//   - of the argument of a root whether it is a sum of squares, and so cannot turn negative by
//   rounding;
//   - of a denominator whether it is bounded away from 0: a positive constant and what is not
//   negative, or a sum of exponentials of x - M that has each x of which M is the maximum.
// The exponents, roots and denominators for which it does not know are hazards, told by value.  A
// candidate may have those that the program has, and no others.
#pragma once

#include <set>
#include <string>

#include "verify/group_ring.h"

namespace sundog::verify {

struct Hazards {
  std::set<uint32_t> exponents, roots, denominators;  // interned values of one RangeRing
};

class RangeRing : public GroupRing {
 public:
  using GroupRing::GroupRing;

  Value constant(const Number& number);
  Value add(const Value& a, const Value& b);
  Value sub(const Value& a, const Value& b) { return GroupRing::sub(a, b); }
  Value mul(const Value& a, const Value& b);
  Value div(const Value& a, const Value& b);
  Value exp(const Value& a);
  Value sqrt(const Value& a);
  Value max(const Value& a, const Value& b);

  // Hazards met since the last call.
  Hazards take_hazards();

 private:
  void note_denominator(const Value& a);
  bool at_most_zero(const Value& a);
  bool away_from_zero(const Value& a);

  std::vector<Value> maxima_;
  std::vector<Value> scales_;  // positive constants other than 1 that values were multiplied by
  std::set<uint32_t> known_maxima_;
  std::set<uint32_t> denominators_;  // hazards so far, one of those that differ by a constant
  size_t last_scale_ = 0, last_maximum_ = 0;  // that at_most_zero succeeded with
  Hazards hazards_;
};

// Why the candidate's hazards are worse than the program's; empty if they are not.
// `known`: what intervals (verify/intervals.h) show of the candidate, whatever its form.
struct KnownBounds {
  bool exponents = false, divisors = false;
};
std::string worse_hazards(const Hazards& program, const Hazards& candidate, KnownBounds known = {});
// "exponents at most 0; roots of sums of squares", ...
std::string describe(const Hazards& hazards);

}  // namespace sundog::verify
