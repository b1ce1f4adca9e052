// Fast evaluation of programs in floating point at real sizes: what a candidate's results and a
// kernel's outputs are compared with.
//
//   Evaluation e;                                  // float64, all of every output
//   auto outputs = evaluate(program, inputs, e);   // inputs in logical row-major order
//
// Reductions are materialised once, elementwise chains are fused into them, and the inner loop is
// vectorised; with `region` only what the chosen output elements need is computed.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/float_algebra.h"
#include "core/program.h"
#include "core/status.h"

namespace sundog {

// Index values [begin, end) of an axis.
struct AxisRange {
  AxisId axis = 0;
  int64_t begin = 0, end = 0;
};

struct Evaluation {
  Precision precision = Precision::kF64;
  Rounding rounding = Rounding::kWide;
  int threads = 2;
  std::vector<AxisRange> region;  // only output elements with these index values; others: NaN
  std::vector<uint32_t> outputs;  // positions in Program::outputs; empty: all
  // Share of itself by which the argument of a cast to integers is moved before it is rounded:
  // results that this changes hang on the last bits of what is rounded.
  double nudge = 0;
};

// Values of a tensor in logical row-major order; exactly one of the two is used.
struct FloatTensor {
  std::vector<int64_t> extents;
  std::vector<double> f64;
  std::vector<float> f32;
};

// One tensor for each of `evaluation.outputs`, rounded to nothing (the caller rounds to the
// output's dtype).  Errors: inputs of other extents than declared; intermediates beyond available
// memory.
Result<std::vector<std::vector<double>>> evaluate(const Program& program,
                                                  std::span<const FloatTensor> inputs,
                                                  const Evaluation& evaluation = {});

}  // namespace sundog
