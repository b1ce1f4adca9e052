// From a program to a checked kernel: search, with the verifier as its judge; code for the best
// few; the emulator, and where there is one the GPU, to check and rank what was emitted.
//
// Nothing is offered that has not passed: a candidate that cannot be emitted, or whose kernel is
// wrong, is dropped and the next one taken.  The unfused program is the last one, so that there is
// always an answer.
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cli/kernel_run.h"
#include "cli/result.h"
#include "codegen/compile.h"
#include "core/device.h"
#include "core/evaluate.h"
#include "core/program.h"
#include "core/status.h"
#include "search/search_space.h"
#include "search/trace.h"

namespace sundog::cli {

struct PipelineOptions {
  double budget_s = 60;
  bool clocked = true;  // false: only `states` ends the search
  uint64_t states = 0;  // 0: no limit
  int top = 8;
  int threads = 0;
  uint64_t seed = 1;
  search::SearchSpace space;  // `rounding` aside, which is below
  uint64_t memory_bytes = 0;  // about what the tables of the search may take; 0: no limit
  std::string resume;         // a checkpoint to go on from; empty: none
  std::function<void(const std::string&)> save;  // given a checkpoint every `save_every_s`
  double save_every_s = 5;
  search::TraceReader trace;  // told what the search does; empty: nobody
  Rounding rounding = Rounding::kWide;
  double error_log2 = -60;
  bool check = true;    // run the pick in the emulator
  double prove_s = 10;  // 0: no proof
  double verify_s = 60, check_s = 120, compile_s = 120, gpu_s = 60;
  std::optional<codegen::GpuInfo> gpu;  // to time on
  int gpu_ordinal = 0;
  StoredReport start;        // of an earlier run, or given; verified like any other
  bool skip_search = false;  // take it as it is
  std::function<void(const std::string&)> progress;
  const std::atomic<bool>* stop = nullptr;  // once true: end with the best found so far
  bool stopped() const { return stop != nullptr && *stop; }
};

// A candidate and what became of it.
struct Row {
  StoredCandidate candidate;
  bool unfused = false;
  std::string dropped;               // why; empty: usable
  std::optional<Error> not_emitted;  // why there is no code for it
  std::optional<codegen::Generated> generated;
  std::optional<codegen::GpuReport> gpu;
  std::string compiler;                             // that compiled it; empty: none did
  bool not_compiled = false;                        // there was none, or it did not end
  std::vector<codegen::KernelResources> resources;  // as that compiler counts them
};

struct PipelineResult {
  std::vector<Row> rows;  // in order of preference: by clock where there is one, else as predicted
  size_t best = 0;        // of rows
  double max_rel_error = 0;  // of the best, in the emulator or on the GPU
  std::string kernel_check;  // of the best, in words
  StoredReport report;       // without candidates
  std::string timing;        // "timed on NVIDIA H200" or why not
  std::vector<std::string> notes;
  Rounding rounding = Rounding::kWide;
};

// What stands at the head of an emitted .cu: program, µGraph, evidence, predicted time.  A function
// of what is stored, so that the text can be made again from it.
std::string header_text(const Program& program, const StoredCandidate& candidate,
                        const Device& device);

// Errors: what search reports; kFailed if not even the unfused program yields a right kernel.
Result<PipelineResult> run_pipeline(const Program& program, const Device& device,
                                    const PipelineOptions& options);

// How far the predicted time of the best is above the bound, as a fraction of the bound; 0 without.
double gap_of(const PipelineResult& result);

// What is stored of a run: the best row first, then the others that are usable.
StoredResult stored_result(const Program& program, const Device& device,
                           const PipelineResult& found);

}  // namespace sundog::cli
