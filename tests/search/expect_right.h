// Whether a µGraph computes its program, by the interpreters of both.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "core/float_algebra.h"
#include "core/interpret.h"
#include "core/text.h"

namespace sundog::search {

inline std::vector<TensorValues<double>> random_inputs(const Program& program, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> uniform(-1, 1);
  std::vector<TensorValues<double>> inputs;
  for (const TensorDecl& tensor : program.inputs) {
    TensorValues<double> values{tensor.extents, {}};
    for (int64_t i = 0; i < element_count(tensor); ++i) values.values.push_back(uniform(random));
    inputs.push_back(std::move(values));
  }
  return inputs;
}

// The µGraph is well-formed and computes the program's values.
inline void expect_right(const Program& program, const MuGraph& graph) {
  const Status status = check(graph, program);
  ASSERT_TRUE(status.ok()) << to_string(status.error()) << "\n" << print(graph, program);
  const auto inputs = random_inputs(program, 7);
  Float64 a({.round_stores = false, .rounding = Rounding::kWide});
  const auto want = interpret(a, program, std::span(inputs));
  const auto have = interpret(a, graph, program, std::span(inputs));
  ASSERT_TRUE(want.ok()) << to_string(want.error());
  ASSERT_TRUE(have.ok()) << to_string(have.error()) << "\n" << print(graph, program);
  ASSERT_EQ(want->size(), have->size());
  for (size_t o = 0; o < want->size(); ++o) {
    double most = 1e-30, error = 0;
    for (size_t i = 0; i < (*want)[o].values.size(); ++i) {
      most = std::max(most, std::fabs((*want)[o].values[i]));
      error = std::max(error, std::fabs((*want)[o].values[i] - (*have)[o].values[i]));
    }
    EXPECT_LE(error, 1e-9 * most) << print(graph, program);
  }
}

}  // namespace sundog::search
