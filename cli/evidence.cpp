#include "cli/evidence.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace sundog::cli {
namespace {

std::string bound_text(double log2) {
  char text[32];
  std::snprintf(text, sizeof text, "2^%.0f", std::ceil(log2));
  return text;
}

}  // namespace

std::string microseconds(double us) {
  char text[48];
  std::snprintf(text, sizeof text, "%.2f us", us);
  return text;
}

Evidence evidence_of(const verify::Verdict& verdict) {
  Evidence evidence;
  evidence.answer = std::string(verify::name(verdict.answer));
  evidence.reason = verdict.reason;
  evidence.rounds = verdict.field.rounds;
  evidence.primes = verdict.field.primes;
  evidence.seeds = verdict.field.seeds;
  evidence.error_log2 = verdict.field.error_bound_log2;
  evidence.sizes = verdict.field.sizes;
  evidence.image_only = verdict.field.image_only;
  evidence.nested = verdict.field.nested;
  evidence.seed = verdict.field.seed;
  evidence.asked_error_log2 = verdict.field.asked_error_log2;
  for (const verify::NumericsCase& each : verdict.numerics.cases) {
    evidence.numerics.push_back({each.name, each.candidate_error, each.program_error, each.ok,
                                 each.error_bound, each.differing, each.compared});
  }
  evidence.numerics_sizes = verdict.numerics.sizes;
  evidence.full_size = verdict.full_size;
  evidence.witness = verdict.witness;
  if (verdict.ranges.attempted) {
    evidence.ranges = verdict.ranges.candidate == verdict.ranges.program
                          ? verdict.ranges.candidate
                          : verdict.ranges.candidate + " (program: " + verdict.ranges.program + ")";
  }
  evidence.proof = verdict.proof;
  return evidence;
}

std::string numerics_word(const Evidence& evidence) {
  if (evidence.numerics.empty()) return "not run";
  const bool passed = std::all_of(evidence.numerics.begin(), evidence.numerics.end(),
                                  [](const Evidence::Case& each) { return each.accepted; });
  return passed ? "passed" : "failed";
}

void write_evidence(JsonWriter& json, const Evidence& evidence) {
  json.begin_object();
  json.key("answer").value(evidence.answer);
  json.key("reason").value(evidence.reason);
  json.key("field").begin_object();
  json.key("rounds").value(evidence.rounds);
  json.key("error_bound");
  evidence.rounds > 0 ? json.value(std::exp2(evidence.error_log2)) : json.null();
  json.key("error_bound_log2");
  evidence.rounds > 0 ? json.value(evidence.error_log2) : json.null();
  json.key("image_only").value(evidence.image_only);
  json.key("nested").value(evidence.nested);
  json.key("seed").value(std::to_string(evidence.seed));
  // As text: primes of 61 bits are more than a JSON number holds exactly.
  json.key("primes").begin_array();
  for (const uint64_t prime : evidence.primes) json.value(std::to_string(prime));
  json.end_array().key("seeds").begin_array();
  for (const uint64_t seed : evidence.seeds) json.value(std::to_string(seed));
  json.end_array().key("sizes").begin_array();
  for (const std::string& sizes : evidence.sizes) json.value(sizes);
  json.end_array().end_object();
  json.key("proof").value(evidence.proof);
  json.key("numerics").value(numerics_word(evidence));
  json.key("numerics_cases").begin_array();
  for (const Evidence::Case& each : evidence.numerics) {
    json.begin_object().key("name").value(each.name);
    json.key("candidate_error").value(each.candidate_error);
    json.key("program_error").value(each.program_error);
    json.key("error_bound");
    std::isfinite(each.error_bound) ? json.value(each.error_bound) : json.null();
    json.key("differing").value(each.differing);
    json.key("compared").value(each.compared);
    json.key("accepted").value(each.accepted).end_object();
  }
  json.end_array();
  json.key("numerics_sizes").value(evidence.numerics_sizes);
  json.key("full_size").value(evidence.full_size.empty() ? "not run" : evidence.full_size);
  json.key("ranges").value(evidence.ranges.empty() ? "not run" : evidence.ranges);
  json.key("kernel_check").value(evidence.kernel_check.empty() ? "not run" : evidence.kernel_check);
  json.end_object();
}

std::string evidence_line(const Evidence& evidence) {
  std::string text = evidence.answer;
  if (evidence.rounds > 0) {
    text += ", field test of " + std::to_string(evidence.rounds) +
            (evidence.rounds == 1 ? " round" : " rounds") + " with error below " +
            bound_text(evidence.error_log2);
  }
  text += "; numerics " + numerics_word(evidence);
  if (!evidence.full_size.empty()) text += "; declared sizes: " + evidence.full_size;
  text += "; proof " + evidence.proof;
  if (!evidence.kernel_check.empty()) text += "; kernel check " + evidence.kernel_check;
  return text;
}

}  // namespace sundog::cli
