// The scalar image that search knows terms by: single operations, a matrix product, and the image
// of whole programs at small sizes.
#include <benchmark/benchmark.h>

#include "benchmarks/support/workloads.h"
#include "core/check.h"
#include "core/field.h"
#include "core/interpret.h"
#include "core/resize.h"

namespace sundog::benchmarks {
namespace {

using Values = std::vector<TensorValues<FieldImage::Value>>;

Values random_inputs(const FieldImage& field, const Program& program) {
  Values inputs;
  uint64_t key = 0;
  for (const TensorDecl& input : program.inputs) {
    TensorValues<FieldImage::Value> tensor{input.extents, {}};
    const int64_t count = element_count(input);
    for (int64_t i = 0; i < count; ++i) tensor.values.push_back(field.random(++key));
    inputs.push_back(std::move(tensor));
  }
  return inputs;
}

uint64_t image_of(FieldImage& field, const Program& program, const Values& inputs) {
  const auto outputs =
      interpret(field, program, std::span<const TensorValues<FieldImage::Value>>(inputs));
  SUNDOG_CHECK(outputs.ok());
  uint64_t word = 0;
  for (const auto& output : *outputs) {
    for (const auto& value : output.values) word = mix(word, identity(value));
  }
  return word;
}

// Chains, so that each operation waits for the one before.
void image_mul(benchmark::State& state) {
  FieldImage field(1);
  FieldImage::Value x = field.random(1);
  const FieldImage::Value y = field.random(2);
  for (auto _ : state) x = field.mul(x, y);
  benchmark::DoNotOptimize(x);
}
BENCHMARK(image_mul);

void image_div(benchmark::State& state) {
  FieldImage field(1);
  FieldImage::Value x = field.random(1);
  const FieldImage::Value y = field.random(2);
  for (auto _ : state) x = field.div(x, y);
  benchmark::DoNotOptimize(x);
}
BENCHMARK(image_div);

// A new field every 4096 exponentials: it remembers each argument.
void image_exp(benchmark::State& state) {
  FieldImage field(1);
  const FieldImage::Value step = field.random(2);
  FieldImage::Value x = field.random(1);
  int count = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(field.exp(x));
    x = field.add(x, step);
    if (++count % 4096 == 0) {
      state.PauseTiming();
      field = FieldImage(1);
      state.ResumeTiming();
    }
  }
}
BENCHMARK(image_exp);

void image_matmul(benchmark::State& state) {
  const auto n = static_cast<int64_t>(state.range(0));
  const std::string extent = std::to_string(n);
  const Program program =
      parse({"product", "program product(i = " + extent + ", j = " + extent + ", k = " + extent +
                            ") {\n  input A: f32[i, k]\n  input B: f32[k, j]\n"
                            "  output C: f32[i, j] = sum[k](A * B)\n}\n"});
  FieldImage field(1);
  const Values inputs = random_inputs(field, program);
  for (auto _ : state) benchmark::DoNotOptimize(image_of(field, program, inputs));
  state.SetItemsProcessed(n * n * n * state.iterations());  // multiply-adds
}
BENCHMARK(image_matmul)->Arg(16)->Arg(64)->Arg(128)->Unit(benchmark::kMicrosecond);

// The image of every output element at sizes of the first few primes.
void image_program(benchmark::State& state, const Workload& w) {
  const Program full = parse(w);
  const Program program = with_extents(full, small_extents(full));
  FieldImage inputs_of(1);
  const Values inputs = random_inputs(inputs_of, program);
  for (auto _ : state) {
    FieldImage field(1);
    benchmark::DoNotOptimize(image_of(field, program, inputs));
  }
}

[[maybe_unused]] const bool kRegistered = [] {
  for (const char* name : {"rms_norm", "gated_mlp", "gqa_safe", "qk_norm_safe", "layer_norm"}) {
    benchmark::RegisterBenchmark((std::string("image_program/") + name).c_str(), image_program,
                                 workload(name))
        ->Unit(benchmark::kMicrosecond);
  }
  return true;
}();

}  // namespace
}  // namespace sundog::benchmarks
