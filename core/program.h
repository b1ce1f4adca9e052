// A tensor program: inputs, outputs, and the terms that define the outputs.
//
// The axes of a program are those of its text; where the text splits an axis (`split q = q.o *
// q.i(4)`) the factors stand in its place and a tensor dimension is the index expression 4 q.o +
// q.i.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/axis.h"
#include "core/dtype.h"
#include "core/status.h"
#include "core/term.h"

namespace sundog {

// A tensor in device memory.  Row-major unless strides are given.
struct TensorDecl {
  std::string name;
  DType dtype = DType::kF16;
  std::vector<std::string> dim_names;  // as written, for printing and messages
  std::vector<IndexExpr> dims;         // per dimension: the index of an element, over the axes
  std::vector<int64_t> extents;        // per dimension, in elements
  std::vector<int64_t> strides;        // per dimension, in elements; empty: row-major; 0: broadcast
  int64_t offset = 0;                  // elements from the pointer handed in to element (0, ..., 0)
  int alignment = 16;                  // bytes that the pointer, without the offset, is aligned to
  std::optional<Number> low, high;     // declared range of the values, if any
  bool operator==(const TensorDecl&) const = default;
};

// Elements of a tensor.  The number of distinct elements is the product of the extents.
int64_t element_count(const TensorDecl& tensor);
// Strides with row-major filled in.
std::vector<int64_t> strides_of(const TensorDecl& tensor);
// Elements from the pointer that must exist: 1 + offset + sum of (extent - 1) * stride; 0 if empty.
int64_t span_elements(const TensorDecl& tensor);

struct Output {
  TensorDecl tensor;
  TermId value = kNoTerm;
  bool operator==(const Output&) const = default;
};

// A name of the text for a term, in order of definition: kept for printing and messages.
struct Definition {
  std::string name;
  TermId value = kNoTerm;
  std::vector<AxisId> axes;  // as written on the left
  Position position;
  bool operator==(const Definition& o) const {
    return name == o.name && value == o.value && axes == o.axes;
  }
};

// `split q = q.o * q.i(4)`: factors outer to inner; the extents multiply to at least the axis.
struct ProgramSplit {
  std::string axis;
  int64_t extent = 0;
  std::vector<AxisId> factors;
  bool operator==(const ProgramSplit&) const = default;
};

struct Parameter {
  std::string name;
  int64_t value = 0;
  std::string expression;  // as written ("2 * b"); empty for a plain integer
  Position position = {};  // in the text, if it came from one
  bool operator==(const Parameter& o) const {
    return name == o.name && value == o.value && expression == o.expression;
  }
};

struct Program {
  std::string name;
  std::vector<Parameter> parameters;  // in order; axes are parameters that tensors use
  std::vector<Axis> axes;
  std::vector<ProgramSplit> splits;
  std::vector<TensorDecl> inputs;
  std::vector<Output> outputs;
  std::vector<Definition> definitions;
  TermGraph terms;
  bool operator==(const Program&) const = default;
};

// Extents of the axes, one entry an axis.
std::vector<int64_t> extents(const Program& program);

// Whether a cast of the program rounds to integers.
bool casts_to_integers(const Program& program);

std::optional<AxisId> find_axis(const Program& program, std::string_view name);
std::optional<uint32_t> find_input(const Program& program, std::string_view name);

}  // namespace sundog
