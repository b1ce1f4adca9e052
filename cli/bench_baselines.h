// The baselines of `sundog bench`: a Python with PyTorch, run as a child process on the program
// text itself (python/bench writes it as a PyTorch function), which also launches Sundog's own
// kernels, so that all methods are timed by one clock in one process.
//
// A row that hangs or crashes costs itself: the child says which row it begins, and is started
// again behind it.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cli/bench_job.h"
#include "core/process.h"
#include "core/status.h"

namespace sundog::cli {

struct MethodResult {
  std::string method;
  bool part = false;   // does a part of the work only
  bool right = false;  // ran, and computes the program
  std::optional<double> cold_us, warm_us, cold_spread, warm_spread;
  std::optional<double> error;  // max |x - reference| over max |reference| of the row
  std::optional<double> prepare_s;
  std::string note;  // why it was not run, or what went wrong
};

struct BaselineResult {
  std::string row;
  std::string failure;  // of the row as a whole
  std::vector<MethodResult> methods;
  std::map<std::string, std::string> texts;   // the PyTorch functions, by method
  std::map<std::string, std::string> clocks;  // of the GPU, after the row
};

struct BaselineRun {
  std::string not_run;  // why there is nothing at all
  std::map<std::string, std::string> machine;
  std::vector<BaselineResult> rows;
};

// What `python` is called by; limits: of one row.
BaselineRun run_baselines(const std::string& python, const BaselineJob& job,
                          const ProcessLimits& limits);

// Adds what the lines of a child's output say; the row that was begun and not ended, if any.
std::optional<std::string> take_answers(const std::string& output, BaselineRun& run);

}  // namespace sundog::cli
