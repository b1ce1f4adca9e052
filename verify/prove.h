// Proof that a candidate computes what its program computes, for all sizes.
//
//   Proof p = prove(program, candidate);
//   if (p.outcome == Proof::kProved) ...   // p.statement says for which sizes, under what
//
// Both sides are brought to canonical form (verify/canonical_form.h) over symbolic sizes and tile
// parameters; equal forms are equal functions of real inputs wherever the program is defined.
// "Unknown" means that the rules do not reach, never that the two differ: a refutation is a
// witness, which verify/verdict.h looks for.  docs/verification.md has the rules.
#pragma once

#include <string>
#include <vector>

#include "core/evaluate.h"
#include "core/mugraph.h"
#include "core/program.h"

namespace sundog::verify {

struct ProveOptions {
  double seconds = 10;  // then unknown
  Rounding rounding = Rounding::kWide;
};

struct Proof {
  enum Outcome : uint8_t { kProved, kUnknown };
  Outcome outcome = kUnknown;
  bool all_sizes = false;  // false: of a proof that holds at the given sizes only, for all tiles
  std::string statement;   // of a proof: for which sizes it holds
  std::string reason;      // of unknown
  std::vector<std::string> assumptions;
  // The program says what to do where a maximum is minus infinity, of which the proof says nothing.
  bool leaves_out_empty_maxima = false;
  double seconds = 0;
};

Proof prove(const Program& program, const MuGraph& candidate, const ProveOptions& options = {});
Proof prove(const Program& program, const Program& candidate, const ProveOptions& options = {});

// One line: "proved for all sizes (...)" or "unknown: ...".
std::string to_string(const Proof& proof);

}  // namespace sundog::verify
