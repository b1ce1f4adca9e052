// Programs against what else computes them, side by side.
//
// Each program is optimized by this very tool in a child process (or its result is taken from an
// earlier run), its kernels are checked and timed by the driver harness, and saved as a library,
// which the baselines' process launches among the methods that it times: one clock, one order, one
// set of inputs.
#include <algorithm>
#include <filesystem>
#include <set>

#include "cli/bench_baselines.h"
#include "cli/bench_list.h"
#include "cli/bench_report.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/files.h"
#include "cli/interrupt.h"
#include "cli/kernel_run.h"
#include "cli/load.h"
#include "cli/result_folder.h"
#include "cli/runnable.h"
#include "codegen/shared_object.h"
#include "core/join.h"
#include "core/temporary_folder.h"
#include "core/text.h"

namespace sundog::cli {
namespace {

namespace fs = std::filesystem;

// All of them, as the option has them.
std::string all_methods() {
  for (const OptionSpec& option : option_table()) {
    if (option.name == "methods") return std::string(option.fallback);
  }
  SUNDOG_CHECK(false);
}

Result<std::vector<std::string>> methods_of(const Invocation& invocation) {
  const auto split = [](std::string_view text) {
    std::vector<std::string> words;
    while (!text.empty()) {
      const size_t comma = std::min(text.find(','), text.size());
      if (comma > 0) words.emplace_back(text.substr(0, comma));
      text.remove_prefix(std::min(comma + 1, text.size()));
    }
    return words;
  };
  const std::vector<std::string> known = split(all_methods());
  std::vector<std::string> chosen = split(invocation.text("methods"));
  for (const std::string& method : chosen) {
    if (std::find(known.begin(), known.end(), method) == known.end()) {
      return bad_input("there is no method '" + method + "'", "known are " + join(known));
    }
  }
  if (chosen.empty()) return bad_input("--methods names none", "known are " + join(known));
  return chosen;
}

Result<Invocation> with_defines(const Invocation& invocation, const BenchEntry& entry) {
  std::vector<std::string> arguments = {"bench", entry.path};
  for (const std::string& define : entry.defines) {
    arguments.insert(arguments.end(), {"-D", define});
  }
  Result<Invocation> read =
      parse_invocation(arguments, [](const std::string&) { return std::optional<std::string>(); });
  if (!read.ok()) return Error{read.error().code, entry.name + ": " + read.error().message, {}, {}};
  Invocation result = invocation;
  result.defines = read->defines;
  return result;
}

// What goes wrong with an entry's input shows before anything takes time.
Status check_entry(const BenchEntry& entry, const Invocation& invocation) {
  if (entry.result) {
    const Result<StoredResult> result = load_result_as_made(entry.path, invocation);
    return result.ok() ? Status() : Status(result.error());
  }
  const Result<Invocation> own = with_defines(invocation, entry);
  if (!own.ok()) return own.error();
  const Result<Program> program = load_program(entry.path, *own);
  return program.ok() ? Status() : Status(program.error());
}

class Bench {
 public:
  Bench(const Invocation& invocation, std::optional<codegen::GpuInfo> gpu, std::string out)
      : invocation_(invocation),
        gpu_(std::move(gpu)),
        out_(std::move(out)),
        line_(invocation.flag("quiet")) {
    report_.gpu = gpu_.has_value();
    if (!gpu_) {
      report_.notes.emplace_back(
          "a dry run: there is no GPU, and times are those of a CPU, which say nothing of one");
    } else {
      report_.machine["gpu"] = gpu_->name;
    }
  }

  Status run(const std::vector<BenchEntry>& entries, const std::vector<std::string>& methods) {
    const Result<TemporaryFolder> scratch = TemporaryFolder::make("kernels");
    if (!scratch.ok()) return scratch.error();
    const bool own = std::find(methods.begin(), methods.end(), "sundog") != methods.end();
    for (const BenchEntry& entry : entries) {
      if (interrupted()) return limit_error("interrupted");
      add(entry, scratch->path(), own);
    }
    add_baselines(methods);
    line_.clear();
    return {};
  }

  const BenchReport& report() const { return report_; }
  bool all_right() const {
    return std::all_of(report_.rows.begin(), report_.rows.end(),
                       [](const BenchRow& row) { return row.failure.empty(); });
  }

 private:
  struct Prepared {
    std::optional<Program> program;
    std::string kernel, kernel_note, triton;
  };

  // The result of an entry: its own, one of an earlier run for the same program, or a new one.
  Result<std::string> result_of(const BenchEntry& entry) {
    if (entry.result) return entry.path;
    std::string results = invocation_.text("results");
    if (results.empty()) results = out_ + "/results";
    const std::string folder = results + "/" + entry.name;
    const Result<Invocation> own = with_defines(invocation_, entry);
    if (!own.ok()) return own.error();
    const Result<Program> program = load_program(entry.path, *own);
    if (!program.ok()) return program.error();
    if (exists(folder + "/" + std::string(kResultFile))) {
      const Result<StoredResult> known = load_result(folder, invocation_);
      if (known.ok() && print(known->program) == print(*program)) return folder;
    }
    std::error_code ignored;
    fs::create_directories(results, ignored);
    std::vector<std::string> command = {"/proc/self/exe", "optimize", entry.path,
                                        "--out",          folder,     "--quiet"};
    for (const std::string& define : entry.defines) {
      command.insert(command.end(), {"-D", define});
    }
    for (const char* option :
         {"budget", "states", "top", "threads", "seed", "target", "rounding", "gpu"}) {
      if (!invocation_.given(option)) continue;
      command.insert(command.end(), {"--" + std::string(option), invocation_.text(option)});
    }
    if (!gpu_) command.emplace_back("--no-gpu");
    const ProcessLimits limits{.seconds = invocation_.seconds("optimize-time"),
                               .stop = &interrupted()};
    const Result<ProcessResult> done = run_process(command, limits);
    if (!done.ok()) return done.error();
    if (done->succeeded()) return folder;
    const size_t end = done->err.find_last_not_of('\n');
    return Error{ErrorCode::kFailed,
                 "optimize " + describe_end(*done, limits) + ": " +
                     done->err.substr(0, end == std::string::npos ? 0 : end + 1),
                 {},
                 {}};
  }

  void add(const BenchEntry& entry, const fs::path& scratch, bool own) {
    BenchRow row;
    row.name = entry.name;
    Prepared prepared;
    const Status status = own ? measure(entry, scratch, prepared, row) : read(entry, prepared);
    if (!status.ok()) row.failure = status.error().message;
    if (prepared.program) describe(*prepared.program, row);
    const std::string triton = fs::path(entry.path).replace_extension(".triton.py").string();
    if (!entry.result && exists(triton)) prepared.triton = fs::absolute(triton).string();
    report_.rows.push_back(std::move(row));
    prepared_.push_back(std::move(prepared));
  }

  // Where Sundog's own kernels are not asked for, nothing is optimized.
  Status read(const BenchEntry& entry, Prepared& prepared) {
    if (entry.result) {
      Result<StoredResult> result = load_result_as_made(entry.path, invocation_);
      if (!result.ok()) return result.error();
      prepared.program = std::move(result->program);
      return {};
    }
    const Result<Invocation> own = with_defines(invocation_, entry);
    if (!own.ok()) return own.error();
    Result<Program> program = load_program(entry.path, *own);
    if (!program.ok()) return program.error();
    prepared.program = std::move(*program);
    return {};
  }

  Status measure(const BenchEntry& entry, const fs::path& scratch, Prepared& prepared,
                 BenchRow& row) {
    line_.show("optimizing " + entry.name);
    const Result<std::string> folder = result_of(entry);
    if (!folder.ok()) return folder.error();
    Result<Runnable> runnable = load_runnable(*folder, invocation_, gpu_);
    if (!runnable.ok()) return runnable.error();
    report_.target = runnable->device.name;
    prepared.program = runnable->program;
    const Result<StoredResult> result = load_result(*folder, invocation_);
    if (result.ok() && !result->report.candidates.empty()) {
      row.structure = result->report.candidates.front().structure;
      row.predicted_us = result->report.candidates.front().predicted_us;
    }
    line_.show("checking " + entry.name);
    return gpu_ ? on_gpu(*runnable, scratch, prepared, row) : on_emulator(*runnable, row);
  }

  static void describe(const Program& program, BenchRow& row) {
    row.program = program.name;
    row.sizes = sizes_text(program);
    std::set<std::string> types;
    for (const TensorDecl& input : program.inputs) {
      if (types.insert(std::string(name(input.dtype))).second) {
        row.dtype += (row.dtype.empty() ? "" : ",") + std::string(name(input.dtype));
      }
    }
  }

  Status on_emulator(const Runnable& runnable, BenchRow& row) {
    EmulatorRequest request;
    request.rounding = runnable.rounding;
    request.time_limit_s = invocation_.seconds("check-time");
    request.seed = static_cast<uint64_t>(invocation_.integer("seed"));
    const Result<EmulatorOutcome> outcome = run_in_emulator(
        runnable.program, runnable.graph, runnable.device, runnable.generated, request);
    if (!outcome.ok()) return outcome.error();
    if (!outcome->passed()) row.failure = "in the emulator: " + outcome->failure();
    row.harness.error = outcome->run.check.max_rel_error;
    return {};
  }

  // Before the kernels get into the process of the baselines they have to be right in one of their
  // own.
  Status on_gpu(const Runnable& runnable, const fs::path& scratch, Prepared& prepared,
                BenchRow& row) {
    Result<GpuComparison> found = run_on_gpu(runnable, invocation_, true);
    if (!found.ok()) return found.error();
    const codegen::GpuReport& best = found->best.report;
    row.failure = best.failure;
    row.harness.error = std::max(best.before.max_rel_error, best.after.max_rel_error);
    if (!best.failure.empty()) return {};
    row.harness.cold_us = best.timing.cold_us;
    row.harness.warm_us = best.timing.warm_us;
    if (found->unfused && found->unfused->report.timed) {
      row.harness.unfused_cold_us = found->unfused->report.timing.cold_us;
      row.harness.unfused_warm_us = found->unfused->report.timing.warm_us;
    }
    const std::string library = (scratch / (row.name + ".so")).string();
    const Status saved = codegen::write_shared_object(
        library, runnable.generated.plan, {{runnable.device.arch, found->best.module.cubin}}, "");
    if (saved.ok()) {
      prepared.kernel = library;
    } else {
      prepared.kernel_note = saved.error().message;
    }
    return {};
  }

  void add_baselines(const std::vector<std::string>& methods) {
    BaselineJob job;
    job.gpu = report_.gpu;
    job.methods = methods;
    job.seed = static_cast<uint64_t>(invocation_.integer("seed"));
    job.row_seconds = invocation_.seconds("row-time");
    for (size_t i = 0; i < prepared_.size(); ++i) {
      const Prepared& p = prepared_[i];
      if (!p.program) continue;
      const std::string note = !p.kernel_note.empty() ? p.kernel_note
                               : report_.gpu          ? "it failed"
                                                      : "no GPU";
      job.rows.push_back({report_.rows[i].name, &*p.program, p.kernel, note, p.triton});
    }
    if (job.rows.empty()) return;
    line_.show("measuring the baselines");
    // A method may be begun at the last moment, and takes as long as it takes.
    const ProcessLimits limits{.seconds = 3 * job.row_seconds + 60, .stop = &interrupted()};
    BaselineRun run = run_baselines(invocation_.text("python"), job, limits);
    if (!run.not_run.empty()) report_.notes.push_back("baselines not run: " + run.not_run);
    report_.machine.insert(run.machine.begin(), run.machine.end());
    for (BenchRow& row : report_.rows) {
      const auto found =
          std::find_if(run.rows.begin(), run.rows.end(),
                       [&](const BaselineResult& each) { return each.row == row.name; });
      if (found != run.rows.end()) take(*found, row);
      add_harness(row);
    }
  }

  void take(BaselineResult& found, BenchRow& row) {
    row.methods = std::move(found.methods);
    row.texts = std::move(found.texts);
    row.clocks = std::move(found.clocks);
    if (!found.failure.empty()) report_.notes.push_back(row.name + ": baselines: " + found.failure);
    for (const MethodResult& method : row.methods) {
      if (method.method == "sundog" && method.note == "wrong" && row.failure.empty()) {
        row.failure = "beside the baselines the kernels are wrong";
      }
    }
  }

  // Sundog's own times by the driver harness, where the baselines' process could not take them.
  static void add_harness(BenchRow& row) {
    const HarnessTimes& times = row.harness;
    if (!times.cold_us) return;
    std::erase_if(row.methods, [](const MethodResult& method) {
      return method.method == "sundog" && !method.right && method.note != "wrong";
    });
    const bool known =
        std::any_of(row.methods.begin(), row.methods.end(),
                    [](const MethodResult& method) { return method.method == "sundog"; });
    MethodResult own;
    own.right = true;
    own.note = "by the driver harness, in a process of its own";
    if (!known) {
      own.method = "sundog";
      own.cold_us = times.cold_us;
      own.warm_us = times.warm_us;
      own.error = times.error;
      row.methods.insert(row.methods.begin(), own);
    }
    if (!times.unfused_cold_us) return;
    own.method = "unfused";
    own.cold_us = times.unfused_cold_us;
    own.warm_us = times.unfused_warm_us;
    own.error.reset();
    row.methods.insert(row.methods.begin() + 1, own);
  }

  const Invocation& invocation_;
  std::optional<codegen::GpuInfo> gpu_;
  std::string out_;
  ProgressLine line_;
  BenchReport report_;
  std::vector<Prepared> prepared_;  // of the rows
};

}  // namespace

int bench(const Invocation& invocation) {
  finish_when_interrupted();
  const Result<std::vector<BenchEntry>> entries = bench_entries(invocation);
  if (!entries.ok()) return fail(entries.error());
  const Result<std::vector<std::string>> methods = methods_of(invocation);
  if (!methods.ok()) return fail(methods.error());
  for (const BenchEntry& entry : *entries) {
    if (const Status status = check_entry(entry, invocation); !status.ok()) {
      return fail(status.error());
    }
  }
  std::optional<codegen::GpuInfo> gpu;
  if (!invocation.flag("no-gpu")) {
    Result<codegen::GpuInfo> info = codegen::probe_gpu(static_cast<int>(invocation.integer("gpu")));
    if (!info.ok() && invocation.given("gpu")) return fail(info.error());
    if (info.ok()) gpu = std::move(*info);
  }
  const std::string out = invocation.text("out").empty() ? "bench" : invocation.text("out");
  std::error_code error;
  fs::create_directories(out, error);
  if (error) return fail(io_error(out + " cannot be made: " + error.message()));

  Bench bench(invocation, std::move(gpu), out);
  if (const Status status = bench.run(*entries, *methods); !status.ok()) {
    return fail(status.error());
  }
  const std::string table = bench_table(bench.report()), json = bench_json(bench.report());
  const std::pair<const char*, const std::string> files[] = {
      {"bench.md", table}, {"bench.json", json}, {"bench.svg", bench_plot(bench.report())}};
  for (const auto& [name, text] : files) {
    const Status status = write_file(out + "/" + name, text);
    if (!status.ok()) return fail(status.error());
  }
  const Status status = write_output(invocation.flag("json") ? json : table);
  if (!status.ok()) return fail(status.error());
  return bench.all_right() ? 0 : 1;
}

}  // namespace sundog::cli
