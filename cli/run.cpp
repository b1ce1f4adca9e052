// Runs what was emitted and compares it with the program.  A result's own best.cu is what runs on
// the GPU, not a text emitted anew: the artefact is what must be right.
#include <algorithm>
#include <cstdio>

#include "cli/commands.h"
#include "cli/console.h"
#include "cli/json.h"
#include "cli/kernel_run.h"
#include "cli/runnable.h"

namespace sundog::cli {
namespace {

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
  std::vector<codegen::BankUse> banks;  // of the emulator
  std::optional<GpuOutcome> best, unfused;
  double seconds = 0;
};

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
  outcome.banks = run.banks;
  outcome.seconds = run.seconds_run;
  return outcome;
}

Result<Outcome> on_gpu(const Runnable& runnable, const Invocation& invocation,
                       const codegen::GpuInfo& gpu) {
  Outcome outcome;
  outcome.on = "gpu";
  outcome.gpu = gpu.name;
  outcome.sizes = sizes_text(runnable.program);
  Result<GpuComparison> comparison = run_on_gpu(runnable, invocation, !invocation.flag("no-time"));
  if (!comparison.ok()) return comparison.error();
  outcome.best = std::move(comparison->best);
  outcome.unfused = std::move(comparison->unfused);
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
  json.key("shared_memory").begin_array();
  for (const codegen::BankUse& use : outcome.banks) {
    json.begin_object().key("kernel").value(use.kernel);
    json.key("turns").value(static_cast<int64_t>(use.turns));
    json.key("conflicts").value(static_cast<int64_t>(use.conflicts)).end_object();
  }
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
  for (const codegen::BankUse& use : outcome.banks) {
    if (use.turns == 0) continue;
    std::snprintf(line, sizeof line,
                  "  shared memory of %s: %.1f %% of %llu turns are bank conflicts\n",
                  use.kernel.c_str(),
                  100.0 * static_cast<double>(use.conflicts) / static_cast<double>(use.turns),
                  static_cast<unsigned long long>(use.turns));
    text += line;
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
  const Result<Runnable> runnable = load_runnable(invocation.operands[0], invocation, gpu);
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
