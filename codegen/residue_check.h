// The exact check of emitted kernels: the same text, compiled for the emulator with residues in
// place of floats (codegen/emulator/residue.h), must give the residues that the program gives.
//
// Residues are exact whatever the order of summation, so there is no tolerance: a term that is
// missing from a sum of thousands, a transposed tile of nearly equal numbers, a padded lane that
// counts, all that a comparison of floats lets pass, shows.  What it says and with which
// probability of error: docs/verification.md.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "codegen/emulator.h"
#include "codegen/launch_plan.h"
#include "core/mugraph.h"
#include "core/program.h"
#include "core/status.h"

namespace sundog::codegen {

struct ResidueCheck {
  // The first element that differs, or what the kernels did wrong; empty: none does.
  std::string failure;
  // Why nothing is claimed of some element; empty: every one was compared.
  std::string undecided;
  std::vector<uint32_t> primes;  // of the tower
  int rounds = 0;
  // log2 of the probability that a difference in the element that was compared least went unseen,
  // by the model of docs/verification.md.
  double error_log2 = 0;
  // The µGraph was what the kernels were compared with: the program uses a law that residues lack.
  bool against_mugraph = false;
  double seconds_compile = 0, seconds_run = 0;

  bool passed() const { return failure.empty() && undecided.empty(); }
};

// "residues modulo 359 and 179 equal in 5 rounds (2^-42)", or why not.
std::string to_string(const ResidueCheck& check);

// `plan` and `cuda` were emitted for `graph`, a µGraph of `program`.  Of the options the seed, the
// limits and the threads count.  Errors: no C++ compiler, text that does not compile, a limit.
Result<ResidueCheck> check_residues(const Program& program, const MuGraph& graph,
                                    const LaunchPlan& plan, const std::string& cuda,
                                    const EmulatorOptions& options);

}  // namespace sundog::codegen
