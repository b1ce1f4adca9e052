// Rounds start with one task and double, up to a fixed width: the first tasks find incumbents and
// good tiles that all others prune by, so little would be gained by running many of them at once.
// A task that has used up its quantum leaves several; they come before what was due after it, so
// the tree is walked depth first, and the list of tasks stays short.  While it is short each
// subtree becomes a task of its own, so that there is something to share out; when it is long they
// stay together, since a task has its price.
//
// Trees of more kernels wait until those of fewer are done: a good structure of few kernels prunes
// most of them.
#include "search/rounds.h"

#include <algorithm>
#include <new>
#include <optional>

namespace sundog::search {
namespace {

constexpr uint32_t kMostTasks = 64;    // of a round: some for each of 16 threads
constexpr uint64_t kQuantum = 4096;    // states of one task
constexpr size_t kEnoughTasks = 256;   // due, to stop breaking them up
constexpr double kTooExpensive = 1.5;  // times the best: work that no structure may contain

}  // namespace

Rounds::Rounds(std::vector<std::unique_ptr<BankRun>>& banks, const Machine& machine,
               const SearchSpace& space, uint64_t memory_bytes, Limits& limits, Workers& workers)
    : banks_(banks),
      machine_(machine),
      space_(space),
      memory_bytes_(memory_bytes),
      limits_(limits),
      workers_(workers) {}

void Rounds::begin(double best_us) {
  state_ = {};
  state_.incumbents = Incumbents(std::max(1, space_.kept_per_kind), best_us);
  for (int kernels = 1; kernels <= space_.most_kernels; ++kernels) {
    for (size_t bank = 0; bank < banks_.size(); ++bank) {
      PlacementTask task;
      task.bank = static_cast<int>(bank);
      task.kernels = kernels;
      state_.tasks.push_back(std::move(task));
    }
  }
}

std::vector<PlacementTask> Rounds::next_tasks() {
  std::vector<PlacementTask> tasks;
  auto& due = state_.tasks;
  while (!due.empty() && tasks.size() < state_.width &&
         (tasks.empty() || due.front().kernels == tasks.front().kernels)) {
    tasks.push_back(std::move(due.front()));
    due.pop_front();
  }
  return tasks;
}

PlacementOutcome Rounds::run(const PlacementTask& task, uint64_t states) {
  BankRun& run = *banks_[static_cast<size_t>(task.bank)];
  Quantum quantum(states, kQuantum, limits_);
  Placement placement(*run.bank, run.table, machine_, space_, *run.tables);
  return placement.run(task, state_.incumbents.best_us(), quantum);
}

bool Rounds::step() {
  if (limits_.check()) return false;
  const std::vector<PlacementTask> tasks = next_tasks();
  if (tasks.empty()) return false;
  for (const PlacementTask& task : tasks) {
    drop_expensive(banks_[static_cast<size_t>(task.bank)]->table,
                   kTooExpensive * state_.incumbents.best_us());
  }
  const uint64_t share = (limits_.states_left() - 1) / tasks.size() + 1;
  std::vector<std::optional<PlacementOutcome>> outcomes(tasks.size());
  workers_.run(tasks.size(), [&](size_t i) {
    try {
      outcomes[i] = run(tasks[i], share);
    } catch (const std::bad_alloc&) {
      limits_.end(StopReason::kMemory);
    }
  });
  std::vector<PlacementOutcome> done;
  for (auto& outcome : outcomes) {
    // A task that memory did not suffice for has found nothing.
    done.push_back(outcome ? std::move(*outcome) : PlacementOutcome(Incumbents(1)));
  }
  merge(tasks, std::move(done));
  return !limits_.reached();
}

void Rounds::merge(const std::vector<PlacementTask>& tasks,
                   std::vector<PlacementOutcome> outcomes) {
  const bool few = state_.tasks.size() < kEnoughTasks;
  std::vector<PlacementTask> left;
  uint64_t states = 0;
  for (size_t i = 0; i < tasks.size(); ++i) {
    PlacementOutcome& outcome = outcomes[i];
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
  state_.tasks.insert(state_.tasks.begin(), std::make_move_iterator(left.begin()),
                      std::make_move_iterator(left.end()));
  for (const auto& bank : banks_) bank->tables->end_round();
  bound_memory();
  ++state_.rounds;
  state_.width = std::min(kMostTasks, state_.width * 2);
  limits_.add_states(states);
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
