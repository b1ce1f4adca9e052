// What `sundog bench` says: a table, JSON and a plot of the same rows.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cli/bench_baselines.h"

namespace sundog::cli {

// What the driver harness (codegen/launch.h) says of a result, in a process of its own.
struct HarnessTimes {
  std::optional<double> cold_us, warm_us, unfused_cold_us, unfused_warm_us, error;
};

struct BenchRow {
  std::string name, program, sizes, dtype;
  std::string structure;  // of Sundog's kernels
  std::string failure;    // of Sundog itself, or of the row as a whole; empty: none
  std::optional<double> predicted_us;
  HarnessTimes harness;
  std::vector<MethodResult> methods;  // all that were asked for, run or not
  std::map<std::string, std::string> texts, clocks;
};

struct BenchReport {
  bool gpu = false;  // times are those of a GPU
  std::string target;
  std::map<std::string, std::string> machine;
  std::vector<std::string> notes;  // what was not run, and why
  std::vector<BenchRow> rows;
};

// The time by which methods are compared: cold where there is one, else warm; nothing for a method
// that is wrong, was not run or does a part of the work.
std::optional<double> compared_us(const MethodResult& method);

// The fastest method but Sundog and the Triton kernel, which somebody wrote for the program; with
// `prefix`, of those whose names begin with one of the words.
const MethodResult* best_library(const BenchRow& row,
                                 const std::vector<std::string>& prefixes = {});

// Time of the best library (of those prefixes) over Sundog's, the geometric mean over the rows that
// have both, and how many those are.
struct Speedup {
  double mean = 0;
  int rows = 0;
};
Speedup speedup_over(const BenchReport& report, const std::vector<std::string>& prefixes);

std::string bench_table(const BenchReport& report);
std::string bench_json(const BenchReport& report);
// Bars: time of each method over that of the best library of its row, as SVG.
std::string bench_plot(const BenchReport& report);

}  // namespace sundog::cli
