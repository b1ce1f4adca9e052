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
  std::string sizes;            // "n=3 h=8", "q=7 k=8 (1024 as 3)"
  bool literals_moved = false;  // it is another member of the two families (core/resize_literals.h)
};

// The same two at a few small sizes: different extents for axes that are not tied, ragged where the
// originals are; an axis that a literal pins keeps its extent.  Where that is too large for an
// exact test the literals of conditions move with the extents.  At least one case, or an error.
Result<std::vector<SmallCase>> small_cases(const Program& program, const Program& candidate);
Result<std::vector<SmallCase>> small_cases(const Program& program, const MuGraph& candidate);

// Cases in which the axes whose size is a value in the program have their declared size, for what
// differs at others: `x / 1024` may be meant for `x / size(h)`.  None if that is too large.
std::vector<SmallCase> cases_with_declared_sizes(const Program& program,
                                                 const Candidate& candidate);

// The two at the declared sizes, if these are small enough for an exact test.
std::optional<SmallCase> declared_case(const Program& program, const Candidate& candidate);

// The two with the tiles of the µGraph at their own sizes, and grids and loops cut short if the
// program is larger than `most_work`: for runs in floating point.  Nothing if even that is larger.
std::optional<SmallCase> tile_case(const Program& program, const MuGraph& candidate,
                                   double most_work);

// Index values of the largest term of a program: a measure of what interpreting it costs.
double work(const Program& program);

// "n=3 h=8": every axis of a program.
std::string sizes_text(const Program& program);

}  // namespace sundog::verify
