// Kernels of a plan meet in nothing but tensors and the numbers of parts, so each has its own best
// sizes once those numbers are fixed.
#include "search/size_plan.h"

#include "search/sizes.h"

namespace sundog::search {

PlanSizer::PlanSizer(GraphPlan& plan, const Machine& machine, SizeStart start)
    : plan_(plan), machine_(machine), start_(start), last_(plan.kernels.size()) {
  for (const KernelPlan& k : plan.kernels) {
    profiles_.push_back(profile(plan.graph, k));
  }
}

std::optional<SizedKernels> PlanSizer::at(const std::vector<int64_t>& part_counts) {
  return at(part_counts, 0, plan_.kernels.size());
}

std::optional<SizedKernels> PlanSizer::at(const std::vector<int64_t>& part_counts, size_t first,
                                          size_t count) {
  SizedKernels all;
  for (size_t k = first; k < first + count; ++k) {
    KernelPlan& kernel = plan_.kernels[k];
    const bool near = start_ == SizeStart::kLast && !last_[k].empty();
    std::optional<SizedKernel> sized;
    if (near) sized = size_kernel(kernel, profiles_[k], part_counts, machine_, &last_[k]);
    if (!sized) sized = size_kernel(kernel, profiles_[k], part_counts, machine_);
    if (!sized) {
      misfit_ = kernel.kernel.name;
      return std::nullopt;
    }
    last_[k] = sized->tiles;
    all.us += sized->us;
    all.tiles.push_back(std::move(sized->tiles));
  }
  misfit_.clear();
  return all;
}

}  // namespace sundog::search
