// result.pb: everything that a run of `sundog optimize` found, as core/sundog.proto stores it,
// without the generated types.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/launch_plan.h"
#include "core/mugraph.h"
#include "core/program.h"
#include "core/status.h"
#include "verify/verdict.h"

namespace sundog::proto {
class Verdict;
}  // namespace sundog::proto

namespace sundog::search {
struct Candidate;
}

namespace sundog::cli {

inline constexpr std::string_view kToolVersion = "0.1.0";

// What was found out about a candidate, in numbers and words.
struct Evidence {
  std::string answer;  // "equivalent", "different", "unknown"; empty: not asked
  std::string reason;
  int rounds = 0;
  std::vector<uint64_t> primes, seeds;
  double error_log2 = 0;
  std::vector<std::string> sizes;  // at which it was tested
  bool image_only = false;         // agreement that the bound does not cover
  bool nested = false;             // an exponential of an exponential occurs
  uint64_t seed = 0;               // that those of the rounds follow from
  double asked_error_log2 = 0;     // the bound that was asked for
  struct Case {
    std::string name;
    double candidate_error = 0, program_error = 0;
    bool accepted = false;
    double error_bound = 0;               // what the candidate's roundings can add up to
    int64_t differing = 0, compared = 0;  // elements with other bits than the plain program's
  };
  std::vector<Case> numerics;
  std::string numerics_sizes, full_size;
  std::string ranges, proof, kernel_check;
  std::optional<verify::Witness> witness;
};

struct StoredCandidate {
  MuGraph graph;
  double predicted_us = 0;
  std::optional<double> measured_us;
  std::string structure, kind;
  Evidence evidence;
};

// What a search found, as it is stored; its evidence is still to come.
StoredCandidate stored_candidate(search::Candidate found);

struct StoredReport {
  std::vector<StoredCandidate> candidates;  // best first
  std::optional<StoredCandidate> unfused;
  double bound_us = 0, gap = 0, seconds = 0, seconds_to_best = 0;
  bool resumed = false;  // went on from a checkpoint
  uint64_t states = 0, kept_undecided = 0, seed = 0;
  std::string stop_reason;
  std::map<std::string, uint64_t> pruned;  // by rule
  std::map<std::string, uint64_t> counts;  // "structures", "kernels_priced", ...
};

struct StoredResult {
  std::string version, target;
  Program program;
  StoredReport report;
  codegen::LaunchPlan plan;  // of the best candidate
  std::string cuda;
  std::string timing;                   // "timed on NVIDIA H200", or why not
  std::vector<std::string> notes;       // what could not be done
  Rounding rounding = Rounding::kWide;  // which casts were kept
};

std::string serialize(const StoredResult& result);
// Trusts nothing: a truncated or hostile file is an Error that names `file`.
Result<StoredResult> parse_result(std::string_view bytes, const std::string& file);

// The same for the evidence alone; callers include core/sundog.pb.h.
void to_message(const Evidence& evidence, proto::Verdict* message);

// The protobuf text form of a program, of a µGraph or of a whole result.
std::string proto_text(const Program& program);
std::string proto_text(const MuGraph& graph);
std::string proto_text(const StoredResult& result);

}  // namespace sundog::cli
