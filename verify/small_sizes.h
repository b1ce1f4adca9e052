// The small sizes at which a program and a candidate are compared exactly.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/mugraph.h"
#include "core/program.h"
#include "core/status.h"

namespace sundog::verify {

using Candidate = std::variant<Program, MuGraph>;

struct SmallCase {
  Program program;
  Candidate candidate;
  std::string sizes;  // "n=3 h=8"
};

// The same two at a few small sizes: different extents for axes that are not tied, ragged where the
// originals are; an axis that a literal pins keeps its extent.  At least one case, or an error.
Result<std::vector<SmallCase>> small_cases(const Program& program, const Program& candidate);
Result<std::vector<SmallCase>> small_cases(const Program& program, const MuGraph& candidate);

// The two with the tiles of the µGraph at their own sizes, and grids and loops cut short if the
// program is larger than `most_work`: for runs in floating point.  Nothing if even that is larger.
std::optional<SmallCase> tile_case(const Program& program, const MuGraph& candidate,
                                   double most_work);

// Index values of the largest term of a program: a measure of what interpreting it costs.
double work(const Program& program);

// "n=3 h=8": every axis of a program.
std::string sizes_text(const Program& program);

// Why inputs or outputs of the candidate are not those of the program, by name, dtype and extents;
// empty if they are.  A candidate may leave out an input, which it then does not need.
std::string interface_mismatch(const Program& program, const Program& candidate);

}  // namespace sundog::verify
