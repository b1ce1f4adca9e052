// The clock is asked every few hundred states: asking costs more than a state does.
#include "search/limits.h"

namespace sundog::search {
namespace {

constexpr uint64_t kStatesBetweenChecks = 256;

}  // namespace

Limits::Limits(std::function<double()> clock, double budget_s, uint64_t most_states,
               const std::atomic<bool>* stop)
    : clock_(std::move(clock)), budget_s_(budget_s), most_states_(most_states), stop_(stop) {
  if (clock_) start_ = clock_();
}

bool Limits::spend() {
  ++states_;
  if (most_states_ > 0 && states_ >= most_states_ && reason_.empty()) reason_ = "states";
  if (states_ % kStatesBetweenChecks == 0) check();
  return reached();
}

bool Limits::check() {
  if (!reason_.empty()) return true;
  if (stop_ != nullptr && stop_->load(std::memory_order_relaxed)) {
    reason_ = "interrupted";
  } else if (budget_s_ > 0 && clock_ && seconds() >= budget_s_) {
    reason_ = "budget";
  }
  return reached();
}

double Limits::seconds() const { return clock_ ? clock_() - start_ : 0; }

}  // namespace sundog::search
