#include "cli/runnable.h"

#include "cli/console.h"
#include "cli/files.h"
#include "cli/interrupt.h"
#include "cli/kernel_run.h"
#include "cli/load.h"
#include "cli/result_folder.h"

namespace sundog::cli {
namespace {

Result<codegen::Generated> emitted(const MuGraph& graph, const Program& program,
                                   const Device& device, Rounding rounding) {
  codegen::GenerateOptions options;
  options.rounding = rounding;
  options.name = identifier(graph.name);
  return codegen::generate(graph, program, device, options);
}

// A stored result: its text is taken from best.cu where that lies beside it.
Result<Runnable> load_stored(const std::string& path, const Invocation& invocation,
                             const std::string& target,
                             const std::optional<codegen::GpuInfo>& gpu) {
  Result<StoredResult> result = load_result_as_made(path, invocation);
  if (!result.ok()) return result.error();
  Runnable runnable;
  Result<Device> device = choose_device(target.empty() ? result->target : target, gpu);
  if (!device.ok()) return device.error();
  runnable.device = std::move(*device);
  runnable.rounding = rounding_of(invocation, result->rounding);
  runnable.program = std::move(result->program);
  runnable.graph = std::move(result->report.candidates.front().graph);
  if (result->report.unfused) runnable.unfused = std::move(result->report.unfused->graph);
  runnable.generated.plan = std::move(result->plan);
  runnable.generated.cuda = std::move(result->cuda);
  const std::string kernel_file = is_folder(path) ? path + "/" + std::string(kKernelFile)
                                                  : beside(path, std::string(kKernelFile));
  if (is_folder(path) || exists(kernel_file)) {
    Result<std::string> text = read_file(kernel_file, invocation.bytes("input-bytes"));
    if (!text.ok()) return text.error();
    if (*text != runnable.generated.cuda) {
      note("sundog: " + kernel_file + " is not as it was written; it runs as it is now");
    }
    runnable.generated.cuda = std::move(*text);
  }
  return runnable;
}

Result<codegen::CompiledModule> compiled(const std::string& cuda, const std::string& arch,
                                         const Invocation& invocation) {
  codegen::CompileOptions options;
  options.limits.seconds = invocation.seconds("compile-time");
  options.limits.stop = &interrupted();
  return codegen::compile(cuda, arch, options);
}

}  // namespace

Result<Runnable> load_runnable(const std::string& path, const Invocation& invocation,
                               const std::optional<codegen::GpuInfo>& gpu) {
  const std::string target = invocation.text("target");
  const Result<Loadable> kind = kind_of_path(path, invocation);
  if (!kind.ok()) return kind.error();
  if (*kind == Loadable::kProgram) {
    return bad_input(path + " is a program, which says nothing about kernels",
                     "sundog optimize finds a µGraph for it");
  }
  if (*kind == Loadable::kResult) return load_stored(path, invocation, target, gpu);
  Result<Candidate> candidate = load_mugraph(path, invocation);
  if (!candidate.ok()) return candidate.error();
  Result<Device> device = choose_device(target, gpu);
  if (!device.ok()) return device.error();
  const Rounding rounding = rounding_of(invocation, candidate->rounding);
  Result<codegen::Generated> generated =
      emitted(candidate->graph, candidate->program, *device, rounding);
  if (!generated.ok()) return generated.error();
  return Runnable{std::move(candidate->program),
                  std::move(candidate->graph),
                  std::move(*generated),
                  std::move(*device),
                  std::nullopt,
                  rounding};
}

Result<GpuComparison> run_on_gpu(const Runnable& runnable, const Invocation& invocation,
                                 bool time) {
  GpuComparison comparison;
  const std::string& arch = runnable.device.arch;
  Result<codegen::CompiledModule> module = compiled(runnable.generated.cuda, arch, invocation);
  if (!module.ok()) return module.error();
  const double tolerance = codegen::kernel_tolerance(runnable.program, runnable.graph);
  std::vector<codegen::GpuJob> jobs = {{"best", runnable.generated.plan, module->cubin, tolerance}};
  comparison.best.module = std::move(*module);
  // The unfused program beside it: what the fusion is worth, measured in the same minute.  Where it
  // does not compile there is simply no comparison.
  if (runnable.unfused && time) {
    const Result<codegen::Generated> plain =
        emitted(*runnable.unfused, runnable.program, runnable.device, runnable.rounding);
    if (plain.ok()) {
      Result<codegen::CompiledModule> plain_module = compiled(plain->cuda, arch, invocation);
      if (plain_module.ok()) {
        jobs.push_back({"unfused", plain->plan, plain_module->cubin,
                        codegen::kernel_tolerance(runnable.program, *runnable.unfused)});
        comparison.unfused.emplace().module = std::move(*plain_module);
      }
    }
  }
  const auto seed = static_cast<uint64_t>(invocation.integer("seed"));
  const auto first =
      codegen::make_check_data(runnable.program, runnable.rounding, kReferenceWork, seed);
  if (!first.ok()) return first.error();
  const auto fresh =
      codegen::make_check_data(runnable.program, runnable.rounding, kReferenceWork, seed + 1);
  if (!fresh.ok()) return fresh.error();
  codegen::MeasureOptions options;
  options.ordinal = static_cast<int>(invocation.integer("gpu"));
  const Result<codegen::CompiledModule> flush = compiled(codegen::flush_source(), arch, invocation);
  if (flush.ok()) options.flush_cubin = flush->cubin;
  const ProcessLimits limits{.seconds = invocation.seconds("gpu-time"), .stop = &interrupted()};
  // Under a sanitizer the kernels must run in the process that it watches.
  options.time = time;
  auto reports =
      time ? codegen::measure_in_child(runnable.program, jobs, *first, *fresh, options, limits)
           : codegen::measure_here(runnable.program, jobs, *first, *fresh, options);
  if (!reports.ok()) return reports.error();
  comparison.best.report = std::move((*reports)[0]);
  if (comparison.unfused) comparison.unfused->report = std::move((*reports)[1]);
  return comparison;
}

}  // namespace sundog::cli
