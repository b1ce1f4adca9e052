// Placement: which kernel computes which term, and how.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "search/completion.h"
#include "search/decisions.h"
#include "search/incumbents.h"
#include "search/kernel_pricer.h"
#include "search/kernel_shape.h"
#include "search/limits.h"
#include "search/machine.h"
#include "search/placement_tables.h"
#include "search/search_space.h"
#include "search/trace.h"

namespace sundog::search {

// What a structure has to be like, for questions about the best of that kind.
struct Constraint {
  RankSet stored;             // terms that pass through memory between two kernels,
  bool nothing_else = false;  // and no others
  int computed = -1;          // a term that some kernel computes; -1: any
};

struct PlacementCounts {
  uint64_t states = 0, kernels_priced = 0, structures = 0;
  uint64_t cut_by_bound = 0, cut_as_duplicate = 0, cut_as_dominated = 0, cut_as_outclassed = 0;
  uint64_t cut_unfit = 0;
  PlacementCounts& operator+=(const PlacementCounts& o);
};

// Parts of the tree of structures of at most `kernels` kernels over one bank, to be walked in turn.
struct PlacementTask {
  int bank = 0;
  int kernels = 1;
  std::vector<Subtree> subtrees{1};
  bool operator==(const PlacementTask&) const = default;
};

// What became of a task.
struct PlacementOutcome {
  explicit PlacementOutcome(Incumbents none) : found(std::move(none)) {}
  Incumbents found;
  PlacementCounts counts;
  PlacementNews news;
  std::vector<Subtree> rest;  // not walked: the quantum was used up
  std::vector<TraceEvent> trace;
  double best_at = -1;  // seconds, when the best structure was found; -1: none
};

// Enumerates structures over one bank.  A Placement walks one task; any number of them may work on
// one bank, table and `tables` at a time.
class Placement {
 public:
  Placement(const Bank& bank, const TermTable& table, const Machine& machine,
            const SearchSpace& space, PlacementTables& tables);

  // Only structures that meet it, from now on.
  void demand(const Constraint& constraint) { constraint_ = constraint; }
  // What is decided and cut is told from now on.
  void trace() { tracing_ = true; }

  // Structures slower than `best_us` (with some slack) are not looked for.
  PlacementOutcome run(const PlacementTask& task, double best_us, Quantum& quantum);

 private:
  void kernels(const RankSet& pending);
  void kernel_for(std::vector<int> outputs, const RankSet& pending);
  std::vector<std::vector<int>> outputs_without_top(const RankSet& pending) const;
  void put_off(const RankSet& pending, const std::vector<int>& stored);
  bool make_put_off(const std::vector<int>& outputs);
  // What the kernel being filled is known to take, and what is left for those before it.
  struct Partial {
    double bytes = 0;
    WorkTime work;
    RankSet later;
    double later_us = 0;  // that making it takes at least
  };

  void fill(RankSet need, const Partial& so_far);
  void compute(int x, const RankSet& need, const Partial& so_far);
  void leaf(const Partial& whole);
  bool load_is_allowed(int x) const;
  bool meets_constraint() const;
  void note(TraceKind kind, int term, size_t index);
  void note_us(TraceKind kind, double us);
  void cut(PruneRule rule, uint64_t& count, double us);
  bool does_more(uint64_t hash, const KernelShape& shape, const WorkTime& work);
  void record();
  double slack() const;
  // `open`: kernels being filled, whose price is not known yet.
  bool is_cut(int open, const Partial& so_far);
  int kernels_left() const { return most_kernels_ - static_cast<int>(done_.size()) - 1; }
  double least_us(const RankSet& later);
  double least(const std::vector<float>& us) const;
  const Price& price_of(uint64_t hash, const KernelShape& shape);
  bool is_dominated(const RankSet& pending);
  std::string kind() const;
  std::string key() const;

  const Bank& bank_;
  const TermTable& table_;
  const Machine& machine_;
  const SearchSpace& space_;
  PlacementTables& tables_;
  KernelPricer pricer_;
  Completion completion_;

  int bank_number_ = 0;
  int most_kernels_ = 1;
  // Outputs that kernels before those in done_ store, though they rank above what those store.
  struct PutOff {
    RankSet outputs;
    RankSet pending;  // what else was still to be stored when the first of them was put off
  };

  std::vector<PlacedKernel> done_;  // last kernel first
  PutOff put_off_;
  std::vector<float> done_us_;  // by choice
  KernelBody body_;             // being filled
  AxisSet common_;              // axes that all outputs of it share
  std::vector<int> readers_;    // of each input, in all kernels so far
  double input_bytes_ = 0, read_bytes_ = 0;
  std::optional<Constraint> constraint_;
  bool tracing_ = false;
  double bound_us_ = 0;  // by is_cut()
  Decisions decisions_;
  Quantum* quantum_ = nullptr;
  PlacementOutcome outcome_;
};

}  // namespace sundog::search
