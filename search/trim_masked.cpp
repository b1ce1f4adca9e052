// A causal mask is `select(k <= q, s, -inf)`: of a block of queries, the iterations beyond its last
// query change nothing.  Which ones is read off the condition, an affine expression over factors:
// at the tile index that makes it smallest it has to hold, or no element of the tile is kept.
// Whether skipping is right is read off the values: -inf is nothing to a maximum, exp(-inf - m) = 0
// is nothing to a sum, and a running maximum that does not move rescales nothing.  A window has two
// masks, one inside the other: an element is kept where both hold, so a tile changes something only
// where each holds somewhere in it.  What several reductions of a loop have in common is skipped.
#include "search/trim_masked.h"

#include <algorithm>
#include <map>
#include <optional>

namespace sundog::search {
namespace {

// What a term is in an iteration in which all elements are masked, by any one of these conditions.
enum class Kind : uint8_t { kMinusInfinity, kZero, kOther };
struct Masked {
  Kind kind = Kind::kOther;
  std::vector<IndexCondition> masks;
  bool always = false;  // a constant: whatever the conditions
};

Masked with_all_of(Kind kind, const Masked& a, const Masked& b) {
  Masked both{kind, a.masks, a.always || b.always};
  both.masks.insert(both.masks.end(), b.masks.begin(), b.masks.end());
  return both;
}

// Where either alone would not do.
Masked with_common(const Masked& a, const Masked& b) {
  if (a.kind != b.kind) return {};
  if (a.always) return b;
  if (b.always) return a;
  Masked common{a.kind, {}, false};
  for (const IndexCondition& mask : a.masks) {
    if (std::find(b.masks.begin(), b.masks.end(), mask) != b.masks.end()) {
      common.masks.push_back(mask);
    }
  }
  return common;
}

class MaskFinder {
 public:
  explicit MaskFinder(const Kernel& kernel) : kernel_(kernel) {}

  // Those that all accumulators of the loop have in common.
  std::vector<IndexCondition> of(const Loop& loop) {
    values_.clear();
    std::optional<Masked> common;  // of the loop's accumulators
    for (const Statement& s : loop.body) {
      const auto* compute = std::get_if<Compute>(&s.node);
      if (compute == nullptr) return {};
      const Computation& c = kernel_.computations[compute->computation];
      const auto* reduce = std::get_if<ReduceTerm>(&kernel_.terms[c.value]);
      const Masked m = masked(reduce == nullptr ? c.value : reduce->operand);
      const bool accumulates = reduce != nullptr && reduce->axes.has(loop.factor);
      // Inside its loop an accumulator has the value of the iterations so far.
      values_[compute->computation] = accumulates ? Masked() : m;
      if (!accumulates) continue;
      const Kind needed = reduce->kind == ReduceKind::kMax ? Kind::kMinusInfinity : Kind::kZero;
      if (m.kind != needed) return {};
      Masked same = m;
      if (common) same.kind = common->kind;
      common = common ? with_common(*common, same) : m;
    }
    if (!common) return {};
    std::vector<IndexCondition> masks;
    for (const IndexCondition& mask : common->masks) {
      const bool bounds = mask.relation == Relation::kLess || mask.relation == Relation::kLessEqual;
      if (!bounds || !mask.expr.axis_set().has(loop.factor)) continue;
      if (std::find(masks.begin(), masks.end(), mask) == masks.end()) masks.push_back(mask);
    }
    return masks;
  }

 private:
  Masked masked(TermId term) {
    const Term& t = kernel_.terms[term];
    if (const auto* local = std::get_if<LocalTerm>(&t)) {
      const auto it = values_.find(local->computation);
      return it == values_.end() ? Masked() : it->second;
    }
    if (const auto* constant = std::get_if<ConstantTerm>(&t)) return of(constant->value);
    if (const auto* select = std::get_if<SelectTerm>(&t)) {
      const Masked otherwise = masked(select->otherwise);
      if (otherwise.kind == Kind::kOther || !otherwise.always) return {};
      const Masked then = masked(select->then);
      Masked result{otherwise.kind, {select->condition}, false};
      return then.kind == result.kind ? with_all_of(result.kind, result, then) : result;
    }
    if (const auto* compare = std::get_if<CompareTerm>(&t)) {
      return with_common(masked(compare->then), masked(compare->otherwise));
    }
    if (const auto* apply = std::get_if<ApplyTerm>(&t)) return of(*apply);
    return {};
  }

  static Masked of(const Number& n) {
    if (n.is_infinite() && n.is_negative()) return {Kind::kMinusInfinity, {}, true};
    return n == Number(0) ? Masked{Kind::kZero, {}, true} : Masked();
  }

  Masked of(const ApplyTerm& apply) {
    std::vector<Masked> in;
    for (TermId o : apply.operands) in.push_back(masked(o));
    if (std::holds_alternative<op::Exp>(apply.op)) {
      if (in[0].kind != Kind::kMinusInfinity) return {};
      return {Kind::kZero, in[0].masks, in[0].always};
    }
    if (std::holds_alternative<op::Mul>(apply.op)) {
      const bool left = in[0].kind == Kind::kZero, right = in[1].kind == Kind::kZero;
      if (left && right) return with_all_of(Kind::kZero, in[0], in[1]);
      return left ? in[0] : right ? in[1] : Masked();
    }
    if (std::holds_alternative<op::Sub>(apply.op)) {
      // From -inf a maximum is taken, which the code around it keeps from being -inf itself.
      return in[0].kind == Kind::kMinusInfinity ? in[0] : Masked();
    }
    return {};
  }

  const Kernel& kernel_;
  std::map<uint32_t, Masked> values_;
};

// The condition at the tile index at which it holds soonest.
IndexCondition easiest(const Kernel& kernel, const IndexCondition& mask, AxisSet bound) {
  IndexCondition out{{mask.expr.constant, {}, mask.expr.sizes}, mask.relation};
  for (const auto& item : mask.expr.axes) {
    if (bound.has(item.axis)) {
      out.expr.axes.push_back(item);
    } else if (item.coefficient < 0) {
      out.expr.constant += item.coefficient * (kernel.factors[item.axis].extent - 1);
    }
  }
  return out;
}

void trim(Kernel& kernel, std::vector<Statement>& body, AxisSet around) {
  for (Statement& s : body) {
    auto* loop = std::get_if<Loop>(&s.node);
    if (loop == nullptr) continue;
    AxisSet bound = around;
    bound.insert(loop->factor);
    trim(kernel, loop->body, bound);
    for (const IndexCondition& mask : MaskFinder(kernel).of(*loop)) {
      IndexCondition condition = easiest(kernel, mask, bound);
      const auto known = std::find(loop->trim.begin(), loop->trim.end(), condition);
      if (known == loop->trim.end()) loop->trim.push_back(std::move(condition));
    }
  }
}

}  // namespace

std::vector<IndexCondition> masks_of(const Kernel& kernel, const Loop& loop) {
  return MaskFinder(kernel).of(loop);
}

void trim_masked(Kernel& kernel) { trim(kernel, kernel.body, AxisSet::of(kernel.grid)); }

}  // namespace sundog::search
