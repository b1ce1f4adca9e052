// The search tree of structures, walked in rounds of tasks.
//
// A round is a number of tasks that follows from the rounds before it, never from the number of
// threads.  Each works against the incumbents and tables as they were when the round began, and
// what it finds is taken in afterwards in the order of the tasks: so the result is the same for any
// number of threads.  Between two rounds the search is nothing but data.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "search/bank.h"
#include "search/incumbents.h"
#include "search/limits.h"
#include "search/machine.h"
#include "search/place_kernel.h"
#include "search/placement_tables.h"
#include "search/search_space.h"
#include "search/term_table.h"
#include "search/workers.h"

namespace sundog::search {

// Everything that belongs to one choice of axes with parts.
struct BankRun {
  std::unique_ptr<Bank> bank;
  TermTable table;
  std::unique_ptr<PlacementTables> tables = std::make_unique<PlacementTables>();
};

// Where a search stands between two rounds.
struct RoundState {
  std::deque<PlacementTask> tasks;  // in the order in which they are due
  Incumbents incumbents{1};
  PlacementCounts counts;
  uint64_t rounds = 0;
  uint32_t width = 1;    // tasks of the next round
  uint64_t emptied = 0;  // times that tables grew too large and were emptied
};

class Rounds {
 public:
  // `memory_bytes`: about what the tables may take; 0: no limit.
  Rounds(std::vector<std::unique_ptr<BankRun>>& banks, const Machine& machine,
         const SearchSpace& space, uint64_t memory_bytes, Limits& limits, Workers& workers);

  // All trees of one kernel, then of two, and so on; `best_us` is what there is to beat.
  void begin(double best_us);
  // One round.  False: there was none to do, or a limit ended the search in the middle of it; what
  // the round found until then is in the state.
  bool step();

  const RoundState& state() const { return state_; }
  double time_to_best() const { return time_to_best_; }

 private:
  std::vector<PlacementTask> next_tasks();
  PlacementOutcome run(const PlacementTask& task, uint64_t states);
  void merge(const std::vector<PlacementTask>& tasks, std::vector<PlacementOutcome> outcomes);
  void bound_memory();

  std::vector<std::unique_ptr<BankRun>>& banks_;
  const Machine& machine_;
  const SearchSpace& space_;
  uint64_t memory_bytes_;
  Limits& limits_;
  Workers& workers_;
  RoundState state_;
  double time_to_best_ = 0;
};

}  // namespace sundog::search
