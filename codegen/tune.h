// The clock has the last word among the best few candidates.  They are compiled, several at once,
// each in a child process, then checked and timed one after another in another child with a
// watchdog.  One that fails there is tried again in a process of its own, so that one that hangs,
// crashes or corrupts costs only itself.
//
// Where it is asked to stop (TuneOptions::run), what is timed by then counts; the rest has neither
// a time nor a fault.
//
// Near-ties are decided by order, not by noise: of all within 1 % of the best time the first wins.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "codegen/compile.h"
#include "codegen/launch.h"
#include "core/status.h"

namespace sundog::codegen {

struct TuneCandidate {
  std::string name;
  std::string cuda;
  LaunchPlan plan;
  double tolerance = 0;
};

// What became of a candidate.
enum class TuneStage { kCompile, kCheck, kTimed };

struct TuneEntry {
  TuneStage failed_at = TuneStage::kTimed;  // kTimed: it was right, and has a time
  std::string failure;
  CompiledModule module;  // empty where it did not compile
  GpuReport report;
};

struct TuneOptions {
  std::string arch;
  CompileOptions compile;
  MeasureOptions measure;
  ProcessLimits run{.seconds = 60};
  double tie_band = 0.01;
  std::function<void(size_t done, size_t all)> progress;
};

struct TuneResult {
  std::vector<TuneEntry> entries;  // one a candidate, in order
  std::optional<size_t> best;      // by cold time
};

// Candidates in canonical order.  Only the lack of a compiler or of a GPU is an Error.
Result<TuneResult> tune(const Program& program, std::span<const TuneCandidate> candidates,
                        const CheckData& first, const CheckData& fresh, const TuneOptions& options);

// The first entry whose time is at most (1 + band) times the least; nothing if none has a time.
std::optional<size_t> pick_in_band(std::span<const std::optional<double>> times, double band);

}  // namespace sundog::codegen
