// The smallest program that launching and tuning are tested with: y = 2 x, by a plan of one kernel
// "k".
#pragma once

#include <cstring>
#include <string>

#include "codegen/launch.h"
#include "core/check.h"

namespace sundog::codegen {

inline constexpr int kTwiceSize = 64;

inline TensorDecl vector_of_floats(const std::string& name) {
  TensorDecl tensor;
  tensor.name = name;
  tensor.dtype = DType::kF32;
  tensor.extents = {kTwiceSize};
  return tensor;
}

inline Program twice_program() {
  Program program;
  program.name = "twice";
  program.inputs = {vector_of_floats("x")};
  program.outputs = {{vector_of_floats("y"), kNoTerm}};
  return program;
}

inline LaunchPlan twice_plan() {
  using Kind = PlanArgument::Kind;
  LaunchPlan plan;
  plan.inputs = {{"x", DType::kF32, kTwiceSize, kTwiceSize * 4}};
  plan.outputs = {{"y", DType::kF32, kTwiceSize, kTwiceSize * 4}};
  plan.workspace_bytes = 64;
  plan.kernels = {{"k",
                   {1, 1, 1},
                   kTwiceSize,
                   0,
                   {{Kind::kInput, 0, 0}, {Kind::kOutput, 0, 0}, {Kind::kWorkspace, 0, 0}}}};
  return plan;
}

// What the kernel does, on the host.
inline void twice(const std::byte* from, std::byte* to, int size = kTwiceSize) {
  for (int i = 0; i < size; ++i) {
    float x;
    std::memcpy(&x, from + 4 * i, 4);
    x *= 2;
    std::memcpy(to + 4 * i, &x, 4);
  }
}

inline CheckData twice_data(const Program& program, uint64_t seed) {
  const FloatTensor x = draw_input(program.inputs[0], seed, 0);
  CheckData result;
  result.inputs = {to_memory(program.inputs[0], x)};
  result.expected.resize(1);
  for (const double value : x.f64) result.expected[0].values.push_back(2 * value);
  return result;
}

}  // namespace sundog::codegen
