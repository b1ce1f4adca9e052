// Why a kind of structure was not chosen: what the best of that kind costs, and which rule left it.
//
//   StructureQuestion question;
//   question.stored = {"r"};
//   Result<Explanation> e = explain(program, device, {}, options, question);
//   e->best_us, e->pick_us, e->cuts[...]
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "core/device.h"
#include "core/program.h"
#include "core/status.h"
#include "search/superoptimize.h"
#include "search/trace.h"

namespace sundog::search {

struct Explanation {
  // What the search picks by prediction alone.
  double pick_us = 0;
  std::string pick;
  // The best structure of the kind asked for; none found: 0 and empty.
  double best_us = 0;
  std::string best;
  bool exhausted = false;  // nothing of that kind was left to look at
  // In the search for the pick, while what was decided was of that kind:
  struct Cut {
    uint64_t times = 0;
    double least_us = std::numeric_limits<double>::infinity();  // reached when it was left
  };
  std::array<Cut, kPruneRules> cuts;      // by rule
  uint64_t structures = 0;                // that were complete
  std::vector<std::string> never_stored;  // terms asked for that no kernel may store for another
};

// Searches twice, each time within the limits of `options`, whose accept, save and resume are not
// used.  Errors: those of superoptimize(); a name that no term has (the hint lists those there
// are).
Result<Explanation> explain(const Program& program, const Device& device, const SearchSpace& space,
                            const SearchOptions& options, const StructureQuestion& question);

}  // namespace sundog::search
