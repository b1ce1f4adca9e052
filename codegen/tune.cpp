#include "codegen/tune.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <thread>

namespace sundog::codegen {

std::optional<size_t> pick_in_band(std::span<const std::optional<double>> times, double band) {
  std::optional<double> least;
  for (const std::optional<double>& time : times) {
    if (time && std::isfinite(*time) && (!least || *time < *least)) least = time;
  }
  if (!least) return std::nullopt;
  for (size_t i = 0; i < times.size(); ++i) {
    if (times[i] && *times[i] <= *least * (1 + band)) return i;
  }
  return std::nullopt;
}

namespace {

bool is_interrupted(const TuneOptions& options) {
  return options.run.stop != nullptr && *options.run.stop;
}

// Several at once; each compiler runs in a child process.
std::vector<std::optional<Result<CompiledModule>>> compile_all(
    std::span<const TuneCandidate> candidates, const TuneOptions& options) {
  std::vector<std::optional<Result<CompiledModule>>> modules(candidates.size());
  std::atomic<size_t> next = 0;
  const auto work = [&] {
    for (size_t i; (i = next++) < candidates.size() && !is_interrupted(options);) {
      modules[i].emplace(compile(candidates[i].cuda, options.arch, options.compile));
    }
  };
  const size_t cores = std::max(1U, std::thread::hardware_concurrency());
  std::vector<std::jthread> threads;
  for (size_t t = 1; t < std::min(cores, candidates.size()); ++t) threads.emplace_back(work);
  work();
  return modules;
}

// A candidate that compiled.
struct Ready {
  size_t candidate = 0;
  GpuJob job;
};

// Measures them all.  An Error only for want of a GPU.
Status measure_all(const Program& program, const std::vector<Ready>& ready, const CheckData& first,
                   const CheckData& fresh, const TuneOptions& options,
                   std::vector<TuneEntry>& entries) {
  std::vector<GpuJob> jobs;
  for (const Ready& each : ready) jobs.push_back(each.job);
  size_t next = 0;
  const auto settle = [&](std::string failure) {
    TuneEntry& entry = entries[ready[next].candidate];
    entry.failure = std::move(failure);
    if (!entry.failure.empty()) entry.failed_at = TuneStage::kCheck;
    ++next;
    if (options.progress) options.progress(next, jobs.size());
  };
  while (next < jobs.size() && !is_interrupted(options)) {
    const size_t begin = next;
    bool again = false;  // what failed behind others was perhaps no fault of its own
    const Status status =
        measure_each_in_child(program, std::span(jobs).subspan(begin), first, fresh,
                              options.measure, options.run, [&](GpuReport report) {
                                again = !report.failure.empty() && next > begin;
                                if (again) return;
                                TuneEntry& entry = entries[ready[next].candidate];
                                entry.report = std::move(report);
                                settle(entry.report.failure);
                              });
    if (status.ok() || again) continue;
    if (status.error().code == ErrorCode::kToolMissing) return status;
    if (next == begin && !is_interrupted(options)) settle(status.error().message);
  }
  return {};
}

}  // namespace

Result<TuneResult> tune(const Program& program, std::span<const TuneCandidate> candidates,
                        const CheckData& first, const CheckData& fresh,
                        const TuneOptions& options) {
  TuneResult result;
  result.entries.resize(candidates.size());
  std::vector<std::optional<Result<CompiledModule>>> modules = compile_all(candidates, options);
  std::vector<Ready> ready;
  for (size_t i = 0; i < candidates.size(); ++i) {
    if (!modules[i] || (!modules[i]->ok() && is_interrupted(options))) continue;  // no fault of it
    TuneEntry& entry = result.entries[i];
    if (!modules[i]->ok()) {
      const Error& error = modules[i]->error();
      if (error.code == ErrorCode::kToolMissing) return error;
      entry.failed_at = TuneStage::kCompile;
      entry.failure = error.message;
      continue;
    }
    entry.module = std::move(**modules[i]);
    ready.push_back(
        {i, {candidates[i].name, candidates[i].plan, entry.module.cubin, candidates[i].tolerance}});
  }
  SUNDOG_RETURN_IF_ERROR(measure_all(program, ready, first, fresh, options, result.entries));
  std::vector<std::optional<double>> times(candidates.size());
  for (size_t i = 0; i < candidates.size(); ++i) {
    const TuneEntry& entry = result.entries[i];
    if (entry.failure.empty() && entry.report.timed) times[i] = entry.report.timing.cold_us;
  }
  result.best = pick_in_band(times, options.tie_band);
  return result;
}

}  // namespace sundog::codegen
