// One kernel of a structure, on its way to a planned kernel.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "search/lower.h"
#include "search/term_copy.h"

namespace sundog::search {

class KernelLowerer {
 public:
  KernelLowerer(Lowerer& parent, const KernelBody& body, const KernelShape& shape,
                const RankSet& loaded_later);
  KernelPlan run();

 private:
  // The body of the loop of a stage over an axis of the program, or what is outside of loops at
  // that stage (kNoAxis, before its loops).  Inner loops have stages in each of these.
  struct Place {
    int stage = 0;
    AxisId loop = kNoAxis;
    int inner = 0;
    auto body() const { return std::make_tuple(stage, loop == kNoAxis ? 0 : 1, loop); }
    auto order() const { return std::tuple_cat(body(), std::make_tuple(inner)); }
    bool operator<(const Place& o) const { return order() < o.order(); }
  };
  // Where a statement stands: there, or in an inner loop.
  struct Slot {
    Place place;
    AxisId inner_loop = kNoAxis;
    auto order() const {
      return std::tuple_cat(place.order(),
                            std::make_tuple(inner_loop == kNoAxis ? 0 : 1, inner_loop));
    }
    bool operator<(const Slot& o) const { return order() < o.order(); }
  };

  // kernel_factors.cpp: axes.
  void add_splits();
  void add_split_of(AxisId base);
  bool has_bare_part(AxisId base) const;
  void add_split_of_part(AxisId part);
  int part_index(AxisId part);
  AxisSet factors_of_axes(AxisSet axes, AxisSet whole) const;  // kernel factors of bank axes
  void index_program();
  IndexExpr part_position(AxisId part, bool whole) const;

  // Items.
  const RankedTerm& term(int rank) const { return table_.terms[static_cast<size_t>(rank)]; }
  const TermClass& term_class(int rank) const { return bank_[term(rank).id]; }
  int position(int rank) const { return position_[static_cast<size_t>(rank)]; }
  const RankedNode* node(int rank) const;
  bool is_output(int rank) const;
  bool in_loop(int rank) const { return loop_base(term(rank).axes) != kNoAxis; }
  bool in_inner_loop(int rank) const { return inner_base(term(rank).axes) != kNoAxis; }
  // Whether it reduces over the factor of a loop that is no inner one; of an inner one.
  bool over_loop(int rank) const;
  bool over_inner_loop(int rank) const;
  // Whether it is computed in more loops than `other`.
  bool is_deeper(int rank, int other) const;
  bool has_kind(int rank, NodeKind kind) const;
  AxisId loop_base(AxisSet axes) const { return base_of(axes & shape_.loop_factors); }
  AxisId inner_base(AxisSet axes) const { return base_of(axes & shape_.inner_factors); }
  AxisId base_of(AxisSet axes) const {
    return axes.empty() ? kNoAxis : bank_.axes()[*axes.begin()].base;
  }
  AxisSet whole(int rank) const { return shape_.whole_parts[static_cast<size_t>(position(rank))]; }
  int stage(int rank) const { return shape_.stage[static_cast<size_t>(position(rank))]; }
  int inner_at(int rank) const { return shape_.inner_at[static_cast<size_t>(position(rank))]; }
  int inner_stage(int rank) const {
    return shape_.inner_stage[static_cast<size_t>(position(rank))];
  }

  // What gets a computation of its own (kernel_lowerer_marks.cpp).
  void count_uses();
  bool written_in_place(int rank) const;
  void mark_operands();
  void mark_invariants();
  void mark_running_maxima();
  bool may_run(int maximum) const;
  bool reaches_online_sums(int rank, int maximum) const;
  bool wants_computation(int rank) const;

  // Where a term is known, for a reader at `at`; where its operands are read, then.
  Place place_of(int rank, Place at) const;
  Place place_of_operands(int rank, Place known) const;

  // Terms.
  TermId value(int rank, Place at);  // as an expression, or a read of its computation
  TermId build(int rank, Place at);  // its node over the values of its operands
  TermId build_linear(const RankedNode& n, Place at);
  TermId build_product(const RankedNode& n, Place at);
  TermId finite_maximum(TermId maximum);
  bool may_be_all_masked(int maximum) const;
  TermId load(int rank);
  TermId reduction(int rank, Place at);
  TermId reduce_chain(int rank, Place at, AxisSet& axes);
  TermId summand(int rank, Place at);
  TermId online_sum(int rank);
  uint32_t running_maximum(int maximum, Place at);
  TermId compute(int rank, TermId value, Slot slot, uint32_t rescale);
  TermId read(uint32_t computation);
  Slot slot_of(int rank, Place known) const;
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
  std::vector<int> uses_;                         // by rank: items that read it
  std::set<int> operands_;                        // of matrix products
  std::set<int> invariants_;                      // cheaper once than in each reader
  std::set<int> running_;                         // partial maxima that are read as running ones
  std::map<std::pair<int, Place>, TermId> done_;  // by rank and where it is known
  // The running maximum of a partial one, by the stage of its loop: loops in sequence have theirs.
  std::map<std::pair<int, int>, uint32_t> maxima_;
  std::map<Slot, std::vector<Statement>> slots_;
  std::map<AxisId, size_t> split_of_;     // program axis -> split
  std::map<AxisId, size_t> part_split_;   // part factor that is all there is of its axis -> split
  std::map<AxisId, size_t> whole_split_;  // part factor read as a whole -> split
  std::set<std::string> names_;
  // The program's axes by factors of the kernel, and its terms over these.
  std::vector<IndexExpr> program_index_;
  std::optional<TermCopier> of_program_;
  AxisSet reader_whole_;  // parts that the term being built reads as a whole
};

}  // namespace sundog::search
