#include "core/index_limit.h"

#include <algorithm>
#include <cmath>

namespace sundog {

double index_reach(const IndexExpr& e, const std::vector<int64_t>& axes,
                   const std::vector<int64_t>& sizes) {
  auto sum = static_cast<double>(e.constant);  // with the sizes, which are numbers in the code
  for (const auto& item : e.sizes) {
    sum += static_cast<double>(item.coefficient) * static_cast<double>(sizes[item.axis]);
  }
  sum = std::abs(sum);
  for (const auto& item : e.axes) {
    sum += std::abs(static_cast<double>(item.coefficient)) * static_cast<double>(axes[item.axis]);
  }
  return sum;
}

double index_reach(const TermGraph& terms, TermId first, const std::vector<int64_t>& axes,
                   const std::vector<int64_t>& sizes) {
  double most = 0;
  for (TermId id = first; id < terms.size(); ++id) {
    if (const auto* select = std::get_if<SelectTerm>(&terms[id])) {
      most = std::max(most, index_reach(select->condition.expr, axes, sizes));
    } else if (const auto* index = std::get_if<IndexTerm>(&terms[id])) {
      most = std::max(most, index_reach(index->index, axes, sizes));
    }
  }
  return most;
}

}  // namespace sundog
