#include "cli/fit_start.h"

#include <algorithm>
#include <utility>

#include "cli/kernel_run.h"
#include "search/replan.h"
#include "search/superoptimize.h"

namespace sundog::cli {
namespace {

constexpr size_t kSizesOfEach = 2;  // of a structure

}  // namespace

Result<StoredReport> fit_start(const StoredResult& earlier, const Program& program,
                               const Device& device, const search::SearchSpace& space) {
  if (earlier.program.name != program.name) {
    return bad_input("it is a result for another program, " + earlier.program.name);
  }
  auto plain = search::baseline(program, device, space);
  if (!plain.ok()) return plain.error();
  StoredReport report;
  report.bound_us = plain->bound_us;
  report.unfused = stored_candidate(std::move(plain->unfused));
  std::optional<Error> why;
  for (const StoredCandidate& c : earlier.report.candidates) {
    auto fitted = search::replan(c.graph, program, device, kSizesOfEach);
    if (!fitted.ok()) {
      if (!why) why = fitted.error();
      continue;
    }
    for (search::Candidate& f : *fitted)
      report.candidates.push_back(stored_candidate(std::move(f)));
  }
  if (report.candidates.empty()) {
    return why ? *why : bad_input("it holds no structure");
  }
  std::stable_sort(report.candidates.begin(), report.candidates.end(),
                   [](const StoredCandidate& a, const StoredCandidate& b) {
                     return a.predicted_us < b.predicted_us;
                   });
  return report;
}

}  // namespace sundog::cli
