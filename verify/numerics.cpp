// Errors are measured against float64 and against what the plain program does with the same inputs:
// an absolute tolerance would refuse right candidates of ill-conditioned programs and accept wrong
// ones of well-conditioned ones.
//
// A narrowing cast that a program writes is a licence, even where it is dropped: who runs the
// program as it stands gets its rounding and its overflow.  So the error of the program is that of
// the worse of the two, with every cast in place and with none.
#include "verify/numerics.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <set>
#include <vector>

#include "core/float_algebra.h"
#include "verify/float64_errors.h"
#include "verify/float_inputs.h"
#include "verify/full_size.h"
#include "verify/run_candidate.h"
#include "verify/running_error.h"

namespace sundog::verify {
namespace {

using Tensors = std::vector<TensorValues<double>>;

struct Runs {
  Tensors exact, plain, candidate;
  Tensors eager;  // the plain program with every cast in place
  std::vector<TensorValues<RunningError::Value>> bounds;  // of the candidate; empty: not known
  // Of the plain program, where something is rounded to integers.
  std::vector<TensorValues<RunningError::Value>> plain_bounds;
};

template <class A>
Result<Tensors> run(A algebra, const SmallCase& small, bool candidate, const Tensors& inputs) {
  const std::span<const TensorValues<double>> in(inputs);
  return candidate ? run_candidate(algebra, small.program, small.candidate, in)
                   : interpret(algebra, small.program, in);
}

// The inputs whose values get into outputs; what is only compared decides, and is no operand.
std::set<uint32_t> operand_inputs(const Program& program) {
  std::set<uint32_t> inputs;
  std::vector<TermId> rest;
  std::set<TermId> seen;
  for (const Output& output : program.outputs) rest.push_back(output.value);
  while (!rest.empty()) {
    const TermId id = rest.back();
    rest.pop_back();
    if (!seen.insert(id).second) continue;
    const Term& term = program.terms[id];
    if (const auto* input = std::get_if<InputTerm>(&term)) inputs.insert(input->tensor);
    if (const auto* compare = std::get_if<CompareTerm>(&term)) {
      rest.insert(rest.end(), {compare->then, compare->otherwise});
      continue;
    }
    for (const TermId operand : operands(term)) rest.push_back(operand);
  }
  return inputs;
}

// Integers have no relative rounding unit: an input holds them exactly, and rounding to them is a
// step of the program.
double coarsest_rounding(const Program& program) {
  double u = unit_roundoff(DType::kF32);
  const auto consider = [&](DType dtype) {
    if (!is_integer(dtype)) u = std::max(u, unit_roundoff(dtype));
  };
  for (const uint32_t input : operand_inputs(program)) consider(program.inputs[input].dtype);
  for (const Output& o : program.outputs) consider(o.tensor.dtype);
  return u;
}

std::vector<int64_t> index_of(const std::vector<int64_t>& extents, int64_t element) {
  std::vector<int64_t> index(extents.size());
  for (size_t d = extents.size(); d-- > 0;) {
    index[d] = element % extents[d];
    element /= extents[d];
  }
  return index;
}

Witness witness_at(const SmallCase& small, size_t output, size_t element, double expected,
                   double actual, uint64_t seed) {
  Witness w;
  const TensorDecl& tensor = small.program.outputs[output].tensor;
  w.output = tensor.name;
  w.element = index_of(tensor.extents, static_cast<int64_t>(element));
  w.expected = expected;
  w.actual = actual;
  w.seed = seed;
  w.sizes = small.sizes;
  return w;
}

// Compares the rows of one output and keeps the worst errors of the case.
struct Comparison {
  NumericsCase* result;
  size_t worst_output = 0, worst_element = 0;
  bool overflow = false;

  void add(size_t output, const Runs& runs, DType dtype) {
    const auto& exact = runs.exact[output];
    const auto width =
        static_cast<size_t>(exact.extents.empty() ? 1 : std::max<int64_t>(exact.extents.back(), 1));
    for (size_t begin = 0; begin < exact.values.size(); begin += width) {
      double scale = dtype == DType::kF16 ? 0x1p-14 : 0x1p-126;  // below it every format is coarse
      for (size_t i = begin; i < begin + width; ++i) {
        const double x = std::fabs(exact.values[i]);
        if (std::isfinite(x)) scale = std::max(scale, x);
      }
      for (size_t i = begin; i < begin + width; ++i) element(output, i, runs, scale);
    }
  }

  void element(size_t output, size_t i, const Runs& runs, double scale) {
    const double exact = runs.exact[output].values[i], plain = runs.plain[output].values[i];
    const double candidate = runs.candidate[output].values[i];
    const double eager = runs.eager[output].values[i];
    if (!std::isfinite(exact) || !std::isfinite(plain) || !std::isfinite(eager)) {
      return;  // the program itself fails here
    }
    const double off = std::max(std::fabs(plain - exact), std::fabs(eager - exact));
    result->program_error = std::max(result->program_error, off / scale);
    ++result->compared;
    result->differing += candidate != eager;
    if (!runs.bounds.empty()) {
      // How far the device can be from what the candidate itself computes exactly.
      const double bound = runs.bounds[output].values[i].error / scale;
      result->error_bound = std::max(result->error_bound, bound);
    }
    const bool bad = !std::isfinite(candidate);
    const double error =
        bad ? std::numeric_limits<double>::infinity() : std::fabs(candidate - exact) / scale;
    if (error <= result->candidate_error) return;
    // Where the program's own float32 can carry a rounding to integers over a tie, either side of
    // it is right.
    if (!runs.plain_bounds.empty() && !bad &&
        std::fabs(candidate - exact) <= kErrorFactor * runs.plain_bounds[output].values[i].error) {
      return;
    }
    result->candidate_error = error;
    overflow |= bad;
    worst_output = output;
    worst_element = i;
  }
};

template <class T>
std::string number_text(T x) {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "%.3g", x);
  return buffer;
}

}  // namespace

namespace {

using Bounded = TensorValues<RunningError::Value>;

// Everything that is run on one kind of inputs; nothing if a side cannot be run.
std::optional<Runs> run_all(const SmallCase& small, Rounding rounding, const Tensors& inputs) {
  auto exact = run(Float64({false, rounding}), small, false, inputs);
  auto plain = run(Float32({true, rounding}), small, false, inputs);
  auto candidate = run(Float32({true, rounding}), small, true, inputs);
  if (!exact || !plain || !candidate) return std::nullopt;
  Runs runs{*std::move(exact), *std::move(plain), *std::move(candidate), {}, {}, {}};
  auto in_place = run(Float32({true, Rounding::kEager}), small, false, inputs);
  runs.eager = in_place.ok() ? *std::move(in_place) : runs.plain;
  RunningError algebra(rounding);
  std::vector<Bounded> values;
  for (const TensorValues<double>& tensor : inputs) {
    Bounded& to = values.emplace_back(Bounded{tensor.extents, {}});
    for (const double x : tensor.values) to.values.push_back(algebra.input(x));
  }
  const std::span<const Bounded> in(values);
  auto bounds = run_candidate(algebra, small.program, small.candidate, in);
  if (bounds.ok()) runs.bounds = *std::move(bounds);
  if (casts_to_integers(small.program)) {  // which a last bit before it can send either way
    auto plain_bounds = interpret(algebra, small.program, in);
    if (plain_bounds.ok()) runs.plain_bounds = *std::move(plain_bounds);
  }
  return runs;
}

}  // namespace

NumericsResult compare_numerics(const SmallCase& small, Rounding rounding, uint64_t seed) {
  NumericsResult result;
  result.evidence.attempted = true;
  result.evidence.sizes = small.sizes;
  const double u = coarsest_rounding(small.program);
  for (const InputKind kind : kAllInputKinds) {
    const std::optional<Runs> runs =
        run_all(small, rounding, float_inputs(small.program, kind, seed));
    if (!runs) continue;
    NumericsCase& c = result.evidence.cases.emplace_back();
    c.name = name(kind);
    if (runs->bounds.empty()) c.error_bound = std::numeric_limits<double>::infinity();
    Comparison comparison{&c};
    for (size_t o = 0; o < runs->exact.size(); ++o) {
      comparison.add(o, *runs, small.program.outputs[o].tensor.dtype);
    }
    c.ok = c.candidate_error <=
           kErrorFactor * (c.program_error + u) + kF32Roundings * unit_roundoff(DType::kF32);
    if (c.ok || !result.reason.empty()) continue;
    const size_t o = comparison.worst_output, i = comparison.worst_element;
    const double got = runs->candidate[o].values[i];
    result.reason = "on " + c.name + " inputs ";
    result.reason += comparison.overflow
                         ? "it gives " + number_text(got) + " where the program is finite"
                         : "its error is " + number_text(c.candidate_error) + ", the program's " +
                               number_text(c.program_error);
    result.witness = witness_at(small, o, i, runs->exact[o].values[i], got, seed);
    result.witness->inputs = c.name;
    result.witness->precision = "f32";
  }
  return result;
}

namespace {

// The first element in which the two differ by more than rounding explains.
std::optional<Witness> difference(const SmallCase& small, Rounding rounding, InputKind kind,
                                  uint64_t seed) {
  const Tensors inputs = float_inputs(small.program, kind, seed);
  const auto exact = run(Float64({false, rounding}), small, false, inputs);
  const auto other = run(Float64({false, rounding}), small, true, inputs);
  const auto exact32 = run(Float32({false, rounding}), small, false, inputs);
  const auto other32 = run(Float32({false, rounding}), small, true, inputs);
  if (exact.ok() && !other.ok() && other.error().code == ErrorCode::kBadInput) {
    Witness w;
    w.fault = other.error().message;
    w.sizes = small.sizes;
    w.seed = seed;
    return w;
  }
  if (!exact || !other || !exact32 || !other32) return std::nullopt;
  std::optional<Float64Errors> errors;
  for (size_t o = 0; o < exact->size(); ++o) {
    for (size_t i = 0; i < (*exact)[o].values.size(); ++i) {
      const double x = (*exact)[o].values[i], y = (*other)[o].values[i];
      const double x32 = (*exact32)[o].values[i], y32 = (*other32)[o].values[i];
      if (!beyond_rounding(x, y, x32, y32)) continue;
      if (!errors) errors.emplace(small, rounding, inputs);
      if (errors->explain(o, i, x, y)) continue;
      Witness w = witness_at(small, o, i, x, y, seed);
      w.inputs = name(kind);
      w.precision = "f64";
      return w;
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<Witness> find_witness(const SmallCase& small, Rounding rounding, uint64_t seed,
                                    bool brief, double seconds) {
  const auto start = std::chrono::steady_clock::now();
  constexpr InputKind kKinds[] = {
      InputKind::kOrdinary,      InputKind::kCancelling,    InputKind::kLarge, InputKind::kOneHot,
      InputKind::kLargePositive, InputKind::kLargeNegative, InputKind::kHuge};
  constexpr uint64_t kSeeds = 4;
  for (const InputKind kind : kKinds) {
    for (uint64_t s = 0; s < (brief ? 1 : kSeeds); ++s) {
      auto witness = difference(small, rounding, kind, seed + s);
      if (witness) return witness;
      const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
      if (spent.count() > seconds) return std::nullopt;
    }
    if (brief) break;
  }
  return std::nullopt;
}

}  // namespace sundog::verify
