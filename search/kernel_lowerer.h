// One kernel of a structure, on its way to a planned kernel.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "search/lower.h"

namespace sundog::search {

class KernelLowerer {
 public:
  KernelLowerer(Lowerer& parent, const KernelBody& body, const KernelShape& shape,
                const RankSet& loaded_later);
  KernelPlan run();

 private:
  // Where a statement stands: flat at a stage, or in the loop of a stage over an axis of the
  // program.
  struct Slot {
    int stage = 0;
    AxisId loop = kNoAxis;  // kNoAxis sorts last: reversed by order()
    auto order() const { return std::make_tuple(stage, loop == kNoAxis ? 0 : 1, loop); }
    bool operator<(const Slot& o) const { return order() < o.order(); }
  };

  // kernel_factors.cpp: axes.
  void add_splits();
  void add_split_of(AxisId base);
  void add_split_of_part(AxisId part);
  int part_index(AxisId part);
  AxisSet factors_of_axes(AxisSet axes, AxisSet whole) const;  // kernel factors of bank axes
  std::vector<IndexExpr> program_index() const;
  IndexExpr part_position(AxisId part, bool whole) const;

  // Items.
  const RankedTerm& term(int rank) const { return table_.terms[static_cast<size_t>(rank)]; }
  const TermClass& term_class(int rank) const { return bank_[term(rank).id]; }
  int position(int rank) const { return position_[static_cast<size_t>(rank)]; }
  const RankedNode* node(int rank) const;
  bool is_output(int rank) const;
  bool in_loop(int rank) const { return !(term(rank).axes & shape_.loop_factors).empty(); }
  bool over_loop(int rank) const;
  bool has_kind(int rank, NodeKind kind) const;
  AxisId loop_base(AxisSet axes) const;
  AxisSet whole(int rank) const { return shape_.whole_parts[static_cast<size_t>(position(rank))]; }
  int stage(int rank) const { return shape_.stage[static_cast<size_t>(position(rank))]; }

  // What gets a computation of its own (kernel_lowerer_marks.cpp).
  void count_uses();
  void mark_operands();
  void mark_invariants();
  void mark_running_maxima();
  bool may_run(int maximum) const;
  bool reaches_online_sums(int rank, int maximum) const;
  bool wants_computation(int rank) const;

  // Terms.
  TermId value(int rank, int at);  // as an expression, or a read of its computation
  TermId build(int rank, int at);  // its node over the values of its operands
  TermId build_linear(const RankedNode& n, int at);
  TermId build_product(const RankedNode& n, int at);
  TermId finite_maximum(TermId maximum);
  bool may_be_all_masked(int maximum) const;
  TermId load(int rank);
  TermId reduction(int rank, int at);
  TermId reduce_chain(int rank, int at, AxisSet& axes);
  TermId summand(int rank, int at);
  TermId online_sum(int rank, int at);
  uint32_t running_maximum(int maximum, int at);
  TermId compute(int rank, TermId value, Slot slot, uint32_t rescale);
  TermId read(uint32_t computation);
  Slot slot_of(int rank, int at) const;
  std::string fresh_name(int rank);
  void store(int rank);
  std::vector<Statement> assemble();

  Lowerer& parent_;
  const Bank& bank_;
  const TermTable& table_;
  const KernelBody& body_;
  const KernelShape& shape_;
  const RankSet& loaded_later_;
  KernelPlan plan_;
  std::vector<int> position_;
  std::vector<int> uses_;                       // by rank: items that read it
  std::set<int> operands_;                      // of matrix products
  std::set<int> invariants_;                    // cheaper once than in each reader
  std::set<int> running_;                       // partial maxima that are read as running ones
  std::map<std::pair<int, int>, TermId> done_;  // by rank and stage
  // The running maximum of a partial one, by the stage of its loop: loops in sequence have theirs.
  std::map<std::pair<int, int>, uint32_t> maxima_;
  std::map<Slot, std::vector<Statement>> slots_;
  std::map<AxisId, size_t> split_of_;     // program axis -> split
  std::map<AxisId, size_t> part_split_;   // part factor that is all there is of its axis -> split
  std::map<AxisId, size_t> whole_split_;  // part factor read as a whole -> split
  std::set<std::string> names_;
  AxisSet reader_whole_;  // parts that the term being built reads as a whole
};

}  // namespace sundog::search
