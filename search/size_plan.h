// The sizes of several kernels of a plan together, at given numbers of parts.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "search/cost.h"
#include "search/kernel_plan.h"
#include "search/machine.h"

namespace sundog::search {

struct SizedKernels {
  double us = 0;                            // of all, what they save by overlapping left out
  std::vector<std::vector<int64_t>> tiles;  // of each kernel
};

// Where the search for the sizes of a kernel starts: anew, or at those that it had at other counts,
// which is faster and seldom worse.
enum class SizeStart : uint8_t { kAnew, kLast };

// The plan must outlive it, and its kernels stay as they are.
class PlanSizer {
 public:
  PlanSizer(GraphPlan& plan, const Machine& machine, SizeStart start = SizeStart::kAnew);

  // The best sizes of all kernels.  Nothing if one of them fits the device at no size.
  std::optional<SizedKernels> at(const std::vector<int64_t>& part_counts);
  // Likewise of `count` kernels from `first` on.
  std::optional<SizedKernels> at(const std::vector<int64_t>& part_counts, size_t first,
                                 size_t count);
  // The kernel that did not fit last; empty: all did.
  const std::string& misfit() const { return misfit_; }

 private:
  GraphPlan& plan_;
  const Machine& machine_;
  SizeStart start_;
  std::vector<KernelProfile> profiles_;
  std::vector<std::vector<int64_t>> last_;  // tiles of each kernel; empty: none yet
  std::string misfit_;
};

}  // namespace sundog::search
