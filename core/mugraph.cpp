#include "core/mugraph.h"

#include "core/check.h"

namespace sundog {
namespace {

void collect_loops(const std::vector<Statement>& body, std::vector<AxisId>& around,
                   std::vector<std::vector<AxisId>>& result) {
  for (const Statement& statement : body) {
    if (const auto* compute = std::get_if<Compute>(&statement.node)) {
      if (compute->computation < result.size()) result[compute->computation] = around;
    } else if (const auto* loop = std::get_if<Loop>(&statement.node)) {
      around.push_back(loop->factor);
      collect_loops(loop->body, around, result);
      around.pop_back();
    }
  }
}

void collect_stores(const std::vector<Statement>& body, std::vector<const Store*>& result) {
  for (const Statement& statement : body) {
    if (const auto* store = std::get_if<Store>(&statement.node)) result.push_back(store);
    if (const auto* loop = std::get_if<Loop>(&statement.node)) collect_stores(loop->body, result);
  }
}

}  // namespace

std::vector<int64_t> axis_extents(const MuGraph& graph) {
  std::vector<int64_t> result;
  for (const MuAxis& axis : graph.axes) result.push_back(axis.extent);
  return result;
}

std::vector<int64_t> factor_extents(const Kernel& kernel) {
  std::vector<int64_t> result;
  for (const Factor& factor : kernel.factors) result.push_back(factor.extent);
  return result;
}

std::vector<AxisId> factors_of(const Kernel& kernel, AxisId axis) {
  std::vector<AxisId> result;
  for (size_t f = 0; f < kernel.factors.size(); ++f) {
    if (kernel.factors[f].axis == axis) result.push_back(static_cast<AxisId>(f));
  }
  return result;
}

IndexExpr axis_index(const Kernel& kernel, AxisId axis) {
  IndexExpr result;
  for (AxisId f = 0; f < kernel.factors.size(); ++f) {
    const Factor& factor = kernel.factors[f];
    if (factor.axis == axis && factor.stride != 0) result.axes.push_back({f, factor.stride});
  }
  return result;
}

std::vector<AxisId> stored_factors(const MuGraph& graph, uint32_t kernel, AxisId axis) {
  if (graph.axes[axis].kernel == kernel) return {graph.axes[axis].factor};
  return factors_of(graph.kernels[kernel], axis);
}

std::vector<IndexExpr> default_index(const Kernel& kernel, const TensorDecl& tensor) {
  std::vector<IndexExpr> result;
  for (const IndexExpr& dim : tensor.dims) {
    IndexExpr e{dim.constant, {}, dim.sizes};
    for (const auto& item : dim.axes) e = e + axis_index(kernel, item.axis) * item.coefficient;
    result.push_back(std::move(e));
  }
  return result;
}

std::vector<const Store*> stores_of(const Kernel& kernel) {
  std::vector<const Store*> result;
  collect_stores(kernel.body, result);
  return result;
}

int64_t block_count(const Kernel& kernel) {
  int64_t count = 1;
  for (AxisId f : kernel.grid) count *= kernel.factors[f].extent;
  return count;
}

std::vector<std::vector<AxisId>> enclosing_loops(const Kernel& kernel) {
  std::vector<std::vector<AxisId>> result(kernel.computations.size());
  std::vector<AxisId> around;
  collect_loops(kernel.body, around, result);
  return result;
}

AxisSet accumulated_loops(const Kernel& kernel, uint32_t computation) {
  SUNDOG_CHECK(computation < kernel.computations.size());
  const TermId value = kernel.computations[computation].value;
  if (value >= kernel.terms.size()) return {};
  const auto* reduce = std::get_if<ReduceTerm>(&kernel.terms[value]);
  if (reduce == nullptr) return {};
  AxisSet result;
  const std::vector<AxisId> loops = enclosing_loops(kernel)[computation];
  for (AxisId f : loops) {
    if (reduce->axes.has(f)) result.insert(f);
  }
  return result;
}

}  // namespace sundog
