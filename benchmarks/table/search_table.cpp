// The table of docs/search_table.md: for each program that has a published best structure, at three
// batch sizes, what a search takes, and what it takes with each pruning switched off.
//
//   build/release/sundog_search_table [--whole] [SECONDS [NAME ...]] > table.md
//
// SECONDS (60) of processor time end a search that has not ended by itself.  One thread, no
// verification; all seconds are processor time.  With NAMEs only those programs, with --whole only
// the columns of the whole space.  On a machine without the sources the folder of the programs is
// $SUNDOG_PROGRAMS.
#include <cstdio>
#include <cstdlib>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "benchmarks/support/workloads.h"
#include "core/text.h"
#include "search/superoptimize.h"

namespace sundog::benchmarks {
namespace {

struct Row {
  std::string name;
  std::string parameter;  // that the batch size is
  std::vector<int64_t> values;
};

const std::vector<Row>& rows() {
  static const std::vector<int64_t> batches = {1, 8, 16};
  static const std::vector<Row> kRows = {
      {"rms_norm", "b", batches},     {"gated_mlp", "b", batches}, {"lora", "b", batches},
      {"n_trans", "b", batches},      {"gqa", "b", batches},       {"gqa_safe", "b", batches},
      {"mha_safe", "b", batches},     {"mqa_safe", "b", batches},  {"qk_norm", "b", batches},
      {"qk_norm_safe", "b", batches}, {"add_rms_norm", "b", {8}},  {"layer_norm", "", {0}},
      {"softmax", "", {0}},           {"mm", "s", {16, 1024}},     {"mm_mm", "s", {16, 1024}},
      {"mm_rowsum", "s", {1024}},     {"swiglu", "s", {16, 1024}}, {"rms_norm_mm", "s", {16, 1024}},
      {"gqa_prefill", "s", {1024}},   {"mla", "s", {16}}};
  return kRows;
}

struct Rule {
  const char* name;
  void (*switch_off)(search::SearchSpace&);
};

const Rule kRules[] = {
    {"bound", [](search::SearchSpace& s) { s.prune_by_bound = false; }},
    {"duplicate", [](search::SearchSpace& s) { s.prune_duplicates = false; }},
    {"dominated", [](search::SearchSpace& s) { s.prune_dominated = false; }},
    {"outclassed", [](search::SearchSpace& s) { s.prune_outclassed = false; }},
    {"storing rules", [](search::SearchSpace& s) { s.store_anything = true; }},
};

struct Run {
  search::SearchReport report;
  double first_fused = -1;  // seconds, to the end of the round; negative: never
  double peak_mb = 0;
};

Run run(const Program& program, const search::SearchSpace& space, double budget) {
  Run out;
  const PeakMemory memory;
  const double begin = cpu_seconds();
  search::SearchOptions options;
  options.budget_s = budget;
  options.clock = [&] { return cpu_seconds() - begin; };
  options.progress = [&](const search::Progress& p) {
    if (out.first_fused < 0 && p.structures > 0) out.first_fused = p.seconds;
  };
  auto report = search::superoptimize(program, h200(), space, options);
  if (!report.ok()) {
    std::fprintf(stderr, "%s: %s\n", program.name.c_str(), report.error().message.c_str());
    std::exit(1);
  }
  out.report = std::move(*report);
  out.peak_mb = memory.peak_mb();
  return out;
}

// "0.52 s", or what there was of it when time was up.
std::string end_of(const search::SearchReport& r) {
  char text[64];
  if (r.stop_reason == "exhausted") {
    std::snprintf(text, sizeof text, "%.2f s", r.seconds);
  } else {
    std::snprintf(text, sizeof text, "> %.0f s (%.3g states)", r.seconds,
                  static_cast<double>(r.states));
  }
  return text;
}

void print_row(const Row& row, int64_t value, double budget, std::span<const Rule> rules) {
  std::map<std::string, int64_t> defines;
  std::string name = row.name;
  if (!row.parameter.empty()) {
    defines[row.parameter] = value;
    name += " " + row.parameter + " = " + std::to_string(value);
  }
  const auto program = parse_program(workload(row.name).text, row.name + ".sd", defines);
  if (!program.ok()) {
    std::fprintf(stderr, "%s\n", to_string(program.error()).c_str());
    std::exit(1);
  }
  const Run whole = run(*program, {}, budget);
  const search::SearchReport& r = whole.report;
  const double best = r.candidates.front().predicted_us;
  std::printf("| %s | %llu | %llu | %.3f | %.3f | %s | %.2f | %.2f | %.0f %% | %.0f |",
              name.c_str(), static_cast<unsigned long long>(r.states),
              static_cast<unsigned long long>(r.structures), whole.first_fused, r.time_to_best,
              end_of(r).c_str(), best, r.unfused.predicted_us, 100 * r.gap, whole.peak_mb);
  std::fflush(stdout);
  for (const Rule& rule : rules) {
    search::SearchSpace space;
    rule.switch_off(space);
    const Run off = run(*program, space, budget);
    const double us = off.report.candidates.front().predicted_us;
    char change[32] = "";
    if (us < best * 0.9995 || us > best * 1.0005) {
      std::snprintf(change, sizeof change, ", best %.2f us", us);
    }
    std::printf(" %s%s |", end_of(off.report).c_str(), change);
    std::fflush(stdout);
  }
  std::printf("\n");
  std::fflush(stdout);
}

}  // namespace
}  // namespace sundog::benchmarks

int main(int argc, char** argv) {
  using namespace sundog::benchmarks;
  const bool whole = argc > 1 && std::string(argv[1]) == "--whole";
  if (whole) --argc, ++argv;
  const std::span<const Rule> rules = whole ? std::span<const Rule>() : kRules;
  const double budget = argc > 1 ? std::atof(argv[1]) : 60;
  std::printf(
      "| program | states | structures | first fused s | best s | exhausted | best us | unfused us "
      "| gap | MB |");
  for (const Rule& rule : rules) std::printf(" without %s |", rule.name);
  std::printf("\n|---|---|---|---|---|---|---|---|---|---|");
  for (size_t i = 0; i < rules.size(); ++i) std::printf("---|");
  std::printf("\n");
  for (const Row& row : rows()) {
    bool wanted = argc <= 2;
    for (int i = 2; i < argc; ++i) wanted = wanted || row.name == argv[i];
    if (!wanted) continue;
    for (int64_t value : row.values) print_row(row, value, budget, rules);
  }
  return 0;
}
