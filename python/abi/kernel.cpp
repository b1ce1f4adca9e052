#include "cli/kernel_run.h"
#include "codegen/compile.h"
#include "codegen/launch_emulator.h"
#include "codegen/shared_object.h"
#include "python/abi/handles.h"

namespace sundog::abi {
namespace {

constexpr double kEmulatorSeconds = 600;

Result<sundog_kernel> emulated(const cli::StoredResult& result) {
  codegen::EmulatorOptions options;
  options.time_limit_s = kEmulatorSeconds;
  // Race checks make a run several times slower; they are for what can be waited for.
  options.race_check = codegen::program_work(result.program) <= cli::kEmulatorWork;
  Result<codegen::EmulatorModule> module = codegen::EmulatorModule::compile(result.cuda, options);
  if (!module.ok()) return module.error();
  return sundog_kernel{result.plan, std::move(*module), kEmulatorSeconds};
}

Result<sundog_kernel> on_gpu(const cli::StoredResult& result, int ordinal) {
  const Result<Device> device = find_device(result.target);
  if (!device.ok()) return device.error();
  Result<codegen::CompiledModule> module = codegen::compile(result.cuda, device->arch, {});
  if (!module.ok()) return module.error();
  Result<codegen::LoadedPlan> plan = codegen::LoadedPlan::load(ordinal, module->cubin, result.plan);
  if (!plan.ok()) return plan.error();
  return sundog_kernel{result.plan, std::move(*plan), 0};
}

Status emulate(const sundog_kernel& kernel, const codegen::EmulatorModule& module,
               void* const* inputs, void* const* outputs) {
  codegen::EmulatorOptions options;
  options.time_limit_s = kernel.emulator_s;
  options.schedules = 1;
  const Result<codegen::EmulatorReport> report =
      codegen::emulate(module, kernel.plan, inputs, outputs, options);
  if (!report.ok()) return report.error();
  if (report->problems.empty()) return {};
  return Error{ErrorCode::kFailed, report->problems.front(), "please report this", {}};
}

}  // namespace
}  // namespace sundog::abi

using namespace sundog;

extern "C" {

sundog_code sundog_kernel_new(const sundog_result* result, int device, sundog_kernel** kernel,
                              sundog_error** error) {
  return abi::guarded(error, [&]() -> Status {
    if (result == nullptr || kernel == nullptr) return abi::null_argument("result or kernel");
    return abi::give(device == SUNDOG_EMULATOR ? abi::emulated(result->stored)
                                               : abi::on_gpu(result->stored, device),
                     kernel);
  });
}

int64_t sundog_kernel_workspace_bytes(const sundog_kernel* kernel) {
  return kernel->plan.workspace_bytes;
}

int64_t sundog_kernel_zeroed_bytes(const sundog_kernel* kernel) {
  return kernel->plan.zeroed_bytes;
}

sundog_code sundog_kernel_launch(const sundog_kernel* kernel, void* const* inputs,
                                 void* const* outputs, void* workspace, void* stream,
                                 sundog_error** error) {
  return abi::guarded(error, [&]() -> Status {
    if (kernel == nullptr || outputs == nullptr) return abi::null_argument("kernel or outputs");
    if (inputs == nullptr && !kernel->plan.inputs.empty()) return abi::null_argument("inputs");
    if (const auto* plan = std::get_if<codegen::LoadedPlan>(&kernel->code)) {
      return plan->launch(inputs, outputs, workspace, stream);
    }
    return abi::emulate(*kernel, std::get<codegen::EmulatorModule>(kernel->code), inputs, outputs);
  });
}

sundog_code sundog_kernel_launch_packed(void* const* call) {
  if (call == nullptr || call[0] == nullptr) return SUNDOG_BAD_INPUT;
  const auto* kernel = static_cast<const sundog_kernel*>(call[0]);
  void* const* inputs = call + 4;
  return sundog_kernel_launch(kernel, inputs, inputs + kernel->plan.inputs.size(), call[1], call[2],
                              static_cast<sundog_error**>(call[3]));
}

void sundog_kernel_free(sundog_kernel* kernel) { delete kernel; }

sundog_code sundog_result_save(const sundog_result* result, const char* path,
                               const char* const* archs, size_t count, sundog_error** error) {
  return abi::guarded(error, [&]() -> Status {
    if (result == nullptr || path == nullptr) return abi::null_argument("result or path");
    std::vector<std::string> wanted(archs, archs + count);
    if (wanted.empty()) {
      const Result<Device> device = find_device(result->stored.target);
      if (!device.ok()) return device.error();
      wanted.push_back(device->arch);
    }
    std::vector<codegen::SavedCode> code;
    for (const std::string& arch : wanted) {
      Result<codegen::CompiledModule> module = codegen::compile(result->stored.cuda, arch, {});
      if (!module.ok()) return module.error();
      code.push_back({arch, std::move(module->cubin)});
    }
    return codegen::write_shared_object(path, result->stored.plan, code,
                                        cli::serialize(result->stored));
  });
}

}  // extern "C"
