// When to stop: a budget of seconds, of states, or a word from outside.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>

namespace sundog::search {

class Limits {
 public:
  // `clock` gives seconds; empty: no limit of time.  `stop` may be null.  Numbers of 0: no limit.
  Limits(std::function<double()> clock, double budget_s, uint64_t most_states,
         const std::atomic<bool>* stop);

  // Counts one state; true when the search has to end.
  bool spend();
  bool reached() const { return !reason_.empty(); }
  // Looks at the clock and the flag now.
  bool check();
  double seconds() const;
  // Remembers when the best result so far was found.
  void note_best() { best_at_ = seconds(); }
  double time_to_best() const { return best_at_; }
  uint64_t states() const { return states_; }
  const std::string& reason() const { return reason_; }  // empty: no limit was hit

 private:
  std::function<double()> clock_;
  double start_ = 0, budget_s_ = 0, best_at_ = 0;
  uint64_t most_states_ = 0, states_ = 0;
  const std::atomic<bool>* stop_;
  std::string reason_;
};

}  // namespace sundog::search
