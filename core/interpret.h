// What programs and µGraphs mean: interpreters over any algebra (core/algebra.h).
//
// The interpreter of µGraphs is operational, exactly as core/mugraph.h says: kernels in order,
// blocks, loops, accumulators, stores, nothing inferred from the program.  A candidate that reads
// what was not written, writes an element twice or leaves one out is an error here, however
// plausible its terms are.
//
// Besides the Algebra concept a µGraph needs `bool is_minus_infinity(const Value&)`.  Optional:
//   Value store(DType, Value)                  rounding of what is stored narrower than f32
//   std::optional<std::string> failure()       polled: the algebra gives up (ErrorCode::kLimit)
//   void looked_at(uint64_t elements)          told of what was evaluated, to look at a clock
//   std::optional<bool> decide(Relation, l, r) a comparison that it can decide
//   Value index(int64_t)                       the value of an index, where it is not constant()
//
// Not fit for real sizes: see core/evaluate.h for those.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/box_evaluator.h"
#include "core/mugraph.h"
#include "core/program.h"
#include "core/status.h"

namespace sundog {

// A tensor's elements by logical index, row-major, whatever its layout in memory.
template <class V>
struct TensorValues {
  std::vector<int64_t> extents;
  std::vector<V> values;
};

namespace interpreting {

template <class V>
Array<V> to_array(const TensorValues<V>& tensor) {
  return {tensor.extents, row_major(tensor.extents), tensor.values, {}};
}

template <class V>
Status check_inputs(const Program& program, std::span<const TensorValues<V>> inputs) {
  if (inputs.size() != program.inputs.size()) {
    return bad_input("program '" + program.name + "' has " + std::to_string(program.inputs.size()) +
                     " inputs, not " + std::to_string(inputs.size()));
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].extents != program.inputs[i].extents ||
        static_cast<int64_t>(inputs[i].values.size()) != product(inputs[i].extents)) {
      return bad_input("the values of input '" + program.inputs[i].name + "' have another shape");
    }
  }
  return {};
}

template <class A>
Status poll(A& a) {
  if constexpr (requires { a.failure(); }) {
    if (std::optional<std::string> reason = a.failure()) return limit_error(*std::move(reason));
  }
  return {};
}

template <class A>
void round_to_storage(A& a, DType dtype, std::vector<typename A::Value>& values) {
  if constexpr (requires(typename A::Value v) { a.store(dtype, v); }) {
    if (is_widening(DType::kF32, dtype)) return;
    for (auto& value : values) value = a.store(dtype, value);
  }
}

// "[1, 2]" for an element of a row-major tensor.
inline std::string element_name(std::span<const int64_t> extents, int64_t element) {
  std::string text = "]";
  for (size_t d = extents.size(); d-- > 0;) {
    const int64_t at = extents[d] == 0 ? 0 : element % extents[d];
    element = extents[d] == 0 ? 0 : element / extents[d];
    text = (d == 0 ? "" : ", ") + std::to_string(at) + text;
  }
  return "[" + text;
}

// Every reduction of the program is computed once, in order, and the rest on the fly.
template <Algebra A>
class ProgramRun {
 public:
  using V = typename A::Value;
  ProgramRun(A& algebra, const Program& program, std::span<const TensorValues<V>> inputs)
      : a_(algebra), program_(program), extents_(extents(program)), index_(extents_.size(), 0) {
    for (const auto& input : inputs) inputs_.push_back(to_array(input));
    arrays_.resize(program.terms.size());
  }

  Result<std::vector<TensorValues<V>>> run() {
    std::vector<TermId> roots;
    for (const Output& output : program_.outputs) roots.push_back(output.value);
    for (TermId id : reachable(program_.terms, roots)) {
      const auto* reduce = std::get_if<ReduceTerm>(&program_.terms[id]);
      if (reduce == nullptr) continue;
      compute(id, *reduce);
      SUNDOG_RETURN_IF_ERROR(poll(a_));
    }
    std::vector<TensorValues<V>> results;
    for (const Output& output : program_.outputs) {
      Array<V> values = copy(output);
      for (size_t i = 0; i < values.defined.size(); ++i) {
        if (values.defined[i] != 0) continue;
        return bad_input("element " + element_name(values.extents, static_cast<int64_t>(i)) +
                         " of output '" + output.tensor.name + "' depends on a read out of range");
      }
      round_to_storage(a_, output.tensor.dtype, values.values);
      results.push_back({std::move(values.extents), std::move(values.values)});
      SUNDOG_RETURN_IF_ERROR(poll(a_));
    }
    return results;
  }

 private:
  std::optional<typename BoxEvaluator<A>::Leaf> leaf(TermId id) const {
    const Term& term = program_.terms[id];
    if (const auto* input = std::get_if<InputTerm>(&term)) {
      return typename BoxEvaluator<A>::Leaf{&inputs_[input->tensor], input->index};
    }
    if (!std::holds_alternative<ReduceTerm>(term)) return std::nullopt;
    typename BoxEvaluator<A>::Leaf result{&arrays_[id], {}};
    for (AxisId axis : program_.terms.axes(id)) result.index.push_back(IndexExpr::of(axis));
    return result;
  }

  BoxEvaluator<A> evaluator(TermId id, std::vector<AxisId> box) {
    return BoxEvaluator<A>(a_, program_.terms, id, std::move(box), extents_, extents_,
                           [this](TermId t) { return leaf(t); });
  }

  void compute(TermId id, const ReduceTerm& reduce) {
    Array<V>& to = arrays_[id];
    std::vector<AxisId> box;
    for (AxisId axis : program_.terms.axes(id)) {
      box.push_back(axis);
      to.extents.push_back(extents_[axis]);
    }
    to.strides = row_major(to.extents);
    to.values.assign(static_cast<size_t>(product(to.extents)), a_.constant(Number()));
    Sink<A> sink{a_, to, to.strides, reduce.kind};
    for (AxisId axis : reduce.axes) {
      box.push_back(axis);
      sink.to_strides.push_back(0);
    }
    sink.reset();
    BoxEvaluator<A> evaluate = evaluator(reduce.operand, std::move(box));
    evaluate.run(index_, [&](const Operand<V>& x, const std::vector<int64_t>& outer) {
      sink.add(evaluate, x, outer, nullptr);
    });
  }

  Array<V> copy(const Output& output) {
    Array<V> to;
    to.extents = output.tensor.extents;
    to.strides = row_major(to.extents);
    to.values.assign(static_cast<size_t>(product(to.extents)), a_.constant(Number()));
    std::vector<AxisId> box;
    Sink<A> sink{a_, to, {}, std::nullopt};
    for (size_t d = 0; d < output.tensor.dims.size(); ++d) {
      std::vector<IndexExpr::Item> items = output.tensor.dims[d].axes;
      std::sort(items.begin(), items.end(),
                [](const auto& x, const auto& y) { return x.coefficient > y.coefficient; });
      for (const auto& item : items) {
        box.push_back(item.axis);
        sink.to_strides.push_back(item.coefficient * to.strides[d]);
      }
    }
    BoxEvaluator<A> evaluate = evaluator(output.value, std::move(box));
    evaluate.run(index_, [&](const Operand<V>& x, const std::vector<int64_t>& outer) {
      sink.add(evaluate, x, outer, nullptr);
    });
    return to;
  }

  A& a_;
  const Program& program_;
  const std::vector<int64_t> extents_;
  std::vector<int64_t> index_;
  std::vector<Array<V>> inputs_;
  std::vector<Array<V>> arrays_;  // of reductions, by term; over their axes in increasing order
};

}  // namespace interpreting

// The outputs of the program, in order.  Errors: an ill-formed program or inputs; an output element
// that depends on a read out of range; the algebra gives up (kLimit).
template <Algebra A>
Result<std::vector<TensorValues<typename A::Value>>> interpret(
    A& algebra, const Program& program, std::span<const TensorValues<typename A::Value>> inputs) {
  SUNDOG_RETURN_IF_ERROR(check(program));
  SUNDOG_RETURN_IF_ERROR(interpreting::check_inputs(program, inputs));
  return interpreting::ProgramRun<A>(algebra, program, inputs).run();
}

}  // namespace sundog

#include "core/interpret_mugraph.h"
