// The clock is asked every few hundred states: asking costs more than a state does.
#include "search/limits.h"

#include <algorithm>
#include <limits>

namespace sundog::search {
namespace {

constexpr uint64_t kStatesBetweenChecks = 256;

}  // namespace

Limits::Limits(std::function<double()> clock, double budget_s, uint64_t most_states,
               const std::atomic<bool>* stop)
    : clock_(std::move(clock)), budget_s_(budget_s), most_states_(most_states), stop_(stop) {
  if (clock_) start_ = clock_();
}

bool Limits::check() {
  if (reached()) return true;
  if (stop_ != nullptr && stop_->load(std::memory_order_relaxed)) {
    end(StopReason::kInterrupted);
  } else if (budget_s_ > 0 && clock_ && seconds() >= budget_s_) {
    end(StopReason::kBudget);
  }
  return reached();
}

void Limits::end(StopReason reason) {
  StopReason none = StopReason::kNone;
  reason_.compare_exchange_strong(none, reason);
}

std::string Limits::reason() const {
  switch (reason_.load()) {
    case StopReason::kNone:
      return "exhausted";
    case StopReason::kBudget:
      return "budget";
    case StopReason::kStates:
      return "states";
    case StopReason::kInterrupted:
      return "interrupted";
    case StopReason::kMemory:
      return "memory";
  }
  return "";
}

void Limits::add_states(uint64_t states) {
  states_ += states;
  if (states_left() == 0) end(StopReason::kStates);
}

uint64_t Limits::states_left() const {
  if (most_states_ == 0) return std::numeric_limits<uint64_t>::max();
  return most_states_ - std::min(most_states_, states_);
}

void Quantum::spend() {
  ++used_;
  if (used_ % kStatesBetweenChecks == 0) check();
}

}  // namespace sundog::search
