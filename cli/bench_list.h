// What `sundog bench` is asked to measure: programs, results, folders of either, and lists of
// programs with their sizes.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "cli/options.h"
#include "core/status.h"

namespace sundog::cli {

struct BenchEntry {
  std::string name;  // of its row; no two have the same
  std::string path;  // of a program, or of a result
  bool result = false;
  std::vector<std::string> defines;  // "b=8"
};

// The entries that the operands stand for, in order; a folder's by name.  A list is a text file of
// lines NAME PROGRAM [NAME=VALUE ...], where PROGRAM is a file beside it, without its ending .sd.
// Errors: what is missing, nothing to measure, a name twice.
Result<std::vector<BenchEntry>> bench_entries(const Invocation& invocation);

}  // namespace sundog::cli
