// Work is handed over as decisions, not as copies of the search's state: a decision is four bytes,
// a state some kilobytes, and a path can be written into a checkpoint.  Repeating a path costs as
// many steps as it has decisions, some tens, against the thousands of states of a quantum.
//
// A search that is cut by its quantum unwinds: the innermost choice leaves the alternatives that it
// has not tried, then the one around it, and so on.  That is the order in which an unbroken search
// would have come to them.
#include "search/decisions.h"

#include <utility>

namespace sundog::search {

void Decisions::begin(Subtree start, const Quantum* quantum) {
  start_ = std::move(start);
  quantum_ = quantum;
  taken_.clear();
  repeating_ = true;
}

std::vector<Subtree> Decisions::take_rest() { return std::exchange(rest_, {}); }

Choice::Choice(Decisions& decisions, size_t count)
    : decisions_(decisions), depth_(decisions.taken_.size()), end_(static_cast<uint32_t>(count)) {
  const Subtree& start = decisions_.start_;
  if (depth_ < start.path.size() && decisions_.repeating_) {
    fixed_ = true;
    next_ = start.path[depth_];
    if (next_ < end_) end_ = next_ + 1;
  } else {
    if (decisions_.repeating_) next_ = start.first;
    decisions_.repeating_ = false;
    if (decisions_.quantum_->reached()) leave_rest();
  }
  decisions_.taken_.push_back(0);
}

Choice::~Choice() { decisions_.taken_.resize(depth_); }

bool Choice::next() {
  if (!fixed_ && decisions_.quantum_->reached()) leave_rest();
  if (next_ >= end_) return false;
  decisions_.taken_[depth_] = next_++;
  return true;
}

void Choice::leave_rest() {
  if (next_ >= end_) return;
  const auto& taken = decisions_.taken_;
  decisions_.leave({{taken.begin(), taken.begin() + static_cast<std::ptrdiff_t>(depth_)}, next_});
  next_ = end_;
}

}  // namespace sundog::search
