// A bank with its terms ranked, ready for placement.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/program.h"
#include "search/machine.h"
#include "search/rounds.h"
#include "search/search_space.h"

namespace sundog::search {

struct MadeBank {
  BankRun run;
  size_t terms = 0;
  bool usable = false;             // false: `notes` say why not
  std::vector<std::string> notes;  // what was left out
};

// `parts`: reduced axes of the program that are cut into parts.  `stop` ends rewriting early.
MadeBank make_bank(const Program& program, AxisSet parts, uint64_t seed, const SearchSpace& space,
                   const Machine& machine, const std::function<bool()>& stop);

// Sets of reduced axes worth cutting, single ones first, as a bank without parts shows them.
std::vector<AxisSet> part_sets(const Bank& bank, const SearchSpace& space, const Machine& machine);

}  // namespace sundog::search
