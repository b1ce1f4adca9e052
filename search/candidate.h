// From structures to µGraphs that can be offered: the last step of the search.
#pragma once

#include <string>
#include <vector>

#include "core/device.h"
#include "core/mugraph.h"
#include "search/incumbents.h"
#include "search/machine.h"
#include "search/rounds.h"
#include "search/search_space.h"

namespace sundog::search {

struct Candidate {
  MuGraph graph;
  double predicted_us = 0;
  std::string structure;  // one line, for people
  std::string kind;       // variations of one structure share it
};

// Exact shared memory and registers, which the cost model only estimates.
bool fits_device(const MuGraph& graph, const Device& device);

// A finished µGraph with its price and description.
Candidate candidate_of(MuGraph graph, std::string kind, const Machine& machine);

// The structure at its best sizes and at some that are nearly as good, best first, each with exact
// shared memory and registers that the device has; last, in f32 what it would keep in 16 bits for
// tensor cores, if anything: first sums alone, then all of it, which is slower and may be all that
// numbers allow.  At most one has kernels that the blocks of clusters run.  Empty: none fits.
std::vector<Candidate> candidates_of(const Structure& structure, const BankRun& run,
                                     const SearchSpace& space, const Machine& machine,
                                     const Device& device);

}  // namespace sundog::search
