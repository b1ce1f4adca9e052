// Candidates for a large program from searches of its parts.
#pragma once

#include <string>
#include <vector>

#include "core/device.h"
#include "core/program.h"
#include "search/candidate.h"
#include "search/search_space.h"
#include "search/superoptimize.h"

namespace sundog::search {

struct PartsFound {
  std::vector<Candidate> candidates;  // of the whole program, best first
  uint64_t states = 0;                // that the searches of parts visited
  size_t searches = 0;
};

// Searches the parts of the best partitions, with intermediates in 16 bits and in 32, and joins
// what is found. `budget_s` and `states` are shared by all searches; 0: no limit but a fixed number
// of states for each part. Of `options` the budgets, callbacks of candidates and checkpoints are
// not used.
PartsFound search_parts(const Program& program, const Device& device, const SearchSpace& space,
                        const SearchOptions& options, double budget_s, uint64_t states);

}  // namespace sundog::search
