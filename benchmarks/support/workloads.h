// What the benchmarks have in common: programs and µGraphs of the tree, a clock that other load on
// the machine does not move, and the largest memory that a stretch of work held.
//
// A benchmark has no user: a file that cannot be read ends the run.
#pragma once

#include <string>
#include <vector>

#include "core/device.h"
#include "core/mugraph.h"
#include "core/program.h"

namespace sundog::benchmarks {

struct Workload {
  std::string name;
  std::string text;  // of the program
};

// Every program of benchmarks/programs, by name, at the sizes that it has by default.
const std::vector<Workload>& workloads();

// Programs that published systems report search times for and benchmarks/programs lacks, since they
// are several layers: RMSNorm + MLP with its down projection, attention with its output projection.
const std::vector<Workload>& blocks();

// One of either list.
const Workload& workload(const std::string& name);

Program parse(const Workload& workload);

// A µGraph of tests/programs and the program that its first line names.
struct Pair {
  Program program;
  MuGraph graph;
  std::string text;  // of the µGraph
};
Pair read_pair(const std::string& file);

const Device& h200();

// Processor time of this process so far, all threads together, in seconds.
double cpu_seconds();

// The largest resident memory since construction, in MB.  The memory of the process before is part
// of it, so `growth_mb` is what the work between added.
class PeakMemory {
 public:
  PeakMemory();
  double peak_mb() const;
  double growth_mb() const { return peak_mb() - start_mb_; }

 private:
  double start_mb_ = 0;
};

}  // namespace sundog::benchmarks
