// Programs as canonical forms: each term once, reductions as big sums and maxima over the whole
// axis.
#include "verify/symbolic_terms.h"

#include <algorithm>
#include <utility>

#include "core/check.h"
#include "core/op.h"
#include "core/resize.h"

namespace sundog::verify {

ConditionForms condition_forms(Forms& forms, Relation relation, IndexId e) {
  Indices& indices = forms.indices;
  const auto negated = [&](IndexId x, int64_t plus) {
    return indices.add(indices.constant(plus), x, -1);
  };
  const IndexId at = relation == Relation::kLess ? indices.add(e, indices.constant(1)) : e;
  switch (relation) {
    case Relation::kLess:
    case Relation::kLessEqual:
      return {forms.condition(IndexRelation::kNotPositive, at),
              forms.condition(IndexRelation::kNotPositive, negated(at, 1)),
              forms.oriented_condition(IndexRelation::kNotPositive, at)};
    case Relation::kEqual:
    case Relation::kNotEqual: {
      const FormId equal = forms.condition(IndexRelation::kZero, e);
      const FormId other = forms.subtract(forms.one(), equal);
      if (relation == Relation::kEqual) return {equal, other, equal};
      return {other, equal, other};
    }
  }
  SUNDOG_CHECK(false);
}

Symbolic SymbolicTerms::value(TermId id) {
  const auto known = known_.find(id);
  if (known != known_.end()) return known->second;
  constexpr int kDeepest = 2000;
  if (++depth_ > kDeepest) forms_.fail("terms nested more than 2000 deep");
  const Symbolic result = compute(graph_[id]);
  --depth_;
  known_.emplace(id, result);
  found_.push_back(id);
  return result;
}

Symbolic SymbolicTerms::compute(const Term& term) {
  if (forms_.failure()) return algebra_.minus_infinity();
  if (const auto* t = std::get_if<ConstantTerm>(&term)) return algebra_.constant(t->value);
  if (const auto* t = std::get_if<SizeTerm>(&term)) {
    return algebra_.finite(forms_.size(size_of(t->axis)));
  }
  if (const auto* t = std::get_if<IndexTerm>(&term)) {
    return algebra_.finite(forms_.index(index(t->index)));
  }
  if (const auto* t = std::get_if<ApplyTerm>(&term)) {
    const bool adds =
        std::holds_alternative<op::Add>(t->op) || std::holds_alternative<op::Sub>(t->op);
    if (adds && is_candidate()) return sum_of(*t);
    std::vector<Symbolic> operands;
    for (const TermId operand : t->operands) operands.push_back(value(operand));
    return apply(algebra_, t->op, std::span<const Symbolic>(operands));
  }
  if (const auto* t = std::get_if<SelectTerm>(&term)) return select(*t);
  if (const auto* t = std::get_if<CompareTerm>(&term)) return compare(*t);
  return leaf(term);
}

Symbolic SymbolicTerms::branch(TermId id, FormId condition) {
  const size_t found = found_.size();
  const uint64_t asked = algebra_.needs_asked();
  const FormId before = algebra_.evaluate_given(forms_.multiply(algebra_.given(), condition));
  const Symbolic result = value(id);
  algebra_.evaluate_given(before);
  forget_since(found, asked);
  return result;
}

// s - select(m == -inf, 0, m), with s and the maximum m under one mask: where s is minus infinity
// it does not matter that m is, since what stands for it is finite.
Symbolic SymbolicTerms::sum_of(const ApplyTerm& term) {
  const Symbolic first = value(term.operands[0]);
  const FormId guard = first.guard;
  const size_t found = found_.size();
  const uint64_t asked = algebra_.needs_asked();
  const FormId before = algebra_.guard_given(guard);
  const Symbolic second = value(term.operands[1]);
  algebra_.guard_given(before);
  if (guard != forms_.one()) forget_since(found, asked);
  const FormId given = algebra_.given();
  if (second.is_guarded) algebra_.evaluate_given(forms_.multiply(given, guard));
  const Symbolic operands[] = {first, second};
  const Symbolic result = apply(algebra_, term.op, std::span<const Symbolic>(operands));
  algebra_.evaluate_given(given);
  return result;
}

Symbolic SymbolicTerms::for_all(const std::vector<VarId>& binders, TermId operand) {
  const FormId given = algebra_.given(), guard = algebra_.guard_given(forms_.one());
  const bool captured = std::any_of(binders.begin(), binders.end(), [&](VarId v) {
    return contains(forms_[given].free, v) || contains(forms_[guard].free, v);
  });
  Symbolic result;
  // What the program needs under such a condition it needs at least there.
  if (captured && is_candidate()) {
    auto known = std::exchange(known_, {});
    auto found = std::exchange(found_, {});
    algebra_.evaluate_given(forms_.one());
    result = value(operand);
    algebra_.evaluate_given(given);
    known_ = std::move(known);
    found_ = std::move(found);
  } else {
    algebra_.guard_given(guard);
    result = value(operand);
  }
  algebra_.guard_given(guard);
  return result;
}

// What is known has needs that hold everywhere.  What was found since with a need of its own is
// known where that holds; what needs nothing is the same everywhere.
void SymbolicTerms::forget_since(size_t found, uint64_t asked) {
  if (algebra_.needs_asked() == asked) return;
  for (; found_.size() > found; found_.pop_back()) known_.erase(found_.back());
}

Symbolic SymbolicTerms::compare(const CompareTerm& term) {
  const Symbolic left = value(term.left), right = value(term.right);
  const FormId one = forms_.one();
  if (left.guard != one || right.guard != one) {  // `m == -inf`, see SymbolicAlgebra::choose
    const FormId given =
        is_candidate() ? one : forms_.zero();  // when is not known: no need of ours
    const Symbolic yes = branch(term.then, given), no = branch(term.otherwise, given);
    return algebra_.choose(term.relation, left, right, yes, no);
  }
  const FormId taken = forms_.compare(term.relation, left.form, right.form);
  const Symbolic yes = branch(term.then, taken);
  const Symbolic no = branch(term.otherwise, forms_.subtract(one, taken));
  return algebra_.choose(term.relation, left, right, yes, no);
}

Symbolic SymbolicTerms::select(const SelectTerm& term) {
  const ConditionForms condition =
      condition_forms(forms_, term.condition.relation, index(term.condition.expr));
  const Symbolic yes = branch(term.then, condition.yes);
  const Symbolic no = branch(term.otherwise, condition.no);
  if (condition.yes == forms_.one()) return yes;
  if (condition.yes == forms_.zero()) return no;
  // A mask keeps its form: what is minus infinity elsewhere.
  if (no.guard == forms_.zero()) return {yes.form, forms_.multiply(condition.yes, yes.guard)};
  if (yes.guard == forms_.zero()) return {no.form, forms_.multiply(condition.no, no.guard)};
  const auto mix = [&](FormId a, FormId b) {
    return forms_.add(b, forms_.multiply(condition.oriented, forms_.subtract(a, b)));
  };
  return {mix(yes.form, no.form), mix(yes.guard, no.guard)};
}

namespace {

class ProgramTerms : public SymbolicTerms {
 public:
  ProgramTerms(SymbolicAlgebra& algebra, const Program& program, const AxisSymbols& symbols,
               const std::vector<uint32_t>& tensors, bool is_candidate)
      : SymbolicTerms(algebra, program.terms),
        inputs_(program.inputs),
        symbols_(symbols),
        tensors_(tensors),
        is_candidate_(is_candidate) {}

 private:
  IndexId index(const IndexExpr& e) override {
    Indices& indices = forms_.indices;
    IndexId result = indices.constant(e.constant);
    for (const auto& item : e.axes) {
      result =
          indices.add(result, indices.of_variable(symbols_.variables[item.axis]), item.coefficient);
    }
    for (const auto& item : e.sizes) {
      result = indices.add(result, indices.size(symbols_.domains[item.axis]), item.coefficient);
    }
    return result;
  }

  DomainId size_of(AxisId axis) override { return symbols_.domains[axis]; }
  bool is_candidate() const override { return is_candidate_; }

  Symbolic leaf(const Term& term) override {
    if (const auto* input = std::get_if<InputTerm>(&term)) {
      std::vector<IndexId> at;
      for (const IndexExpr& e : input->index) at.push_back(index(e));
      const FormId value = forms_.read(tensors_[input->tensor], at);
      const std::vector<IndexExpr>& dims = inputs_[input->tensor].dims;
      bool plain = true;
      for (size_t d = 0; d < at.size(); ++d) {
        AxisId axis = 0;
        plain &= dims[d].is_axis(&axis);
        if (dims[d].is_axis(&axis)) algebra_.need_inside(at[d], symbols_.domains[axis]);
      }
      if (!plain) algebra_.need_inside(value);
      return algebra_.finite(value);
    }
    const auto& reduce = std::get<ReduceTerm>(term);
    std::vector<VarId> binders;
    for (const AxisId axis : reduce.axes) binders.push_back(symbols_.variables[axis]);
    const Symbolic operand = for_all(binders, reduce.operand);
    if (reduce.kind == ReduceKind::kSum) {
      return algebra_.finite(forms_.sum(binders, algebra_.plain_finite(operand)));
    }
    return algebra_.maximum({{binders, operand.guard, operand.form}});
  }

  const std::vector<TensorDecl>& inputs_;
  const AxisSymbols& symbols_;
  const std::vector<uint32_t>& tensors_;
  bool is_candidate_;
};

// A symbol for each axis, over the domain of its class; `of_class` has those that are known
// already.
AxisSymbols symbols_over(Forms& forms, const Program& program, const AxisClasses& classes,
                         std::map<uint32_t, DomainId> of_class, bool fixed_sizes) {
  AxisSymbols symbols;
  for (AxisId a = 0; a < program.axes.size(); ++a) {
    const Axis& axis = program.axes[a];
    const uint32_t c = classes.class_of[a];
    if (!of_class.contains(c)) {
      const bool fixed = fixed_sizes || classes.pinned[a] != 0;
      of_class.emplace(
          c, fixed ? forms.indices.range(axis.extent, axis.name) : forms.indices.domain(axis.name));
    }
    symbols.domains.push_back(of_class[c]);
    symbols.variables.push_back(forms.indices.variable(axis.name, of_class[c]));
  }
  return symbols;
}

// The axis that a dimension of a tensor is declared with, if it is one axis.
std::optional<AxisId> axis_of_dimension(const TensorDecl& tensor, size_t d) {
  AxisId axis = 0;
  if (!tensor.dims[d].is_axis(&axis)) return {};
  return axis;
}

}  // namespace

AxisSymbols axis_symbols(Forms& forms, const Program& program, bool fixed_sizes) {
  return symbols_over(forms, program, axis_classes(program), {}, fixed_sizes);
}

AxisSymbols axis_symbols(Forms& forms, const Program& program, const Program& known,
                         const AxisSymbols& symbols, bool fixed_sizes) {
  const AxisClasses classes = axis_classes(program);
  std::map<uint32_t, DomainId> of_class;
  const auto match = [&](const TensorDecl& ours, const TensorDecl& theirs) {
    for (size_t d = 0; d < std::min(ours.dims.size(), theirs.dims.size()); ++d) {
      const auto axis = axis_of_dimension(ours, d), other = axis_of_dimension(theirs, d);
      if (axis && other) of_class.emplace(classes.class_of[*axis], symbols.domains[*other]);
    }
  };
  for (const TensorDecl& input : program.inputs) {
    if (const auto at = find_input(known, input.name)) match(input, known.inputs[*at]);
  }
  for (const Output& output : program.outputs) {
    for (const Output& other : known.outputs) {
      if (other.tensor.name == output.tensor.name) match(output.tensor, other.tensor);
    }
  }
  return symbols_over(forms, program, classes, std::move(of_class), fixed_sizes);
}

std::vector<Symbolic> symbolic_outputs(SymbolicAlgebra& algebra, const Program& program,
                                       const AxisSymbols& symbols,
                                       const std::vector<uint32_t>& tensors, bool is_candidate) {
  ProgramTerms terms(algebra, program, symbols, tensors, is_candidate);
  std::vector<Symbolic> result;
  for (const Output& output : program.outputs) result.push_back(terms.value(output.value));
  return result;
}

}  // namespace sundog::verify
