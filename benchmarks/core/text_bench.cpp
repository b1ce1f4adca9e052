// Reading and writing programs and µGraphs: text and protobuf.
#include <benchmark/benchmark.h>

#include "benchmarks/support/workloads.h"
#include "core/check.h"
#include "core/proto.h"
#include "core/text.h"

namespace sundog::benchmarks {
namespace {

// The longest pair of tests/programs: two kernels, a running maximum, partial results.
constexpr char kPair[] = "gqa_safe_split.equal.mu";

void add_bytes(benchmark::State& state, size_t bytes_each) {
  state.SetBytesProcessed(static_cast<int64_t>(bytes_each) * state.iterations());
}

void parse_programs(benchmark::State& state) {
  size_t bytes = 0;
  for (const Workload& w : workloads()) bytes += w.text.size();
  for (auto _ : state) {
    for (const Workload& w : workloads()) benchmark::DoNotOptimize(parse(w));
  }
  add_bytes(state, bytes);
  state.counters["programs"] = static_cast<double>(workloads().size());
}
BENCHMARK(parse_programs)->Unit(benchmark::kMicrosecond);

void print_programs(benchmark::State& state) {
  std::vector<Program> programs;
  for (const Workload& w : workloads()) programs.push_back(parse(w));
  size_t bytes = 0;
  for (auto _ : state) {
    bytes = 0;
    for (const Program& program : programs) bytes += print(program).size();
  }
  add_bytes(state, bytes);
  state.counters["programs"] = static_cast<double>(programs.size());
}
BENCHMARK(print_programs)->Unit(benchmark::kMicrosecond);

void parse_mugraph_text(benchmark::State& state) {
  const Pair pair = read_pair(kPair);
  for (auto _ : state) {
    const Result<MuGraph> graph = parse_mugraph(pair.text, kPair, pair.program);
    SUNDOG_CHECK(graph.ok());
  }
  add_bytes(state, pair.text.size());
}
BENCHMARK(parse_mugraph_text)->Unit(benchmark::kMicrosecond);

void print_mugraph_text(benchmark::State& state) {
  const Pair pair = read_pair(kPair);
  size_t bytes = 0;
  for (auto _ : state) bytes = print(pair.graph, pair.program).size();
  add_bytes(state, bytes);
}
BENCHMARK(print_mugraph_text)->Unit(benchmark::kMicrosecond);

void read_mugraph_proto(benchmark::State& state) {
  const Pair pair = read_pair(kPair);
  const std::string bytes = serialize(pair.graph);
  for (auto _ : state) {
    const Result<MuGraph> graph = parse_mugraph_proto(bytes, pair.program);
    SUNDOG_CHECK(graph.ok());
  }
  add_bytes(state, bytes.size());
}
BENCHMARK(read_mugraph_proto)->Unit(benchmark::kMicrosecond);

void write_mugraph_proto(benchmark::State& state) {
  const Pair pair = read_pair(kPair);
  size_t bytes = 0;
  for (auto _ : state) bytes = serialize(pair.graph).size();
  add_bytes(state, bytes);
}
BENCHMARK(write_mugraph_proto)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace sundog::benchmarks
