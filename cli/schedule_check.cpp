#include "cli/schedule_check.h"

#include <algorithm>

#include "codegen/emit_kernel.h"
#include "core/schedule/cluster.h"

namespace sundog::cli {

verify::Safety check_schedule(const MuGraph& unplaced, const codegen::Generated& generated,
                              double seconds) {
  const MuGraph graph = placed_in_clusters(unplaced);
  std::vector<verify::EmittedKernel> kernels;
  size_t next = 0;
  for (const codegen::Launch& launch : codegen::launches_of(graph)) {
    const codegen::PlanKernel& plan = generated.plan.kernels[next++];
    if (plan.gemm) continue;  // the text has nothing of it for a device
    verify::EmittedKernel emitted{plan.name,         plan.grid[0], plan.block,
                                  plan.shared_bytes, {},           plan.cluster};
    for (const uint32_t tensor : codegen::launch_parameters(graph, launch)) {
      emitted.elements.push_back(span_elements(graph.tensors[tensor].decl));
    }
    if (launch.joined != kNone && graph.kernels[launch.joined].via == Via::kLastBlock) {
      emitted.elements.push_back(block_count(graph.kernels[launch.joined]));
    }
    // A tensor map is of a tensor that is handed over, too.
    for (size_t i = emitted.elements.size(); i < plan.arguments.size(); ++i) {
      const auto at = std::find_if(
          plan.arguments.begin(), plan.arguments.end(), [&](const codegen::PlanArgument& pointer) {
            const codegen::PlanArgument& map = plan.arguments[i];
            return pointer.kind == map.kind && pointer.index == map.index &&
                   pointer.offset == map.offset;
          });
      const auto index = static_cast<size_t>(at - plan.arguments.begin());
      emitted.elements.push_back(index < emitted.elements.size() ? emitted.elements[index] : 0);
    }
    kernels.push_back(std::move(emitted));
  }
  return verify::check_safety(generated.cuda, kernels, {.seconds = seconds});
}

}  // namespace sundog::cli
