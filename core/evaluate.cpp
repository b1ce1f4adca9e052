// Demand-driven evaluation.  Reductions are materialised over their free axes, each once; what lies
// between two reductions is one fused loop nest (core/evaluate_tape.h).  A region restricts free
// axes of the outputs; inside of a reduction over such an axis it is whole again, so an array is
// known by its term and by which of its axes are restricted.
#include "core/evaluate.h"

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <thread>

#include "core/evaluate_tape.h"
#include "core/mugraph.h"

namespace sundog {
namespace {

using evaluating::Affine;
using evaluating::Leaf;
using evaluating::Nest;
using evaluating::Range;
using evaluating::Source;

constexpr int64_t kMaxElements = int64_t{1} << 28;  // of one intermediate: 2 GiB
constexpr int64_t kWorthThreads = 1 << 18;          // index values of a nest

class Evaluator {
 public:
  Evaluator(const Program& program, std::span<const FloatTensor> inputs,
            const Evaluation& evaluation)
      : program_(program), evaluation_(evaluation), sizes_(extents(program)) {
    for (const FloatTensor& input : inputs) {
      Source& s = inputs_.emplace_back();
      s.extents = input.extents;
      s.strides = row_major_strides(input.extents);
      if (input.f64.empty()) {
        s.f32 = input.f32.data();
      } else {
        s.f64 = input.f64.data();
      }
    }
    for (const AxisRange& r : evaluation.region) {
      region_.insert(r.axis);
      limits_[r.axis] = {r.begin, r.end};
    }
  }

  Result<std::vector<double>> output(const Output& output) {
    int64_t count = 1;
    for (const int64_t extent : output.tensor.extents) count *= extent;
    std::vector<double> values(static_cast<size_t>(count),
                               std::numeric_limits<double>::quiet_NaN());
    const std::vector<int64_t> strides = row_major_strides(output.tensor.extents);
    Affine to;
    to.coefficients.assign(sizes_.size(), 0);
    AxisSet axes;
    for (size_t d = 0; d < output.tensor.dims.size(); ++d) {
      for (const auto& item : output.tensor.dims[d].axes) {
        to.coefficients[item.axis] += item.coefficient * strides[d];
        axes.insert(item.axis);
      }
    }
    SUNDOG_RETURN_IF_ERROR(
        nest(output.value, axes, AxisSet(), region_, std::nullopt, to, values.data()));
    return values;
  }

 private:
  struct Array {
    std::vector<double> values;
    Source source;
    std::vector<AxisId> axes;    // in order of storage
    std::vector<int64_t> begin;  // first stored index of each
  };

  static std::vector<int64_t> row_major_strides(const std::vector<int64_t>& extents) {
    std::vector<int64_t> strides(extents.size());
    int64_t stride = 1;
    for (size_t d = extents.size(); d-- > 0; stride *= extents[d]) strides[d] = stride;
    return strides;
  }

  Range range_of(AxisId axis, AxisSet restricted) const {
    if (restricted.has(axis)) return limits_.at(axis);
    return {0, sizes_[axis]};
  }

  // The array of a reduction where the axes `restricted` are.
  Result<const Array*> reduction(TermId id, AxisSet restricted) {
    restricted = restricted & program_.terms.axes(id);
    const auto key = std::pair(id, restricted.bits());
    const auto known = arrays_.find(key);
    if (known != arrays_.end()) return static_cast<const Array*>(known->second.get());
    const auto& reduce = std::get<ReduceTerm>(program_.terms[id]);
    auto array = std::make_unique<Array>();
    int64_t count = 1;
    for (const AxisId axis : program_.terms.axes(id)) {
      const Range r = range_of(axis, restricted);
      array->axes.push_back(axis);
      array->begin.push_back(r.begin);
      array->source.extents.push_back(r.end - r.begin);
      count *= r.end - r.begin;
      if (count > kMaxElements) {
        return limit_error("an intermediate result has too many elements",
                           "evaluate a region of the outputs");
      }
    }
    array->source.strides = row_major_strides(array->source.extents);
    const bool sum = reduce.kind == ReduceKind::kSum;
    array->values.assign(static_cast<size_t>(count),
                         sum ? 0 : -std::numeric_limits<double>::infinity());
    Affine to;
    to.coefficients.assign(sizes_.size(), 0);
    for (size_t d = 0; d < array->axes.size(); ++d) {
      to.coefficients[array->axes[d]] = array->source.strides[d];
      to.constant -= array->source.strides[d] * array->begin[d];
    }
    SUNDOG_RETURN_IF_ERROR(nest(reduce.operand, program_.terms.axes(id), reduce.axes,
                                restricted - reduce.axes, reduce.kind, to, array->values.data()));
    array->source.f64 = array->values.data();
    const Array* result = array.get();
    arrays_.emplace(key, std::move(array));
    return result;
  }

  // Evaluates `root` over free and bound axes into `out`.
  Status nest(TermId root, AxisSet free, AxisSet bound, AxisSet restricted,
              std::optional<ReduceKind> reduce, const Affine& to, double* out) {
    SUNDOG_RETURN_IF_ERROR(prepare(root, restricted));
    Nest n;
    n.reduce = reduce;
    n.to = to;
    n.precision = evaluation_.precision;
    n.nudge = evaluation_.nudge;
    for (AxisId axis = 0; axis < sizes_.size(); ++axis) {
      n.ranges.push_back(range_of(axis, restricted - bound));
    }
    for (const AxisId axis : free) n.free.push_back(axis);
    for (const AxisId axis : bound) n.bound.push_back(axis);
    n.tape = evaluating::compile(program_, root, evaluation_.rounding, n.ranges,
                                 [&](TermId id) { return leaf(id, restricted); });
    n.lanes = evaluating::choose_lanes(n);
    run(std::move(n), out);
    return {};
  }

  // Makes the reductions that `root` reads.
  Status prepare(TermId root, AxisSet restricted) {
    std::vector<TermId> stack = {root};
    std::vector<uint8_t> seen(program_.terms.size(), 0);
    while (!stack.empty()) {
      const TermId id = stack.back();
      stack.pop_back();
      if (seen[id]) continue;
      seen[id] = 1;
      if (std::holds_alternative<ReduceTerm>(program_.terms[id])) {
        const Result<const Array*> array = reduction(id, restricted);
        if (!array.ok()) return array.error();
        continue;
      }
      for (const TermId operand : operands(program_.terms[id])) stack.push_back(operand);
    }
    return {};
  }

  std::optional<Leaf> leaf(TermId id, AxisSet restricted) {
    const Term& term = program_.terms[id];
    if (const auto* input = std::get_if<InputTerm>(&term)) {
      return Leaf{&inputs_[input->tensor], input->index};
    }
    if (!std::holds_alternative<ReduceTerm>(term)) return std::nullopt;
    const AxisSet key = restricted & program_.terms.axes(id);
    const Array& array = *arrays_.at(std::pair(id, key.bits()));
    Leaf result{&array.source, {}};
    for (size_t d = 0; d < array.axes.size(); ++d) {
      result.index.push_back(IndexExpr::of(array.axes[d]) - IndexExpr::of_constant(array.begin[d]));
    }
    return result;
  }

  // The longest free axis is divided among threads.
  void run(Nest n, double* out) {
    double work = 1;
    for (const auto* axes : {&n.free, &n.bound}) {
      for (const AxisId a : *axes) work *= static_cast<double>(n.ranges[a].end - n.ranges[a].begin);
    }
    const auto length = [&](AxisId a) { return n.ranges[a].end - n.ranges[a].begin; };
    const auto longest = std::max_element(
        n.free.begin(), n.free.end(), [&](AxisId a, AxisId b) { return length(a) < length(b); });
    const auto threads = static_cast<int64_t>(std::max(evaluation_.threads, 1));
    if (threads == 1 || work < kWorthThreads || n.free.empty() || length(*longest) < threads) {
      evaluating::run(n, out);
      return;
    }
    const Range whole = n.ranges[*longest];
    std::vector<std::thread> pool;
    for (int64_t t = 0; t < threads; ++t) {
      Nest part = n;
      part.ranges[*longest] = {whole.begin + (whole.end - whole.begin) * t / threads,
                               whole.begin + (whole.end - whole.begin) * (t + 1) / threads};
      pool.emplace_back([part = std::move(part), out] { evaluating::run(part, out); });
    }
    for (std::thread& thread : pool) thread.join();
  }

  const Program& program_;
  const Evaluation& evaluation_;
  const std::vector<int64_t> sizes_;
  std::vector<Source> inputs_;
  AxisSet region_;
  std::map<AxisId, Range> limits_;
  std::map<std::pair<TermId, uint64_t>, std::unique_ptr<Array>> arrays_;
};

Status check_arguments(const Program& program, std::span<const FloatTensor> inputs,
                       const Evaluation& evaluation) {
  if (inputs.size() != program.inputs.size()) {
    return bad_input("program '" + program.name + "' has " + std::to_string(program.inputs.size()) +
                     " inputs, not " + std::to_string(inputs.size()));
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    size_t count = 1;
    for (const int64_t extent : program.inputs[i].extents) count *= static_cast<size_t>(extent);
    if (inputs[i].extents != program.inputs[i].extents ||
        inputs[i].f64.size() + inputs[i].f32.size() != count) {
      return bad_input("the values of input '" + program.inputs[i].name + "' have another shape");
    }
  }
  for (const AxisRange& r : evaluation.region) {
    if (r.axis >= program.axes.size() || r.begin < 0 || r.begin > r.end ||
        r.end > program.axes[r.axis].extent) {
      return bad_input("the region to evaluate leaves the axes of the program");
    }
  }
  return {};
}

}  // namespace

Result<std::vector<std::vector<double>>> evaluate(const Program& program,
                                                  std::span<const FloatTensor> inputs,
                                                  const Evaluation& evaluation) {
  SUNDOG_RETURN_IF_ERROR(check(program));
  SUNDOG_RETURN_IF_ERROR(check_arguments(program, inputs, evaluation));
  Evaluator evaluator(program, inputs, evaluation);
  std::vector<uint32_t> wanted = evaluation.outputs;
  for (uint32_t i = 0; evaluation.outputs.empty() && i < program.outputs.size(); ++i) {
    wanted.push_back(i);
  }
  std::vector<std::vector<double>> results;
  for (const uint32_t i : wanted) {
    if (i >= program.outputs.size()) return bad_input("the program has no such output");
    Result<std::vector<double>> values = evaluator.output(program.outputs[i]);
    if (!values.ok()) return values.error();
    results.push_back(*std::move(values));
  }
  return results;
}

}  // namespace sundog
