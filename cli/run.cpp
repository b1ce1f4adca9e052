// Runs what was emitted and compares it with the program.  A result's own best.cu is what runs on
// the GPU, not a text emitted anew: the artefact is what must be right.
#include <algorithm>
#include <cstdio>

#include "cli/commands.h"
#include "cli/console.h"
#include "cli/files.h"
#include "cli/interrupt.h"
#include "cli/json.h"
#include "cli/kernel_run.h"
#include "cli/load.h"
#include "cli/result_folder.h"
#include "codegen/compile.h"

namespace sundog::cli {
namespace {

struct Runnable {
  Program program;
  MuGraph graph;
  codegen::Generated generated;  // what runs
  Device device;
  std::optional<MuGraph> unfused;  // of a stored result
  Rounding rounding = Rounding::kWide;
};

// What one µGraph did on the GPU.
struct GpuOutcome {
  codegen::GpuReport report;
  codegen::CompiledModule module;
};

struct Outcome {
  std::string on, gpu;
  std::string sizes;
  bool reduced = false;
  bool passed = false;
  std::string failure;
  double max_rel_error = 0;
  int64_t compared = 0;
  std::string residues;  // what the exact check says; empty: not run
  std::vector<std::string> problems;
  std::optional<GpuOutcome> best, unfused;
  double seconds = 0;
};

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
  Result<StoredResult> result = load_result(path, invocation);
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

Result<Runnable> load(const Invocation& invocation, const std::optional<codegen::GpuInfo>& gpu) {
  const std::string& path = invocation.operands[0];
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

Result<Outcome> on_emulator(const Runnable& runnable, const Invocation& invocation) {
  Outcome outcome;
  outcome.on = "emulator";
  EmulatorRequest request;
  request.rounding = runnable.rounding;
  request.full = invocation.flag("full");
  request.time_limit_s = invocation.seconds("check-time");
  request.seed = static_cast<uint64_t>(invocation.integer("seed"));
  Result<EmulatorOutcome> emulated = run_in_emulator(runnable.program, runnable.graph,
                                                     runnable.device, runnable.generated, request);
  if (!emulated.ok()) return emulated.error();
  outcome.reduced = emulated->reduced;
  outcome.sizes = emulated->sizes;
  const codegen::EmulatedRun& run = emulated->run;
  outcome.passed = emulated->passed();
  outcome.failure = emulated->failure();
  if (emulated->residues) outcome.residues = codegen::to_string(*emulated->residues);
  outcome.max_rel_error = run.check.max_rel_error;
  outcome.compared = run.check.compared;
  outcome.problems = run.problems;
  outcome.seconds = run.seconds_run;
  return outcome;
}

Result<codegen::CompiledModule> compiled(const std::string& cuda, const std::string& arch,
                                         const Invocation& invocation) {
  codegen::CompileOptions options;
  options.limits.seconds = invocation.seconds("compile-time");
  options.limits.stop = &interrupted();
  return codegen::compile(cuda, arch, options);
}

Result<Outcome> on_gpu(const Runnable& runnable, const Invocation& invocation,
                       const codegen::GpuInfo& gpu) {
  Outcome outcome;
  outcome.on = "gpu";
  outcome.gpu = gpu.name;
  outcome.sizes = sizes_text(runnable.program);
  const std::string& arch = runnable.device.arch;
  Result<codegen::CompiledModule> module = compiled(runnable.generated.cuda, arch, invocation);
  if (!module.ok()) return module.error();
  const double tolerance = codegen::kernel_tolerance(runnable.program, runnable.graph);
  std::vector<codegen::GpuJob> jobs = {{"best", runnable.generated.plan, module->cubin, tolerance}};
  outcome.best.emplace().module = std::move(*module);
  // The unfused program beside it: what the fusion is worth, measured in the same minute.  Where it
  // does not compile there is simply no comparison.
  if (runnable.unfused && !invocation.flag("no-time")) {
    const Result<codegen::Generated> plain =
        emitted(*runnable.unfused, runnable.program, runnable.device, runnable.rounding);
    if (plain.ok()) {
      Result<codegen::CompiledModule> plain_module = compiled(plain->cuda, arch, invocation);
      if (plain_module.ok()) {
        jobs.push_back({"unfused", plain->plan, plain_module->cubin,
                        codegen::kernel_tolerance(runnable.program, *runnable.unfused)});
        outcome.unfused.emplace().module = std::move(*plain_module);
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
  options.time = !invocation.flag("no-time");
  auto reports =
      options.time
          ? codegen::measure_in_child(runnable.program, jobs, *first, *fresh, options, limits)
          : codegen::measure_here(runnable.program, jobs, *first, *fresh, options);
  if (!reports.ok()) return reports.error();
  outcome.best->report = std::move((*reports)[0]);
  if (outcome.unfused) outcome.unfused->report = std::move((*reports)[1]);
  const codegen::GpuReport& best = outcome.best->report;
  outcome.failure = best.failure;
  outcome.passed = best.failure.empty();
  outcome.max_rel_error = std::max(best.before.max_rel_error, best.after.max_rel_error);
  outcome.compared = best.before.compared + best.after.compared;
  return outcome;
}

void write_gpu(JsonWriter& json, const std::optional<GpuOutcome>& outcome) {
  if (!outcome) {
    json.null();
    return;
  }
  const codegen::GpuReport& report = outcome->report;
  const auto timed = [&](double value) {
    return report.timed ? std::optional<double>(value) : std::nullopt;
  };
  json.begin_object();
  json.key("passed").value(report.failure.empty());
  json.key("failure").value(report.failure);
  json.key("cold_us").value(timed(report.timing.cold_us));
  json.key("warm_us").value(timed(report.timing.warm_us));
  json.key("cold_spread").value(timed(report.timing.cold_spread));
  json.key("warm_spread").value(timed(report.timing.warm_spread));
  json.key("calls").value(report.timing.calls).key("copies").value(report.timing.copies);
  json.key("max_rel_error_before").value(report.before.max_rel_error);
  json.key("max_rel_error_after").value(report.after.max_rel_error);
  json.key("compiler").value(outcome->module.compiler);
  json.key("kernels").begin_array();
  for (const codegen::KernelResources& kernel : outcome->module.kernels) {
    json.begin_object().key("name").value(kernel.name).key("registers").value(kernel.registers);
    json.key("spill_bytes").value(kernel.spill_store_bytes + kernel.spill_load_bytes);
    json.key("stack_bytes").value(kernel.stack_bytes);
    json.key("static_shared_bytes").value(kernel.shared_bytes).end_object();
  }
  json.end_array().end_object();
}

std::optional<double> speedup(const Outcome& outcome) {
  if (!outcome.best || !outcome.unfused) return std::nullopt;
  if (!outcome.best->report.timed || !outcome.unfused->report.timed) return std::nullopt;
  return outcome.unfused->report.timing.cold_us / outcome.best->report.timing.cold_us;
}

std::string json_of(const Runnable& runnable, const Outcome& outcome) {
  JsonWriter json;
  json.begin_object();
  json.key("program").value(runnable.program.name);
  json.key("target").value(runnable.device.name);
  json.key("on").value(outcome.on);
  json.key("gpu");
  outcome.gpu.empty() ? json.null() : json.value(outcome.gpu);
  json.key("passed").value(outcome.passed);
  json.key("failure").value(outcome.failure);
  json.key("reduced").value(outcome.reduced);
  json.key("sizes").value(outcome.sizes);
  json.key("max_rel_error").value(outcome.max_rel_error);
  json.key("compared").value(outcome.compared);
  json.key("residues");
  outcome.residues.empty() ? json.null() : json.value(outcome.residues);
  json.key("problems").begin_array();
  for (const std::string& problem : outcome.problems) json.value(problem);
  json.end_array();
  json.key("kernels").value(static_cast<int64_t>(runnable.generated.plan.kernels.size()));
  json.key("best");
  write_gpu(json, outcome.best);
  json.key("unfused");
  write_gpu(json, outcome.unfused);
  json.key("speedup").value(speedup(outcome));
  json.end_object();
  return json.text() + "\n";
}

std::string gpu_line(const char* label, const GpuOutcome& outcome) {
  char line[256];
  const codegen::GpuReport& report = outcome.report;
  if (!report.failure.empty())
    return std::string("  ") + label + "FAILED: " + report.failure + "\n";
  std::snprintf(line, sizeof line, "  %s%9.2f us cold  %9.2f us warm  (spread %.1f %%, %.1f %%)\n",
                label, report.timing.cold_us, report.timing.warm_us,
                100 * report.timing.cold_spread, 100 * report.timing.warm_spread);
  return line;
}

std::string text_of(const Runnable& runnable, const Outcome& outcome) {
  char line[256];
  std::string text = runnable.program.name + " on " +
                     (outcome.gpu.empty() ? "the emulator" : outcome.gpu) + ", " + outcome.sizes;
  if (outcome.reduced) text += " (reduced; --full runs the size asked for)";
  text += "\n";
  if (outcome.passed) {
    std::snprintf(line, sizeof line, "  right: %lld elements, largest error %.2e of the row%s\n",
                  static_cast<long long>(outcome.compared), outcome.max_rel_error,
                  outcome.best && outcome.best->report.timed ? ", before and after timing" : "");
    text += line;
    if (!outcome.residues.empty()) text += "  " + outcome.residues + "\n";
  } else {
    text += "  WRONG: " + outcome.failure + "\n";
    for (size_t i = 1; i < outcome.problems.size() && i < 10; ++i) {
      text += "         " + outcome.problems[i] + "\n";
    }
  }
  if (outcome.best && outcome.best->report.timed) text += gpu_line("best     ", *outcome.best);
  if (outcome.unfused) text += gpu_line("unfused  ", *outcome.unfused);
  if (const std::optional<double> ratio = speedup(outcome)) {
    std::snprintf(line, sizeof line, "  %.2f times as fast as unfused\n", *ratio);
    text += line;
  }
  if (outcome.on == "emulator") text += "  not timed: the emulator says nothing about time\n";
  return text;
}

}  // namespace

int run(const Invocation& invocation) {
  const std::string on = invocation.text("on");
  std::optional<codegen::GpuInfo> gpu;
  if (on != "emulator") {
    Result<codegen::GpuInfo> info = codegen::probe_gpu(static_cast<int>(invocation.integer("gpu")));
    if (!info.ok() && on == "gpu") return fail(info.error());
    if (info.ok()) gpu = std::move(*info);
  }
  const Result<Runnable> runnable = load(invocation, gpu);
  if (!runnable.ok()) return fail(runnable.error());
  const Result<Outcome> outcome =
      gpu ? on_gpu(*runnable, invocation, *gpu) : on_emulator(*runnable, invocation);
  if (!outcome.ok()) return fail(outcome.error());
  const Status status = write_output(invocation.flag("json") ? json_of(*runnable, *outcome)
                                                             : text_of(*runnable, *outcome));
  if (!status.ok()) return fail(status.error());
  return outcome->passed ? 0 : 1;
}

}  // namespace sundog::cli
