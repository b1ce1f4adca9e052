// From evidence to an answer.  `different` is never said on the word of the field test alone: it
// does not know every law of real functions (max(2a, 2b) = 2 max(a, b), say), and a user can check
// a witness.
#include "verify/verdict.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <limits>

#include "core/check.h"
#include "core/text.h"
#include "verify/full_size.h"
#include "verify/integer_outputs.h"
#include "verify/interface.h"
#include "verify/intervals.h"
#include "verify/numerics.h"
#include "verify/prove.h"
#include "verify/random_test.h"
#include "verify/size_decisions.h"
#include "verify/small_sizes.h"

namespace sundog::verify {
namespace {

// The answer of a witness, if there is one; then true.
bool set_different(Verdict* v, std::optional<Witness> witness) {
  if (!witness) return false;
  v->answer = Verdict::kDifferent;
  v->reason = to_string(*witness);
  v->witness = std::move(witness);
  return true;
}

Verdict faulty(std::string fault, uint64_t seed) {
  Verdict v;
  Witness witness;
  witness.fault = std::move(fault);
  witness.seed = seed;
  set_different(&v, std::move(witness));
  return v;
}

// Everything that an answer is made from.
struct Matter {
  const Program& program;
  Candidate candidate;
  std::vector<SmallCase> cases;
  std::optional<SmallCase> tiles;  // the µGraph's own tiles, if they are in reach
  const VerifyOptions& options;
};

FullSizeResult at_full_size(const Matter& matter, Verdict* v, double scale = 1) {
  FullSizeResult result;
  if (matter.options.full_size_work <= 0) {
    result.skipped = "not asked for";
  } else {
    result = full_size_check(matter.program, matter.candidate, matter.options.rounding,
                             matter.options.seed, matter.options.full_size_work, scale);
  }
  v->full_size = result.ran ? std::to_string(result.compared) + " elements compared"
                            : "not run: " + result.skipped;
  return result;
}

// Whether the small sizes are of other literals than the two have.
bool has_moved_literals(const Matter& matter) {
  return std::any_of(matter.cases.begin(), matter.cases.end(),
                     [](const SmallCase& c) { return c.literals_moved; });
}

// After the field test said "different" or found a fault: the floats decide, or nobody does.  What
// a candidate does at small sizes must also show at the sizes that were declared, or with its own
// tiles, where these are in reach: a literal may be wrong at the small sizes alone.  True if it was
// looked for there and does not show.
bool search_witness(const Matter& matter, const FieldResult& field, Verdict* v) {
  const VerifyOptions& options = matter.options;
  std::optional<Witness> witness;
  // A test that came to no end gives no reason to expect one: no longer than another round of it.
  const bool differs = field.answer == Sameness::kDifferent || !field.fault.empty();
  const double share = std::min(options.round_limit_s, options.time_limit_s) /
                       static_cast<double>(std::max<size_t>(1, matter.cases.size()));
  for (size_t i = 0; i < matter.cases.size() && !witness; ++i) {
    const SmallCase& small = matter.cases[(field.failing_case + i) % matter.cases.size()];
    witness = find_witness(small, options.rounding, options.seed, false,
                           differs ? std::numeric_limits<double>::infinity() : share);
  }
  v->reason = field.reason;
  if (!witness) {
    if (field.answer == Sameness::kDifferent)
      v->reason += ", but no inputs were found that show it";
    return false;
  }
  if (matter.tiles && !matter.tiles->literals_moved) {
    std::optional<Witness> larger =
        find_witness(*matter.tiles, options.rounding, options.seed, true);
    if (!larger) {
      v->reason += ", but not at " + matter.tiles->sizes;
      return true;
    }
    witness = std::move(larger);
  } else if (has_moved_literals(matter) ||
             (witness->fault.empty() && witness->sizes != sizes_text(matter.program))) {
    FullSizeResult full = at_full_size(matter, v);
    // Beside a sum of thousands of squares an epsilon is nothing, unless these are small.
    if (full.ran && !full.witness) full = at_full_size(matter, v, 0x1p-10);
    if (full.ran && !full.witness) {
      v->reason += ", but not at " + sizes_text(matter.program);
      return true;
    }
    if (!full.ran && has_moved_literals(matter)) {
      v->reason += ", but the declared sizes were not compared: " + full.skipped;
      return false;
    }
    if (full.witness) witness = std::move(full.witness);
  }
  set_different(v, std::move(witness));
  return false;
}

// Work of one run in floating point; some 10^7 index values take a second.
constexpr double kFloatWork = 1 << 21;

// The largest sizes in reach: errors grow with the length of a sum.
std::optional<SmallCase> sizes_for_numerics(const Program& program, const Candidate& candidate,
                                            double most_work) {
  if (work(program) <= most_work) return SmallCase{program, candidate, sizes_text(program)};
  const auto* graph = std::get_if<MuGraph>(&candidate);
  return graph == nullptr ? std::nullopt : tile_case(program, *graph, most_work);
}

// The objections to a candidate that passed the field test; false if there is one.
bool passes_numerics(const Matter& matter, const FieldResult& field, Verdict* v) {
  const std::optional<SmallCase> larger =
      sizes_for_numerics(matter.program, matter.candidate, matter.options.numerics_work);
  NumericsResult numerics = compare_numerics(larger ? *larger : matter.cases.back(),
                                             matter.options.rounding, matter.options.seed);
  v->numerics = std::move(numerics.evidence);
  if (!numerics.reason.empty()) {
    set_different(v, std::move(numerics.witness));
    v->reason = "equal over the real numbers, but " + numerics.reason;
    if (!field.hazard.empty()) v->reason += ": " + field.hazard;
    return false;
  }
  if (!field.hazard.empty()) v->reason = "equal over the real numbers, but " + field.hazard;
  return field.hazard.empty();
}

// Whether the two were tested exactly at the sizes that were declared, or there is nothing to test.
bool tested_as_declared(const Matter& matter) {
  const auto& outputs = matter.program.outputs;
  const auto is_empty = [](const Output& o) { return element_count(o.tensor) == 0; };
  if (std::all_of(outputs.begin(), outputs.end(), is_empty)) return true;
  const auto* other = std::get_if<Program>(&matter.candidate);
  if (other != nullptr && print(*other) == print(matter.program)) return true;
  const std::string declared = sizes_text(matter.program);
  return std::any_of(matter.cases.begin(), matter.cases.end(),
                     [&](const SmallCase& c) { return !c.literals_moved && c.sizes == declared; });
}

// Why the tests at small sizes are not enough; empty if they are.  Unless the declared sizes are to
// be exact, only what is sure to be another question there is looked at.
std::string unseen_at_small_sizes(const Matter& matter) {
  if (has_moved_literals(matter)) return "literals stand for other ones there";
  if (tested_as_declared(matter)) return "";
  if (matter.options.full_size_work > 0 && matter.options.exact_at_declared_sizes) {
    return "those are not the declared ones";
  }
  const auto decided = [](const auto& side) { return decided_by_size(side); };
  const bool any = decided_by_size(matter.program) || std::visit(decided, matter.candidate);
  return any ? "an index or extent decides a maximum or a branch" : "";
}

void add(const FieldEvidence& more, FieldEvidence* to) {
  to->rounds += more.rounds;
  to->primes.insert(to->primes.end(), more.primes.begin(), more.primes.end());
  to->seeds.insert(to->seeds.end(), more.seeds.begin(), more.seeds.end());
  to->sizes.insert(to->sizes.end(), more.sizes.begin(), more.sizes.end());
  to->error_bound_log2 = std::max(to->error_bound_log2, more.error_bound_log2);
  to->nested |= more.nested;
  to->image_only |= more.image_only;
}

// Then it is to be proved for the declared sizes, or tested there exactly; else false, with the
// reason.
bool covers(const Matter& matter, const FieldOptions& field, const std::string& unseen,
            Verdict* v) {
  const ProveOptions options{matter.options.prove_s, matter.options.rounding};
  const auto proof = [&](const auto& side) { return prove(matter.program, side, options); };
  const Proof found = std::visit(proof, matter.candidate);
  if (matter.options.prove) v->proof = to_string(found);
  if (found.outcome == Proof::kProved && !found.leaves_out_empty_maxima) return true;
  v->reason = "equal at small sizes, but " + unseen + ", and the proof is " + to_string(found);
  const auto declared = declared_case(matter.program, matter.candidate);
  if (!declared) return false;
  const FieldResult exact = field_test(std::span(&*declared, 1), field);
  add(exact.evidence, &v->field);
  if (exact.answer == Sameness::kSame) return true;
  v->field.error_bound_log2 = 0;
  set_different(v, find_witness(*declared, matter.options.rounding, matter.options.seed));
  return false;
}

void accept(const Matter& matter, const FieldOptions& field_options, const FieldResult& field,
            Verdict* v) {
  const VerifyOptions& options = matter.options;
  if (matter.tiles) {
    auto witness = find_witness(*matter.tiles, options.rounding, options.seed, true);
    if (witness && matter.tiles->literals_moved) {
      v->reason = "equal at small sizes, but not at " + matter.tiles->sizes;
      return;
    }
    if (set_different(v, std::move(witness))) return;
  }
  if (set_different(v, at_full_size(matter, v).witness)) return;
  if (const std::string unseen = unseen_at_small_sizes(matter); !unseen.empty()) {
    if (!covers(matter, field_options, unseen, v)) return;
  }
  if (options.numerics && !passes_numerics(matter, field, v)) return;
  v->answer = Verdict::kEquivalent;
  char text[96];
  std::snprintf(text, sizeof text, "equal in %d rounds of the field test, error below 2^%.0f",
                field.evidence.rounds, std::ceil(field.evidence.error_bound_log2));
  v->reason = text;
}

Extremes extremes_of_candidate(const Matter& matter) {
  if (const auto* graph = std::get_if<MuGraph>(&matter.candidate)) {
    return extremes_of(*graph, matter.program, matter.options.rounding);
  }
  return extremes_of(std::get<Program>(matter.candidate), matter.options.rounding);
}

// For what differs at other sizes and not at the declared ones: a literal may stand for an extent.
// Leaves the verdict as it is unless the field test passes where those extents are what they are.
void decide_with_declared_sizes(const Matter& matter, const FieldOptions& field_options,
                                const Extremes& extremes, Verdict* v) {
  const Matter kept{matter.program, matter.candidate,
                    cases_with_declared_sizes(matter.program, matter.candidate), matter.tiles,
                    matter.options};
  if (kept.cases.empty()) return;
  FieldResult field = field_test(kept.cases, field_options);
  if (field.answer != Sameness::kSame) return;
  if (field.hazard.empty()) field.hazard = extremes.overflow;
  v->field = field.evidence;
  v->ranges = field.ranges;
  accept(kept, field_options, field, v);
}

Verdict decide(const Matter& matter) {
  const VerifyOptions& options = matter.options;
  FieldOptions field_options;
  field_options.error_log2 = options.error_log2;
  field_options.seed = options.seed;
  field_options.rounding = options.rounding;
  field_options.ranges = options.numerics;
  field_options.time_limit_s = options.time_limit_s;
  field_options.round_limit_s = options.round_limit_s;
  const Extremes extremes = extremes_of_candidate(matter);
  field_options.known = {extremes.exponent <= kExponentLimit,
                         extremes.denominator >= kDivisorLimit};
  FieldResult field = field_test(matter.cases, field_options);
  if (field.hazard.empty()) field.hazard = extremes.overflow;
  Verdict v;
  v.field = field.evidence;
  v.ranges = field.ranges;
  if (field.answer == Sameness::kSame) {
    accept(matter, field_options, field, &v);
  } else if (search_witness(matter, field, &v)) {
    decide_with_declared_sizes(matter, field_options, extremes, &v);
  }
  return v;
}

template <class C>
Verdict verify_any(const Program& program, const C& candidate, const VerifyOptions& options) {
  Result<std::vector<SmallCase>> cases = small_cases(program, candidate);
  Matter matter{program, candidate, {}, std::nullopt, options};
  if (!cases.ok()) {
    // Whether they are equal cannot be said; that they differ may still show.
    Verdict v;
    v.reason = cases.error().message;
    set_different(&v, at_full_size(matter, &v).witness);
    return v;
  }
  matter.cases = *std::move(cases);
  if constexpr (std::is_same_v<C, MuGraph>) {
    matter.tiles = tile_case(program, candidate, kFloatWork);
  }
  return decide(matter);
}

// What a proof says beside an answer: a witness refutes it, whatever holds over the real numbers.
template <class C>
Verdict with_proof(const Program& program, const C& candidate, const VerifyOptions& options,
                   Verdict v) {
  if (!options.prove) return v;
  const bool attempted = v.proof != kNotAttempted;  // the answer may have taken one
  if (v.answer == Verdict::kDifferent) {
    v.proof = "refuted: " + v.reason;
  } else if (!attempted) {
    v.proof = to_string(verify::prove(program, candidate, {options.prove_s, options.rounding}));
  }
  return v;
}

// Where outputs are integers both sides are rounded to them first, as their stores do.
template <class C>
Verdict verify_as_stored(const Program& program, const C& candidate, const VerifyOptions& options) {
  if (!has_integer_outputs(program)) {
    return with_proof(program, candidate, options, verify_any(program, candidate, options));
  }
  const Program rounded = with_integer_outputs(program);
  const C stored = with_integer_outputs(candidate);
  return with_proof(rounded, stored, options, verify_any(rounded, stored, options));
}

}  // namespace

std::string_view name(Verdict::Answer answer) {
  switch (answer) {
    case Verdict::kEquivalent:
      return "equivalent";
    case Verdict::kDifferent:
      return "different";
    case Verdict::kUnknown:
      return "unknown";
  }
  SUNDOG_CHECK(false);
}

std::string to_string(const Witness& w) {
  if (!w.fault.empty()) return w.sizes.empty() ? w.fault : w.fault + " (at " + w.sizes + ")";
  std::string element = w.output + "[";
  for (size_t d = 0; d < w.element.size(); ++d) {
    element += (d == 0 ? "" : ", ") + std::to_string(w.element[d]);
  }
  const auto number = [](double x) {
    char text[32];
    std::snprintf(text, sizeof text, "%.9g", x);
    return std::string(std::isnan(x) ? "nan" : text);  // of either sign
  };
  return element + "] is " + number(w.actual) + " instead of " + number(w.expected) + " in " +
         w.precision + " on " + w.inputs + " inputs of seed " + std::to_string(w.seed) + " at " +
         w.sizes;
}

Verdict verify(const Program& program, const MuGraph& candidate, const VerifyOptions& options) {
  const Status status = check(candidate, program);
  if (!status.ok()) return faulty(status.error().message, options.seed);
  return verify_as_stored(program, candidate, options);
}

Verdict verify(const Program& program, const Program& candidate, const VerifyOptions& options) {
  std::string mismatch = interface_mismatch(program, candidate);
  if (!mismatch.empty()) return faulty(std::move(mismatch), options.seed);
  return verify_as_stored(program, candidate, options);
}

}  // namespace sundog::verify
