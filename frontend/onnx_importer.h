// NOLINT(sundog-mirror): the insides of onnx.h.
// One model being read: frontend/onnx.cpp reads the graph, frontend/onnx_nodes.cpp the nodes,
// frontend/onnx_windows.cpp those of them that move a window.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "frontend/builder.h"

namespace sundog::onnx {
class Attribute;
class Graph;
class Node;
class Tensor;
class ValueInfo;
}  // namespace sundog::onnx

namespace sundog::frontend {

inline constexpr int kNoOperand = 1 << 20;     // of what is an attribute in every version
inline constexpr int64_t kSmallConstant = 64;  // elements of a constant that is read as numbers

// The type of an ONNX element; nothing for those that no program has.
std::optional<DType> dtype_of(int element);

// Elements of a tensor (-1: no number of them), and the bytes that each takes; 0 for types that
// nothing here reads.
int64_t elements_of(const onnx::Tensor& tensor);
int64_t element_bytes(int element);

// The numbers of a small constant that stands in the model.
std::optional<std::vector<double>> numbers_of(const onnx::Tensor& tensor);

// The values of a node, or why it has no form in a program.
using Made = Result<std::vector<Ref>>;

class Importer {
 public:
  Importer(const onnx::Graph& source, const std::map<std::string, int64_t>& defines,
           const std::optional<std::string>& folder)
      : source_(source), defines_(defines), folder_(folder) {}

  Result<Graph> import();

 private:
  Result<Extents> extents_of(const onnx::ValueInfo& value) const;
  Status add_input(const std::string& name, int element, const Extents& extents);
  Status check_defines() const;
  Status add_inputs();
  Status add_weight(const std::string& name, const onnx::Tensor& tensor);
  std::vector<const onnx::Node*> sorted(std::vector<std::string>& problems) const;
  std::string described(const onnx::Node& node) const;

  // Of the node at hand.
  Made made(const onnx::Node& node);
  Made made_elementwise(const onnx::Node& node);
  Made made_shape(const onnx::Node& node);
  Made made_reduction(const onnx::Node& node);
  Made made_batch_normalization(const onnx::Node& node, Ref x);
  Made made_product(const onnx::Node& node);
  // How a window moves over a dimension: elements that are `spread` apart, `places` of it that are
  // `stride` apart, the first `before` elements in front of the tensor.
  struct Window {
    int64_t extent = 1, stride = 1, spread = 1, before = 0, after = 0, places = 0;
  };
  Made made_convolution(const onnx::Node& node);
  Made made_pool(const onnx::Node& node);
  Result<std::vector<Window>> windows(const onnx::Node& node, const Ref& x,
                                      const Extents& kernel) const;
  Ref windowed(Ref x, const std::vector<Window>& windows, size_t first_dim,
               const std::string& outside);
  Ref window_sizes(const Ref& x, const std::vector<Window>& windows, bool count_margin);
  Result<Ref> operand(const onnx::Node& node, int index);
  std::optional<std::vector<int64_t>> integers(const onnx::Node& node, int index,
                                               const char* name) const;
  const onnx::Attribute* attribute(const onnx::Node& node, const char* name) const;
  int64_t integer(const onnx::Node& node, const char* name, int64_t otherwise) const;
  double number(const onnx::Node& node, const char* name, double otherwise) const;
  Result<Ref> matmul(Ref a, Ref b);

  const onnx::Graph& source_;
  const std::map<std::string, int64_t>& defines_;
  const std::optional<std::string>& folder_;  // of the model
  Builder builder_;
  std::map<std::string, Ref> refs_;
  std::map<std::string, std::vector<double>> constants_;
  std::map<std::string, const onnx::Tensor*> weights_;
};

}  // namespace sundog::frontend
