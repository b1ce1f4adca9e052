#include "verify/float_inputs.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/check.h"
#include "verify/prime_field.h"
#include "verify/run_candidate.h"

namespace sundog::verify {
namespace {

double uniform(uint64_t word) { return (static_cast<double>(word >> 11) + 0.5) * 0x1p-53; }

// Box and Muller's transform.
double normal(uint64_t seed, uint64_t key) {
  const double radius = std::sqrt(-2 * std::log(uniform(prf(seed, key, 1))));
  return radius * std::cos(2 * std::numbers::pi * uniform(prf(seed, key, 2)));
}

struct Place {
  size_t tensor = 0;
  bool first = false;           // the first of the inputs that are summed along that axis
  int64_t row = 0, column = 0;  // column: along the summed dimension; row: the other indices' sum
  int64_t columns = 1;
};

double value(InputKind kind, DType dtype, const Place& at, double z) {
  switch (kind) {
    case InputKind::kOrdinary:
      return z;
    case InputKind::kLarge:
      return 24 * z;
    case InputKind::kLargePositive:
      return 10 + std::fabs(z);
    case InputKind::kLargeNegative:
      return (10 + std::fabs(z)) * (at.tensor % 2 == 0 ? 1 : -1);
    case InputKind::kHuge:
      return 1e4 * z;
    case InputKind::kLargeMean: {
      // The spacing of the dtype at the mean is a half of the spread.
      const double mean = std::min(0.125 / unit_roundoff(dtype), 4096.0);
      return mean + std::max(4 * mean * unit_roundoff(dtype), 0x1p-8) * z;
    }
    case InputKind::kTinyVariance:
      return 1 + (z > 0 ? 2 * unit_roundoff(dtype) : 0);
    case InputKind::kCancelling:
      // Signs on one side of a product only, or they would cancel in it; the odd one out is small.
      if (at.first && at.column + 1 == at.columns && at.columns % 2 == 1) return z / 16;
      return (at.first && at.column % 2 == 1 ? -200 : 200) + z / 16;
    case InputKind::kCancellingFar:
      // Parts of a split sum are large then, and what is left of them small.
      if (at.first && at.column + 1 == at.columns && at.columns % 2 == 1) return z / 16;
      return (at.first && at.column >= at.columns / 2 ? -200 : 200) + z / 16;
    case InputKind::kZero:
      return 0;
    case InputKind::kZeroFirst:
      return at.tensor == 0 ? 0 : z;
    case InputKind::kOneHot:
      return at.column == at.row % std::max<int64_t>(at.columns, 1) ? 1 : 0;
    case InputKind::kDenormal:
      return (dtype == DType::kF16 ? 0x1p-17 : 0x1p-126) * z;
    case InputKind::kNearMaximum:
      return (z < 0 ? -1 : 1) * (dtype == DType::kF16 ? 60000 : 1e4) * (1 + 0.05 * std::sin(z));
  }
  SUNDOG_CHECK(false);
}

}  // namespace

std::string_view name(InputKind kind) {
  switch (kind) {
    case InputKind::kOrdinary:
      return "ordinary";
    case InputKind::kLarge:
      return "large";
    case InputKind::kLargePositive:
      return "large positive";
    case InputKind::kLargeNegative:
      return "large negative";
    case InputKind::kHuge:
      return "huge";
    case InputKind::kLargeMean:
      return "large mean";
    case InputKind::kTinyVariance:
      return "tiny variance";
    case InputKind::kCancelling:
      return "cancelling";
    case InputKind::kCancellingFar:
      return "cancelling far";
    case InputKind::kZero:
      return "zero";
    case InputKind::kZeroFirst:
      return "zero first";
    case InputKind::kOneHot:
      return "one-hot";
    case InputKind::kDenormal:
      return "denormal";
    case InputKind::kNearMaximum:
      return "near maximum";
  }
  SUNDOG_CHECK(false);
}

std::vector<size_t> summed_dimensions(const Program& program) {
  AxisSet summed;
  for (TermId id = 0; id < program.terms.size(); ++id) {
    const auto* reduce = std::get_if<ReduceTerm>(&program.terms[id]);
    if (reduce != nullptr && reduce->kind == ReduceKind::kSum) summed |= reduce->axes;
  }
  std::vector<size_t> dimensions;
  for (const TensorDecl& tensor : program.inputs) {
    size_t found = tensor.dims.empty() ? 0 : tensor.dims.size() - 1;
    for (size_t d = tensor.dims.size(); d-- > 0;) {
      if (!(tensor.dims[d].axis_set() & summed).empty()) found = d;
    }
    dimensions.push_back(found);
  }
  return dimensions;
}

std::vector<TensorValues<double>> float_inputs(const Program& program, InputKind kind,
                                               uint64_t seed) {
  const std::vector<size_t> dimensions = summed_dimensions(program);
  std::vector<TensorValues<double>> inputs;
  AxisSet seen;
  for (size_t t = 0; t < program.inputs.size(); ++t) {
    const TensorDecl& tensor = program.inputs[t];
    TensorValues<double> values{tensor.extents, {}};
    Place at{t, true, 0, 0, 1};
    int64_t below = 1;  // elements of the dimensions inside of the summed one
    if (!tensor.extents.empty()) {
      at.columns = tensor.extents[dimensions[t]];
      for (size_t d = dimensions[t] + 1; d < tensor.extents.size(); ++d) below *= tensor.extents[d];
      const AxisSet axes = tensor.dims[dimensions[t]].axis_set();
      at.first = (axes & seen).empty();
      seen |= axes;
    }
    for_each_element(tensor, [&](int64_t element, int64_t offset) {
      at.column = element / below % at.columns;
      at.row = element / (below * at.columns) + element % below;
      const double z = normal(prf(seed, t), static_cast<uint64_t>(offset));
      double x = value(kind, tensor.dtype, at, z);
      if (tensor.low) x = std::max(x, tensor.low->to_double());
      if (tensor.high) x = std::min(x, tensor.high->to_double());
      values.values.push_back(round_to(tensor.dtype, x));
    });
    inputs.push_back(std::move(values));
  }
  return inputs;
}

}  // namespace sundog::verify
