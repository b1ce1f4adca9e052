// A causal mask is `select(k <= q, s, -inf)`: of a block of queries, the iterations beyond its last
// query change nothing.  Which ones is read off the condition, an affine expression over factors:
// at the tile index that makes it smallest it has to hold, or no element of the tile is kept.
// Whether skipping is right is read off the values: -inf is nothing to a maximum, exp(-inf - m) = 0
// is nothing to a sum, and a running maximum that does not move rescales nothing.
#include "search/trim_masked.h"

#include <algorithm>
#include <map>
#include <optional>

namespace sundog::search {
namespace {

// What a term is in an iteration in which all elements are masked.
enum class Masked : uint8_t { kMinusInfinity, kZero, kOther };

class Trimmer {
 public:
  explicit Trimmer(Kernel& kernel) : kernel_(kernel) {}

  void run() { walk(kernel_.body); }

 private:
  void walk(std::vector<Statement>& body) {
    for (Statement& s : body) {
      auto* loop = std::get_if<Loop>(&s.node);
      if (loop == nullptr) continue;
      around_.insert(loop->factor);
      walk(loop->body);
      trim(*loop);
      around_.erase(loop->factor);
    }
  }

  void trim(Loop& loop) {
    values_.clear();
    mask_.reset();
    several_masks_ = false;
    bool accumulates = false;
    for (const Statement& s : loop.body) {
      const auto* compute = std::get_if<Compute>(&s.node);
      if (compute == nullptr) return;
      const Computation& c = kernel_.computations[compute->computation];
      const auto* reduce = std::get_if<ReduceTerm>(&kernel_.terms[c.value]);
      const Masked m = masked(reduce == nullptr ? c.value : reduce->operand);
      values_[compute->computation] = m;
      if (reduce == nullptr || !reduce->axes.has(loop.factor)) continue;
      accumulates = true;
      const Masked needed =
          reduce->kind == ReduceKind::kMax ? Masked::kMinusInfinity : Masked::kZero;
      if (m != needed) return;
    }
    if (!accumulates || !mask_ || several_masks_) return;
    if (const auto condition = easiest(*mask_, loop.factor)) loop.trim.push_back(*condition);
  }

  Masked masked(TermId term) {
    const Term& t = kernel_.terms[term];
    if (const auto* local = std::get_if<LocalTerm>(&t)) {
      const auto it = values_.find(local->computation);
      return it == values_.end() ? Masked::kOther : it->second;
    }
    if (const auto* constant = std::get_if<ConstantTerm>(&t)) return of(constant->value);
    if (const auto* select = std::get_if<SelectTerm>(&t)) {
      if (masked(select->otherwise) != Masked::kMinusInfinity) return Masked::kOther;
      several_masks_ = several_masks_ || (mask_ && !(*mask_ == select->condition));
      mask_ = select->condition;
      return Masked::kMinusInfinity;
    }
    if (const auto* compare = std::get_if<CompareTerm>(&t)) {
      const Masked then = masked(compare->then), otherwise = masked(compare->otherwise);
      return then == otherwise ? then : Masked::kOther;
    }
    if (const auto* apply = std::get_if<ApplyTerm>(&t)) return of(*apply);
    return Masked::kOther;
  }

  static Masked of(const Number& n) {
    if (n.is_infinite() && n.is_negative()) return Masked::kMinusInfinity;
    return n == Number(0) ? Masked::kZero : Masked::kOther;
  }

  Masked of(const ApplyTerm& apply) {
    std::vector<Masked> in;
    for (TermId o : apply.operands) in.push_back(masked(o));
    if (std::holds_alternative<op::Exp>(apply.op)) {
      return in[0] == Masked::kMinusInfinity ? Masked::kZero : Masked::kOther;
    }
    if (std::holds_alternative<op::Mul>(apply.op)) {
      const bool zero = in[0] == Masked::kZero || in[1] == Masked::kZero;
      return zero ? Masked::kZero : Masked::kOther;
    }
    if (std::holds_alternative<op::Sub>(apply.op)) {
      // From -inf a maximum is taken, which the code around it keeps from being -inf itself.
      return in[0] == Masked::kMinusInfinity ? Masked::kMinusInfinity : Masked::kOther;
    }
    return Masked::kOther;
  }

  // The condition at the tile index at which it holds soonest; nothing if it does not vary with the
  // loop or is no inequality.
  std::optional<IndexCondition> easiest(const IndexCondition& mask, AxisId factor) const {
    if (mask.relation != Relation::kLess && mask.relation != Relation::kLessEqual) return {};
    if (!mask.expr.axis_set().has(factor)) return {};
    AxisSet bound = around_;
    for (AxisId f : kernel_.grid) bound.insert(f);
    IndexCondition out{{mask.expr.constant, {}, mask.expr.sizes}, mask.relation};
    for (const auto& item : mask.expr.axes) {
      if (bound.has(item.axis)) {
        out.expr.axes.push_back(item);
      } else if (item.coefficient < 0) {
        out.expr.constant += item.coefficient * (kernel_.factors[item.axis].extent - 1);
      }
    }
    return out;
  }

  Kernel& kernel_;
  AxisSet around_;
  std::map<uint32_t, Masked> values_;
  std::optional<IndexCondition> mask_;
  bool several_masks_ = false;
};

}  // namespace

void trim_masked(Kernel& kernel) { Trimmer(kernel).run(); }

}  // namespace sundog::search
