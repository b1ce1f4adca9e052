#include "verify/interface.h"

#include <algorithm>
#include <vector>

namespace sundog::verify {
namespace {

std::string tensor_mismatch(const TensorDecl& a, const TensorDecl& b, const char* kind) {
  const std::string name = std::string(kind) + " '" + a.name + "'";
  if (a.dtype != b.dtype) {
    return name + " is " + std::string(sundog::name(b.dtype)) + " instead of " +
           std::string(sundog::name(a.dtype));
  }
  if (a.extents != b.extents) return name + " has another shape";
  return {};
}

}  // namespace

std::vector<TensorPair> shared_tensors(const Program& a, const Program& b) {
  std::vector<TensorPair> pairs;
  for (const TensorDecl& x : a.inputs) {
    for (const TensorDecl& y : b.inputs) {
      if (x.name == y.name) pairs.push_back({&x, &y});
    }
  }
  for (const Output& x : a.outputs) {
    for (const Output& y : b.outputs) {
      if (x.tensor.name == y.tensor.name) pairs.push_back({&x.tensor, &y.tensor});
    }
  }
  return pairs;
}

std::string interface_mismatch(const Program& program, const Program& candidate) {
  for (const TensorDecl& input : candidate.inputs) {
    const auto at = find_input(program, input.name);
    if (!at) return "the program has no input '" + input.name + "'";
    std::string reason = tensor_mismatch(program.inputs[*at], input, "input");
    if (!reason.empty()) return reason;
  }
  const auto find_output = [](const Program& p, const std::string& wanted) {
    return std::find_if(p.outputs.begin(), p.outputs.end(),
                        [&](const Output& o) { return o.tensor.name == wanted; });
  };
  for (const Output& output : candidate.outputs) {
    if (find_output(program, output.tensor.name) == program.outputs.end()) {
      return "the program has no output '" + output.tensor.name + "'";
    }
  }
  for (const Output& output : program.outputs) {
    const auto at = find_output(candidate, output.tensor.name);
    if (at == candidate.outputs.end()) return "output '" + output.tensor.name + "' is missing";
    std::string reason = tensor_mismatch(output.tensor, at->tensor, "output");
    if (!reason.empty()) return reason;
  }
  return {};
}

namespace {

// "f16[n=16, h=4096]"; a dimension that is no single axis by its extent alone.
std::string shape_text(const Program& program, const TensorDecl& tensor) {
  std::string text;
  for (size_t d = 0; d < tensor.extents.size(); ++d) {
    AxisId axis;
    text += d == 0 ? "" : ", ";
    if (d < tensor.dims.size() && tensor.dims[d].is_axis(&axis)) {
      text += program.axes[axis].name + "=";
    }
    text += std::to_string(tensor.extents[d]);
  }
  return "[" + text + "]";
}

// "-D n=16 -D h=64": the program's sizes of the axes by which the shapes differ, if all of these
// are axes of both programs under one name.
std::string sizes_for_both(const std::vector<TensorPair>& pairs, const Program& a,
                           const Program& b) {
  std::string text;
  std::vector<std::string> named;
  for (const TensorPair& pair : pairs) {
    const TensorDecl &x = *pair.first, &y = *pair.second;
    if (x.extents.size() != y.extents.size()) return {};
    for (size_t d = 0; d < x.extents.size(); ++d) {
      if (x.extents[d] == y.extents[d]) continue;
      AxisId left, right;
      if (!x.dims[d].is_axis(&left) || !y.dims[d].is_axis(&right)) return {};
      const std::string& name = a.axes[left].name;
      if (name != b.axes[right].name) return {};
      if (std::find(named.begin(), named.end(), name) != named.end()) continue;
      named.push_back(name);
      text += " -D " + name + "=" + std::to_string(x.extents[d]);
    }
  }
  return text;
}

}  // namespace

Status check_shapes(const Program& program, const Program& candidate) {
  const std::vector<TensorPair> pairs = shared_tensors(program, candidate);
  for (const TensorPair& pair : pairs) {
    const TensorDecl &x = *pair.first, &y = *pair.second;
    if (x.extents == y.extents) continue;
    const bool is_input = find_input(program, x.name).has_value();
    const std::string sizes = sizes_for_both(pairs, program, candidate);
    return bad_input(std::string(is_input ? "input" : "output") + " '" + x.name + "' is " +
                         shape_text(program, x) + " in the program and " +
                         shape_text(candidate, y) + " in the candidate",
                     sizes.empty()
                         ? "two programs are compared for tensors of the same shapes"
                         : "the axes agree, their sizes do not: give both the same, as by" + sizes);
  }
  return {};
}

}  // namespace sundog::verify
