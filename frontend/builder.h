// NOLINT(sundog-mirror): a part of onnx.h.
// A graph under construction, with the shape of each value, for frontends in C++.
#pragma once

#include <string>
#include <vector>

#include "frontend/graph.h"

namespace sundog::frontend {

using Extents = std::vector<int64_t>;

struct Ref {
  std::string name;
  Extents extents;
  bool condition = false;
};

class Builder {
 public:
  Graph graph;
  std::string label;  // of the nodes to come

  Ref emit(const std::string& op, const std::vector<Ref>& inputs, Extents extents,
           std::vector<int64_t> integers = {}, std::vector<std::string> numbers = {},
           std::string text = {});
  Ref constant(double value);
  // Broadcasts the shapes; what cannot be is left for infer_axes to report.
  Ref elementwise(const std::string& op, const std::vector<Ref>& inputs,
                  std::vector<std::string> numbers = {}, std::string text = {});
  Ref compare(const std::string& op, const Ref& a, const Ref& b);
  Ref reshape(const Ref& value, const Extents& extents);
  Ref permute(const Ref& value, const std::vector<int64_t>& order);
  Ref reduce(const std::string& op, const Ref& value, const std::vector<int64_t>& dims, bool keep);
  Ref mean(const Ref& value, const std::vector<int64_t>& dims, bool keep);
  Ref contract(const std::string& letters, const Ref& a, const Ref& b);
  Ref softmax(const Ref& value, int64_t dim);
};

// A number as program text takes it.
std::string number_text(double value);

}  // namespace sundog::frontend
