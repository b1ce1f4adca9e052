// Bounds by construction, found while the field test runs: the ring identifies values whatever way
// they were computed, so "is x among the arguments of M" needs no pattern of the text.  Intervals
// would not do: the inputs are unbounded, and what makes softmax safe is a relation between two
// values.
#include "verify/ranges.h"

#include <algorithm>
#include <optional>

namespace sundog::verify {

using Value = GroupRing::Value;

namespace {

bool is_positive_constant(const Value& a) { return a.denominator != 0 && a.numerator > 0; }

bool is_positive(const Value& a) { return a.positive || is_positive_constant(a); }

bool is_nonnegative(const Value& a) {
  return a.nonnegative || (a.denominator != 0 && a.numerator >= 0);
}

}  // namespace

Value RangeRing::constant(const Number& number) { return GroupRing::constant(number); }

Value RangeRing::add(const Value& a, const Value& b) {
  Value v = GroupRing::add(a, b);
  v.nonnegative = is_nonnegative(a) && is_nonnegative(b);
  v.positive = v.nonnegative && (is_positive(a) || is_positive(b));
  return v;
}

Value RangeRing::mul(const Value& a, const Value& b) {
  for (const Value* c : {&a, &b}) {
    if (!is_positive_constant(*c) || c->numerator == c->denominator) continue;
    const bool known =
        std::any_of(scales_.begin(), scales_.end(), [&](const Value& s) { return s.c == c->c; });
    if (!known && scales_.size() < 8) scales_.push_back(*c);
  }
  Value v = GroupRing::mul(a, b);
  const bool square = a.kind == b.kind && a.sum == b.sum && a.c == b.c;
  v.nonnegative = square || (is_nonnegative(a) && is_nonnegative(b));
  v.positive = is_positive(a) && is_positive(b);
  return v;
}

Value RangeRing::div(const Value& a, const Value& b) {
  if (b.kind == Kind::kFinite && b.denominator == 0 && !failure() && !away_from_zero(b)) {
    note_denominator(b);
  }
  Value v = GroupRing::div(a, b);
  v.nonnegative = is_nonnegative(a) && is_nonnegative(b);
  v.positive = is_positive(a) && is_positive(b);
  if (is_positive_constant(b)) {
    const Value scale = GroupRing::div(integer(1), b);
    const bool known =
        std::any_of(scales_.begin(), scales_.end(), [&](const Value& s) { return s.c == scale.c; });
    if (!known && scale.numerator != scale.denominator && scales_.size() < 8) {
      scales_.push_back(scale);
    }
  }
  return v;
}

Value RangeRing::max(const Value& a, const Value& b) {
  Value v = GroupRing::max(a, b);
  v.nonnegative = is_nonnegative(a) || is_nonnegative(b);
  v.positive = is_positive(a) || is_positive(b);
  if (v.kind == Kind::kFinite && set_of(v).size() > 1 && known_maxima_.insert(intern(v)).second) {
    maxima_.push_back(v);
  }
  return v;
}

// What differs by a positive constant of ordinary size is 0 where the other is.
void RangeRing::note_denominator(const Value& a) {
  const auto is_ordinary = [](const Value& s) {
    return s.numerator >> 16 <= s.denominator && s.denominator >> 16 <= s.numerator;
  };
  const uint32_t own = intern(a);
  std::optional<uint32_t> known;
  if (denominators_.count(own) != 0) known = own;
  for (size_t i = 0; i < scales_.size() && !known && size_of(a) == 1; ++i) {
    if (!is_ordinary(scales_[i])) continue;
    for (const Value& scale : {scales_[i], GroupRing::div(integer(1), scales_[i])}) {
      const Value other = GroupRing::mul(a, scale);
      if (!may_be_interned(other)) continue;
      const uint32_t id = intern(other);
      if (denominators_.count(id) != 0) known = id;
    }
  }
  hazards_.denominators.insert(known.value_or(own));
  denominators_.insert(known.value_or(own));
}

// a = s (x - M) for a positive s and an x, or a maximum over some, among the arguments of M.
bool RangeRing::at_most_zero(const Value& a) {
  if (a.denominator != 0) return a.numerator <= 0;
  const auto within = [&](const Value& x, const Value& maximum) {
    if (!may_be_interned(x)) return false;
    const std::vector<uint32_t> parts = set_of(x), all = set_of(maximum);
    return std::includes(all.begin(), all.end(), parts.begin(), parts.end());
  };
  if (size_of(a) == 0) return true;
  // Neighbours in a loop nest have neighbouring maxima: the search goes on where it last ended.
  for (size_t s = 0; s <= scales_.size(); ++s) {
    const size_t scale = (last_scale_ + s) % (scales_.size() + 1);
    const Value whole =
        scale == 0 ? a : GroupRing::mul(a, GroupRing::div(integer(1), scales_[scale - 1]));
    for (size_t m = 0; m < maxima_.size(); ++m) {
      const size_t at = (last_maximum_ + m) % maxima_.size();
      if (!within(GroupRing::add(whole, maxima_[at]), maxima_[at])) continue;
      last_scale_ = scale;
      last_maximum_ = at;
      return true;
    }
  }
  return false;
}

// A positive constant and what is not negative; or, for a maximum M, the exponentials of x - M for
// each x that M is taken over, of which one is 1.
bool RangeRing::away_from_zero(const Value& a) {
  if (is_positive(a)) return true;
  if (!a.nonnegative || size_of(a) < 2) return false;
  for (size_t m = 0; m < maxima_.size(); ++m) {
    const Value& maximum = maxima_[maxima_.size() - 1 - m];
    const std::vector<uint32_t> parts = set_of(maximum);
    if (parts.size() > size_of(a)) continue;
    const bool all = std::all_of(parts.begin(), parts.end(), [&](uint32_t x) {
      return has_exponential(a, GroupRing::sub(interned(x), maximum));
    });
    if (all) return true;
  }
  return false;
}

Value RangeRing::exp(const Value& a) {
  if (a.kind == Kind::kFinite && !failure() && !at_most_zero(a)) {
    hazards_.exponents.insert(intern(a));
  }
  Value v = GroupRing::exp(a);
  v.nonnegative = true;
  return v;
}

Value RangeRing::sqrt(const Value& a) {
  if (a.kind == Kind::kFinite && !failure() && !is_nonnegative(a)) {
    hazards_.roots.insert(intern(a));
  }
  Value v = GroupRing::sqrt(a);
  v.nonnegative = true;
  v.positive = is_positive(a);
  return v;
}

Hazards RangeRing::take_hazards() {
  Hazards taken;
  std::swap(taken, hazards_);
  return taken;
}

std::string worse_hazards(const Hazards& program, const Hazards& candidate, KnownBounds known) {
  const auto contains = [](const std::set<uint32_t>& all, const std::set<uint32_t>& part) {
    return std::includes(all.begin(), all.end(), part.begin(), part.end());
  };
  if (!known.exponents && !contains(program.exponents, candidate.exponents)) {
    return "it takes exp of a value that the program keeps at most 0 by subtracting a maximum, or "
           "does not take exp of: it can overflow where the program does not";
  }
  if (!contains(program.roots, candidate.roots)) {
    return "it takes the root of a difference where the program has a sum of squares: rounding can "
           "turn it negative";
  }
  if (!known.divisors && !contains(program.denominators, candidate.denominators)) {
    return "it divides by a value that nothing keeps away from 0, and by which the program does "
           "not "
           "divide";
  }
  return {};
}

std::string describe(const Hazards& hazards) {
  const std::string exponents =
      hazards.exponents.empty() ? "exponents at most 0" : "unbounded exponents";
  const std::string roots =
      hazards.roots.empty() ? "roots of sums of squares" : "roots of values of either sign";
  const std::string denominators =
      hazards.denominators.empty() ? "denominators away from 0" : "denominators that may be 0";
  return exponents + "; " + roots + "; " + denominators;
}

}  // namespace sundog::verify
