// What search picks for a program: the input of the benchmarks of verification and code generation.
#pragma once

#include <string>

#include "core/mugraph.h"
#include "core/program.h"

namespace sundog::benchmarks {

struct Pick {
  Program program;
  MuGraph graph;
};

// The first candidate that verification accepts, searched for once a run of the benchmarks, within
// ten seconds of processor time.
const Pick& pick(const std::string& workload_name);

}  // namespace sundog::benchmarks
