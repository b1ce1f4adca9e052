#include "cli/schedule_check.h"

#include "codegen/emit_kernel.h"

namespace sundog::cli {

verify::Safety check_schedule(const MuGraph& graph, const codegen::Generated& generated,
                              double seconds) {
  std::vector<verify::EmittedKernel> kernels;
  for (const Kernel& kernel : graph.kernels) {
    if (block_count(kernel) == 0) continue;  // not emitted
    const codegen::PlanKernel& plan = generated.plan.kernels[kernels.size()];
    verify::EmittedKernel emitted{plan.name, plan.grid[0], plan.block, plan.shared_bytes, {}};
    for (const uint32_t tensor : codegen::kernel_parameters(graph, kernel)) {
      emitted.elements.push_back(span_elements(graph.tensors[tensor].decl));
    }
    kernels.push_back(std::move(emitted));
  }
  return verify::check_safety(generated.cuda, kernels, {.seconds = seconds});
}

}  // namespace sundog::cli
