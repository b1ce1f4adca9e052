// The search as a whole: program and device in, ranked µGraphs and a report out.
//
//   SearchOptions options;
//   options.budget_s = 10;
//   options.clock = [] { return seconds_since_start(); };
//   options.accept = [&](const Candidate& c) { return is_equivalent(program, c.graph); };
//   Result<SearchReport> report = superoptimize(program, device, {}, options);
//   report->candidates.front().graph
//
// There is always an answer: the plain unfused program is the first incumbent.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/device.h"
#include "core/program.h"
#include "core/status.h"
#include "search/candidate.h"
#include "search/search_space.h"
#include "search/trace.h"

namespace sundog::search {

struct Progress {
  double seconds = 0;
  uint64_t states = 0, structures = 0;
  uint64_t verified = 0;  // candidates that accept() has answered for
  double best_us = 0, bound_us = 0;
  std::vector<std::pair<std::string, uint64_t>> pruned;  // by rule
};

// A kind of structure, by names of terms (search/term_text.h).
struct StructureQuestion {
  std::vector<std::string> stored;  // terms that pass through memory between two kernels,
  bool nothing_else = false;        // and no others
  std::string computed;             // a term that some kernel computes; empty: any
};

struct SearchOptions {
  double budget_s = 0;        // 0: no limit of time; needs `clock`
  uint64_t max_states = 0;    // 0: no limit
  int top_k = 8;              // candidates wanted
  int threads = 1;            // does not change the result, but for what a clock decides
  uint64_t memory_bytes = 0;  // about what the tables of the search may take; 0: no limit
  uint64_t seed = 1;
  const std::atomic<bool>* stop = nullptr;
  // Asked for the candidates in order of predicted time, until top_k are accepted.  Empty: all are.
  std::function<bool(const Candidate&)> accept;
  double accept_s = 0;  // no candidate is offered later than this after the first; 0: no limit
  std::function<double()> clock;  // seconds; called by all threads
  std::function<void(const Progress&)> progress;
  TraceReader trace;  // told what the search does; empty: nobody
  // What is to be beaten, if that is less than the unfused program takes: structures that are much
  // slower are not looked for.
  double most_us = std::numeric_limits<double>::infinity();
  bool parts =
      true;  // a large program is also searched in parts, one that is too large in any case
  // Only structures of which this holds are looked for; the unfused program stays the last resort.
  std::optional<StructureQuestion> only;
  // A checkpoint of this very search to go on from; empty: none.  One that is damaged or belongs to
  // another search is refused with a note, and the search starts from the beginning.
  std::string resume;
  // Given a checkpoint every `save_every_s` seconds, between two rounds, and at the end.  A search
  // that goes on from one ends as if it had never been broken.
  std::function<void(const std::string&)> save;
  double save_every_s = 5;
};

struct SearchReport {
  std::vector<Candidate> candidates;  // accepted, best first; the unfused one is the last resort
  Candidate unfused;
  double bound_us = 0;  // no µGraph can be faster
  double gap = 0;       // best / bound - 1
  uint64_t states = 0;
  uint64_t kernels_priced = 0, structures = 0, rounds = 0;
  uint64_t terms = 0;                    // in the largest bank
  double seconds = 0, time_to_best = 0;  // without accept(); with the runs that it went on from
  bool resumed = false;                  // went on from a checkpoint
  uint64_t tables_emptied = 0;           // times that they outgrew the limit of memory
  std::string stop_reason;               // "exhausted", "budget", "states", "interrupted", "memory"
  std::vector<std::pair<std::string, uint64_t>> pruned;  // by rule
  uint64_t rejected = 0;                                 // candidates that accept() refused
  uint64_t kept_undecided = 0;                           // found but neither accepted nor refused
  std::vector<std::string> notes;                        // what was left out, and why
};

// What there is without a search: the plain program, one kernel a reduction, and the bound.
struct Baseline {
  Candidate unfused;
  double bound_us = 0;
};
// Errors: no size of a kernel fits the device.
Result<Baseline> baseline(const Program& program, const Device& device,
                          const SearchSpace& space = {});

// Errors: the program is not well-formed (check()), or no size of its unfused form fits the device.
Result<SearchReport> superoptimize(const Program& program, const Device& device,
                                   const SearchSpace& space, const SearchOptions& options);

}  // namespace sundog::search
