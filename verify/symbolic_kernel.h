// One kernel of a µGraph as canonical forms; symbolic_mugraph.h says by which rules.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "verify/symbolic_mugraph.h"

namespace sundog::verify {

// What all kernels share.
struct GraphSymbols {
  std::vector<DomainId> domains;                // of the axes of the µGraph
  std::vector<VarId> variables;                 // of the axes: what stored values are functions of
  std::vector<std::vector<DomainId>> factors;   // per kernel: of its factors
  std::vector<std::optional<Symbolic>> stored;  // per device tensor
  struct SplitAxis {
    uint32_t kernel = 0;
    AxisId axis = 0;
  };
  std::map<SplitId, SplitAxis> splits;  // of all kernels so far
  uint32_t next_tag = 0;                // of running values
};

class SymbolicKernel : public SymbolicTerms {
 public:
  SymbolicKernel(SymbolicAlgebra& algebra, const MuGraph& graph, uint32_t kernel,
                 GraphSymbols& symbols, SymbolicMuGraph& result, Implications& implications);
  void run();

 private:
  // A part of what an accumulator adds up (or takes the maximum of).
  struct Part {
    std::vector<const Loop*> loops;  // that it runs over
    Symbolic value;                  // of one iteration: of a sum its form, of a maximum an element
    std::vector<VarId> binders;      // of the element of a maximum
    FormId factor = 0;               // of a sum that is rescaled: exp(running maximum), else 0
    uint32_t maximum = kNone;        // that rescales it
  };
  struct Accumulator {
    ReduceKind kind = ReduceKind::kSum;
    std::vector<Part> parts;
    const Loop* outermost = nullptr;  // of its loops
  };
  struct LatePart {
    uint32_t target = 0;
    Part part;
  };

  // --- leaves
  Symbolic leaf(const Term& term) override;
  Symbolic read(const InputTerm& input);
  Symbolic local(uint32_t computation);
  IndexId index(const IndexExpr& e) override;
  DomainId size_of(AxisId axis) override { return symbols_.domains[axis]; }
  bool is_candidate() const override { return true; }

  // The axis is a grid factor of this kernel, along which partial results are kept.
  bool is_own_partial(AxisId axis) const { return graph_.axes[axis].kernel == id_; }
  bool has_position(AxisId axis) const;
  IndexExpr position_of(AxisId axis) const;

  // --- statements
  void statements(const std::vector<Statement>& body);
  void compute(uint32_t id);
  void reduce(uint32_t id, const ReduceTerm& term);
  void add_part(uint32_t id, Part part);
  void loop(const Loop& loop);
  void finish(uint32_t id);
  Symbolic combined(ReduceKind kind, const std::vector<Part>& parts);
  Symbolic with(ReduceKind kind, const Symbolic& a, const Symbolic& b);
  Part part_of(uint32_t id, const ReduceTerm& term);
  void rescale(uint32_t id, FormId body, Part* part);
  size_t loops_outside(uint32_t id) const;
  FormId trimmed(const Part& part, FormId form);
  FormId under_trim(FormId form, const IndexCondition& trim);
  void assume_tiles_of(IndexId e);
  FormId presence(AxisSet along, uint32_t id);
  uint32_t running_tag(uint32_t id);
  void store(const Store& store);
  bool store_covers(const Store& store, const std::string& what);
  bool dimension_covers(const TensorDecl& tensor, size_t d, const IndexExpr& at,
                        AxisSet* axes) const;
  bool is_along(const IndexExpr& dim, IndexId at, Forms::IndexMap* map);
  void keep_needs(uint32_t id);
  bool settled(uint32_t id, const Need& need, FormId present);
  void require(const Need& need);
  bool may_wait(uint32_t id, const Need& need) const;
  bool is_inside(FormId condition, FormId present);
  std::optional<int64_t> greatest(IndexId e) const;
  bool has_elements(FormId form);
  FormId read_presence(uint32_t id);
  bool is_present(AtomId maximum, FormId present);
  bool only_feeds(uint32_t id, uint32_t maximum) const;
  bool reads(uint32_t reader, uint32_t id) const;

  std::string name(uint32_t id) const { return "'" + kernel_.computations[id].name + "'"; }
  void assume(const std::string& what) {
    result_.assumptions.push_back("kernel " + kernel_.name + ": " + what);
  }
  void fail(const std::string& why) { forms_.fail("kernel '" + kernel_.name + "': " + why); }

  const MuGraph& graph_;
  const uint32_t id_;
  const Kernel& kernel_;
  GraphSymbols& symbols_;
  SymbolicMuGraph& result_;
  Implications& implications_;
  const std::vector<Dependence> dependences_;
  const std::vector<std::vector<AxisId>> loops_of_;
  std::vector<VarId> variables_;    // of the factors
  std::vector<IndexId> positions_;  // of the axes of the µGraph
  std::vector<uint8_t> is_split_;   // axes whose position is one of a split
  std::vector<const Loop*> open_;
  std::vector<std::optional<Symbolic>> values_;   // finished, per computation
  std::map<uint32_t, Accumulator> accumulators_;  // inside their loops
  std::vector<LatePart> late_;                    // added to finished accumulators, in a loop
  std::map<const Loop*, uint32_t> loop_numbers_;
  std::map<std::vector<uint32_t>, uint32_t> tags_;
  std::map<uint32_t, uint32_t> computation_of_tag_;
  std::map<uint32_t, FormId> operand_guards_;  // of maxima that run over loops, by computation
  std::map<uint32_t, FormId> operand_presence_;
  std::set<uint32_t> stored_;  // computations that a store reads
  // Reads outside of their tensors, by the computation that they went into: no matter until its
  // value is used, which may be where they are inside.
  std::map<uint32_t, std::vector<Need>> waiting_;
};

}  // namespace sundog::verify
