#include "benchmarks/support/picks.h"

#include <map>

#include "benchmarks/support/workloads.h"
#include "core/check.h"
#include "search/superoptimize.h"
#include "verify/verdict.h"

namespace sundog::benchmarks {

const Pick& pick(const std::string& workload_name) {
  static std::map<std::string, Pick> known;
  const auto found = known.find(workload_name);
  if (found != known.end()) return found->second;

  Pick result;
  result.program = parse(workload(workload_name));
  search::SearchOptions options;
  options.budget_s = 10;
  options.top_k = 1;
  options.clock = cpu_seconds;
  options.accept = [&](const search::Candidate& candidate) {
    return verify::verify(result.program, candidate.graph).answer == verify::Verdict::kEquivalent;
  };
  auto report = search::superoptimize(result.program, h200(), {}, options);
  SUNDOG_CHECK(report.ok());
  result.graph = std::move(report->candidates.front().graph);
  return known.emplace(workload_name, std::move(result)).first->second;
}

}  // namespace sundog::benchmarks
