#include "core/text_limits.h"

#include <algorithm>
#include <cstdlib>

namespace sundog::text {
namespace {

// Indices of indices multiply: below this, one more substitution cannot overflow.
constexpr int64_t kMaxCoefficient = int64_t{1} << 31;

// Byte counts stay below this, so that sums and products of a few of them cannot overflow.
constexpr int64_t kMaxBytes = int64_t{1} << 62;

// `definitions` say where in a text the terms stand.
Status check_depth(const TermGraph& terms, const std::vector<Definition>& definitions = {}) {
  std::vector<int> depth(terms.size(), 1);
  for (TermId id = 0; id < terms.size(); ++id) {
    for (TermId operand : operands(terms[id])) depth[id] = std::max(depth[id], depth[operand] + 1);
    if (depth[id] <= kMaxTermDepth) continue;
    Error error = limit_error("terms are nested deeper than " + std::to_string(kMaxTermDepth) +
                                  " levels, a definition inside of what uses it",
                              "cut the program in two");
    for (const Definition& definition : definitions) {
      if (definition.value < id || definition.position.line == 0) continue;
      error.position = definition.position;
      break;
    }
    return error;
  }
  return {};
}

Status check_size(const TensorDecl& tensor) {
  if (size_fits(tensor)) return {};
  return bad_input("tensor '" + tensor.name + "' is larger than 2^62 bytes",
                   "are the parameters right?");
}

// How far the last tiles of a split reach beyond its axis.
Status check_padding(const MuGraph& graph, const Kernel& kernel) {
  for (AxisId axis = 0; axis < graph.axes.size(); ++axis) {
    int64_t reach = 1;  // check() saw that it does not overflow
    for (AxisId f : factors_of(kernel, axis)) reach *= kernel.factors[f].extent;
    const int64_t extent = graph.axes[axis].extent;
    if (reach - extent <= std::max(extent, kMaxPadding)) continue;
    return bad_input("kernel '" + kernel.name + "': axis '" + graph.axes[axis].name +
                         "': its factors make " + std::to_string(reach) + " indices of its " +
                         std::to_string(extent),
                     "only the last tile of a split goes beyond its axis");
  }
  return {};
}

}  // namespace

bool coefficients_fit(const IndexExpr& e) {
  const auto fits = [](const IndexExpr::Item& item) {
    return std::abs(item.coefficient) <= kMaxCoefficient;
  };
  return std::all_of(e.axes.begin(), e.axes.end(), fits) &&
         std::all_of(e.sizes.begin(), e.sizes.end(), fits) &&
         std::abs(e.constant) <= kMaxCoefficient;
}

bool coefficients_fit(const TermGraph& terms, TermId first) {
  for (TermId id = first; id < terms.size(); ++id) {
    if (const auto* input = std::get_if<InputTerm>(&terms[id])) {
      for (const IndexExpr& e : input->index) {
        if (!coefficients_fit(e)) return false;
      }
    } else if (const auto* index = std::get_if<IndexTerm>(&terms[id])) {
      if (!coefficients_fit(index->index)) return false;
    } else if (const auto* select = std::get_if<SelectTerm>(&terms[id])) {
      if (!coefficients_fit(select->condition.expr)) return false;
    }
  }
  return true;
}

bool size_fits(const TensorDecl& tensor) {
  const auto limit = static_cast<long double>(kMaxBytes / bytes(tensor.dtype));
  long double elements = 1, reach = static_cast<long double>(tensor.offset);
  for (int64_t extent : tensor.extents) {
    elements *= static_cast<long double>(std::max<int64_t>(extent, 1));
  }
  for (size_t d = 0; d < tensor.strides.size() && d < tensor.extents.size(); ++d) {
    reach += static_cast<long double>(tensor.strides[d]) *
             static_cast<long double>(std::max<int64_t>(tensor.extents[d], 1));
  }
  return elements <= limit && reach + elements <= limit;
}

Status check_limits(const Program& program) {
  for (const TensorDecl& input : program.inputs) SUNDOG_RETURN_IF_ERROR(check_size(input));
  for (const Output& output : program.outputs) SUNDOG_RETURN_IF_ERROR(check_size(output.tensor));
  return check_depth(program.terms, program.definitions);
}

Status check_limits(const MuGraph& graph) {
  for (const DeviceTensor& tensor : graph.tensors) SUNDOG_RETURN_IF_ERROR(check_size(tensor.decl));
  for (const Kernel& kernel : graph.kernels) {
    long double blocks = 1;
    for (AxisId f : kernel.grid) blocks *= static_cast<long double>(kernel.factors[f].extent);
    if (blocks > static_cast<long double>(kMaxBytes)) {
      return bad_input("kernel '" + kernel.name + "': the grid has more than 2^62 blocks");
    }
    SUNDOG_RETURN_IF_ERROR(check_depth(kernel.terms));
    SUNDOG_RETURN_IF_ERROR(check_padding(graph, kernel));
  }
  return {};
}

std::optional<std::pair<int64_t, int64_t>> index_range(const IndexExpr& e,
                                                       const std::vector<int64_t>& extents) {
  long double low = static_cast<long double>(e.constant), high = low;
  for (const auto& item : e.sizes) {
    const long double part =
        static_cast<long double>(item.coefficient) * static_cast<long double>(extents[item.axis]);
    low += part;
    high += part;
  }
  for (const auto& item : e.axes) {
    if (extents[item.axis] == 0) return std::nullopt;
    const long double part = static_cast<long double>(item.coefficient) *
                             static_cast<long double>(extents[item.axis] - 1);
    (part < 0 ? low : high) += part;
  }
  const auto limit = static_cast<long double>(int64_t{1} << 62);
  const auto clamp = [limit](long double x) {
    return static_cast<int64_t>(std::clamp(x, -limit, limit));
  };
  return std::pair(clamp(low), clamp(high));
}

}  // namespace sundog::text
