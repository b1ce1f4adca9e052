#include "cli/cost_table.h"

#include <array>
#include <cstdio>

#include "search/machine.h"
#include "search/sizes.h"

namespace sundog::cli {

std::string cost_table(const MuGraph& graph, const Device& device) {
  const search::Machine machine = search::machine_of(device);
  std::string out =
      "      us   blocks  threads  stages  shared KB  blocks/SM | memory     L2 shared tensor"
      "    ALU    SFU  steps  start  kernel\n";
  std::array<char, 160> line{};
  const std::vector<search::KernelPrice> prices = search::prices_of(graph, machine);
  for (size_t k = 0; k < graph.kernels.size(); ++k) {
    const Kernel& kernel = graph.kernels[k];
    const search::KernelPrice& p = prices[k];
    const std::vector<int64_t> extents = factor_extents(kernel);
    double blocks = 1;
    for (AxisId f : kernel.grid) blocks *= static_cast<double>(extents[f]);
    std::snprintf(line.data(), line.size(), "%8.2f %8.0f %8d %7d %10.1f %10d |", p.us, blocks,
                  32 * kernel.warps, p.stages, p.shared_bytes / 1024, p.resident);
    out += line.data();
    for (double us : p.by_resource) {
      std::snprintf(line.data(), line.size(), " %6.2f", us);
      out += line.data();
    }
    out += "  " + kernel.name;
    if (p.trimmed_most > 0 && p.trimmed_mean < 1) {
      std::snprintf(line.data(), line.size(),
                    ": blocks run %.0f %% of their iterations, at most %.0f %%",
                    100 * p.trimmed_mean, 100 * p.trimmed_most);
      out += line.data();
    }
    out += "\n";
  }
  std::snprintf(line.data(), line.size(), "%8.2f  predicted\n", search::predict(graph, machine));
  return out + line.data();
}

}  // namespace sundog::cli
