// From a structure (bodies and shapes of kernels) to planned kernels.
#pragma once

#include <map>
#include <vector>

#include "search/kernel_plan.h"
#include "search/kernel_shape.h"

namespace sundog::search {

// Lowers the kernels of one structure, in launch order, into one plan.  Stored terms become
// intermediates; part factors become axes of the µGraph.
class Lowerer {
 public:
  Lowerer(const Bank& bank, const TermTable& table);

  // `stores`: for each rank, whether a later kernel loads it (else it is stored to outputs only).
  void add_kernel(const KernelBody& body, const KernelShape& shape, const RankSet& loaded_later);

  // Forgets all kernels: as good as a new one, and cheaper.
  void clear();

  // Gives the plan up.
  GraphPlan take() { return std::move(plan_); }
  const GraphPlan& plan() const { return plan_; }
  GraphPlan& plan() { return plan_; }

 private:
  friend class KernelLowerer;
  uint32_t intermediate(int rank);

  const Bank& bank_;
  const TermTable& table_;
  GraphPlan plan_;
  bool narrow_is_f16_;               // of the 16-bit types of the inputs: less range than f32
  std::map<int, uint32_t> tensors_;  // of stored ranks
  std::map<AxisId, int> part_of_;    // bank part factor -> index into plan_.parts
};

}  // namespace sundog::search
