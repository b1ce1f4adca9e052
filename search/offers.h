// The candidates of the structures that a search has kept, in the order in which they are offered.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "core/device.h"
#include "search/candidate.h"
#include "search/incumbents.h"
#include "search/limits.h"
#include "search/machine.h"
#include "search/rounds.h"
#include "search/search_space.h"
#include "search/workers.h"

namespace sundog::search {

class Offers {
 public:
  // `kept`: best first, of `banks`.  `finished`: candidates that come from elsewhere.  Where memory
  // runs out the search is ended through `limits`, and the structure left out.
  Offers(std::vector<Incumbents::Entry> kept, std::vector<Candidate> finished,
         const std::vector<std::unique_ptr<BankRun>>& banks, const SearchSpace& space,
         const Machine& machine, const Device& device, Workers& workers, Limits& limits);

  // The fastest by prediction of those that have not been taken; nothing: there are no more.
  std::optional<Candidate> next();

  // Candidates that have not been taken, and structures that were not looked at.
  uint64_t left() const;
  // Structures of which no size fits exactly, among those that were looked at.
  uint64_t unfit() const { return unfit_; }

 private:
  double least_us(const Structure& structure) const;
  bool may_be_next(const Incumbents::Entry& entry) const;
  void size_some();

  std::vector<Incumbents::Entry> kept_;
  size_t sized_ = 0;              // of them, from the front
  std::vector<Candidate> ready_;  // slowest first
  const std::vector<std::unique_ptr<BankRun>>& banks_;
  const SearchSpace& space_;
  const Machine& machine_;
  const Device& device_;
  Workers& workers_;
  Limits& limits_;
  uint64_t unfit_ = 0;
};

}  // namespace sundog::search
