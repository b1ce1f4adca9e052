#include "cli/commands.h"
#include "cli/console.h"
#include "cli/fit_start.h"
#include "cli/interrupt.h"
#include "cli/load.h"
#include "cli/pipeline.h"
#include "cli/report.h"
#include "cli/result_folder.h"
#include "cli/search_files.h"
#include "core/text.h"
#include "search/replan.h"

namespace sundog::cli {
namespace {

// An argument as a shell takes it back.
std::string shell_word(const std::string& word) {
  const bool plain = !word.empty() && word.find_first_not_of(
                                          "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                          "0123456789_-+=./,:@%") == std::string::npos;
  if (plain) return word;
  std::string quoted = "'";
  for (const char c : word) {
    if (c == '\'') {
      quoted += "'\\''";
    } else {
      quoted += c;
    }
  }
  return quoted + "'";
}

std::string reuse_command(const Invocation& invocation, const Device& device,
                          const std::string& folder) {
  std::string text = "sundog optimize " + shell_word(invocation.operands[0]);
  for (const auto& [name, value] : invocation.defines) {
    text += " -D " + shell_word(name + "=" + std::to_string(value));
  }
  return text + " --target " + device.name + " --from " + shell_word(folder) + " --out " +
         shell_word(folder);
}

// What --from names: µGraphs of this very program, and whether they settle the matter.
struct Start {
  StoredReport report;
  std::optional<Rounding> rounding;  // that it was made with
  bool settled = false;
};

// A µGraph that a user pins: as it is written or, where it does not fit this shape or device so,
// with sizes for them.
Result<Start> load_pinned(const std::string& path, const Program& program, const Device& device,
                          const Invocation& invocation) {
  Start start;
  Result<LoadedGraph> loaded = load_mugraph_of(path, program, invocation);
  if (!loaded.ok()) return loaded.error();
  MuGraph* graph = &loaded->graph;
  if (!check(*graph, program).ok() || !search::fits_device(*graph, device)) {
    auto fitted = search::replan(*graph, program, device, 1);
    if (fitted.ok()) *graph = std::move(fitted->front().graph);
  }
  start.report.candidates.emplace_back().graph = std::move(*graph);
  start.rounding = loaded->rounding;
  return start;
}

Result<Start> load_start(const Invocation& invocation, const Program& program, const Device& device,
                         const search::SearchSpace& space) {
  Start start;
  const std::string path = invocation.text("from");
  if (path.empty()) return start;
  const Result<Loadable> kind = kind_of_path(path, invocation);
  if (!kind.ok()) return kind.error();
  if (*kind == Loadable::kProgram) {
    return bad_input("--from " + path + " is a program, not a µGraph or a result");
  }
  if (*kind == Loadable::kMuGraph) {
    return load_pinned(path, program, device, invocation);
  }
  Result<StoredResult> result = load_result(path, invocation);
  if (!result.ok()) return result.error();
  start.rounding = result->rounding;
  // A fresh budget means that the user wants more searching, another rounding another answer.
  start.settled = !invocation.given("budget") && !invocation.given("states") &&
                  rounding_of(invocation, start.rounding) == result->rounding;
  if (print(result->program) == print(program) && result->target == device.name) {
    start.report = std::move(result->report);
    return start;
  }
  Result<StoredReport> fitted = fit_start(*result, program, device, space);
  if (!fitted.ok()) {
    return Error{fitted.error().code,
                 "--from " + path + ": " + fitted.error().message,
                 "it was made for " + result->program.name + " with " +
                     sizes_text(result->program) + " on " + result->target,
                 {}};
  }
  start.report = std::move(*fitted);
  return start;
}

PipelineOptions pipeline_options(const Invocation& invocation) {
  PipelineOptions options;
  options.budget_s = invocation.seconds("budget");
  options.states = static_cast<uint64_t>(invocation.integer("states"));
  options.clocked = options.states == 0 || invocation.given("budget");
  options.top = static_cast<int>(invocation.integer("top"));
  options.threads = static_cast<int>(invocation.integer("threads"));
  options.seed = static_cast<uint64_t>(invocation.integer("seed"));
  options.memory_bytes = static_cast<uint64_t>(invocation.bytes("memory"));
  options.error_log2 = invocation.error_log2("error");
  options.check = !invocation.flag("no-check");
  options.verify_s = invocation.seconds("verify-time");
  options.prove_s = invocation.seconds("prove-time");
  options.check_s = invocation.seconds("check-time");
  options.compile_s = invocation.seconds("compile-time");
  options.gpu_s = invocation.seconds("gpu-time");
  options.gpu_ordinal = static_cast<int>(invocation.integer("gpu"));
  return options;
}

std::vector<ResultFile> result_files(const ReportContext& context) {
  const Row& best = context.result.rows[context.result.best];
  const std::string reference =
      "# program: " + std::string(kProgramFile) + "\n" + rounding_line(context.result.rounding);
  return {{std::string(kKernelFile), best.generated->cuda},
          {std::string(kMuGraphFile), reference + print(best.candidate.graph, context.program)},
          {std::string(kProgramFile), print(context.program)},
          {std::string(kReportFile), html_text(context)},
          {std::string(kResultFile),
           serialize(stored_result(context.program, context.device, context.result))}};
}

}  // namespace

int optimize(const Invocation& invocation) {
  finish_when_interrupted();
  const Result<Program> program = load_program(invocation.operands[0], invocation);
  if (!program.ok()) return fail(program.error());
  std::string folder = invocation.text("out");
  if (folder.empty()) folder = identifier(program->name) + ".sundog";
  if (const Status status = check_result_folder(folder); !status.ok()) return fail(status.error());

  PipelineOptions options = pipeline_options(invocation);
  options.stop = &interrupted();
  if (!invocation.flag("no-gpu")) {
    if (Result<codegen::GpuInfo> gpu = codegen::probe_gpu(options.gpu_ordinal); gpu.ok()) {
      options.gpu = std::move(*gpu);
    } else if (invocation.given("gpu")) {
      return fail(gpu.error());
    }
  }
  const Result<Device> device = choose_device(invocation.text("target"), options.gpu);
  if (!device.ok()) return fail(device.error());
  if (const Status status = take_space(invocation, &options.space); !status.ok()) {
    return fail(status.error());
  }
  Result<Start> start = load_start(invocation, *program, *device, options.space);
  if (!start.ok()) return fail(start.error());
  options.start = std::move(start->report);
  options.skip_search = start->settled;
  options.rounding = rounding_of(invocation, start->rounding);
  if (const Status status = take_checkpoint(invocation, &options); !status.ok()) {
    return fail(status.error());
  }
  if (const Status status = take_trace(invocation, &options); !status.ok()) {
    return fail(status.error());
  }
  ProgressLine line(invocation.flag("quiet"));
  options.progress = [&line](const std::string& text) { line.show(text); };
  const Result<PipelineResult> found = run_pipeline(*program, *device, options);
  line.clear();
  if (!found.ok()) return fail(found.error());

  const ReportContext context{*program, *device, *found, folder,
                              reuse_command(invocation, *device, folder)};
  if (const Status status = write_result_folder(folder, result_files(context)); !status.ok()) {
    return fail(status.error());
  }
  const Status status =
      write_output(invocation.flag("json") ? json_text(context) : table_text(context));
  return status.ok() ? 0 : fail(status.error());
}

}  // namespace sundog::cli
