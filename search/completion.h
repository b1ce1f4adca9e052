// How fast at least one kernel can make a set of terms out of inputs alone.
//
// A structure's time is the sum of its kernels' times, and what the kernels before those that are
// decided have to make is a set of terms.  So where only one more kernel is allowed, its least time
// is known as soon as it is known what is left for it, before anything else about the kernel that
// loads it is.
#pragma once

#include <cstdint>
#include <unordered_set>

#include "search/kernel_pricer.h"
#include "search/limits.h"

namespace sundog::search {

class Completion {
 public:
  Completion(const Bank& bank, const TermTable& table, const Machine& machine,
             const SearchSpace& space, PlacementTables& tables, KernelPricer& pricer)
      : bank_(bank),
        table_(table),
        machine_(machine),
        space_(space),
        tables_(tables),
        pricer_(pricer) {}

  // us, but no more than is of interest to the pricer.  A lower bound where there are too many
  // kernels to price them all, or where the limits are reached.  What it takes is spent from the
  // quantum, and good sizes are told to `news`, of every task that asks in the round in which it is
  // worked out.
  double least_us(const RankSet& terms, Quantum& quantum, PlacementNews& news);
  // Of kernels that were priced for it, and for no other task.
  const KernelPricer::Counts& counts() const { return counts_; }

 private:
  void fill(RankSet need, double bytes, WorkTime work);
  void leaf();
  LeastTime work_out(const RankSet& terms);
  double bound(double bytes, const WorkTime& work) const;

  const Bank& bank_;
  const TermTable& table_;
  const Machine& machine_;
  const SearchSpace& space_;
  PlacementTables& tables_;
  KernelPricer& pricer_;

  KernelBody body_;
  AxisSet common_;
  RankSet read_;
  double best_ = 0;
  int states_ = 0;
  Quantum* quantum_ = nullptr;
  GoodSizesByKey sizes_;         // of the kernels so far
  KernelPricer::Counts priced_;  // for one set of terms
  KernelPricer::Counts counts_;
  std::unordered_set<uint64_t> told_;  // sets of terms that this task has paid for
};

}  // namespace sundog::search
