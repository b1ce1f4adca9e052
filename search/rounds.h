// The search tree of structures, walked in rounds of tasks.
//
// A round is a number of tasks that follows from the rounds before it, never from the number of
// threads.  Each works against the incumbents and tables as they were when the round began, and
// what it finds is taken in afterwards in the order of the tasks: so the result is the same for any
// number of threads.  Between two rounds the search is nothing but data.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
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
  std::optional<Constraint> constraint;  // on the structures that are looked for
};

// Where a search stands between two rounds.
struct RoundState {
  std::deque<PlacementTask> tasks;  // in the order in which they are due
  Incumbents incumbents{1};
  PlacementCounts counts;
  uint64_t rounds = 0;
  uint32_t width = 1;    // tasks of the next round
  int kernels = 0;       // of the largest trees that were due so far
  uint64_t few = 0;      // states until there were trees of more kernels than are always searched
  uint64_t turn = 0;     // states that the tree at the front was given since it came there
  uint64_t turns = 0;    // times that all trees had theirs
  bool cut = false;      // those have taken as long again, and were left
  uint64_t emptied = 0;  // times that tables grew too large and were emptied
};

class Rounds {
 public:
  // `memory_bytes`: about what the tables may take; 0: no limit.
  Rounds(std::vector<std::unique_ptr<BankRun>>& banks, const Machine& machine,
         const SearchSpace& space, uint64_t memory_bytes, Limits& limits, Workers& workers);

  // All trees of one kernel, then of two, and so on; `best_us`, by so many kernels, is what there
  // is to beat.
  void begin(double best_us, int kernels = 1);
  // Instead: where an earlier search was.
  void resume(RoundState state) { state_ = std::move(state); }

  // Tells what each task did when it is taken in; before the first run().
  void trace(std::function<void(const TaskTrace&)> told) { trace_ = std::move(told); }

  // Runs the tasks of one round; false: there are none.  The state stays as it is until merge().
  bool run();
  // Whether the round ran as it would have without limits.  What comes after one that did not
  // depends on where the limits were.
  bool whole() const { return whole_; }
  // Takes in what the tasks found, whole or not.
  void merge();

  // Gives the memory of all tables back.  Nothing more can be run.
  void forget();

  const RoundState& state() const { return state_; }
  // Seconds, when the best structure was found; nothing if it is older than this process.
  std::optional<double> time_to_best() const { return time_to_best_; }

 private:
  size_t width() const;
  void add_trees();
  bool more_kernels_pay() const;
  void take_turns(const PlacementTask& ran, uint64_t states);
  void grow();
  PlacementOutcome run(const PlacementTask& task, uint64_t states);
  void bound_memory();

  std::vector<std::unique_ptr<BankRun>>& banks_;
  const Machine& machine_;
  const SearchSpace& space_;
  uint64_t memory_bytes_;
  Limits& limits_;
  Workers& workers_;
  RoundState state_;
  double first_us_ = 0;                     // what there was to beat
  int first_kernels_ = 1;                   // and its kernels
  std::vector<PlacementOutcome> outcomes_;  // of the first tasks that are due
  bool whole_ = true;
  std::function<void(const TaskTrace&)> trace_;
  std::optional<double> time_to_best_;
};

}  // namespace sundog::search
