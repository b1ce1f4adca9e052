#include "frontend/builder.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>

namespace sundog::frontend {

std::string number_text(double value) {
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  char text[40];
  if (value == std::floor(value) && std::fabs(value) < 9e15) {
    std::snprintf(text, sizeof text, "%lld", static_cast<long long>(value));
  } else {
    std::snprintf(text, sizeof text, "%.17g", value);
  }
  return text;
}

Ref Builder::emit(const std::string& op, const std::vector<Ref>& inputs, Extents extents,
                  std::vector<int64_t> integers, std::vector<std::string> numbers,
                  std::string text) {
  GraphNode node;
  node.name = "node" + std::to_string(graph.nodes.size());
  node.op = op;
  for (const Ref& input : inputs) node.inputs.push_back(input.name);
  node.integers = std::move(integers);
  node.numbers = std::move(numbers);
  node.text = std::move(text);
  node.label = label;
  graph.nodes.push_back(node);
  return {node.name, std::move(extents), false};
}

Ref Builder::constant(double value) { return emit("constant", {}, {}, {}, {number_text(value)}); }

Ref Builder::elementwise(const std::string& op, const std::vector<Ref>& inputs,
                         std::vector<std::string> numbers, std::string text) {
  Extents extents;
  for (const Ref& input : inputs) {
    const size_t rank = std::max(extents.size(), input.extents.size());
    extents.insert(extents.begin(), rank - extents.size(), 1);
    const size_t skipped = rank - input.extents.size();
    for (size_t d = 0; d < input.extents.size(); ++d) {
      extents[skipped + d] = std::max(extents[skipped + d], input.extents[d]);
    }
  }
  return emit(op, inputs, std::move(extents), {}, std::move(numbers), std::move(text));
}

Ref Builder::compare(const std::string& op, const Ref& a, const Ref& b) {
  Ref result = elementwise(op, {a, b});
  result.condition = true;
  return result;
}

Ref Builder::reshape(const Ref& value, const Extents& extents) {
  return extents == value.extents ? value : emit("reshape", {value}, extents, extents);
}

Ref Builder::permute(const Ref& value, const std::vector<int64_t>& order) {
  Extents extents;
  for (const int64_t d : order) extents.push_back(value.extents[static_cast<size_t>(d)]);
  return emit("permute", {value}, std::move(extents), order);
}

Ref Builder::reduce(const std::string& op, const Ref& value, const std::vector<int64_t>& dims,
                    bool keep) {
  Extents kept = value.extents, dropped;
  for (size_t d = 0; d < kept.size(); ++d) {
    const bool reduced = std::find(dims.begin(), dims.end(), static_cast<int64_t>(d)) != dims.end();
    if (reduced) kept[d] = 1;
    if (!reduced) dropped.push_back(kept[d]);
  }
  const Ref result = emit(op, {value}, kept, dims);
  return keep ? result : reshape(result, dropped);
}

Ref Builder::mean(const Ref& value, const std::vector<int64_t>& dims, bool keep) {
  double count = 1;
  for (const int64_t d : dims) count *= static_cast<double>(value.extents[static_cast<size_t>(d)]);
  return elementwise("div", {reduce("sum", value, dims, keep), constant(count)});
}

Ref Builder::contract(const std::string& letters, const Ref& a, const Ref& b) {
  const size_t comma = letters.find(','), arrow = letters.find("->");
  std::map<char, int64_t> extent_of;
  for (size_t i = 0; i < comma; ++i) extent_of[letters[i]] = a.extents[i];
  for (size_t i = comma + 1; i < arrow; ++i) extent_of[letters[i]] = b.extents[i - comma - 1];
  Extents extents;
  for (size_t i = arrow + 2; i < letters.size(); ++i) extents.push_back(extent_of[letters[i]]);
  return emit("contract", {a, b}, std::move(extents), {}, {}, letters);
}

Ref Builder::softmax(const Ref& value, int64_t dim) {
  const Ref top = reduce("reduce_max", value, {dim}, true);
  const Ref powers = elementwise("exp", {elementwise("sub", {value, top})});
  return elementwise("div", {powers, reduce("sum", powers, {dim}, true)});
}

}  // namespace sundog::frontend
