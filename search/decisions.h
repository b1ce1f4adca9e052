// A search tree by the decisions that lead through it, so that a search may stop at any choice and
// be taken up elsewhere: on another thread, in another round, after a restart.
//
//   for (Choice c(decisions, alternatives.size()); c.next();) descend(alternatives[c.index()]);
//
// A subtree names decisions from the root and what is left of the choice after them.  Walking one
// repeats its decisions first (`repeating()`); when the states of a quantum are used up, each open
// choice leaves what it has not tried, in the order in which it would have come.
#pragma once

#include <cstdint>
#include <vector>

#include "search/limits.h"

namespace sundog::search {

struct Subtree {
  std::vector<uint32_t> path;  // alternatives taken at the choices from the root on
  uint32_t first = 0;          // of the next choice: the alternatives from this one on
  bool operator==(const Subtree&) const = default;
};

class Decisions {
 public:
  // A walk through `start` that ends when `quantum` is used up.
  void begin(Subtree start, const Quantum* quantum);

  // Whether what is visited now was visited, and counted, by the walk that left this subtree.
  bool repeating() const { return repeating_; }
  const std::vector<uint32_t>& taken() const { return taken_; }

  // What the walks since the last call left, in their order.
  std::vector<Subtree> take_rest();
  void leave(Subtree rest) { rest_.push_back(std::move(rest)); }

 private:
  friend class Choice;
  Subtree start_;
  const Quantum* quantum_ = nullptr;
  std::vector<uint32_t> taken_;
  std::vector<Subtree> rest_;
  bool repeating_ = false;
};

// One choice among `count` alternatives.  Whatever a search does between two choices must follow
// from the decisions alone; no alternative may be tried outside a choice.
class Choice {
 public:
  Choice(Decisions& decisions, size_t count);
  Choice(const Choice&) = delete;
  Choice& operator=(const Choice&) = delete;
  ~Choice();

  // On to the next alternative; false: there is none, or the quantum is used up.
  bool next();
  size_t index() const { return decisions_.taken_[depth_]; }

 private:
  void leave_rest();

  Decisions& decisions_;
  size_t depth_;
  uint32_t next_ = 0, end_ = 0;
  bool fixed_ = false;  // repeats a decision
};

}  // namespace sundog::search
