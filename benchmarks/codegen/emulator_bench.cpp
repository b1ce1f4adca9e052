// From what search picks to a run on the emulator: emitting the text, compiling it for the CPU, and
// running it, with and without the race checker.
//
// Large µGraphs run with their tiles kept and their grids and loops cut short; `blocks` and
// `threads` say what remains.  Compilation and runs are child processes, which the CPU column does
// not count: `compile_cpu_s` and `run_cpu_s` are their processor time, `compiler_mb` the compiler's
// memory.
#include <benchmark/benchmark.h>
#include <sys/resource.h>

#include <algorithm>

#include "benchmarks/support/picks.h"
#include "benchmarks/support/workloads.h"
#include "codegen/emulator.h"
#include "codegen/generate.h"
#include "codegen/kernel_check.h"
#include "codegen/launch.h"
#include "codegen/launch_emulator.h"
#include "core/check.h"
#include "core/resize.h"

namespace sundog::benchmarks {
namespace {

// Processor time of child processes that have ended, and the largest memory of one of them.
struct Children {
  double seconds = 0, peak_mb = 0;
};
Children children() {
  rusage usage{};
  getrusage(RUSAGE_CHILDREN, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return {seconds(usage.ru_utime) + seconds(usage.ru_stime),
          static_cast<double>(usage.ru_maxrss) / 1024};
}

void generate_text(benchmark::State& state, const std::string& name) {
  const Pick& p = pick(name);
  size_t bytes = 0;
  for (auto _ : state) {
    const auto generated = codegen::generate(p.graph, p.program, h200(), {});
    if (!generated.ok()) {
      state.SkipWithError(generated.error().message.c_str());
      return;
    }
    bytes = generated->cuda.size();
  }
  state.counters["bytes"] = static_cast<double>(bytes);
}

void emulate(benchmark::State& state, const std::string& name, bool race_check) {
  const Pick& p = pick(name);
  const auto reduced = shrink(p.graph, p.program, ShrinkPolicy::kKeepTiles);
  SUNDOG_CHECK(reduced.ok());
  const auto generated = codegen::generate(reduced->graph, reduced->program, h200(), {});
  if (!generated.ok()) {
    state.SkipWithError(generated.error().message.c_str());
    return;
  }
  const auto data = codegen::make_check_data(reduced->program, Rounding::kWide, 3e9, 1);
  SUNDOG_CHECK(data.ok());
  codegen::EmulatorOptions options;
  options.race_check = race_check;
  options.schedules = race_check ? 3 : 1;
  // Once before it counts: the compiler's files are then in memory.
  SUNDOG_CHECK(codegen::EmulatorModule::compile(generated->cuda, options).ok());
  const Children before = children();
  const auto module = codegen::EmulatorModule::compile(generated->cuda, options);
  SUNDOG_CHECK(module.ok());
  const Children compiled = children();
  const double compile_cpu = compiled.seconds - before.seconds;
  for (auto _ : state) {
    const auto ran = codegen::run_on_emulator(
        reduced->program, generated->plan, generated->cuda, *data,
        codegen::kernel_tolerance(reduced->program, reduced->graph), options);
    if (!ran.ok() || !ran->passed()) {
      state.SkipWithError((ran.ok() ? ran->failure() : ran.error().message).c_str());
      return;
    }
  }
  const double all = children().seconds - compiled.seconds;
  state.counters["compile_cpu_s"] = compile_cpu;
  state.counters["cpu_s"] = all / static_cast<double>(state.iterations());
  state.counters["compiler_mb"] = compiled.peak_mb;
  double blocks = 0, threads = 0;
  for (const codegen::KernelStats& stats : generated->stats) {
    blocks += static_cast<double>(stats.blocks);
    threads = std::max(threads, static_cast<double>(stats.threads));
  }
  state.counters["blocks"] = blocks;
  state.counters["threads"] = threads;
  state.counters["mul_adds"] = codegen::program_work(reduced->program);
}

[[maybe_unused]] const bool kRegistered = [] {
  for (const char* name : {"rms_norm", "gqa_safe", "softmax"}) {
    const std::string text = name;
    benchmark::RegisterBenchmark(("generate/" + text).c_str(), generate_text, text)
        ->Unit(benchmark::kMillisecond);
    benchmark::RegisterBenchmark(("emulator/" + text).c_str(), emulate, text, false)
        ->Unit(benchmark::kMillisecond)
        ->Iterations(1)
        ->UseRealTime();
    benchmark::RegisterBenchmark(("emulator_checked/" + text).c_str(), emulate, text, true)
        ->Unit(benchmark::kMillisecond)
        ->Iterations(1)
        ->UseRealTime();
  }
  return true;
}();

}  // namespace
}  // namespace sundog::benchmarks
