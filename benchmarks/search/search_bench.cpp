// The search: its bank of terms, the whole search of every program, and the search with every
// offered candidate verified.
//
// Columns of Search: seconds until the best structure was found (`to_best_s`), until there was
// nothing left or ten seconds of processor time had passed (`seconds`, `exhausted`), structures and
// kernels that were priced, the prediction for an H200 and its bound.  All seconds are processor
// time of one thread.
#include <benchmark/benchmark.h>

#include <string>

#include "benchmarks/support/workloads.h"
#include "core/check.h"
#include "search/bank.h"
#include "search/import.h"
#include "search/rewrite.h"
#include "search/superoptimize.h"
#include "verify/verdict.h"

namespace sundog::benchmarks {
namespace {

constexpr double kBudget = 10;
// Structures are kept for this many candidates, as the tool does.
constexpr int kCandidates = 8;

void bank(benchmark::State& state, const Workload& w) {
  const Program program = parse(w);
  size_t classes = 0, views = 0, nodes = 0;
  for (auto _ : state) {
    search::Bank bank(program, {});
    const auto outputs = search::import_program(bank);
    if (!outputs.ok()) {
      state.SkipWithError(outputs.error().message.c_str());
      return;
    }
    search::saturate(bank, {}, [] { return false; });
    classes = bank.size();
    views = bank.view_count();
    nodes = bank.node_count();
  }
  state.counters["classes"] = static_cast<double>(classes);
  state.counters["views"] = static_cast<double>(views);
  state.counters["nodes"] = static_cast<double>(nodes);
}

void show(benchmark::State& state, const search::SearchReport& report, const PeakMemory& memory) {
  state.counters["to_best_s"] = report.time_to_best;
  state.counters["seconds"] = report.seconds;
  state.counters["exhausted"] = report.stop_reason == "exhausted" ? 1 : 0;
  state.counters["structures"] = static_cast<double>(report.structures);
  state.counters["kernels"] = static_cast<double>(report.kernels_priced);
  state.counters["states"] = static_cast<double>(report.states);
  state.counters["terms"] = static_cast<double>(report.terms);
  state.counters["best_us"] = report.candidates.front().predicted_us;
  state.counters["unfused_us"] = report.unfused.predicted_us;
  state.counters["bound_us"] = report.bound_us;
  state.counters["peak_mb"] = memory.peak_mb();
  std::string notes;
  for (const std::string& note : report.notes) notes += (notes.empty() ? "" : "; ") + note;
  state.SetLabel(report.candidates.front().structure + (notes.empty() ? "" : " [" + notes + "]"));
}

void search_program(benchmark::State& state, const Workload& w) {
  const Program program = parse(w);
  search::SearchOptions options;
  options.budget_s = kBudget;
  options.top_k = kCandidates;
  options.clock = cpu_seconds;
  const PeakMemory memory;
  Result<search::SearchReport> report = search::SearchReport{};
  for (auto _ : state) {
    report = search::superoptimize(program, h200(), {}, options);
    if (!report.ok()) {
      state.SkipWithError(report.error().message.c_str());
      return;
    }
  }
  show(state, *report, memory);
}

// As the tool runs it: candidates are verified until eight are accepted.
void search_and_verify(benchmark::State& state, const Workload& w) {
  const Program program = parse(w);
  int asked = 0, accepted = 0;
  search::SearchOptions options;
  options.budget_s = kBudget;
  options.top_k = kCandidates;
  options.clock = cpu_seconds;
  options.accept = [&](const search::Candidate& candidate) {
    ++asked;
    const bool ok = verify::verify(program, candidate.graph).answer == verify::Verdict::kEquivalent;
    if (ok) ++accepted;
    return ok;
  };
  const PeakMemory memory;
  Result<search::SearchReport> report = search::SearchReport{};
  double seconds = 0;
  for (auto _ : state) {
    asked = accepted = 0;
    const double start = cpu_seconds();
    report = search::superoptimize(program, h200(), {}, options);
    seconds = cpu_seconds() - start;
    SUNDOG_CHECK(report.ok());
  }
  show(state, *report, memory);
  state.counters["seconds"] = seconds;
  state.counters["verified"] = asked;
  state.counters["accepted"] = accepted;
}

[[maybe_unused]] const bool kRegistered = [] {
  for (const auto* list : {&workloads(), &blocks()}) {
    for (const Workload& w : *list) {
      const auto add = [&](const char* family, void (*run)(benchmark::State&, const Workload&)) {
        benchmark::RegisterBenchmark((family + w.name).c_str(), run, w)
            ->Unit(benchmark::kMillisecond);
      };
      add("Bank/", bank);
      add("Search/", search_program);
      add("SearchAndVerify/", search_and_verify);
    }
  }
  return true;
}();

}  // namespace
}  // namespace sundog::benchmarks
