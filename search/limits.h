// When to stop: a budget of seconds, of states, of memory, or a word from outside.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>

namespace sundog::search {

enum class StopReason : uint8_t { kNone, kBudget, kStates, kInterrupted, kMemory };

// Of a whole search.  Its functions may be called by several threads at once, and call `clock` so.
class Limits {
 public:
  // `clock` gives seconds; empty: no limit of time.  `stop` may be null.  Numbers of 0: no limit.
  Limits(std::function<double()> clock, double budget_s, uint64_t most_states,
         const std::atomic<bool>* stop);

  // Looks at the clock and the flag; true when the search has to end.
  bool check();
  bool reached() const { return reason_.load(std::memory_order_relaxed) != StopReason::kNone; }
  // Ends the search, unless something else did before.
  void end(StopReason reason);
  // "exhausted" if nothing ended the search, else "budget", "states", "interrupted" or "memory".
  std::string reason() const;

  void add_states(uint64_t states);
  uint64_t states() const { return states_; }
  uint64_t states_left() const;  // the greatest number if there is no limit
  double seconds() const { return clock_ ? clock_() - start_ : 0; }
  double seconds_at(double clock) const { return clock_ ? clock - start_ : 0; }

 private:
  std::function<double()> clock_;
  double start_ = 0, budget_s_ = 0;
  uint64_t most_states_ = 0, states_ = 0;
  const std::atomic<bool>* stop_;
  std::atomic<StopReason> reason_{StopReason::kNone};
};

// What one task may do before it has to leave the rest: a number of states, or as much other work
// as takes the time of that many states.
class Quantum {
 public:
  // `states` may be less than `work` allows.
  Quantum(uint64_t states, uint64_t work, Limits& limits)
      : most_states_(states), most_work_(work), limits_(limits) {}
  Quantum(const Quantum&) = delete;
  Quantum& operator=(const Quantum&) = delete;

  // Counts one state.
  void spend();
  // Counts work that is no state.
  void spend_work(uint64_t states) { work_ += states; }
  // Looks at the clock; called before anything that takes as long as many states.
  void check() { cut_ = cut_ || limits_.check(); }
  bool reached() const { return used_ >= most_states_ || used_ + work_ >= most_work_ || cut_; }
  // Whether the end of the whole search ended it.
  bool cut() const { return cut_; }
  uint64_t used() const { return used_; }
  double seconds() const { return limits_.seconds(); }

 private:
  uint64_t most_states_, most_work_, used_ = 0, work_ = 0;
  Limits& limits_;
  bool cut_ = false;
};

}  // namespace sundog::search
