// Is a candidate the same program?  Three answers, each with its evidence.
//
//   Verdict v = verify(program, candidate, {});        // candidate: a µGraph or another program
//   if (v.answer == Verdict::kEquivalent) use(candidate);
//   else report(v.reason);
//
// equivalent  the field test passed with an error bound below the asked one, at the declared sizes
//             or beside a proof for them, and neither numerics nor ranges object
// different   a witness in floating point was found: an output element in which the two differ
//             beyond what rounding explains, or a fault (an element never written, a read out of
//             range)
// unknown     neither; `reason` says why, and a search must not use such a candidate
//
// docs/verification.md says what each part covers and what none does.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/evaluate.h"
#include "core/mugraph.h"
#include "core/program.h"

namespace sundog::verify {

struct VerifyOptions {
  double error_log2 = -60;  // the field test runs rounds until its bound is below 2^error_log2
  uint64_t seed = 1;
  double time_limit_s = 10;   // then `unknown`
  double round_limit_s = 60;  // the same for one round of the field test, which then gets nowhere
  bool numerics = true;       // also compare rounding errors, and ranges
  bool prove = false;         // also attempt a proof for all sizes (verify/prove.h)
  double prove_s = 10;        // time for it; then the proof, not the answer, is unknown
  Rounding rounding = Rounding::kWide;
  // Index values of terms that the check at the declared sizes may visit; 0: no such check.
  double full_size_work = 1 << 23;
  // `equivalent` also takes an exact test at the declared sizes or a proof for them.  If not, it
  // is enough that no difference shows there in floating point (where any can be compared).
  bool exact_at_declared_sizes = true;
  double numerics_work = 1 << 14;  // the same for one run of the comparison of rounding errors
};

// Why the field test believes what it says.
struct FieldEvidence {
  int rounds = 0;
  std::vector<uint64_t> primes, seeds;  // one a round
  double error_bound_log2 = 0;          // log2 of the bound over all rounds; 0: none
  std::vector<std::string> sizes;       // the sizes that were tested: "n=3 h=8 d=5", one a size set
  bool nested = false;                  // an exponential of an exponential occurs
  bool image_only = false;      // agreement beyond a limit on terms: not covered by the bound
  uint64_t seed = 0;            // that those of the rounds follow from
  double asked_error_log2 = 0;  // the bound that was asked for
};

// One input of the float comparison, and how far each side is from the exact result.
struct NumericsCase {
  std::string name;            // "ordinary", "large mean", ...
  double candidate_error = 0;  // max |x - exact| over max |exact| of the output
  double program_error = 0;    // the same for the plain program in the device's precision
  // What the roundings of the candidate can add up to at most, in its own order of operations, by
  // the same measure; infinite if nothing is known.
  double error_bound = 0;
  // Output elements whose stored bits are not those of the plain program with every cast in place.
  int64_t differing = 0, compared = 0;
  bool ok = true;
};
struct NumericsEvidence {
  bool attempted = false;
  std::string sizes;  // at which it was measured
  std::vector<NumericsCase> cases;
};

struct RangeEvidence {
  bool attempted = false;
  std::string program, candidate;  // worst class of each: "bounded exponents", ...
};

// A replayable difference: the two sides on these inputs at these sizes (float_inputs of
// verify/float_inputs.h).
struct Witness {
  std::string output;            // name of the output; empty for a fault
  std::vector<int64_t> element;  // index
  double expected = 0, actual = 0;
  uint64_t seed = 0;
  std::string sizes;      // "n=3 h=8"
  std::string inputs;     // "ordinary", "large mean", ...
  std::string precision;  // "f64", or "f32": with the roundings of the device
  std::string fault;      // what the candidate does wrong where it has no value
};

// What a verdict says of a proof that nobody asked for.
inline constexpr std::string_view kNotAttempted = "not attempted";

struct Verdict {
  enum Answer : uint8_t { kEquivalent, kDifferent, kUnknown };
  Answer answer = kUnknown;
  std::string reason;  // one sentence, for every answer
  FieldEvidence field;
  NumericsEvidence numerics;
  RangeEvidence ranges;
  std::string full_size;  // what was compared at the declared sizes, or why nothing was
  std::optional<Witness> witness;
  std::string proof{kNotAttempted};  // else "proved ...", "refuted: ..." or "unknown: ..."
};

std::string_view name(Verdict::Answer answer);  // "equivalent", "different", "unknown"
std::string to_string(const Witness& witness);  // one line

// The candidate's inputs and outputs are matched by name; a missing or extra one, or other extents,
// is an answer of `different` with that as the fault.
Verdict verify(const Program& program, const MuGraph& candidate, const VerifyOptions& options = {});
Verdict verify(const Program& program, const Program& candidate, const VerifyOptions& options = {});

}  // namespace sundog::verify
