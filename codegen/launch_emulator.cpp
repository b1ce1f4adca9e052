#include "codegen/launch_emulator.h"

#include <algorithm>
#include <set>

namespace sundog::codegen {
namespace {

// The buffers of a plan.  A kernel gets whole buffers, so each place in the workspace that some
// kernel is handed becomes one, which also shows a kernel that leaves its own place.
struct Buffers {
  std::vector<TensorMemory> memory;
  std::vector<EmulatorBuffer> handed_over;
  size_t first_output = 0;
  std::vector<int64_t> workspace_offsets;  // sorted
  size_t first_workspace = 0;

  int index_of(const PlanArgument& argument) const {
    switch (argument.kind) {
      case PlanArgument::Kind::kInput:
        return argument.index;
      case PlanArgument::Kind::kOutput:
        return static_cast<int>(first_output) + argument.index;
      case PlanArgument::Kind::kWorkspace: {
        const auto found =
            std::lower_bound(workspace_offsets.begin(), workspace_offsets.end(), argument.offset);
        return static_cast<int>(first_workspace) +
               static_cast<int>(found - workspace_offsets.begin());
      }
    }
    return -1;
  }
};

Buffers make_buffers(const Program& program, const LaunchPlan& plan, const CheckData& data) {
  Buffers buffers;
  buffers.memory = data.inputs;
  buffers.first_output = buffers.memory.size();
  for (const Output& output : program.outputs) {
    buffers.memory.push_back(poisoned_memory(output.tensor));
  }
  std::set<int64_t> offsets;
  for (const PlanKernel& kernel : plan.kernels) {
    for (const PlanArgument& argument : kernel.arguments) {
      if (argument.kind == PlanArgument::Kind::kWorkspace) offsets.insert(argument.offset);
    }
  }
  buffers.workspace_offsets.assign(offsets.begin(), offsets.end());
  buffers.first_workspace = buffers.memory.size();
  for (auto place = offsets.begin(); place != offsets.end(); ++place) {
    const auto next = std::next(place);
    const int64_t end = next == offsets.end() ? plan.workspace_bytes : *next;
    buffers.memory.emplace_back(static_cast<size_t>(std::max<int64_t>(end - *place, 0)), kPoison);
  }
  for (size_t i = 0; i < buffers.memory.size(); ++i) {
    EmulatorBuffer& buffer = buffers.handed_over.emplace_back();
    buffer.data = buffers.memory[i].data();
    buffer.bytes = buffers.memory[i].size();
    buffer.writable = i >= buffers.first_output;
  }
  return buffers;
}

std::vector<EmulatorLaunch> make_launches(const LaunchPlan& plan, const Buffers& buffers) {
  std::vector<EmulatorLaunch> launches;
  for (const PlanKernel& kernel : plan.kernels) {
    // An empty grid has nothing to do.
    if (std::find(kernel.grid.begin(), kernel.grid.end(), 0) != kernel.grid.end()) continue;
    EmulatorLaunch& launch = launches.emplace_back();
    launch.kernel = kernel.name;
    for (size_t d = 0; d < 3; ++d) launch.grid[d] = static_cast<uint32_t>(kernel.grid[d]);
    launch.block[0] = static_cast<uint32_t>(kernel.block);
    launch.shared_bytes = static_cast<size_t>(kernel.shared_bytes);
    for (const PlanArgument& argument : kernel.arguments) {
      launch.args.push_back(buffers.index_of(argument));
    }
  }
  return launches;
}

}  // namespace

Result<EmulatedRun> run_on_emulator(const Program& program, const LaunchPlan& plan,
                                    const std::string& cuda, const CheckData& data,
                                    double tolerance, const EmulatorOptions& options) {
  const Result<EmulatorModule> module = EmulatorModule::compile(cuda, options);
  if (!module.ok()) return module.error();
  Buffers buffers = make_buffers(program, plan, data);
  const std::vector<EmulatorLaunch> launches = make_launches(plan, buffers);
  EmulatedRun run;
  run.race_checked = options.race_check;
  if (!launches.empty()) {
    Result<EmulatorReport> report = module->run(launches, buffers.handed_over, options);
    if (!report.ok()) return report.error();
    run.problems = std::move(report->problems);
    run.seconds_compile = report->seconds_compile;
    run.seconds_run = report->seconds_run;
  }
  const auto first = buffers.memory.begin() + static_cast<std::ptrdiff_t>(buffers.first_output);
  const std::vector<TensorMemory> outputs(
      first, first + static_cast<std::ptrdiff_t>(program.outputs.size()));
  run.check = check_outputs(program, outputs, data.expected, tolerance);
  return run;
}

}  // namespace sundog::codegen
