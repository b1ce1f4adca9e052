// Values of classes at small sizes.
//
// Every factor of an axis takes two values, so a class over n factors is 2^n words, and a sum over
// a factor is weighted: sum[a](x) = w_a * (x_0 + x_1) with w_a random.  Sums stay linear, exchange
// and multiply out as sums do, and size(a) = 2 * w_a is a symbol; at plain sums of two elements 2 +
// 2 = 2 * 2 would merge what is equal at that size only.  Select conditions are oracles of the
// condition and the index: at small sizes a window may be open everywhere, and must not be taken
// for no window.
#include <algorithm>
#include <array>

#include "core/check.h"
#include "core/op.h"
#include "search/bank.h"

namespace sundog::search {
namespace {

using Value = FieldImage::Value;

constexpr uint64_t kInputKey = 0x11, kSelectKey = 0x22, kIndexKey = 0x33;

// Bits of `assignment` at the members of `axes`, packed.
uint64_t pack(uint64_t assignment, AxisSet axes) {
  uint64_t out = 0;
  int at = 0;
  for (AxisId a : axes) out |= (assignment >> a & 1) << at++;
  return out;
}

uint64_t unpack(uint64_t packed, AxisSet axes) {
  uint64_t out = 0;
  for (AxisId a : axes) {
    out |= (packed & 1) << a;
    packed >>= 1;
  }
  return out;
}

}  // namespace

const Value& Bank::at(ClassId id, uint64_t assignment) const {
  const TermClass& c = classes_[id];
  return c.values[pack(assignment, c.axes)];
}

Value Bank::value_of(const Coefficient& c) {
  Value v = field_.constant(Number::ratio(c.numerator, c.denominator));
  if (c.exponent != 0) {
    const auto ten = Number::parse("1e" + std::to_string(c.exponent));
    SUNDOG_CHECK(ten.has_value());
    v = field_.mul(v, field_.constant(*ten));
  }
  for (const auto& [axis, power] : c.sizes) {
    Value size = field_.constant(Number(1));
    for (AxisId a : bases_[axis].all) {
      size = field_.mul(size, field_.add(weights_[a], weights_[a]));
    }
    for (int i = 0; i < std::abs(power); ++i) {
      v = power > 0 ? field_.mul(v, size) : field_.div(v, size);
    }
  }
  return v;
}

// An index as a key: literals and sizes are symbols, axes are numbers, so that reads of one element
// through different axes agree.
uint64_t Bank::index_key(const IndexExpr& e, uint64_t assignment) const {
  int64_t index = e.constant;
  for (const auto& item : e.axes) {
    const BaseAxis& base = bases_[item.axis];
    int64_t at = 0;
    for (AxisId a : {base.part, base.step, base.tile, base.whole}) {
      if (a != kNoAxis) at = 2 * at + static_cast<int64_t>(assignment >> a & 1);
    }
    index += item.coefficient * at;
  }
  uint64_t key = mix(kIndexKey, static_cast<uint64_t>(index));
  for (const auto& item : e.sizes) {
    key = mix(mix(key, item.axis), static_cast<uint64_t>(item.coefficient));
  }
  return key;
}

Value Bank::leaf_value(const Term& term, uint64_t assignment) {
  if (const auto* in = std::get_if<InputTerm>(&term)) {
    uint64_t key = mix(kInputKey, in->tensor);
    for (const IndexExpr& e : in->index) key = mix(key, index_key(e, assignment));
    return field_.random(key);
  }
  if (const auto* constant = std::get_if<ConstantTerm>(&term)) {
    return field_.constant(constant->value);
  }
  const auto* index = std::get_if<IndexTerm>(&term);
  SUNDOG_CHECK(index != nullptr);
  return field_.random(index_key(index->index, assignment));
}

Value Bank::opaque_value(const Opaque& o, const std::vector<Value>& in, uint64_t assignment) {
  if (const auto* t = std::get_if<ApplyTerm>(&o.term)) {
    return apply(field_, t->op, std::span<const Value>(in));
  }
  if (const auto* t = std::get_if<CompareTerm>(&o.term)) {
    return field_.choose(t->relation, in[0], in[1], in[2], in[3]);
  }
  const auto& t = std::get<SelectTerm>(o.term);
  uint64_t key = mix(kSelectKey, static_cast<uint64_t>(t.condition.relation));
  key = mix(key, index_key(t.condition.expr, assignment));
  return field_.random(mix(mix(key, in[0].p), in[1].p));
}

// One element; for products and maxima one summand or argument.
Value Bank::value_at(const View& view, uint64_t assignment) {
  switch (view.kind) {
    case ViewKind::kProduct: {
      Value v = at(view.factors[0], assignment);
      for (size_t i = 1; i < view.factors.size(); ++i) {
        v = field_.mul(v, at(view.factors[i], assignment));
      }
      return v;
    }
    case ViewKind::kLinear: {
      Value sum = field_.constant(Number(0));
      for (size_t i = 0; i < view.factors.size(); ++i) {
        sum = field_.add(
            sum, field_.mul(value_of(view.coefficients[i]), at(view.factors[i], assignment)));
      }
      return sum;
    }
    case ViewKind::kExp:
      return field_.exp(at(view.factors[0], assignment));
    case ViewKind::kReciprocal:
      return field_.div(field_.constant(Number(1)), at(view.factors[0], assignment));
    case ViewKind::kMax:
      return at(view.factors[0], assignment);
    case ViewKind::kOpaque: {
      std::vector<Value> in;
      for (ClassId f : view.factors) in.push_back(at(f, assignment));
      return opaque_value(opaques_[view.opaque], in, assignment);
    }
  }
  SUNDOG_CHECK(false);
}

std::vector<Value> Bank::values_of(const View& view, AxisSet axes) {
  std::vector<Value> out(size_t{1} << axes.size());
  Value scale = view.kind == ViewKind::kProduct ? value_of(view.coefficient) : Value{};
  for (AxisId a : view.reduced) {
    if (view.kind == ViewKind::kProduct) scale = field_.mul(scale, weights_[a]);
  }
  const uint64_t terms = uint64_t{1} << view.reduced.size();
  for (uint64_t i = 0; i < out.size(); ++i) {
    const uint64_t outer = unpack(i, axes);
    Value v = value_at(view, outer);
    for (uint64_t j = 1; j < terms; ++j) {
      const Value next = value_at(view, outer | unpack(j, view.reduced));
      v = view.kind == ViewKind::kMax ? field_.max(v, next) : field_.add(v, next);
    }
    out[i] = view.kind == ViewKind::kProduct ? field_.mul(scale, v) : v;
  }
  return out;
}

}  // namespace sundog::search
