#include "core/text_print_decl.h"

#include <algorithm>

#include "core/text_print.h"

namespace sundog::text {

std::string tensor_text(const TensorDecl& tensor, const std::vector<std::string>& dims) {
  std::string result =
      tensor.name + ": " + std::string(name(tensor.dtype)) + "[" + join(dims) + "]";
  if (!tensor.strides.empty()) {
    std::vector<std::string> strides;
    for (int64_t stride : tensor.strides) strides.push_back(std::to_string(stride));
    result += " stride(" + join(strides) + ")";
  }
  if (tensor.offset != 0) result += " offset " + std::to_string(tensor.offset);
  if (tensor.alignment != TensorDecl().alignment) {
    result += " align " + std::to_string(tensor.alignment);
  }
  if (tensor.low || tensor.high) {
    result += " in [" + number_text(tensor.low.value_or(Number::infinity(true))) + ", " +
              number_text(tensor.high.value_or(Number::infinity())) + "]";
  }
  return result;
}

std::string split_text(const std::string& axis, int64_t extent,
                       const std::vector<std::pair<std::string, int64_t>>& factors) {
  int64_t inner = 1;
  for (size_t i = 1; i < factors.size(); ++i) {
    if (__builtin_mul_overflow(inner, std::max<int64_t>(factors[i].second, 1), &inner)) inner = 0;
  }
  const bool follows = inner > 0 && !factors.empty() &&
                       factors[0].second == extent / inner + (extent % inner != 0 ? 1 : 0);
  std::vector<std::string> parts;
  for (const auto& [name, size] : factors) {
    const bool plain = parts.empty() && follows;
    parts.push_back(plain ? name : name + "(" + std::to_string(size) + ")");
  }
  return "split " + axis + " = " + join(parts, " * ");
}

}  // namespace sundog::text
