// Terms of a program or a kernel as canonical forms.
#pragma once

#include <map>
#include <vector>

#include "core/program.h"
#include "core/term.h"
#include "verify/symbolic_value.h"

namespace sundog::verify {

// Evaluates terms of a graph at the symbolic indices of its axes; what leaves mean is the
// subclass's.
class SymbolicTerms {
 public:
  SymbolicTerms(SymbolicAlgebra& algebra, const TermGraph& graph)
      : algebra_(algebra), forms_(algebra.forms()), graph_(graph) {}
  virtual ~SymbolicTerms() = default;

  // The value where all free axes have their own variables.
  Symbolic value(TermId id);
  void forget() {  // leaves have changed
    known_.clear();
    found_.clear();
  }

 protected:
  // The operand of a reduction: its binders take all their values, whatever the conditions around
  // the reduction say of variables of that name.
  Symbolic for_all(const std::vector<VarId>& binders, TermId operand);
  // Inputs, locals and reductions.
  virtual Symbolic leaf(const Term& term) = 0;
  virtual IndexId index(const IndexExpr& e) = 0;
  virtual DomainId size_of(AxisId axis) = 0;
  // Whether needs are to be met, or are those of the program, which meet others'.
  virtual bool is_candidate() const = 0;

  SymbolicAlgebra& algebra_;
  Forms& forms_;
  const TermGraph& graph_;

 private:
  Symbolic compute(const Term& term);
  Symbolic select(const SelectTerm& term);
  Symbolic compare(const CompareTerm& term);
  // The value of what is evaluated where the condition holds alone.
  Symbolic branch(TermId id, FormId condition);
  Symbolic sum_of(const ApplyTerm& term);
  void forget_since(size_t found, uint64_t asked);
  std::map<TermId, Symbolic> known_;
  std::vector<TermId> found_;  // those, in the order in which they were found
  int depth_ = 0;
};

// The form of an index condition, and of its opposite, each 1 where it holds.
struct ConditionForms {
  FormId yes = 0, no = 0;
  FormId oriented = 0;  // as `yes`, written with the same atom as its opposite
};
ConditionForms condition_forms(Forms& forms, Relation relation, IndexId index);

// Domains and variables of the axes of a program: axes that index one dimension of a tensor, with
// one extent, share a domain.
struct AxisSymbols {
  std::vector<DomainId> domains;
  std::vector<VarId> variables;
};

// With fixed sizes every domain has its extent as a number, else only those that a literal index
// pins.
AxisSymbols axis_symbols(Forms& forms, const Program& program, bool fixed_sizes);

// Domains of another program's axes: those of `known` for axes of dimensions of the same tensors.
AxisSymbols axis_symbols(Forms& forms, const Program& program, const Program& known,
                         const AxisSymbols& symbols, bool fixed_sizes);

// Outputs of a program, in order, as forms over the variables of `symbols`.
//  tensors  per input, its number in reads
std::vector<Symbolic> symbolic_outputs(SymbolicAlgebra& algebra, const Program& program,
                                       const AxisSymbols& symbols,
                                       const std::vector<uint32_t>& tensors, bool is_candidate);

}  // namespace sundog::verify
