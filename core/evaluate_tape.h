// One fused loop nest of core/evaluate.cpp: a term without inner reductions, compiled to a tape of
// scalar and vector instructions.  NOLINT(sundog-mirror): the insides of evaluate.h
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "core/evaluate.h"
#include "core/program.h"

namespace sundog::evaluating {

// Offset of an element: constant + sum of coefficient * index of axis.
struct Affine {
  int64_t constant = 0;
  std::vector<int64_t> coefficients;  // one an axis of the program

  int64_t at(const std::vector<int64_t>& index) const {
    int64_t value = constant;
    for (size_t i = 0; i < index.size(); ++i) value += coefficients[i] * index[i];
    return value;
  }
};

// A tensor that is read: exactly one pointer is set.
struct Source {
  const double* f64 = nullptr;
  const float* f32 = nullptr;
  std::vector<int64_t> extents, strides;
};

struct Leaf {
  const Source* source = nullptr;
  std::vector<IndexExpr> index;  // one a dimension
};

struct Range {
  int64_t begin = 0, end = 0;
};

enum class Code : uint8_t {
  kConstant,
  kIndex,
  kRead,
  kAdd,
  kSub,
  kMul,
  kDiv,
  kNeg,
  kExp,
  kLog,
  kSqrt,
  kMax,
  kCast,
  kCall,
  kChoose,
  kSelect,
};

struct Instruction {
  Code code = Code::kConstant;
  uint32_t in[4] = {0, 0, 0, 0};
  double value = 0;                                // kConstant
  Affine affine;                                   // kIndex, kSelect: the index; kRead: the offset
  const Source* source = nullptr;                  // kRead
  std::vector<std::pair<Affine, int64_t>> checks;  // kRead: indices that may leave [0, extent)
  Relation relation = Relation::kLess;             // kChoose, kSelect
  const Fn* fn = nullptr;                          // kCall
  DType dtype = DType::kF32;                       // kCast
  AxisSet axes;                                    // that the value depends on
};

// The value of `root` over the axes in order of their ids; `leaf` says what is read (inputs and
// inner reductions).  `ranges`: index values that occur, one an axis; reads that may leave their
// tensor then give NaN outside of it.
std::vector<Instruction> compile(const Program& program, TermId root, Rounding rounding,
                                 const std::vector<Range>& ranges,
                                 const std::function<std::optional<Leaf>(TermId)>& leaf);

struct Nest {
  std::vector<Instruction> tape;  // the last instruction is the result
  std::vector<Range> ranges;      // one an axis
  std::vector<AxisId> free, bound;
  std::optional<ReduceKind> reduce;
  Affine to;                    // offset of the result; 0 for bound axes
  std::optional<AxisId> lanes;  // the vectorised axis, free or bound
  Precision precision = Precision::kF64;
  double nudge = 0;  // Evaluation::nudge
};

// The axis along which most reads are contiguous.
std::optional<AxisId> choose_lanes(const Nest& nest);

// Runs the nest into `out`, which holds the unit of the reduction.
void run(const Nest& nest, double* out);

}  // namespace sundog::evaluating
