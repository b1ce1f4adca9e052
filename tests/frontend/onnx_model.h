// ONNX models, piece by piece.
#pragma once

#include <gtest/gtest.h>

#include <cctype>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "core/evaluate.h"
#include "frontend/graph.h"
#include "frontend/onnx.pb.h"

namespace sundog::frontend {

inline void add_value(onnx::ValueInfo* value, const std::string& name,
                      const std::vector<std::string>& dims) {
  value->set_name(name);
  onnx::Type::Tensor& tensor = *value->mutable_type()->mutable_tensor();
  tensor.set_element(1);
  tensor.mutable_shape();
  for (const std::string& dim : dims) {
    onnx::Shape::Dim& made = *tensor.mutable_shape()->add_dims();
    if (std::isdigit(static_cast<unsigned char>(dim[0])) != 0) {
      made.set_value(std::stoll(dim));
    } else {
      made.set_parameter(dim);
    }
  }
}

inline onnx::Node* add_node(onnx::Graph& graph, const std::string& op, const std::string& name,
                            const std::vector<std::string>& inputs, const std::string& output) {
  onnx::Node* node = graph.add_nodes();
  node->set_op(op);
  node->set_name(name);
  for (const std::string& input : inputs) node->add_inputs(input);
  node->add_outputs(output);
  return node;
}

inline void add_floats(onnx::Graph& graph, const std::string& name,
                       const std::vector<int64_t>& dims, const std::vector<float>& values) {
  onnx::Tensor& tensor = *graph.add_initializers();
  tensor.set_name(name);
  tensor.set_element(1);
  for (const int64_t dim : dims) tensor.add_dims(dim);
  for (const float value : values) tensor.add_floats(value);
}

inline void add_integers(onnx::Graph& graph, const std::string& name,
                         const std::vector<int64_t>& values) {
  onnx::Tensor& tensor = *graph.add_initializers();
  tensor.set_name(name);
  tensor.set_element(7);
  tensor.add_dims(static_cast<int64_t>(values.size()));
  std::string raw(8 * values.size(), '\0');
  std::memcpy(raw.data(), values.data(), raw.size());
  tensor.set_raw(raw);  // the other way to store them
}

// The program of a model, run on the values.
inline std::vector<double> evaluated(const Graph& graph,
                                     const std::map<std::string, std::vector<double>>& values) {
  const Result<Program> program = program_of(graph);
  EXPECT_TRUE(program.ok()) << to_string(program.error());
  if (!program.ok()) return {};
  std::vector<FloatTensor> inputs;
  for (const TensorDecl& input : program->inputs) {
    inputs.push_back({input.extents, values.at(input.name), {}});
  }
  const auto outputs = evaluate(*program, inputs);
  EXPECT_TRUE(outputs.ok());
  return outputs.ok() ? (*outputs)[0] : std::vector<double>();
}

}  // namespace sundog::frontend
