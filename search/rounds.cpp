// Rounds start with one task and double, up to a fixed width: the first tasks find incumbents and
// good tiles that all others prune by, so little would be gained by running many of them at once.
// A task that has used up its quantum leaves several; they come before what was due after it, so
// the tree is walked depth first, and the list of tasks stays short.  While it is short each
// subtree becomes a task of its own, so that there is something to share out; when it is long they
// stay together, since a task has its price.
//
// Trees of more kernels wait until those of fewer are done: a good structure of few kernels prunes
// most of them.  Where one is very large (a program of many terms that may be written in many ways)
// the others do not wait for ever: each has turns, twice as long each time round.  Each kernel more
// multiplies what there is to look at, and where two kernels are better than three no program was
// seen for which four were better still; so beyond three each tree is grown only where the one
// before it paid, and all of them together may take as long as the rest.
#include "search/rounds.h"

#include <algorithm>
#include <new>
#include <optional>
#include <tuple>

namespace sundog::search {
namespace {

constexpr uint32_t kMostTasks = 64;     // of a round: some for each of 16 threads
constexpr uint64_t kQuantum = 4096;     // states of one task
constexpr size_t kEnoughTasks = 256;    // due, to stop breaking them up
constexpr double kTooExpensive = 1.5;   // times the best: work that no structure may contain
constexpr int kKernelsAlways = 3;       // in one structure
constexpr double kNearlyBest = 1.02;    // times the best: what a kernel more has to gain
constexpr uint64_t kFewStates = 20000;  // that trees of more kernels may visit in any case
constexpr uint64_t kTurn = 1 << 15;     // states of one tree before others have a turn; then twice

}  // namespace

Rounds::Rounds(std::vector<std::unique_ptr<BankRun>>& banks, const Machine& machine,
               const SearchSpace& space, uint64_t memory_bytes, Limits& limits, Workers& workers)
    : banks_(banks),
      machine_(machine),
      space_(space),
      memory_bytes_(memory_bytes),
      limits_(limits),
      workers_(workers) {}

void Rounds::begin(double best_us, int kernels) {
  state_ = {};
  state_.incumbents = Incumbents(std::max(1, space_.kept_per_kind), best_us);
  first_us_ = best_us;
  first_kernels_ = kernels;
  const int at_once = space_.prune_more_kernels ? kKernelsAlways : space_.most_kernels;
  while (state_.kernels < std::min(at_once, space_.most_kernels)) add_trees();
}

// The trees of one kernel more than there were.
void Rounds::add_trees() {
  ++state_.kernels;
  for (size_t bank = 0; bank < banks_.size(); ++bank) {
    PlacementTask task;
    task.bank = static_cast<int>(bank);
    task.kernels = state_.kernels;
    state_.tasks.push_back(std::move(task));
  }
}

// Whether nothing beats what has more kernels than were searched, or all that has fewer is worse
// than what has as many.
bool Rounds::more_kernels_pay() const {
  const double best = state_.incumbents.best_us();
  if (first_us_ <= best) return first_kernels_ > state_.kernels;
  const auto found = state_.incumbents.sorted();
  return std::none_of(found.begin(), found.end(), [&](const Incumbents::Entry& e) {
    return e.structure.us <= kNearlyBest * best &&
           e.structure.kernels.size() < static_cast<size_t>(state_.kernels);
  });
}

// Tasks of the next round: those at the front that have as many kernels as the first.
size_t Rounds::width() const {
  size_t width = 0;
  while (width < state_.tasks.size() && width < state_.width &&
         state_.tasks[width].kernels == state_.tasks[0].kernels) {
    ++width;
  }
  return width;
}

PlacementOutcome Rounds::run(const PlacementTask& task, uint64_t states) {
  BankRun& run = *banks_[static_cast<size_t>(task.bank)];
  Quantum quantum(states, kQuantum, limits_);
  Placement placement(*run.bank, run.table, machine_, space_, *run.tables);
  if (run.constraint) placement.demand(*run.constraint);
  if (trace_) placement.trace();
  return placement.run(task, state_.incumbents.best_us(), quantum);
}

bool Rounds::run() {
  const size_t width = this->width();
  if (width == 0) return false;
  for (size_t i = 0; i < width; ++i) {
    drop_expensive(banks_[static_cast<size_t>(state_.tasks[i].bank)]->table,
                   kTooExpensive * state_.incumbents.best_us());
  }
  const uint64_t share = (std::max<uint64_t>(1, limits_.states_left()) - 1) / width + 1;
  std::vector<std::optional<PlacementOutcome>> outcomes(width);
  workers_.run(width, [&](size_t i) {
    try {
      outcomes[i] = run(state_.tasks[i], share);
    } catch (const std::bad_alloc&) {
      limits_.end(StopReason::kMemory);
    }
  });
  outcomes_.clear();
  for (auto& outcome : outcomes) {
    // A task that memory did not suffice for has found nothing.
    outcomes_.push_back(outcome ? std::move(*outcome) : PlacementOutcome(Incumbents(1)));
  }
  whole_ = whole_ && share >= kQuantum && !limits_.reached();
  return true;
}

void Rounds::merge() {
  const auto ran = state_.tasks.begin() + static_cast<std::ptrdiff_t>(outcomes_.size());
  const std::vector<PlacementTask> tasks(std::make_move_iterator(state_.tasks.begin()),
                                         std::make_move_iterator(ran));
  state_.tasks.erase(state_.tasks.begin(), ran);
  const bool few = state_.tasks.size() < kEnoughTasks;
  std::vector<PlacementTask> left;
  uint64_t states = 0;
  const double best_us = state_.incumbents.best_us();
  for (size_t i = 0; i < tasks.size(); ++i) {
    PlacementOutcome& outcome = outcomes_[i];
    if (trace_) {
      trace_({state_.rounds, tasks[i].bank, tasks[i].kernels, best_us, std::move(outcome.trace)});
    }
    if (state_.incumbents.offer_all(outcome.found)) time_to_best_ = outcome.best_at;
    state_.counts += outcome.counts;
    states += outcome.counts.states;
    banks_[static_cast<size_t>(tasks[i].bank)]->tables->take(outcome.news);
    if (outcome.rest.empty()) continue;
    if (few) {
      for (Subtree& subtree : outcome.rest) {
        left.push_back({tasks[i].bank, tasks[i].kernels, {std::move(subtree)}});
      }
    } else {
      left.push_back({tasks[i].bank, tasks[i].kernels, std::move(outcome.rest)});
    }
  }
  outcomes_.clear();
  state_.tasks.insert(state_.tasks.begin(), std::make_move_iterator(left.begin()),
                      std::make_move_iterator(left.end()));
  for (const auto& bank : banks_) bank->tables->end_round();
  take_turns(tasks.front(), states);
  grow();
  bound_memory();
  ++state_.rounds;
  state_.width = std::min(kMostTasks, state_.width * 2);
  limits_.add_states(states);
}

// A tree that has used up its turn goes behind the others.  `ran`: of a round of so many states.
void Rounds::take_turns(const PlacementTask& ran, uint64_t states) {
  const auto is_other = [&](const PlacementTask& t) {
    return t.bank != ran.bank || t.kernels != ran.kernels;
  };
  auto& tasks = state_.tasks;
  if (tasks.empty() || is_other(tasks.front())) {
    state_.turn = 0;
    return;
  }
  state_.turn += states;
  if (state_.turn < kTurn << std::min<uint64_t>(state_.turns, 32)) return;
  const auto others = std::find_if(tasks.begin(), tasks.end(), is_other);
  if (others == tasks.end()) return;
  std::rotate(tasks.begin(), others, tasks.end());
  state_.turn = 0;
  // Trees stand in the order in which they were added until all have had their turn.
  const PlacementTask& next = tasks.front();
  if (std::tie(next.kernels, next.bank) < std::tie(ran.kernels, ran.bank)) ++state_.turns;
}

// Trees of more kernels, once all others are done: no longer than those took.
void Rounds::grow() {
  if (!space_.prune_more_kernels) return;
  if (state_.kernels > kKernelsAlways && !state_.tasks.empty()) {
    if (state_.counts.states - state_.few <= std::max(state_.few, kFewStates)) return;
    state_.tasks.clear();
    state_.cut = true;
  }
  if (!state_.tasks.empty() || state_.cut || state_.kernels >= space_.most_kernels) return;
  if (!more_kernels_pay()) return;
  if (state_.kernels == kKernelsAlways) state_.few = state_.counts.states;
  add_trees();
}

void Rounds::forget() {
  outcomes_ = {};
  state_.tasks = {};
  for (const auto& bank : banks_) bank->tables->clear();
}

// Emptied as a whole and between rounds, so that the number of threads has no say in it.
void Rounds::bound_memory() {
  if (memory_bytes_ == 0) return;
  uint64_t bytes = 0;
  for (const auto& bank : banks_) bytes += bank->tables->bytes();
  if (bytes < memory_bytes_) return;
  for (const auto& bank : banks_) bank->tables->clear();
  ++state_.emptied;
}

}  // namespace sundog::search
