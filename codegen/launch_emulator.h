// Runs a launch plan on the emulator (codegen/emulator.h) and checks its outputs as
// codegen/launch.h does on a GPU.
#pragma once

#include <string>
#include <vector>

#include "codegen/emulator.h"
#include "codegen/kernel_check.h"
#include "codegen/launch.h"
#include "codegen/launch_plan.h"
#include "core/program.h"
#include "core/status.h"

namespace sundog::codegen {

struct EmulatedRun {
  OutputCheck check;
  std::vector<std::string> problems;  // races, accesses out of bounds, ...; see codegen/emulator.h
  double seconds_compile = 0, seconds_run = 0;
  bool race_checked = false;
  std::vector<BankUse> banks;  // a launch, where races were checked

  bool passed() const { return check.passed && problems.empty(); }
  std::string failure() const { return problems.empty() ? check.failure : problems.front(); }
};

// Runs the kernels of a plan, compiled before, on memory of the caller's: host pointers in the
// order of the plan, as many bytes each as it says.  `unit`: which source of the module the plan
// belongs to.  What the kernels did wrong is in the report.
Result<EmulatorReport> emulate(const EmulatorModule& module, const LaunchPlan& plan,
                               void* const* inputs, void* const* outputs,
                               const EmulatorOptions& options, int unit = 0);

// `cuda` is the emitted text.  Errors: no C++ compiler, text that does not compile, a limit.
Result<EmulatedRun> run_on_emulator(const Program& program, const LaunchPlan& plan,
                                    const std::string& cuda, const CheckData& data,
                                    double tolerance, const EmulatorOptions& options);
// Likewise, the text compiled before as source number `unit` of `module`.
Result<EmulatedRun> run_on_emulator(const Program& program, const LaunchPlan& plan,
                                    const EmulatorModule& module, int unit, const CheckData& data,
                                    double tolerance, const EmulatorOptions& options);

}  // namespace sundog::codegen
