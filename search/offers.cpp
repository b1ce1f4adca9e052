// A structure's candidates cost some milliseconds: it is lowered as a whole, its sizes are looked
// for thoroughly, and registers are counted.  A search keeps dozens of structures and few are asked
// for, so each is sized only when one of its candidates could be the next.
#include "search/offers.h"

#include <algorithm>
#include <iterator>
#include <new>
#include <utility>

namespace sundog::search {
namespace {

// A candidate is at most so many times faster than placement said of its structure: better sizes,
// and a launch that the last block saves.  Of 1,212 structures of the programs in benchmarks/ none
// was by more than 1.09.
constexpr double kMostGained = 1.2;

bool slower(const Candidate& a, const Candidate& b) { return a.predicted_us > b.predicted_us; }

}  // namespace

Offers::Offers(std::vector<Incumbents::Entry> kept, std::vector<Candidate> finished,
               const std::vector<std::unique_ptr<BankRun>>& banks, const SearchSpace& space,
               const Machine& machine, const Device& device, Workers& workers, Limits& limits)
    : kept_(std::move(kept)),
      ready_(std::move(finished)),
      banks_(banks),
      space_(space),
      machine_(machine),
      device_(device),
      workers_(workers),
      limits_(limits) {
  // Of equally fast ones the first comes first.
  std::reverse(ready_.begin(), ready_.end());
  std::stable_sort(ready_.begin(), ready_.end(), slower);
}

std::optional<Candidate> Offers::next() {
  while (sized_ < kept_.size() && may_be_next(kept_[sized_])) size_some();
  if (ready_.empty()) return {};
  Candidate c = std::move(ready_.back());
  ready_.pop_back();
  return c;
}

uint64_t Offers::left() const { return ready_.size() + (kept_.size() - sized_); }

// What is joined in a cluster is neither launched nor waits for memory.
double Offers::least_us(const Structure& structure) const {
  const bool may_join = space_.cluster && machine_.clusters;
  return structure.us - (may_join ? machine_.launch_us + machine_.fill_us : 0);
}

bool Offers::may_be_next(const Incumbents::Entry& entry) const {
  return ready_.empty() || least_us(entry.structure) <= kMostGained * ready_.back().predicted_us;
}

// All that may be next, and the first in any case.
void Offers::size_some() {
  size_t count = 1;
  const double least = ready_.empty() ? kept_[sized_].structure.us : ready_.back().predicted_us;
  while (sized_ + count < kept_.size() &&
         least_us(kept_[sized_ + count].structure) <= kMostGained * least) {
    ++count;
  }
  std::vector<std::vector<Candidate>> lists(count);
  workers_.run(count, [&](size_t i) {
    const Incumbents::Entry& entry = kept_[sized_ + i];
    try {
      lists[i] = candidates_of(entry.structure, *banks_[static_cast<size_t>(entry.bank)], space_,
                               machine_, device_);
    } catch (const std::bad_alloc&) {
      limits_.end(StopReason::kMemory);
    }
  });
  sized_ += count;
  std::vector<Candidate> fresh;
  for (auto& list : lists) {
    if (list.empty()) ++unfit_;
    std::move(list.begin(), list.end(), std::back_inserter(fresh));
  }
  // Those that were there come first.
  ready_.insert(ready_.begin(), std::make_move_iterator(fresh.rbegin()),
                std::make_move_iterator(fresh.rend()));
  std::stable_sort(ready_.begin(), ready_.end(), slower);
}

}  // namespace sundog::search
