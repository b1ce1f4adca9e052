#include "core/program.h"

#include <algorithm>
#include <variant>

#include "core/op.h"

namespace sundog {

int64_t element_count(const TensorDecl& tensor) {
  int64_t count = 1;
  for (int64_t extent : tensor.extents) count *= extent;
  return count;
}

std::vector<int64_t> strides_of(const TensorDecl& tensor) {
  if (!tensor.strides.empty()) return tensor.strides;
  std::vector<int64_t> strides(tensor.extents.size(), 1);
  for (size_t d = strides.size(); d-- > 1;) strides[d - 1] = strides[d] * tensor.extents[d];
  return strides;
}

int64_t span_elements(const TensorDecl& tensor) {
  if (element_count(tensor) == 0) return 0;
  const std::vector<int64_t> strides = strides_of(tensor);
  int64_t last = tensor.offset;
  for (size_t d = 0; d < strides.size(); ++d) {
    last += (tensor.extents[d] - 1) * std::max<int64_t>(strides[d], 0);
  }
  return last + 1;
}

std::vector<int64_t> extents(const Program& program) {
  std::vector<int64_t> result;
  for (const Axis& axis : program.axes) result.push_back(axis.extent);
  return result;
}

bool casts_to_integers(const Program& program) {
  for (TermId id = 0; id < program.terms.size(); ++id) {
    const auto* apply = std::get_if<ApplyTerm>(&program.terms[id]);
    const auto* cast = apply == nullptr ? nullptr : std::get_if<op::Cast>(&apply->op);
    if (cast != nullptr && is_integer(cast->to)) return true;
  }
  return false;
}

std::optional<AxisId> find_axis(const Program& program, std::string_view name) {
  for (size_t i = 0; i < program.axes.size(); ++i) {
    if (program.axes[i].name == name) return static_cast<AxisId>(i);
  }
  return std::nullopt;
}

std::optional<uint32_t> find_input(const Program& program, std::string_view name) {
  for (size_t i = 0; i < program.inputs.size(); ++i) {
    if (program.inputs[i].name == name) return static_cast<uint32_t>(i);
  }
  return std::nullopt;
}

}  // namespace sundog
