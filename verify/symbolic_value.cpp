// Rules of minus infinity: it is no argument of a maximum, exp of it is 0, and it survives addition
// and multiplication by what is positive.  Everything else is outside the rules and ends the proof
// as unknown, except that a maximum is taken to be finite where that is recorded as a need.
#include "verify/symbolic_value.h"

#include <algorithm>

namespace sundog::verify {

std::vector<Need> SymbolicAlgebra::take_needs() {
  std::vector<Need> result = std::exchange(needs_, {});
  const std::vector<Need> guarded = take_guarded();
  result.insert(result.end(), guarded.begin(), guarded.end());
  return result;
}

// A divisor is known up to a factor: which of its terms has the coefficient 1 depends on how the
// variables are called.  All coefficients whole, with none in common, is one of its names.
FormId SymbolicAlgebra::without_scale(FormId form) {
  std::optional<Rational> measure;
  for (const Monomial& m : forms_[form].terms) {
    measure = measure ? common_measure(*measure, m.coefficient)
                      : std::optional(Rational{m.coefficient.sign() < 0 ? -m.coefficient.numerator
                                                                        : m.coefficient.numerator,
                                               m.coefficient.denominator});
    if (!measure) return form;
  }
  if (!measure) return form;
  const std::optional<Rational> factor = divide(Rational::of(1), *measure);
  for (const Monomial& m : forms_[form].terms) {
    if (!factor || !multiply(m.coefficient, *factor)) return form;
  }
  return forms_.scale(form, *factor);
}

void SymbolicAlgebra::need(Need::Kind kind, FormId form) {
  ++needs_asked_;
  if (kind != Need::kFinite && kind != Need::kInside) form = without_scale(form);
  if (given_ != forms_.zero()) needs_.push_back({kind, form, given_});
}

void SymbolicAlgebra::need_again(const Need& earlier) {
  ++needs_asked_;
  const FormId both = forms_.multiply(earlier.given, given_);
  if (both != forms_.zero()) needs_.push_back({earlier.kind, earlier.form, both});
}

void SymbolicAlgebra::need_inside(IndexId at, DomainId d) {
  Indices& indices = forms_.indices;
  const IndexId before = indices.add(indices.constant(0), at, -1);
  const FormId inside =
      forms_.multiply(forms_.condition(IndexRelation::kNotPositive, indices.beyond(at, d)),
                      forms_.condition(IndexRelation::kNotPositive, before));
  if (inside != forms_.one()) need(Need::kInside, inside);
}

bool SymbolicAlgebra::may_be_infinite_atom(AtomId id) const {
  const Atom& a = forms_.atom(id);
  if (a.kind == AtomKind::kRunning) return infinite_tags_.contains(a.data[0]);
  if (a.kind != AtomKind::kMax) return false;
  return std::none_of(a.data.begin(), a.data.end(),
                      [&](ElementId e) { return forms_.element(e).guard == forms_.one(); });
}

bool SymbolicAlgebra::may_be_infinite(const Value& a) const {
  if (a.guard != forms_.one()) return true;
  const std::vector<Monomial>& terms = forms_[a.form].terms;
  return std::any_of(terms.begin(), terms.end(), [&](const Monomial& m) {
    return std::any_of(m.powers.begin(), m.powers.end(),
                       [&](const auto& power) { return may_be_infinite_atom(power.first); });
  });
}

void SymbolicAlgebra::need_finite(FormId form) {
  for (const Monomial& m : forms_[form].terms) {
    for (const auto& [atom, power] : m.powers) {
      if (may_be_infinite_atom(atom)) need(Need::kFinite, forms_.of_atom(atom));
    }
  }
}

void SymbolicAlgebra::need_divisor(FormId inverse) {
  for (const Monomial& m : forms_[inverse].terms) {
    for (const auto& [atom, power] : m.powers) {
      if (power >= 0 || forms_.sign_of_atom(atom) == Sign::kPositive) continue;
      const Atom& a = forms_.atom(atom);
      const bool inner = a.kind == AtomKind::kFraction || a.kind == AtomKind::kSqrt;
      need(Need::kNonZero, inner ? a.data[0] : forms_.of_atom(atom));
    }
  }
}

FormId SymbolicAlgebra::plain(const Value& a) {
  if (a.guard != forms_.one()) {
    forms_.fail("minus infinity where only finite values have a rule");
  }
  return a.form;
}

FormId SymbolicAlgebra::plain_finite(const Value& a) {
  need_finite(a.form);
  return plain(a);
}

Symbolic SymbolicAlgebra::constant(const Number& n) {
  if (!n.is_infinite()) return finite(forms_.constant(n));
  if (!n.is_negative()) forms_.fail("plus infinity has no rule");
  return minus_infinity();
}

Symbolic SymbolicAlgebra::add(const Value& a, const Value& b) {
  return {forms_.add(a.form, b.form), forms_.multiply(a.guard, b.guard)};
}

Symbolic SymbolicAlgebra::mul(const Value& a, const Value& b) {
  const bool a_scales = a.guard == forms_.one() && forms_.sign(a.form) == Sign::kPositive;
  const bool b_scales = b.guard == forms_.one() && forms_.sign(b.form) == Sign::kPositive;
  if (!a_scales) {
    need_finite(b.form);
    plain(b);
  }
  if (!b_scales) {
    need_finite(a.form);
    plain(a);
  }
  return {forms_.multiply(a.form, b.form), forms_.multiply(a.guard, b.guard)};
}

Symbolic SymbolicAlgebra::div(const Value& a, const Value& b) {
  const FormId inverse = forms_.inverse(plain_finite(b));
  need_divisor(inverse);
  return mul(a, finite(inverse));
}

Symbolic SymbolicAlgebra::exp(const Value& a) {
  return finite(forms_.multiply(a.guard, forms_.exp(a.form)));
}

Symbolic SymbolicAlgebra::log(const Value& a) {
  const FormId x = plain_finite(a);
  if (forms_.sign(x) != Sign::kPositive) need(Need::kPositive, x);
  return finite(forms_.log(x));
}

Symbolic SymbolicAlgebra::sqrt(const Value& a) {
  const FormId x = plain_finite(a);
  if (forms_.sign(x) == Sign::kUnknown) need(Need::kNotNegative, x);
  return finite(forms_.sqrt(x));
}

Symbolic SymbolicAlgebra::maximum(std::vector<Element> elements) {
  const std::optional<FormId> form = forms_.max(std::move(elements));
  return form ? finite(*form) : minus_infinity();
}

Symbolic SymbolicAlgebra::max(const Value& a, const Value& b) {
  if (a.guard == forms_.zero()) return b;
  if (b.guard == forms_.zero()) return a;
  return maximum({{{}, a.guard, a.form}, {{}, b.guard, b.form}});
}

Symbolic SymbolicAlgebra::cast(DType to, const Value& a) {
  if (!keeps_cast(rounding_, to)) return a;
  return finite(forms_.cast(to, plain_finite(a)));
}

Symbolic SymbolicAlgebra::call(const Fn& fn, const Value& a) {
  const std::string name(fn.name);
  auto at = std::find(functions_.begin(), functions_.end(), name);
  if (at == functions_.end()) at = functions_.insert(at, name);
  const auto id = static_cast<uint32_t>(at - functions_.begin());
  return finite(forms_.call(id, plain_finite(a)));
}

Symbolic SymbolicAlgebra::choose(Relation relation, const Value& l, const Value& r, const Value& t,
                                 const Value& e) {
  // What stands for a maximum where it is empty: the maximum, which has to be finite.
  const bool equality = relation == Relation::kEqual || relation == Relation::kNotEqual;
  if (equality && (l.guard == forms_.zero()) != (r.guard == forms_.zero())) {
    const auto needed = static_cast<ptrdiff_t>(needs_.size());
    plain_finite(l.guard == forms_.zero() ? r : l);
    for (auto n = needs_.begin() + needed; n != needs_.end(); ++n) {
      n->given = forms_.multiply(n->given, guarded_given_);
      if (n->given != forms_.zero()) guarded_.push_back(*n);
    }
    needs_.resize(static_cast<size_t>(needed));
    Value kept = relation == Relation::kEqual ? e : t;
    const FormId compared = l.guard == forms_.zero() ? r.form : l.form;
    kept.is_guarded =
        kept.form == compared && !may_be_infinite(relation == Relation::kEqual ? t : e);
    return kept;
  }
  const FormId taken = forms_.compare(relation, plain_finite(l), plain_finite(r));
  const auto mix = [&](FormId yes, FormId no) {
    return forms_.add(no, forms_.multiply(taken, forms_.subtract(yes, no)));
  };
  return {mix(t.form, e.form), mix(t.guard, e.guard)};
}

}  // namespace sundog::verify
