#include "core/check_kernel.h"

#include <algorithm>
#include <set>
#include <string>

#include "core/check_statements.h"
#include "core/library_gemm.h"

namespace sundog {
namespace {

std::string quoted(const std::string& name) { return "'" + name + "'"; }

// Factors and grid: the split of each axis is a mixed radix number that covers it.
Status check_factors(const MuGraph& graph, const Kernel& kernel) {
  const std::string where = "kernel " + quoted(kernel.name) + ": ";
  if (kernel.name.empty()) return bad_input("a kernel has no name");
  if (kernel.warps < 1 || kernel.warps > 32) {
    return bad_input(where + "a block has 1 to 32 warps, not " + std::to_string(kernel.warps));
  }
  if (kernel.factors.size() > static_cast<size_t>(kMaxAxes)) {
    return unsupported(where + "more than 64 factors");
  }
  std::set<std::string> names;
  for (const Factor& factor : kernel.factors) {
    if (factor.axis >= graph.axes.size()) {
      return bad_input(where + "factor " + quoted(factor.name) + " is of an unknown axis");
    }
    if (!names.insert(factor.name).second) {
      return bad_input(where + "factor " + quoted(factor.name) + " is declared twice");
    }
    const int64_t least = graph.axes[factor.axis].extent == 0 ? 0 : 1;
    if (factor.extent < least) {
      return bad_input(where + "factor " + quoted(factor.name) + " has extent " +
                       std::to_string(factor.extent));
    }
  }
  for (AxisId axis = 0; axis < graph.axes.size(); ++axis) {
    const std::vector<AxisId> factors = factors_of(kernel, axis);
    int64_t reach = 1;
    for (size_t i = factors.size(); i-- > 0;) {
      const Factor& factor = kernel.factors[factors[i]];
      if (factor.stride != reach) {
        return bad_input(where + "factor " + quoted(factor.name) + " has stride " +
                         std::to_string(factor.stride) + ", but the factors inside it make " +
                         std::to_string(reach));
      }
      if (__builtin_mul_overflow(reach, factor.extent, &reach)) {
        return bad_input(where + "the factors of axis " + quoted(graph.axes[axis].name) +
                         " are too large");
      }
    }
    if (!factors.empty() && reach < graph.axes[axis].extent) {
      return bad_input(where + "the factors of axis " + quoted(graph.axes[axis].name) + " cover " +
                       std::to_string(reach) + " of its " +
                       std::to_string(graph.axes[axis].extent) + " indices");
    }
  }
  AxisSet grid;
  for (AxisId f : kernel.grid) {
    if (f >= kernel.factors.size()) return bad_input(where + "the grid has an unknown factor");
    if (grid.has(f)) {
      return bad_input(where + "factor " + quoted(kernel.factors[f].name) +
                       " stands in the grid twice");
    }
    grid.insert(f);
  }
  return {};
}

// Terms by themselves: ids in range, arities, no nested reductions.
class TermRules {
 public:
  TermRules(const MuGraph& graph, const Kernel& kernel) : graph_(graph), kernel_(kernel) {}

  Status operator()(const InputTerm& t) const {
    if (t.tensor >= graph_.tensors.size()) return bad_input(where() + "an unknown tensor is read");
    const TensorDecl& decl = graph_.tensors[t.tensor].decl;
    if (t.index.size() != decl.extents.size()) {
      return bad_input(where() + "tensor " + quoted(decl.name) + " has " +
                       std::to_string(decl.extents.size()) + " dimensions and is read with " +
                       std::to_string(t.index.size()));
    }
    for (const IndexExpr& e : t.index) {
      if (!known(e))
        return bad_input(where() + "tensor " + quoted(decl.name) +
                         " is read at an unknown factor or axis");
    }
    return {};
  }
  Status operator()(const LocalTerm& t) const {
    if (t.computation >= kernel_.computations.size()) {
      return bad_input(where() + "an unknown computation is read");
    }
    return {};
  }
  Status operator()(const ConstantTerm&) const { return {}; }
  Status operator()(const SizeTerm& t) const {
    if (t.axis >= graph_.axes.size()) return bad_input(where() + "the size of an unknown axis");
    return {};
  }
  Status operator()(const IndexTerm& t) const {
    return known(t.index) ? Status()
                          : Status(bad_input(where() + "an index uses an unknown factor"));
  }
  Status operator()(const ApplyTerm& t) const {
    if (static_cast<int>(t.operands.size()) != arity(t.op)) {
      return bad_input(where() + "operator " + std::string(name(t.op)) + " has " +
                       std::to_string(t.operands.size()) + " operands instead of " +
                       std::to_string(arity(t.op)));
    }
    return no_reduction(t);
  }
  Status operator()(const ReduceTerm& t) const {
    if (t.axes.empty()) return bad_input(where() + "a reduction runs over no factor");
    for (AxisId f : t.axes) {
      if (f >= kernel_.factors.size()) {
        return bad_input(where() + "a reduction runs over an unknown factor");
      }
    }
    return no_reduction(t);
  }
  Status operator()(const SelectTerm& t) const {
    if (!known(t.condition.expr)) return bad_input(where() + "a select uses an unknown factor");
    return no_reduction(t);
  }
  Status operator()(const CompareTerm& t) const { return no_reduction(t); }

 private:
  std::string where() const { return "kernel " + quoted(kernel_.name) + ": "; }
  bool known(const IndexExpr& e) const {
    for (const auto& item : e.axes) {
      if (item.axis >= kernel_.factors.size()) return false;
    }
    for (const auto& item : e.sizes) {
      if (item.axis >= graph_.axes.size()) return false;
    }
    return true;
  }
  Status no_reduction(const Term& term) const {
    for (TermId operand : operands(term)) {
      if (std::holds_alternative<ReduceTerm>(kernel_.terms[operand])) {
        return bad_input(where() + "a reduction stands inside a term",
                         "give the reduction a computation of its own");
      }
    }
    return {};
  }
  const MuGraph& graph_;
  const Kernel& kernel_;
};

}  // namespace

Status check_kernel(const MuGraph& graph, uint32_t index) {
  const Kernel& kernel = graph.kernels[index];
  SUNDOG_RETURN_IF_ERROR(check_factors(graph, kernel));
  const TermRules rules(graph, kernel);
  for (TermId t = 0; t < kernel.terms.size(); ++t) {
    SUNDOG_RETURN_IF_ERROR(std::visit(rules, kernel.terms[t]));
  }
  std::set<std::string> names;
  for (const Computation& c : kernel.computations) {
    if (!names.insert(c.name).second) {
      return bad_input("kernel " + quoted(kernel.name) + ": two computations are called " +
                       quoted(c.name));
    }
    if (c.value >= kernel.terms.size()) {
      return bad_input("kernel " + quoted(kernel.name) + ": computation " + quoted(c.name) +
                       " has no value");
    }
  }
  SUNDOG_RETURN_IF_ERROR(check_statements(graph, kernel));
  if (kernel.kind == KernelKind::kGraphDefined) return {};
  const Result<LibraryGemm> gemm = library_gemm(graph, kernel);
  return gemm.ok() ? Status() : Status(gemm.error());
}

}  // namespace sundog
