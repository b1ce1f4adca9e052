#include "core/text_tensor.h"

#include <algorithm>

#include "core/overlap.h"
#include "core/text_limits.h"
#include "core/text_terms.h"

namespace sundog::text {
namespace {

constexpr int64_t kMaxAlignment = int64_t{1} << 20;

void check_size(const TensorSyntax& syntax, Diagnostics& diagnostics, const TensorDecl& tensor) {
  if (size_fits(tensor)) return;
  diagnostics.fail(syntax.name.at, "tensor '" + tensor.name + "' is larger than 2^62 bytes",
                   "are the parameters right?");
}

void set_strides(const TensorSyntax& syntax, const IntegerOf& value_of, bool written,
                 Diagnostics& diagnostics, TensorDecl& to) {
  if (syntax.stride->size() != to.extents.size()) {
    return diagnostics.fail(syntax.name.at, "tensor '" + to.name + "' has " +
                                                std::to_string(to.extents.size()) +
                                                " dimensions but " +
                                                std::to_string(syntax.stride->size()) + " strides");
  }
  for (size_t d = 0; d < to.extents.size(); ++d) {
    const Expr& e = (*syntax.stride)[d];
    const int64_t stride = integer_value(e, value_of, diagnostics).value_or(0);
    if (stride < 0) {
      diagnostics.fail(e.at, "a stride must not be negative", "reverse with an index: x[n - 1 - i]",
                       ErrorCode::kUnsupported);
    }
    if (written && stride == 0 && to.extents[d] > 1) {
      diagnostics.fail(e.at, "stride 0 makes elements of '" + to.name + "' share memory",
                       "only inputs may repeat elements");
    }
    to.strides.push_back(stride);
  }
}

void set_range(const TensorSyntax& syntax, Diagnostics& diagnostics, TensorDecl& to) {
  const auto bound = [&](const Expr& e) -> std::optional<Number> {
    const auto number = literal(e);
    if (!number) diagnostics.fail(e.at, "a bound must be a number");
    return number;
  };
  to.low = bound(*syntax.low);
  to.high = bound(*syntax.high);
  if (diagnostics.failed()) return;
  if (to.low->to_double() > to.high->to_double()) {
    return diagnostics.fail(syntax.low->at, "the range of '" + to.name + "' is empty",
                            "write the smaller bound first");
  }
  if (to.low->is_infinite() && to.low->is_negative()) to.low.reset();
  if (to.high->is_infinite() && !to.high->is_negative()) to.high.reset();
}

}  // namespace

void set_attributes(const TensorSyntax& syntax, const IntegerOf& value_of, bool written,
                    Diagnostics& diagnostics, TensorDecl& to) {
  if (diagnostics.failed()) return;
  if (syntax.offset) {
    to.offset = integer_value(*syntax.offset, value_of, diagnostics).value_or(0);
    if (to.offset < 0) diagnostics.fail(syntax.offset->at, "an offset must not be negative");
  }
  if (syntax.align) {
    const int64_t align = integer_value(*syntax.align, value_of, diagnostics).value_or(1);
    if (align < bytes(to.dtype) || align > kMaxAlignment || (align & (align - 1)) != 0) {
      diagnostics.fail(syntax.align->at,
                       "an alignment must be a power of two, at least the " +
                           std::to_string(bytes(to.dtype)) + " bytes of an element",
                       "it counts bytes");
    } else {
      to.alignment = static_cast<int>(align);
    }
  }
  check_size(syntax, diagnostics, to);  // before strides are derived from extents
  if (syntax.stride && !diagnostics.failed()) {
    set_strides(syntax, value_of, written, diagnostics, to);
    check_size(syntax, diagnostics, to);
    if (written && !diagnostics.failed() && elements_share_memory(to)) {
      diagnostics.fail((*syntax.stride)[0].at,
                       "these strides make elements of '" + to.name + "' share memory",
                       "every element of an output has a place of its own");
    }
  }
  if (syntax.low) set_range(syntax, diagnostics, to);
}

std::vector<int64_t> split_extents(const SplitSyntax& syntax, int64_t extent,
                                   const IntegerOf& value_of, bool exact,
                                   Diagnostics& diagnostics) {
  std::vector<int64_t> result;
  std::optional<size_t> open;
  int64_t product = 1;
  for (const FactorSyntax& factor : syntax.factors) {
    if (!factor.extent) {
      if (open) {
        diagnostics.fail(factor.name.at, "two factors of '" + syntax.axis.text + "' lack an extent",
                         "only one can be derived: write " + factor.name.text + "(N)");
      }
      open = result.size();
      result.push_back(1);
      continue;
    }
    const int64_t value = integer_value(*factor.extent, value_of, diagnostics).value_or(1);
    if (diagnostics.failed()) return {};
    if (value < 0 || (value == 0 && extent != 0)) {
      diagnostics.fail(factor.extent->at, "the extent of a factor must be at least 1");
      return {};
    }
    if (__builtin_mul_overflow(product, std::max<int64_t>(value, 1), &product) ||
        product > (int64_t{1} << 61)) {
      diagnostics.fail(factor.extent->at,
                       "the factors of '" + syntax.axis.text + "' are too large");
      return {};
    }
    result.push_back(value);
  }
  if (open) result[*open] = extent / product + (extent % product != 0 ? 1 : 0);
  int64_t covered = 1;
  for (int64_t value : result) covered *= value;  // at most extent + product: no overflow
  if (covered < extent || (exact && covered != extent)) {
    diagnostics.fail(syntax.axis.at,
                     "the factors of '" + syntax.axis.text + "' make " + std::to_string(covered) +
                         ", its extent is " + std::to_string(extent),
                     exact ? "in a program a split must be exact"
                           : "the factors must cover the axis; leave one extent out to derive it");
    return {};
  }
  return result;
}

}  // namespace sundog::text
