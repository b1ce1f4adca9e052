#include "codegen/tune.h"

#include <algorithm>
#include <cmath>

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

Result<TuneResult> tune(const Program& program, std::span<const TuneCandidate> candidates,
                        const CheckData& first, const CheckData& fresh,
                        const TuneOptions& options) {
  TuneResult result;
  result.entries.resize(candidates.size());
  std::vector<std::optional<double>> times(candidates.size());
  const auto interrupted = [&] { return options.run.stop != nullptr && *options.run.stop; };
  for (size_t i = 0; i < candidates.size() && !interrupted(); ++i) {
    if (options.progress) options.progress(i, candidates.size());
    TuneEntry& entry = result.entries[i];
    Result<CompiledModule> module = compile(candidates[i].cuda, options.arch, options.compile);
    if (!module.ok()) {
      if (interrupted()) break;  // killed on the way: no fault of the candidate's
      if (module.error().code == ErrorCode::kToolMissing) return module.error();
      entry.failed_at = TuneStage::kCompile;
      entry.failure = module.error().message;
      continue;
    }
    entry.module = std::move(*module);
    const GpuJob job{candidates[i].name, candidates[i].plan, entry.module.cubin,
                     candidates[i].tolerance};
    Result<std::vector<GpuReport>> reports =
        measure_in_child(program, {&job, 1}, first, fresh, options.measure, options.run);
    if (!reports.ok() && reports.error().code == ErrorCode::kToolMissing) return reports.error();
    if (!reports.ok() && interrupted()) break;
    if (reports.ok()) entry.report = std::move(reports->front());
    entry.failure = reports.ok() ? entry.report.failure : reports.error().message;
    if (!entry.failure.empty()) {
      entry.failed_at = TuneStage::kCheck;
    } else if (entry.report.timed) {
      times[i] = entry.report.timing.cold_us;
    }
  }
  if (options.progress) options.progress(candidates.size(), candidates.size());
  result.best = pick_in_band(times, options.tie_band);
  return result;
}

}  // namespace sundog::codegen
