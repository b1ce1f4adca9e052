#include <unordered_map>

#include "core/text.h"

// Terms in the order of a depth-first walk from the roots, operands before users.  It depends only
// on the structure of the roots, so a graph that went through text comes out with the same numbers.

namespace sundog {
namespace {

class Renumbering {
 public:
  explicit Renumbering(const TermGraph& from) : from_(from) {}

  // With an explicit stack: terms may be nested as deep as a hostile file wants.
  TermId map(TermId root) {
    std::vector<std::pair<TermId, size_t>> stack = {{root, 0}};
    while (!stack.empty()) {
      auto& [id, next] = stack.back();
      const std::vector<TermId> below = operands(from_[id]);
      while (next < below.size() && done_.contains(below[next])) ++next;
      if (next < below.size()) {
        const TermId operand = below[next];
        stack.push_back({operand, 0});
        continue;
      }
      if (!done_.contains(id)) done_.emplace(id, copy(from_[id]));
      stack.pop_back();
    }
    return done_.at(root);
  }

  TermGraph take() { return std::move(to_); }

 private:
  TermId copy(Term term) {
    if (auto* apply = std::get_if<ApplyTerm>(&term)) {
      for (TermId& operand : apply->operands) operand = done_.at(operand);
    } else if (auto* reduce = std::get_if<ReduceTerm>(&term)) {
      reduce->operand = done_.at(reduce->operand);
    } else if (auto* select = std::get_if<SelectTerm>(&term)) {
      select->then = done_.at(select->then);
      select->otherwise = done_.at(select->otherwise);
    } else if (auto* compare = std::get_if<CompareTerm>(&term)) {
      for (TermId* id : {&compare->left, &compare->right, &compare->then, &compare->otherwise}) {
        *id = done_.at(*id);
      }
    }
    return to_.push(std::move(term));
  }

  const TermGraph& from_;
  TermGraph to_;
  std::unordered_map<TermId, TermId> done_;
};

}  // namespace

Program renumbered(const Program& program) {
  Program result = program;
  Renumbering numbers(program.terms);
  for (Definition& definition : result.definitions)
    definition.value = numbers.map(definition.value);
  for (Output& output : result.outputs) output.value = numbers.map(output.value);
  result.terms = numbers.take();
  return result;
}

MuGraph renumbered(const MuGraph& graph) {
  MuGraph result = graph;
  for (DeviceTensor& tensor : result.tensors) {  // text always names the dimensions
    TensorDecl& decl = tensor.decl;
    if (tensor.role != TensorRole::kIntermediate || !decl.dim_names.empty()) continue;
    for (const IndexExpr& dim : decl.dims) {
      AxisId axis = 0;
      decl.dim_names.push_back(dim.is_axis(&axis) ? graph.axes[axis].name : std::string());
    }
  }
  for (size_t k = 0; k < result.kernels.size(); ++k) {
    Renumbering numbers(graph.kernels[k].terms);
    for (Computation& c : result.kernels[k].computations) c.value = numbers.map(c.value);
    result.kernels[k].terms = numbers.take();
  }
  return result;
}

}  // namespace sundog
