// Verification of what search picks, at the sizes of benchmarks/programs: the field test, and the
// whole verdict with numerics and ranges.
#include <benchmark/benchmark.h>

#include "benchmarks/support/picks.h"
#include "benchmarks/support/workloads.h"
#include "core/check.h"
#include "core/text.h"
#include "verify/full_size.h"
#include "verify/random_test.h"
#include "verify/small_sizes.h"
#include "verify/verdict.h"

namespace sundog::benchmarks {
namespace {

void field_test_of(benchmark::State& state, const std::string& name) {
  const Pick& p = pick(name);
  const auto cases = verify::small_cases(p.program, p.graph);
  SUNDOG_CHECK(cases.ok());
  verify::FieldResult result;
  for (auto _ : state) result = verify::field_test(*cases, {});
  state.counters["same"] = result.answer == verify::Sameness::kSame ? 1 : 0;
  state.counters["sizes"] = static_cast<double>(cases->size());
  state.counters["rounds"] = result.evidence.rounds;
  state.counters["error_log2"] = result.evidence.error_bound_log2;
}

void verdict_of(benchmark::State& state, const std::string& name) {
  const Pick& p = pick(name);
  verify::Verdict verdict;
  const PeakMemory memory;
  for (auto _ : state) verdict = verify::verify(p.program, p.graph);
  state.counters["equivalent"] = verdict.answer == verify::Verdict::kEquivalent ? 1 : 0;
  state.counters["peak_mb"] = memory.peak_mb();
}

// 256 sigmoids with denominators of their own, at that extent.
void silu_sum(benchmark::State& state) {
  const auto program = parse_program(
      "program silu_sum(n = 1, k = 256) { input x: f32[n, k]\n input w: f32[k]\n"
      " output y: f32[n] = sum[k](silu(x) * w) }",
      "silu_sum.sd");
  const auto other = parse_program(
      "program silu_sum(n = 1, k = 256) { input x: f32[n, k]\n input w: f32[k]\n"
      " output y: f32[n] = sum[k](w * x / (1 + exp(-x))) }",
      "silu_sum.sd");
  SUNDOG_CHECK(program.ok() && other.ok());
  const std::vector<verify::SmallCase> cases{{*program, *other, "n=1 k=256"}};
  verify::FieldResult result;
  for (auto _ : state) result = verify::field_test(cases, {});
  state.counters["same"] = result.answer == verify::Sameness::kSame ? 1 : 0;
  state.counters["rounds"] = result.evidence.rounds;
}

void full_size_of(benchmark::State& state, const std::string& name) {
  const Pick& p = pick(name);
  verify::FullSizeResult result;
  for (auto _ : state) {
    result = verify::full_size_check(p.program, p.graph, Rounding::kWide, 1,
                                     verify::VerifyOptions().full_size_work);
  }
  state.counters["ran"] = result.ran ? 1 : 0;
  state.counters["compared"] = static_cast<double>(result.compared);
}

[[maybe_unused]] const bool kRegistered = [] {
  benchmark::RegisterBenchmark("field_test/silu_sum_256", silu_sum)->Unit(benchmark::kMillisecond);
  benchmark::RegisterBenchmark("full_size/rms_norm", full_size_of, "rms_norm")
      ->Unit(benchmark::kMillisecond);
  for (const char* name : {"rms_norm", "gated_mlp", "lora", "n_trans", "softmax", "layer_norm",
                           "gqa_safe", "qk_norm_safe"}) {
    const std::string text = name;
    benchmark::RegisterBenchmark(("field_test/" + text).c_str(), field_test_of, text)
        ->Unit(benchmark::kMillisecond);
    benchmark::RegisterBenchmark(("verdict/" + text).c_str(), verdict_of, text)
        ->Unit(benchmark::kMillisecond)
        ->MeasureProcessCPUTime();
  }
  return true;
}();

}  // namespace
}  // namespace sundog::benchmarks
