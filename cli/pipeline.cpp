#include "cli/pipeline.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <map>
#include <mutex>
#include <thread>

#include "cli/compile_rows.h"
#include "cli/evidence.h"
#include "cli/graph_view.h"
#include "cli/schedule_check.h"
#include "codegen/tune.h"
#include "core/index_limit.h"
#include "core/text.h"
#include "search/machine.h"
#include "search/sizes.h"
#include "search/superoptimize.h"
#include "verify/verdict.h"

namespace sundog::cli {
namespace {

double now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// "7", "12k", "3.4M"
std::string short_count(uint64_t count) {
  const double n = static_cast<double>(count);
  char text[32];
  if (count < 10000) {
    std::snprintf(text, sizeof text, "%.0f", n);
  } else if (count < 10000000) {
    std::snprintf(text, sizeof text, "%.0fk", n / 1e3);
  } else {
    std::snprintf(text, sizeof text, "%.0fM", n / 1e6);
  }
  return text;
}

constexpr double kLeastRoundS = 3;  // of a field test, however short the search was to be

// Verdicts by the text of the µGraph: search asks for each candidate once, the report needs them
// again.
class Judge {
 public:
  Judge(const Program& program, const PipelineOptions& options)
      : program_(program),
        prove_s_(options.prove_s),
        verify_s_(options.verify_s),
        round_s_(options.clocked ? std::max(options.budget_s / 2, kLeastRoundS)
                                 : options.verify_s) {
    options_.error_log2 = options.error_log2;
    options_.seed = options.seed;
    options_.time_limit_s = options.verify_s;
    // While the search waits, a candidate that takes long is passed over: the budget is its time.
    if (options.clocked) {
      options_.time_limit_s = std::min(options.verify_s, std::max(1.0, options.budget_s / 2));
      options_.prove_s = std::min(options_.prove_s, options_.time_limit_s);
    }
    options_.rounding = options.rounding;
    options_.full_size_work = 0;  // for the pick alone
    options_.numerics_work = 1 << 12;
  }

  const Evidence& judge(const MuGraph& graph) {
    const std::string key = print(graph, program_);
    {
      const std::lock_guard lock(mutex_);
      const auto found = known_.find(key);
      if (found != known_.end()) return found->second;
    }
    Evidence evidence = evidence_of(verify::verify(program_, graph, options_));
    const std::lock_guard lock(mutex_);
    return known_.emplace(key, std::move(evidence)).first->second;  // a map never moves its values
  }
  bool accepts(const MuGraph& graph) {
    const Evidence& evidence = judge(graph);
    if (evidence.answer == "equivalent") return true;
    if (refused_++ == 0) first_refusal_ = evidence.reason;
    return false;
  }
  // What became of the candidates that were not accepted; nothing if all were.
  std::string refusals() const {
    if (refused_ == 0) return "";
    return std::to_string(refused_) +
           " candidates were not accepted; the best of them: " + first_refusal_;
  }

  // Everything that is known to ask: the declared sizes too and, where there is time for one, a
  // proof for all sizes.  Once for each.
  Evidence judge_pick(const MuGraph& graph) {
    const auto [known, is_new] = picks_.try_emplace(print(graph, program_));
    if (!is_new) return known->second;
    verify::VerifyOptions whole = options_;
    // Rounds that end may be many; one that does not end is no reason to wait.
    whole.time_limit_s = verify_s_;
    whole.round_limit_s = round_s_;
    whole.prove_s = verify::VerifyOptions().prove_s;
    whole.prove = prove_s_ > 0;
    if (prove_s_ > 0) whole.prove_s = prove_s_;
    whole.full_size_work = verify::VerifyOptions().full_size_work;
    whole.numerics_work = verify::VerifyOptions().numerics_work;
    // A program that the proof does not reach has an answer too; the report says so.
    whole.exact_at_declared_sizes = false;
    return known->second = evidence_of(verify::verify(program_, graph, whole));
  }

 private:
  const Program& program_;
  const double prove_s_, verify_s_, round_s_;
  verify::VerifyOptions options_;
  std::mutex mutex_;
  std::map<std::string, Evidence> known_, picks_;
  uint64_t refused_ = 0;
  std::string first_refusal_;
};

// "best 9.1 us  bound 8.6 us  gap 5 %  structures 12  verified 3  pruned 1.2k by bound ..."
std::string live_line(const search::Progress& p) {
  char text[160];
  std::snprintf(text, sizeof text,
                "%.1f s  best %.2f us  bound %.2f us  gap %.0f %%  structures %s  verified %s",
                p.seconds, p.best_us, p.bound_us,
                p.bound_us > 0 ? 100 * (p.best_us / p.bound_us - 1) : 0,
                short_count(p.structures).c_str(), short_count(p.verified).c_str());
  std::string line = text;
  for (const auto& [rule, count] : p.pruned) {
    if (count > 0) line += "  " + rule + " " + short_count(count);
  }
  return line;
}

constexpr double kLeastAcceptS = 10;  // to verify in, however short the search was to be

search::SearchOptions search_options(const PipelineOptions& options, Judge& judge) {
  search::SearchOptions result;
  result.budget_s = options.clocked ? options.budget_s : 0;
  result.accept_s = options.clocked ? std::max(options.budget_s, kLeastAcceptS) : 0;
  result.max_states = options.states;
  result.top_k = options.top;
  const auto cores = static_cast<int>(std::thread::hardware_concurrency());
  result.threads = options.threads > 0 ? options.threads : std::max(1, cores);
  result.seed = options.seed;
  result.memory_bytes = options.memory_bytes;
  result.resume = options.resume;
  result.save = options.save;
  result.save_every_s = options.save_every_s;
  result.trace = options.trace;
  result.stop = options.stop;
  result.accept = [&judge](const search::Candidate& candidate) {
    return judge.accepts(candidate.graph);
  };
  result.clock = now_s;
  result.progress = [&options](const search::Progress& progress) {
    if (options.progress) options.progress(live_line(progress));
  };
  return result;
}

Row make_row(StoredCandidate candidate, bool unfused, Judge& judge) {
  Row row;
  row.unfused = unfused;
  row.candidate = std::move(candidate);
  row.candidate.measured_us.reset();  // of another day
  if (row.candidate.structure.empty()) row.candidate.structure = one_line(row.candidate.graph);
  row.candidate.evidence = judge.judge(row.candidate.graph);
  // There is nothing to take instead of the unfused program: it gets all the time that there is.
  if (unfused && row.candidate.evidence.answer == "unknown") {
    row.candidate.evidence = judge.judge_pick(row.candidate.graph);
  }
  if (row.candidate.evidence.answer != "equivalent") {
    row.dropped = "verification: " + row.candidate.evidence.reason;
  }
  return row;
}

StoredReport stored(const search::SearchReport& report, const PipelineOptions& options) {
  StoredReport result;
  result.bound_us = report.bound_us;
  result.gap = report.gap;
  result.states = report.states;
  result.seconds = report.seconds;
  result.seconds_to_best = report.time_to_best;
  result.stop_reason = options.stopped() ? "interrupted" : report.stop_reason;
  for (const auto& [rule, count] : report.pruned) result.pruned[rule] = count;
  result.resumed = report.resumed;
  result.counts = {{"kernels_priced", report.kernels_priced},
                   {"structures", report.structures},
                   {"terms", report.terms},
                   {"rounds", report.rounds},
                   {"rejected", report.rejected},
                   {"tables_emptied", report.tables_emptied}};
  result.kept_undecided = report.kept_undecided;
  result.seed = options.seed;
  return result;
}

// Adds the candidates that were given, priced like any other; of equals the given one comes first.
void add_start(std::vector<Row>& rows, const Device& device, const PipelineOptions& options,
               Judge& judge) {
  const search::Machine machine = search::machine_of(device);
  std::vector<Row> given;
  const auto add = [&](StoredCandidate candidate, bool unfused) {
    const bool known = std::any_of(rows.begin(), rows.end(), [&](const Row& row) {
      return row.candidate.graph == candidate.graph;
    });
    if (known) return;
    if (candidate.predicted_us <= 0) {
      candidate.predicted_us = search::predict(candidate.graph, machine);
    }
    given.push_back(make_row(std::move(candidate), unfused, judge));
  };
  for (const StoredCandidate& candidate : options.start.candidates) add(candidate, false);
  if (options.skip_search && options.start.unfused) add(*options.start.unfused, true);
  rows.insert(rows.begin(), given.begin(), given.end());
  if (given.empty()) return;
  std::stable_sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) {
    return a.candidate.predicted_us < b.candidate.predicted_us;
  });
}

void generate_row(Row& row, const Program& program, const Device& device,
                  const PipelineOptions& options) {
  codegen::GenerateOptions generation;
  generation.name = identifier(program.name);
  generation.header_comment = header_text(program, row.candidate, device);
  generation.rounding = options.rounding;
  Result<codegen::Generated> generated =
      codegen::generate(row.candidate.graph, program, device, generation);
  if (generated.ok()) {
    row.generated = std::move(*generated);
  } else {
    row.dropped = "code generation: " + generated.error().message;
    row.not_emitted = generated.error();
  }
}

void generate_all(std::vector<Row>& rows, const Program& program, const Device& device,
                  const PipelineOptions& options) {
  for (Row& row : rows) {
    if (row.dropped.empty()) generate_row(row, program, device, options);
  }
}

// Microseconds that memory takes to give each input once: no right kernel is faster.
double memory_floor_us(const Program& program, const Device& device) {
  if (device.hbm.empty()) return 0;
  double moved = 0;
  for (const TensorDecl& input : program.inputs) {
    const std::vector<int64_t> strides = strides_of(input);
    double elements = 1;
    for (size_t d = 0; d < strides.size(); ++d) {
      if (strides[d] != 0) elements *= static_cast<double>(input.extents[d]);
    }
    moved += elements * bytes(input.dtype);
  }
  return moved / (device.hbm.back().second * 1e3);
}

// Checks and times all usable rows on the GPU and sorts them: the pick of the tie band first, the
// rest by time.
Status time_on_gpu(PipelineResult& result, const Program& program, const Device& device,
                   const PipelineOptions& options) {
  std::vector<codegen::TuneCandidate> candidates;
  std::vector<size_t> row_of;
  for (size_t i = 0; i < result.rows.size(); ++i) {
    const Row& row = result.rows[i];
    if (!row.dropped.empty()) continue;
    candidates.push_back({row.candidate.structure, row.generated->cuda, row.generated->plan,
                          codegen::kernel_tolerance(program, row.candidate.graph)});
    row_of.push_back(i);
  }
  const auto first =
      codegen::make_check_data(program, options.rounding, kReferenceWork, options.seed);
  if (!first.ok()) return first.error();
  const auto fresh =
      codegen::make_check_data(program, options.rounding, kReferenceWork, options.seed + 1);
  if (!fresh.ok()) return fresh.error();
  codegen::TuneOptions tuning;
  tuning.arch = device.arch;
  tuning.compile.limits.seconds = options.compile_s;
  tuning.compile.limits.stop = options.stop;
  tuning.measure.ordinal = options.gpu_ordinal;
  tuning.run = {.seconds = options.gpu_s, .stop = options.stop};
  if (auto flush = codegen::compile(codegen::flush_source(), device.arch, tuning.compile);
      flush.ok()) {
    tuning.measure.flush_cubin = flush->cubin;
  }
  tuning.progress = [&](size_t done, size_t all) {
    if (options.progress) {
      options.progress("timing candidate " + std::to_string(done + 1) + " of " +
                       std::to_string(all));
    }
  };
  Result<codegen::TuneResult> tuned = codegen::tune(program, candidates, *first, *fresh, tuning);
  if (!tuned.ok()) return tuned.error();
  size_t untimed = 0;
  for (size_t c = 0; c < candidates.size(); ++c) {
    Row& row = result.rows[row_of[c]];
    codegen::TuneEntry& entry = tuned->entries[c];
    row.compiler = entry.module.compiler;
    row.resources = entry.module.kernels;
    if (!entry.failure.empty()) {
      row.dropped =
          (entry.failed_at == codegen::TuneStage::kCompile ? "compiler: " : "on the GPU: ") +
          entry.failure;
      continue;
    }
    if (!entry.report.timed) {
      ++untimed;
      continue;
    }
    row.candidate.measured_us = entry.report.timing.cold_us;
    if (entry.report.timing.cold_us < 0.85 * memory_floor_us(program, device)) {
      result.notes.push_back("suspicious: " + row.candidate.structure + " took " +
                             microseconds(entry.report.timing.cold_us) +
                             ", less than its inputs take to be read");
    }
    row.gpu = std::move(entry.report);
  }
  if (untimed > 0) {
    result.notes.push_back("interrupted: " + std::to_string(untimed) + " candidates not timed");
  }
  const std::optional<size_t> pick =
      tuned->best ? std::optional<size_t>(row_of[*tuned->best]) : std::nullopt;
  if (pick) std::swap(result.rows[0], result.rows[*pick]);
  std::stable_sort(result.rows.begin() + (pick ? 1 : 0), result.rows.end(),
                   [](const Row& a, const Row& b) {
                     return a.candidate.measured_us.value_or(HUGE_VAL) <
                            b.candidate.measured_us.value_or(HUGE_VAL);
                   });
  return {};
}

// Runs a row's kernels in the emulator; whether they are right.  What the emulator cannot run for
// reasons of its own (no compiler, out of time) is noted and held against nobody.
bool passes_emulator(Row& row, PipelineResult& result, const Program& program, const Device& device,
                     const PipelineOptions& options) {
  if (options.progress) options.progress("running " + row.candidate.structure + " in the emulator");
  EmulatorRequest request;
  request.rounding = options.rounding;
  request.time_limit_s = options.check_s;
  request.seed = options.seed;
  Result<EmulatorOutcome> outcome =
      run_in_emulator(program, row.candidate.graph, device, *row.generated, request);
  if (!outcome.ok()) {
    if (outcome.error().code == ErrorCode::kFailed) {
      row.dropped = "emulator: " + outcome.error().message;
      return false;
    }
    result.kernel_check = "not run: " + outcome.error().message;
    result.notes.push_back("kernel check not run: " + outcome.error().message);
    return true;
  }
  if (!outcome->passed()) {
    row.dropped = "emulator: " + outcome->failure();
    return false;
  }
  result.max_rel_error = std::max(result.max_rel_error, outcome->run.check.max_rel_error);
  result.kernel_check = outcome->text();
  return true;
}

// Where not even the unfused program can be decided on or emitted, that is the answer; else a stage
// is at fault.
Error none_is_right(const PipelineResult& result, const Program& program,
                    const std::string& first_reason) {
  const auto unfused = std::find_if(result.rows.begin(), result.rows.end(),
                                    [](const Row& row) { return row.unfused; });
  if (unfused != result.rows.end() && unfused->not_emitted) return *unfused->not_emitted;
  if (unfused == result.rows.end() || unfused->candidate.evidence.answer != "unknown") {
    return Error{ErrorCode::kFailed,
                 "no candidate yields a right kernel; the first: " + first_reason,
                 "please report this with the program",
                 {}};
  }
  const bool empty = std::any_of(program.axes.begin(), program.axes.end(),
                                 [](const Axis& axis) { return axis.extent == 0; });
  return Error{ErrorCode::kLimit,
               "what the program computes cannot be decided: " + unfused->candidate.evidence.reason,
               empty ? "an axis is empty here, over which a mean or a quotient of sums has no value"
                     : "docs/verification.md says what is out of reach",
               {}};
}

bool passes_pick(Row& row, Judge& judge) {
  row.candidate.evidence = judge.judge_pick(row.candidate.graph);
  if (row.candidate.evidence.answer == "equivalent") return true;
  row.dropped = "verification: " + row.candidate.evidence.reason;
  return false;
}

// The first row whose kernels are right.
Status choose_best(PipelineResult& result, const Program& program, const Device& device,
                   const PipelineOptions& options, Judge& judge) {
  std::string first_reason;
  const double start = now_s();
  for (size_t i = 0; i < result.rows.size(); ++i) {
    Row& row = result.rows[i];
    if (i > 0 && !row.unfused && row.dropped.empty() && now_s() - start > options.verify_s) {
      row.dropped = "verification: those before it took the time (--verify-time)";
    }
    if (row.dropped.empty()) {
      result.max_rel_error = 0;
      result.kernel_check.clear();
      bool right = passes_pick(row, judge) && passes_compiler(row, result, device, options);
      if (!right) {
        // said already
      } else if (!options.check) {
        result.kernel_check = "not run";
      } else if (options.stopped()) {
        result.kernel_check = "not run: interrupted";
      } else {
        right = passes_emulator(row, result, program, device, options);
      }
      if (right) {
        if (row.gpu) {
          result.max_rel_error = std::max(
              {result.max_rel_error, row.gpu->before.max_rel_error, row.gpu->after.max_rel_error});
          result.kernel_check += "; passed on the GPU before and after timing";
        }
        if (options.prove_s > 0 && !options.stopped()) {
          if (options.progress) options.progress("bounds and races of " + row.candidate.structure);
          const verify::Safety safety =
              check_schedule(row.candidate.graph, *row.generated, options.prove_s);
          row.candidate.evidence.proof += kOfEmittedKernels;
          row.candidate.evidence.proof += verify::to_string(safety);
        }
        row.candidate.evidence.kernel_check = result.kernel_check;
        result.best = i;
        return {};
      }
    }
    if (first_reason.empty()) first_reason = row.dropped;
  }
  return none_is_right(result, program, first_reason);
}

// A program whose tensors the device cannot hold has no kernel, however it is cut.
Status check_memory(const Program& program, const Device& device) {
  double total = 0, most = -1;
  std::string largest;
  const auto add = [&](const TensorDecl& tensor) {
    const double size = static_cast<double>(span_elements(tensor)) * bytes(tensor.dtype);
    total += size;
    if (size > most) most = size, largest = tensor.name;
  };
  for (const TensorDecl& input : program.inputs) add(input);
  for (const Output& output : program.outputs) add(output.tensor);
  if (total <= static_cast<double>(device.memory_bytes)) return {};
  char text[160];
  std::snprintf(text, sizeof text, "the tensors take %.3g GB, and %s has %.3g GB", total / 1e9,
                device.name.c_str(), static_cast<double>(device.memory_bytes) / 1e9);
  return Error{ErrorCode::kUnsupported, text, "'" + largest + "' is the largest of them", {}};
}

// Guards of emitted code are ints (core/index_limit.h), whatever kernels the axis is cut for.
Status check_lengths(const Program& program) {
  for (const Axis& axis : program.axes) {
    if (axis.extent <= kMostIndex) continue;
    Error error = unsupported("axis '" + axis.name + "' has " + std::to_string(axis.extent) +
                                  " indices, more than " + std::to_string(kMostIndex),
                              "split it in the program: split " + axis.name + " = " + axis.name +
                                  ".o * " + axis.name + ".i(65536)");
    for (const Parameter& each : program.parameters) {
      if (each.name == axis.name && each.position.line > 0) error.position = each.position;
    }
    return error;
  }
  return {};
}

}  // namespace

std::string header_text(const Program& program, const StoredCandidate& candidate,
                        const Device& device) {
  std::string text = print(program) + "\n" + print(candidate.graph, program) + "\n";
  text += "verified: " + evidence_line(candidate.evidence) + "\n";
  if (candidate.predicted_us > 0) {
    text += "predicted on " + device.name + ": " + microseconds(candidate.predicted_us) + "\n";
  }
  return text;
}

Result<PipelineResult> run_pipeline(const Program& program, const Device& device,
                                    const PipelineOptions& options) {
  SUNDOG_RETURN_IF_ERROR(check_memory(program, device));
  SUNDOG_RETURN_IF_ERROR(check_lengths(program));
  PipelineResult result;
  result.rounding = options.rounding;
  Judge judge(program, options);
  if (options.skip_search) {
    result.report.bound_us = options.start.bound_us;
    result.report.stop_reason = "not searched: the structures of an earlier result";
    result.report.seed = options.seed;
  } else {
    search::SearchSpace space = options.space;
    space.rounding = options.rounding;
    Result<search::SearchReport> found =
        search::superoptimize(program, device, space, search_options(options, judge));
    if (!found.ok()) return found.error();
    result.report = stored(*found, options);
    result.notes = found->notes;
    if (const std::string text = judge.refusals(); !text.empty()) result.notes.push_back(text);
    if (options.progress) options.progress("verifying");
    for (const search::Candidate& candidate : found->candidates) {
      if (candidate.graph == found->unfused.graph) continue;
      result.rows.push_back(make_row(stored_candidate(candidate), false, judge));
    }
    // Last as a rule, and where it belongs if a single kernel of it is hard to beat.
    const auto dearer = std::find_if(result.rows.begin(), result.rows.end(), [&](const Row& row) {
      return row.candidate.predicted_us > found->unfused.predicted_us;
    });
    result.rows.insert(dearer, make_row(stored_candidate(found->unfused), true, judge));
  }
  add_start(result.rows, device, options, judge);
  generate_all(result.rows, program, device, options);
  result.timing = "not timed: no GPU";
  if (options.gpu && options.stopped()) result.timing = "not timed: interrupted";
  if (options.gpu && !options.stopped()) {
    const Status timed = time_on_gpu(result, program, device, options);
    result.timing =
        timed.ok() ? "timed on " + options.gpu->name : "not timed: " + timed.error().message;
    if (!timed.ok()) result.notes.push_back(result.timing);
  }
  if (!options.gpu) {
    rank_by_compiler(result.rows, device,
                     [&](Row& row) { passes_compiler(row, result, device, options); });
  }
  SUNDOG_RETURN_IF_ERROR(choose_best(result, program, device, options, judge));
  // Its head tells of the checks that it has passed since it was generated.
  generate_row(result.rows[result.best], program, device, options);
  for (Row& row : result.rows) {
    if (row.unfused) result.report.unfused = row.candidate;
  }
  return result;
}

double gap_of(const PipelineResult& result) {
  const double best = result.rows[result.best].candidate.predicted_us;
  if (best <= 0 || result.report.bound_us <= 0) return 0;
  return std::max(0.0, best / result.report.bound_us - 1);
}

StoredResult stored_result(const Program& program, const Device& device,
                           const PipelineResult& found) {
  StoredResult stored;
  stored.version = kToolVersion;
  stored.target = device.name;
  stored.program = program;
  stored.report = found.report;
  stored.report.gap = gap_of(found);
  const Row& best = found.rows[found.best];
  stored.report.candidates.push_back(best.candidate);
  for (size_t i = 0; i < found.rows.size(); ++i) {
    const Row& row = found.rows[i];
    if (i != found.best && row.dropped.empty() && !row.unfused) {
      stored.report.candidates.push_back(row.candidate);
    }
  }
  stored.plan = best.generated->plan;
  stored.cuda = best.generated->cuda;
  stored.timing = found.timing;
  stored.notes = found.notes;
  stored.rounding = found.rounding;
  return stored;
}

}  // namespace sundog::cli
