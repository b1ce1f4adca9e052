#include "verify/float64_errors.h"

#include <cmath>
#include <span>

#include "verify/run_candidate.h"
#include "verify/running_error.h"

namespace sundog::verify {
namespace {

using Bounded = TensorValues<RunningError::Value>;

std::vector<std::vector<double>> errors_of(const Result<std::vector<Bounded>>& run) {
  std::vector<std::vector<double>> errors;
  if (!run.ok()) return errors;
  for (const Bounded& tensor : *run) {
    std::vector<double>& to = errors.emplace_back();
    for (const RunningError::Value& value : tensor.values) to.push_back(value.error);
  }
  return errors;
}

}  // namespace

Float64Errors::Float64Errors(const SmallCase& small, Rounding rounding,
                             const std::vector<TensorValues<double>>& inputs) {
  RunningError algebra(rounding, Precision::kF64);
  std::vector<Bounded> values;
  for (const TensorValues<double>& tensor : inputs) {
    Bounded& to = values.emplace_back(Bounded{tensor.extents, {}});
    for (const double x : tensor.values) to.values.push_back(algebra.input(x));
  }
  const std::span<const Bounded> in(values);
  program_ = errors_of(interpret(algebra, small.program, in));
  candidate_ = errors_of(run_candidate(algebra, small.program, small.candidate, in));
}

bool Float64Errors::explain(size_t output, size_t element, double expected, double actual) const {
  constexpr double kOrders = 4;  // sums may have been added in another order than here
  if (program_.empty() || candidate_.empty() || !std::isfinite(actual)) return false;
  const double bound = program_[output][element] + candidate_[output][element];
  return !(std::fabs(expected - actual) > kOrders * bound);  // also if it is not a number
}

}  // namespace sundog::verify
