#include "codegen/launch_emulator.h"

#include <algorithm>
#include <set>

namespace sundog::codegen {
namespace {

// The buffers of a plan.  A kernel gets whole buffers, so each place in the workspace that some
// kernel is handed becomes one, which also shows a kernel that leaves its own place.
struct Buffers {
  std::vector<TensorMemory> workspace;
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

Buffers make_buffers(const LaunchPlan& plan, void* const* inputs, void* const* outputs) {
  Buffers buffers;
  const auto hand_over = [&](void* data, size_t bytes, bool writable) {
    EmulatorBuffer& buffer = buffers.handed_over.emplace_back();
    buffer.data = data;
    buffer.bytes = bytes;
    buffer.writable = writable;
  };
  for (size_t i = 0; i < plan.inputs.size(); ++i) {
    hand_over(inputs[i], static_cast<size_t>(plan.inputs[i].bytes), false);
  }
  buffers.first_output = buffers.handed_over.size();
  for (size_t i = 0; i < plan.outputs.size(); ++i) {
    hand_over(outputs[i], static_cast<size_t>(plan.outputs[i].bytes), true);
  }
  std::set<int64_t> offsets;
  for (const PlanKernel& kernel : plan.kernels) {
    for (const PlanArgument& argument : kernel.arguments) {
      if (argument.kind == PlanArgument::Kind::kWorkspace) offsets.insert(argument.offset);
    }
  }
  buffers.workspace_offsets.assign(offsets.begin(), offsets.end());
  buffers.first_workspace = buffers.handed_over.size();
  for (auto place = offsets.begin(); place != offsets.end(); ++place) {
    const auto next = std::next(place);
    const int64_t end = next == offsets.end() ? plan.library_offset() : *next;
    TensorMemory& memory =
        buffers.workspace.emplace_back(static_cast<size_t>(std::max<int64_t>(end - *place, 0)),
                                       *place < plan.zeroed_bytes ? std::byte{0} : kPoison);
    hand_over(memory.data(), memory.size(), true);  // a moved vector keeps its memory
  }
  return buffers;
}

std::vector<EmulatorLaunch> make_launches(const LaunchPlan& plan, const Buffers& buffers,
                                          int unit) {
  std::vector<EmulatorLaunch> launches;
  for (const PlanKernel& kernel : plan.kernels) {
    // An empty grid has nothing to do.
    if (std::find(kernel.grid.begin(), kernel.grid.end(), 0) != kernel.grid.end()) continue;
    EmulatorLaunch& launch = launches.emplace_back();
    launch.kernel = kernel.name;
    launch.unit = unit;
    for (size_t d = 0; d < 3; ++d) launch.grid[d] = static_cast<uint32_t>(kernel.grid[d]);
    launch.block[0] = static_cast<uint32_t>(kernel.block);
    launch.shared_bytes = static_cast<size_t>(kernel.shared_bytes);
    launch.dependent = kernel.dependent;
    launch.cluster[0] = static_cast<uint32_t>(kernel.cluster);
    for (const PlanArgument& argument : kernel.arguments) {
      launch.args.push_back(buffers.index_of(argument));
    }
  }
  return launches;
}

}  // namespace

Result<EmulatorReport> emulate(const EmulatorModule& module, const LaunchPlan& plan,
                               void* const* inputs, void* const* outputs,
                               const EmulatorOptions& options, int unit) {
  const Buffers buffers = make_buffers(plan, inputs, outputs);
  const std::vector<EmulatorLaunch> launches = make_launches(plan, buffers, unit);
  if (launches.empty()) return EmulatorReport{};
  Result<EmulatorReport> report = module.run(launches, buffers.handed_over, options);
  if (!report.ok()) return report;
  for (size_t i = 0; i < buffers.workspace.size(); ++i) {
    if (buffers.workspace_offsets[i] >= plan.zeroed_bytes) continue;
    const TensorMemory& counters = buffers.workspace[i];
    if (std::all_of(counters.begin(), counters.end(),
                    [](std::byte b) { return b == std::byte{0}; }))
      continue;
    report->problems.push_back(
        "counter not reset: a counter of the workspace is not 0 after the launches: the next ones "
        "would go wrong");
  }
  return report;
}

Result<EmulatedRun> run_on_emulator(const Program& program, const LaunchPlan& plan,
                                    const std::string& cuda, const CheckData& data,
                                    double tolerance, const EmulatorOptions& options) {
  const Result<EmulatorModule> module = EmulatorModule::compile(cuda, options);
  if (!module.ok()) return module.error();
  return run_on_emulator(program, plan, *module, 0, data, tolerance, options);
}

Result<EmulatedRun> run_on_emulator(const Program& program, const LaunchPlan& plan,
                                    const EmulatorModule& module, int unit, const CheckData& data,
                                    double tolerance, const EmulatorOptions& options) {
  std::vector<TensorMemory> inputs = data.inputs, outputs;
  for (const Output& output : program.outputs) outputs.push_back(poisoned_memory(output.tensor));
  std::vector<void*> in, out;
  for (TensorMemory& memory : inputs) in.push_back(memory.data());
  for (TensorMemory& memory : outputs) out.push_back(memory.data());
  Result<EmulatorReport> report = emulate(module, plan, in.data(), out.data(), options, unit);
  if (!report.ok()) return report.error();
  EmulatedRun run;
  run.race_checked = options.race_check;
  run.problems = std::move(report->problems);
  run.banks = std::move(report->banks);
  run.seconds_compile = report->seconds_compile;
  run.seconds_run = report->seconds_run;
  run.check = check_outputs(program, outputs, data.expected, tolerance);
  return run;
}

}  // namespace sundog::codegen
