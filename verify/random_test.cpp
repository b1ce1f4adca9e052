// Rounds of the field test.
//
// Each round draws primes and inputs of its own, so the bounds of rounds multiply (Schwartz 1980,
// Zippel 1979, for what a round can miss; docs/verification.md).  Uniform residues matter: inputs
// with a pattern make wrong programs agree, such as consecutive integers, under which every matrix
// is of rank two.
#include "verify/random_test.h"

#include <algorithm>
#include <chrono>

#include "verify/ranges.h"
#include "verify/run_candidate.h"

namespace sundog::verify {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

constexpr int kRedraws = 8;
// Degrees up to which values are kept, and, where too many values of such degrees leave no useful
// bound, those of a chain of hundreds of steps.
constexpr float kGrowth = GroupRing::Limits().growth, kLessGrowth = 0x1p12F;

enum class Outcome : uint8_t { kAgree, kDiffer, kRedraw, kGiveUp };

struct Round {
  Outcome outcome = Outcome::kGiveUp;
  std::string reason, fault;
  double error_log2 = 0;
  uint64_t prime = 0;
  bool nested = false, image_only = false, abbreviates = false;
  Hazards program, candidate;
};

uint64_t hash_name(const std::string& text) {
  uint64_t h = 0;
  for (const char c : text) h = prf(h, static_cast<unsigned char>(c));
  return h;
}

template <class Ring>
std::vector<TensorValues<GroupRing::Value>> random_inputs(Ring& ring, const Program& program) {
  std::vector<TensorValues<GroupRing::Value>> inputs;
  for (const TensorDecl& tensor : program.inputs) {
    TensorValues<GroupRing::Value> values{tensor.extents, {}};
    const uint64_t name_key = hash_name(tensor.name);
    for_each_element(tensor, [&](int64_t, int64_t offset) {
      values.values.push_back(ring.random(prf(name_key, static_cast<uint64_t>(offset))));
    });
    inputs.push_back(std::move(values));
  }
  return inputs;
}

Round failed(const GroupRing& ring, const Error& error) {
  Round round;
  round.outcome = ring.wants_redraw() ? Outcome::kRedraw : Outcome::kGiveUp;
  round.reason = error.message;
  return round;
}

// Compares all elements; the first difference, or the first that is not decided, ends it.
template <class Ring>
void compare(Ring& ring, const Program& program,
             std::span<const TensorValues<GroupRing::Value>> expected,
             std::span<const TensorValues<GroupRing::Value>> actual, Round* round) {
  round->outcome = Outcome::kAgree;
  for (size_t o = 0; o < expected.size(); ++o) {
    for (size_t i = 0; i < expected[o].values.size(); ++i) {
      const Sameness same = ring.equal(expected[o].values[i], actual[o].values[i]);
      if (ring.failure()) {
        round->outcome = ring.wants_redraw() ? Outcome::kRedraw : Outcome::kGiveUp;
        round->reason = *ring.failure();
        return;
      }
      if (same == Sameness::kSame) continue;
      const std::string element =
          "element " + interpreting::element_name(expected[o].extents, static_cast<int64_t>(i)) +
          " of output '" + program.outputs[o].tensor.name + "'";
      round->outcome = same == Sameness::kDifferent ? Outcome::kDiffer : Outcome::kGiveUp;
      if (same == Sameness::kDifferent) {
        round->reason = element + " differs";
        if (ring.abbreviates()) {
          round->reason += " where values of too high a degree are unknown functions";
        }
      } else if (ring.image_only()) {
        round->reason = element + " has too many terms to compare exactly; its images agree";
      } else {
        round->reason = element + " is undefined: " + ring.undefined_reason();
      }
      return;
    }
  }
}

// Values of too high a degree are abbreviated as soon as they are computed, so that what is
// computed from them has a small one again.
template <class Ring>
class Abbreviating : public Ring {
 public:
  using Value = GroupRing::Value;
  using Ring::Ring;
  Value add(const Value& a, const Value& b) { return this->abbreviated(Ring::add(a, b)); }
  Value sub(const Value& a, const Value& b) { return this->abbreviated(Ring::sub(a, b)); }
  Value mul(const Value& a, const Value& b) { return this->abbreviated(Ring::mul(a, b)); }
  Value div(const Value& a, const Value& b) { return this->abbreviated(Ring::div(a, b)); }
};

template <class Ring>
Round run_round(const SmallCase& small, uint64_t seed, float growth, const FieldOptions& options) {
  GroupRing::Limits limits;
  limits.growth = growth;
  limits.seconds = options.round_limit_s;
  Abbreviating<Ring> ring(seed, options.rounding, limits);
  const auto inputs = random_inputs(ring, small.program);
  const std::span<const TensorValues<GroupRing::Value>> in(inputs);
  const auto expected = interpret(ring, small.program, in);
  if (!expected.ok()) return failed(ring, expected.error());
  Round round;
  if constexpr (std::is_same_v<Ring, RangeRing>) round.program = ring.take_hazards();
  ring.abbreviate_less();
  const auto actual = run_candidate(ring, small.program, small.candidate, in);
  if (!actual.ok()) {
    if (actual.error().code != ErrorCode::kLimit) {
      round.fault = round.reason = actual.error().message;
      return round;
    }
    return failed(ring, actual.error());
  }
  if constexpr (std::is_same_v<Ring, RangeRing>) round.candidate = ring.take_hazards();
  compare(ring, small.program, *expected, *actual, &round);
  round.error_log2 = ring.error_log2();
  round.prime = ring.prime();
  round.nested = ring.nested();
  round.image_only = ring.image_only();
  round.abbreviates = ring.abbreviates();
  if (round.outcome == Outcome::kAgree && round.image_only) {
    round.outcome = Outcome::kGiveUp;
    round.reason = "a value has too many terms to compare exactly; its images agree";
  }
  return round;
}

// A round that is not thrown away for a zero denominator.
Round settled_round(const SmallCase& small, uint64_t seed, bool ranges, float growth,
                    const FieldOptions& options) {
  Round round;
  for (uint64_t draw = 0; draw < kRedraws; ++draw) {
    const uint64_t key = prf(seed, draw, 0x64);
    round = ranges ? run_round<RangeRing>(small, key, growth, options)
                   : run_round<GroupRing>(small, key, growth, options);
    if (round.outcome != Outcome::kRedraw) return round;
  }
  round.outcome = Outcome::kGiveUp;
  round.reason += ", in every draw";
  return round;
}

// The first round at some sizes; `growth` is set to what it and those after it abbreviate by.  Less
// is better where it says more: what is abbreviated is only ever another question of the same kind.
Round first_round(const SmallCase& small, uint64_t seed, const FieldOptions& options,
                  float* growth) {
  constexpr int kFewRounds = 4;
  const auto start = Clock::now();
  *growth = kGrowth;
  Round round = settled_round(small, seed, options.ranges, kGrowth, options);
  const bool agrees = round.outcome == Outcome::kAgree;
  const bool poor = agrees && kFewRounds * round.error_log2 > options.error_log2;
  const bool apart = round.outcome == Outcome::kDiffer && round.abbreviates;
  const bool stuck = round.outcome == Outcome::kGiveUp && round.fault.empty();
  const bool in_time = seconds_since(start) < options.round_limit_s;
  if ((!poor && !apart && !stuck) || !in_time) return round;
  Round other = settled_round(small, seed, options.ranges, kLessGrowth, options);
  if (other.outcome != Outcome::kAgree || (agrees && other.error_log2 >= round.error_log2)) {
    return round;
  }
  *growth = kLessGrowth;
  if (agrees) {  // what was abbreviated less says more of ranges
    other.program = std::move(round.program);
    other.candidate = std::move(round.candidate);
  }
  return other;
}

}  // namespace

FieldResult field_test(std::span<const SmallCase> cases, const FieldOptions& options) {
  const auto start = Clock::now();
  FieldResult result;
  result.evidence.error_bound_log2 = -1e9;
  result.evidence.seed = options.seed;
  result.evidence.asked_error_log2 = options.error_log2;
  for (size_t c = 0; c < cases.size(); ++c) {
    result.failing_case = c;
    result.evidence.sizes.push_back(cases[c].sizes);
    double bound = 0;
    float growth = kGrowth;
    // Two rounds at least: a bound rests on what was drawn, and one bad draw must not decide.
    for (int r = 0; r < 2 || bound > options.error_log2; ++r) {
      const double seconds = seconds_since(start);
      if (r == options.max_rounds || seconds > options.time_limit_s) {
        result.reason = r == options.max_rounds ? "the error bound stays above the one asked for"
                                                : "the time limit was reached";
        result.evidence.error_bound_log2 = std::max(result.evidence.error_bound_log2, bound);
        return result;
      }
      FieldOptions rest = options;
      rest.round_limit_s = std::min(options.round_limit_s, options.time_limit_s - seconds);
      const bool ranges = options.ranges && r == 0;
      const uint64_t seed = prf(options.seed, c, static_cast<uint64_t>(r));
      const Round round = r == 0 ? first_round(cases[c], seed, rest, &growth)
                                 : settled_round(cases[c], seed, false, growth, rest);
      result.evidence.rounds += 1;
      result.evidence.primes.push_back(round.prime);
      result.evidence.seeds.push_back(seed);
      result.evidence.nested |= round.nested;
      result.evidence.image_only |= round.image_only;
      if (round.outcome != Outcome::kAgree) {
        result.answer =
            round.outcome == Outcome::kDiffer ? Sameness::kDifferent : Sameness::kUndecided;
        result.reason = "at " + cases[c].sizes + ": " + round.reason;
        result.fault = round.fault;
        result.evidence.error_bound_log2 = 0;
        return result;
      }
      if (ranges) {
        result.ranges = {true, describe(round.program), describe(round.candidate)};
        if (result.hazard.empty()) {
          result.hazard = worse_hazards(round.program, round.candidate, options.known);
        }
      }
      bound += round.error_log2;
    }
    result.evidence.error_bound_log2 = std::max(result.evidence.error_bound_log2, bound);
  }
  result.answer = Sameness::kSame;
  result.reason = "the field test passed";
  return result;
}

}  // namespace sundog::verify
