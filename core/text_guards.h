// What the selects around a read say about the axes of its index.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "core/axis.h"

namespace sundog::text {

class Guards {
 public:
  // From now on the condition holds, or does not; of values: something that is not known here.
  void push(const IndexCondition& condition, bool holds) { guards_.push_back({condition, holds}); }
  void push_unknown() { guards_.push_back({std::nullopt, true}); }
  void pop() { guards_.pop_back(); }
  bool empty() const { return guards_.empty(); }

  // The least and the greatest index over axes of these extents where all guards hold, both of
  // which occur.  Nothing where no index is read, or a guard says what no range of one axis does.
  std::optional<std::pair<int64_t, int64_t>> range(const IndexExpr& e,
                                                   const std::vector<int64_t>& extents) const;

  // Indices along these axes are others from now on, until as many guards are popped.
  int hide(AxisSet axes);

 private:
  struct Guard {
    std::optional<IndexCondition> condition;
    bool holds = true;
  };
  std::vector<Guard> guards_;
};

}  // namespace sundog::text
