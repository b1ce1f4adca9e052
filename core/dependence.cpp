#include "core/dependence.h"

namespace sundog {
namespace {

class Walk {
 public:
  explicit Walk(const Kernel& kernel) : kernel_(kernel), result_(kernel.computations.size()) {}

  std::vector<Dependence> run() {
    statements(kernel_.body, {});
    return std::move(result_);
  }

 private:
  AxisSet axes_touched(AxisSet factors) const {
    AxisSet axes;
    for (AxisId f : factors) axes.insert(kernel_.factors[f].axis);
    return axes;
  }

  void statements(const std::vector<Statement>& body, AxisSet trims) {
    for (const Statement& statement : body) {
      if (const auto* compute = std::get_if<Compute>(&statement.node)) {
        if (compute->computation < result_.size()) computation(compute->computation, trims);
      } else if (const auto* loop = std::get_if<Loop>(&statement.node)) {
        AxisSet inner = trims;
        for (const IndexCondition& condition : loop->trim) inner |= condition.expr.axis_set();
        statements(loop->body, inner);
      }
    }
  }

  void computation(uint32_t id, AxisSet trims) {
    const Computation& c = kernel_.computations[id];
    if (c.value >= kernel_.terms.size()) return;
    const auto* reduce = std::get_if<ReduceTerm>(&kernel_.terms[c.value]);
    const TermId operand = reduce == nullptr ? c.value : reduce->operand;
    AxisSet factors = trims, along;
    const TermId roots[] = {operand};
    for (TermId t : reachable(kernel_.terms, roots)) {
      const auto* local = std::get_if<LocalTerm>(&kernel_.terms[t]);
      if (local == nullptr) {
        if (operands(kernel_.terms[t]).empty() ||
            std::holds_alternative<SelectTerm>(kernel_.terms[t])) {
          AxisSet own = kernel_.terms.axes(t);
          if (const auto* select = std::get_if<SelectTerm>(&kernel_.terms[t])) {
            own = select->condition.expr.axis_set();
          }
          factors |= own;
          along |= axes_touched(own);
        }
      } else if (local->computation < result_.size()) {
        factors |= result_[local->computation].factors;
        along |= result_[local->computation].absent_along;
      }
    }
    if (c.rescale < result_.size()) factors |= result_[c.rescale].factors;
    Dependence& d = result_[id];
    d.absent_along = d.operand_absent_along = along;
    if (reduce != nullptr) {
      // A reduced factor that the operand lacks counts its present indices.
      d.operand_absent_along |= axes_touched(reduce->axes - factors);
      for (AxisId f : kernel_.grid) {
        if (d.operand_absent_along.has(kernel_.factors[f].axis)) factors.insert(f);
      }
      factors = factors - reduce->axes;
      d.absent_along = along - axes_touched(reduce->axes);
    }
    d.factors |= factors;
    if (c.accumulate_into < result_.size()) result_[c.accumulate_into].factors |= d.factors;
  }

  const Kernel& kernel_;
  std::vector<Dependence> result_;
};

}  // namespace

std::vector<Dependence> dependences(const Kernel& kernel) { return Walk(kernel).run(); }

bool is_ragged(const MuGraph& graph, const Kernel& kernel, AxisId axis) {
  int64_t reach = 1;
  bool any = false;
  for (AxisId f : factors_of(kernel, axis)) {
    reach *= kernel.factors[f].extent;
    any = true;
  }
  return any && reach > graph.axes[axis].extent;
}

}  // namespace sundog
