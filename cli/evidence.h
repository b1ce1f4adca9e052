// Evidence for a candidate, from the verifier's verdict to what is stored and printed.
#pragma once

#include <string>

#include "cli/json.h"
#include "cli/result.h"
#include "verify/verdict.h"

namespace sundog::cli {

Evidence evidence_of(const verify::Verdict& verdict);

// "passed", "failed" or "not run".
std::string numerics_word(const Evidence& evidence);

// {"answer", "reason", "field": {...}, "proof", "numerics", "numerics_cases", "ranges",
// "kernel_check", ...}
void write_evidence(JsonWriter& json, const Evidence& evidence);

// "9.12 us"
std::string microseconds(double us);

// One line: "equivalent (2 rounds, error 2^-62; numerics passed; proof not attempted)".
std::string evidence_line(const Evidence& evidence);

}  // namespace sundog::cli
