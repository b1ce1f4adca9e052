#include "core/text_limits.h"

#include <algorithm>
#include <cstdlib>

namespace sundog::text {
namespace {

// Indices of indices multiply: below this, one more substitution cannot overflow.
constexpr int64_t kMaxCoefficient = int64_t{1} << 31;

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
