// Emits a kernel and runs it on the emulator, race checker on, against its program.
#pragma once

#include <string>

namespace sundog::codegen {

struct GenerateCase {
  std::string name;
  std::string program;  // text
  std::string graph;    // text
};

// Attention over three parts of the keys, the last of which is short: maxima, sums and outputs of
// each part, rescaled when they are joined.  `join`: what a kernel that joins them says of its
// blocks, "grid(q.o) warps(1) via last_block"; `columns`: the factor of f in its tiles, and `split`
// the statement that makes it, if it is not f itself.
GenerateCase split_attention(const std::string& join, const std::string& columns,
                             const std::string& split = "");

struct GenerateOutcome {
  bool passed = false;
  double max_rel_error = 0;
  std::string cuda;
  std::string failure;   // why not: an error, a problem the emulator saw, a wrong output
  std::string problems;  // all that the emulator saw
  double conflicts = 0;  // share of the turns of shared memory that its banks cost
  // Of the exact check, where it was asked for.
  bool residues_passed = false;
  std::string residues;
};

// For the device "h200".
GenerateOutcome run_case(const GenerateCase& c);

// The same with each `from` in the kernels' text, of which there must be one, replaced by `to`.
GenerateOutcome run_changed(const GenerateCase& c, const std::string& from, const std::string& to);

// The same two, and the exact check of the text, whatever the comparison of floats says.
GenerateOutcome run_exact(const GenerateCase& c);
GenerateOutcome run_exact_changed(const GenerateCase& c, const std::string& from,
                                  const std::string& to);

// EXPECTs that the case passes; the failure shows its texts.
void expect_right(const GenerateCase& c);

}  // namespace sundog::codegen
