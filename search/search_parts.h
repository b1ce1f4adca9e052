// Candidates for a large program from searches of its parts.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "core/device.h"
#include "core/program.h"
#include "search/candidate.h"
#include "search/search_space.h"
#include "search/superoptimize.h"

namespace sundog::search {

// The best µGraph of a part, and what it was looked for with.
struct FoundPart {
  std::string program;  // as text
  double most_us = 0;   // what was to be beaten
  double us = std::numeric_limits<double>::infinity();
  std::string graph;  // serialized, unless `us` is infinite
};

// Where the search of parts stands.
struct PartsState {
  uint64_t states_of_a_part = 0;  // the limit of each
  uint64_t states = 0;            // visited by those that have ended
  uint64_t searches = 0;          // that have ended
  std::vector<FoundPart> found;
  std::string underway;    // the program of a part that is being searched; empty: none
  std::string checkpoint;  // of that search
};

struct PartsFound {
  std::vector<Candidate> candidates;  // of the whole program, best first
  double best_at = 0;                 // by the clock, when the first of them was found
  PartsState state;                   // to go on from, or to come to the same from in no time
};

// Searches the parts of the best partitions, with intermediates in 16 bits and in 32, and joins
// what is found. `budget_s` and `states` are shared by all searches; 0: no limit but a fixed number
// of states for each part. Goes on from `state`. Of `options` the callbacks of candidates are not
// used; `save` is told where it stands each time that the search of a part is saved.
PartsFound search_parts(const Program& program, const Device& device, const SearchSpace& space,
                        const SearchOptions& options, double budget_s, uint64_t states,
                        PartsState state = {},
                        const std::function<void(const PartsState&)>& save = {});

}  // namespace sundog::search
