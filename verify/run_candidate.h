// Running a candidate, program or µGraph, on the inputs of the program that it stands for.
#pragma once

#include <algorithm>
#include <variant>
#include <vector>

#include "core/interpret.h"
#include "verify/small_sizes.h"

namespace sundog::verify {

// Outputs in the order of `program`; inputs are matched by name.  Errors: as interpret().
// require: interface_mismatch(program, candidate) is empty.
template <class A>
Result<std::vector<TensorValues<typename A::Value>>> run_candidate(
    A& algebra, const Program& program, const Candidate& candidate,
    std::span<const TensorValues<typename A::Value>> inputs) {
  using Tensors = std::vector<TensorValues<typename A::Value>>;
  if (const auto* graph = std::get_if<MuGraph>(&candidate)) {
    return interpret(algebra, *graph, program, inputs);
  }
  const Program& other = std::get<Program>(candidate);
  Tensors theirs;
  for (const TensorDecl& input : other.inputs) {
    theirs.push_back(inputs[*find_input(program, input.name)]);
  }
  auto results =
      interpret(algebra, other, std::span<const TensorValues<typename A::Value>>(theirs));
  if (!results.ok()) return results.error();
  Tensors ordered;
  for (const Output& output : program.outputs) {
    const auto at = std::find_if(other.outputs.begin(), other.outputs.end(), [&](const Output& o) {
      return o.tensor.name == output.tensor.name;
    });
    ordered.push_back((*results)[static_cast<size_t>(at - other.outputs.begin())]);
  }
  return ordered;
}

// Calls f(element, offset in memory) for each element of a tensor in logical row-major order;
// elements of a broadcast tensor share offsets.
template <class F>
void for_each_element(const TensorDecl& tensor, F&& f) {
  const std::vector<int64_t> strides = strides_of(tensor);
  std::vector<int64_t> index(tensor.extents.size(), 0);
  int64_t count = 1;
  for (const int64_t extent : tensor.extents) count *= extent;
  for (int64_t element = 0; element < count; ++element) {
    int64_t offset = 0;
    for (size_t d = 0; d < index.size(); ++d) offset += index[d] * strides[d];
    f(element, offset);
    for (size_t d = index.size(); d-- > 0;) {
      if (++index[d] < tensor.extents[d]) break;
      index[d] = 0;
    }
  }
}

}  // namespace sundog::verify
