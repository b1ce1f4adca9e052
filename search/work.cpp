// Counting is an algebra: the catalog writes each operator's body once and this one adds up what
// the primitives cost.  The weights are instruction counts of the code that generated kernels use
// (division is a reciprocal and a product, by a constant a product alone; exp a product and an
// ex2), not cycles.
#include "search/work.h"

#include <algorithm>
#include <array>
#include <set>
#include <type_traits>

#include "core/op.h"

namespace sundog::search {
namespace {

constexpr double kShared = 0.125;  // of a vector of 16-bit elements

struct WorkAlgebra {
  struct Value {};
  Work total;

  Value spend(double alu, double sfu) {
    total += {alu, sfu};
    return {};
  }
  Value constant(const Number&) { return {}; }
  Value add(Value, Value) { return spend(1, 0); }
  Value mul(Value, Value) { return spend(1, 0); }
  Value div(Value, Value) { return spend(1, 1); }
  Value exp(Value) { return spend(1, 1); }
  Value log(Value) { return spend(1, 1); }
  Value sqrt(Value) { return spend(0, 1); }
  Value max(Value, Value) { return spend(1, 0); }
  Value cast(DType, Value) { return spend(0.5, 0); }
  Value call(const Fn& fn, Value) { return spend(0, fn.flops); }
  Value choose(Relation, Value, Value, Value, Value) { return spend(2, 0); }
  Value neg(Value) { return {}; }  // folded into the consumer
  Value sub(Value, Value) { return spend(1, 0); }
};

}  // namespace

Work work_of(const Op& op) {
  WorkAlgebra algebra;
  std::array<WorkAlgebra::Value, 4> in{};
  apply(algebra, op,
        std::span<const WorkAlgebra::Value>(in.data(), static_cast<size_t>(arity(op))));
  return algebra.total;
}

namespace {

// Known when the kernel is compiled.
bool is_constant(const TermGraph& graph, TermId term) {
  const Term& t = graph[term];
  if (std::holds_alternative<ConstantTerm>(t) || std::holds_alternative<SizeTerm>(t)) return true;
  const auto* apply = std::get_if<ApplyTerm>(&t);
  return apply != nullptr && std::all_of(apply->operands.begin(), apply->operands.end(),
                                         [&](TermId o) { return is_constant(graph, o); });
}

Work work_of_apply(const TermGraph& graph, const ApplyTerm& apply) {
  const bool divides = std::holds_alternative<op::Div>(apply.op);
  if (divides && is_constant(graph, apply.operands[1])) return {1, 0};
  return work_of(apply.op);
}

// Products and differences that cost nothing where they stand: the exponent of exp(x * c - y) is
// one fused multiplication, and a scale of all arguments of a maximum is taken out of it.
std::set<TermId> folded_steps(const TermGraph& graph, const std::vector<TermId>& terms,
                              AxisSet own) {
  std::set<TermId> folded;
  const auto operands_of = [&](TermId id, auto op) -> const std::vector<TermId>* {
    const auto* apply = std::get_if<ApplyTerm>(&graph[id]);
    const bool is = apply != nullptr && std::holds_alternative<decltype(op)>(apply->op);
    return is ? &apply->operands : nullptr;
  };
  const auto fold_scale = [&](TermId id) {
    const auto* select = std::get_if<SelectTerm>(&graph[id]);
    const TermId product = select == nullptr ? id : select->then;
    const std::vector<TermId>* factors = operands_of(product, op::Mul{});
    if (factors == nullptr) return;
    if (graph.axes((*factors)[0]).empty() || graph.axes((*factors)[1]).empty()) {
      folded.insert(product);
    }
  };
  for (TermId id : terms) {
    const auto* reduce = std::get_if<ReduceTerm>(&graph[id]);
    if (reduce != nullptr && reduce->kind == ReduceKind::kMax) fold_scale(reduce->operand);
    const std::vector<TermId>* exponent = operands_of(id, op::Exp{});
    if (exponent == nullptr) continue;
    const std::vector<TermId>* difference = operands_of((*exponent)[0], op::Sub{});
    if (difference == nullptr || graph.axes((*difference)[1]).contains(own)) continue;
    folded.insert((*exponent)[0]);
    fold_scale((*difference)[0]);
  }
  return folded;
}

}  // namespace

Work work_of(const TermGraph& graph, TermId term, AxisSet own) {
  Work total;
  const TermId roots[] = {term};
  const std::vector<TermId> terms = reachable(graph, roots);
  const std::set<TermId> folded = folded_steps(graph, terms, own);
  for (TermId id : terms) {
    if (folded.contains(id)) continue;
    Work work;
    std::visit(
        [&]<class T>(const T& t) {
          if constexpr (std::is_same_v<T, ApplyTerm>) {
            work = work_of_apply(graph, t);
          } else if constexpr (std::is_same_v<T, ReduceTerm>) {
            work = {1, 0};
          } else if constexpr (std::is_same_v<T, SelectTerm> || std::is_same_v<T, CompareTerm>) {
            work = {2, 0};
          }
        },
        graph[id]);
    const bool shared =
        !std::holds_alternative<ReduceTerm>(graph[id]) && !graph.axes(id).contains(own);
    total += shared ? Work{work.alu * kShared, work.sfu * kShared} : work;
  }
  return total;
}

}  // namespace sundog::search
