// Division, exp, log, sqrt and signs of canonical forms.
//
// A divisor of one term is inverted factor by factor.  One of several terms becomes an atom, after
// division by a unit `c * atoms * exp(e)`: the atoms that all its terms share, and one of its own
// terms' c and exp(e), chosen by the structure of what remains.  A divisor that is multiplied by
// any unit leaves the same remainders, so softmax with and without its maximum have one
// denominator.
#include <algorithm>

#include "core/check.h"
#include "core/field.h"
#include "verify/canonical_form.h"

namespace sundog::verify {

// The powers of atoms that all terms share.
Monomial Forms::content(const Form& a) const {
  Monomial common{Rational::of(1), a.terms[0].powers, 0};
  for (const Monomial& m : a.terms) {
    std::vector<std::pair<AtomId, int>> kept;
    std::vector<AtomId> all;
    for (const auto& [atom, power] : common.powers) all.push_back(atom);
    for (const auto& [atom, power] : m.powers) all.push_back(atom);
    std::sort(all.begin(), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
    const auto power_in = [](const auto& powers, AtomId atom) {
      for (const auto& [id, power] : powers) {
        if (id == atom) return power;
      }
      return 0;
    };
    for (const AtomId atom : all) {
      const AtomKind kind = atoms_[atom].kind;
      if (kind == AtomKind::kCondition || kind == AtomKind::kCompare) continue;
      const int least = std::min(power_in(common.powers, atom), power_in(m.powers, atom));
      if (least != 0) kept.emplace_back(atom, least);
    }
    common.powers = std::move(kept);
  }
  return common;
}

Monomial Forms::reciprocal(const Monomial& m) {
  Monomial result;
  const auto inverted = divide(Rational::of(1), m.coefficient);
  if (!inverted) fail("a coefficient does not fit 128 bits");
  result.coefficient = inverted.value_or(Rational());
  result.powers = m.powers;
  for (auto& [atom, power] : result.powers) {
    const AtomKind kind = atoms_[atom].kind;
    if (kind == AtomKind::kCondition || kind == AtomKind::kCompare) {
      fail("a division by a condition");
    }
    power = -power;
  }
  result.exponent = scale(m.exponent, Rational::of(-1));
  return result;
}

FormId Forms::divided_by_unit(FormId a, const Monomial& unit) {
  return multiply(a, normal(reciprocal(unit)));
}

// a = unit * result, the result the same for all multiples of `a` by a unit.
FormId Forms::normalised_divisor(FormId a, Monomial* unit) {
  constexpr size_t kMostTried = 64;
  const Form& form = forms_[a];
  const Monomial shared = content(form);
  if (form.terms.size() > kMostTried) fail("a denominator of more than 64 terms");
  FormId best = 0;
  for (const Monomial& m : form.terms) {
    if (failure_) return 0;
    const Monomial candidate{m.coefficient, shared.powers, m.exponent};
    const FormId rest = divided_by_unit(a, candidate);
    if (best != 0 && forms_[best].hash <= forms_[rest].hash) continue;
    best = rest;
    *unit = candidate;
  }
  return best;
}

FormId Forms::inverse(FormId a) {
  if (over_limit()) return 0;
  const Form& form = forms_[a];
  if (form.terms.empty()) {
    fail("a division by zero");
    return 0;
  }
  if (form.terms.size() == 1) return normal(reciprocal(form.terms[0]));
  Monomial unit;
  const FormId rest = normalised_divisor(a, &unit);
  if (failure_) return 0;
  if (forms_[rest].terms.size() < 2) return multiply(normal(reciprocal(unit)), inverse(rest));
  const AtomId atom = intern_atom(AtomKind::kFraction, {rest});
  return multiply(normal(reciprocal(unit)), of_monomial({Rational::of(1), {{atom, -1}}, 0}));
}

FormId Forms::exp(FormId a) { return a == 0 ? one_ : normal({Rational::of(1), {}, a}); }

// log(c * exp(e)) = log c + e.
FormId Forms::log(FormId a) {
  const Form& form = forms_[a];
  if (form.terms.size() != 1) return of_atom(intern_atom(AtomKind::kLog, {a}));
  Monomial rest = form.terms[0];
  const FormId exponent = rest.exponent;
  rest.exponent = 0;
  if (rest.coefficient.is_one() && rest.powers.empty()) return exponent;
  return add(exponent, of_atom(intern_atom(AtomKind::kLog, {of_monomial(std::move(rest))})));
}

// sqrt(v * n^k * exp(e)) = sqrt(v) * sqrt(n)^k * exp(e / 2) for sizes n, which are positive.
FormId Forms::sqrt(FormId a) {
  if (over_limit()) return 0;
  const Form& form = forms_[a];
  if (form.terms.empty()) return 0;
  Monomial unit{Rational::of(1), {}, 0}, outside{Rational::of(1), {}, 0};
  FormId sizes = one_;
  for (const auto& [atom, power] : content(form).powers) {
    if (atoms_[atom].kind != AtomKind::kSize) continue;
    if (form.terms.size() == 1 && form.terms[0].powers.size() == 1 && power == 1) continue;
    unit.powers.emplace_back(atom, power);
    const AtomId square_root = intern_atom(AtomKind::kSqrt, {of_atom(atom)});
    sizes = multiply(sizes, of_atom(square_root, power));
  }
  if (form.terms.size() == 1) {
    unit.exponent = form.terms[0].exponent;
    outside.exponent = scale(unit.exponent, Rational{1, 2});
    if (const auto exact = root(form.terms[0].coefficient)) {
      unit.coefficient = form.terms[0].coefficient;
      outside.coefficient = *exact;
    }
  }
  const FormId rest = divided_by_unit(a, unit);
  const FormId factor = multiply(sizes, of_monomial(std::move(outside)));
  if (rest == one_) return factor;
  return multiply(factor, of_atom(intern_atom(AtomKind::kSqrt, {rest})));
}

// --- conditions on indices

// Whether a condition holds (true) or fails where another holds, as the same or the opposite one;
// nothing if it is neither.
std::optional<bool> Forms::known_where(AtomId condition, AtomId holds) const {
  if (condition == holds) return true;
  constexpr auto kAtMost = static_cast<uint32_t>(IndexRelation::kNotPositive);
  const std::vector<uint32_t>&a = atoms_[condition].data, &b = atoms_[holds].data;
  if (a[0] != kAtMost || b[0] != kAtMost) return {};
  // i <= 0 is not 1 - i <= 0.
  const Indices::Index &i = indices[a[1]], &j = indices[b[1]];
  if (i.constant + j.constant != 1) return {};
  const bool opposite = std::equal(
      i.items.begin(), i.items.end(), j.items.begin(), j.items.end(),
      [](const auto& x, const auto& y) { return x.first == y.first && x.second == -y.second; });
  if (opposite) return false;
  return {};
}

// Whether the conditions among the factors of m decide one of `of`.
std::optional<bool> Forms::decides(const Monomial& m, AtomId of) const {
  if (atoms_[of].kind != AtomKind::kCondition) return {};
  for (const auto& [atom, power] : m.powers) {
    if (atoms_[atom].kind != AtomKind::kCondition) continue;
    if (const std::optional<bool> known = known_where(of, atom)) return known;
  }
  return {};
}

// The form where the conditions among the factors of m hold: c * f(c) = c * f(1).
FormId Forms::where(const Monomial& m, FormId a) {
  std::vector<Monomial> kept;
  bool changed = false;
  for (Monomial e : forms_[a].terms) {
    bool vanishes = false;
    const size_t before = e.powers.size();
    std::erase_if(e.powers, [&](const auto& item) {
      const std::optional<bool> known = decides(m, item.first);
      vanishes = vanishes || known == false;
      return known.has_value();
    });
    changed = changed || e.powers.size() != before;
    if (!vanishes) kept.push_back(std::move(e));
  }
  if (!changed) return a;
  FormId result = 0;
  for (Monomial& e : kept) result = add(result, of_monomial(std::move(e)));
  return result;
}

// --- functions without laws

FormId Forms::call(uint32_t function, FormId a) {
  return of_atom(intern_atom(AtomKind::kCall, {function, a}));
}

// What was rounded at least as coarsely is left as it is.
FormId Forms::cast(DType to, FormId a) {
  if (const std::optional<AtomId> atom = as_atom(a);
      atom && atoms_[*atom].kind == AtomKind::kCast) {
    if (is_widening(static_cast<DType>(atoms_[*atom].data[0]), to)) return a;
  }
  return of_atom(intern_atom(AtomKind::kCast, {static_cast<uint32_t>(to), a}));
}

FormId Forms::compare(Relation relation, FormId left, FormId right) {
  const FormId difference = subtract(left, right);
  const auto atom = [&](Relation r, FormId d) {
    return of_atom(intern_atom(AtomKind::kCompare, {static_cast<uint32_t>(r), d}));
  };
  switch (relation) {
    case Relation::kLess:
      return atom(relation, difference);
    case Relation::kLessEqual:  // l <= r is not r < l
      return subtract(one_, atom(Relation::kLess, subtract(right, left)));
    case Relation::kEqual:
    case Relation::kNotEqual: {
      const FormId opposite = subtract(right, left);
      const bool turn = forms_[opposite].hash < forms_[difference].hash;
      const FormId equal = atom(Relation::kEqual, turn ? opposite : difference);
      return relation == Relation::kEqual ? equal : subtract(one_, equal);
    }
  }
  SUNDOG_CHECK(false);
}

// --- signs: what holds for all values of inputs and indices, where the form is defined

Sign Forms::sign_of_atom(AtomId id) const {
  const Atom& a = atoms_[id];
  switch (a.kind) {
    case AtomKind::kRead: {
      const auto known = read_signs_.find(a.data[0]);
      return known == read_signs_.end() ? Sign::kUnknown : known->second;
    }
    case AtomKind::kSize:
      return Sign::kPositive;
    case AtomKind::kSum:  // over at least one value of each binder
    case AtomKind::kFraction:
      return sign(a.data[0]);
    case AtomKind::kSqrt:
      return sign(a.data[0]) == Sign::kPositive ? Sign::kPositive : Sign::kNotNegative;
    case AtomKind::kIndex:  // positions and variables
    case AtomKind::kCompare:
    case AtomKind::kCondition:
      return Sign::kNotNegative;
    case AtomKind::kMax: {
      Sign result = Sign::kPositive;
      for (const ElementId e : a.data) {
        if (elements_[e].guard != one_) return Sign::kUnknown;
        result = std::min(result, sign(elements_[e].body));
      }
      return result;
    }
    case AtomKind::kLog:
    case AtomKind::kCall:
    case AtomKind::kCast:
    case AtomKind::kRunning:
      return Sign::kUnknown;
  }
  SUNDOG_CHECK(false);
}

Sign Forms::sign_of_monomial(const Monomial& m) const {
  if (m.coefficient.sign() <= 0) return Sign::kUnknown;
  Sign result = Sign::kPositive;
  for (const auto& [atom, power] : m.powers) {
    Sign own = sign_of_atom(atom);
    if (own == Sign::kUnknown && power % 2 == 0) own = Sign::kNotNegative;
    // What is divided by is not zero.
    if (own == Sign::kNotNegative && power < 0) own = Sign::kPositive;
    result = std::min(result, own);
  }
  return result;
}

Sign Forms::sign(FormId a) const {
  const Form& form = forms_[a];
  if (form.terms.empty()) return Sign::kNotNegative;
  bool positive = false;
  for (const Monomial& m : form.terms) {
    const Sign own = sign_of_monomial(m);
    if (own == Sign::kUnknown) return own;
    positive |= own == Sign::kPositive;
  }
  return positive ? Sign::kPositive : Sign::kNotNegative;
}

std::optional<IndexAtomId> Forms::inside_of(AtomId condition) {
  const Atom& atom = atoms_[condition];
  if (atom.data[0] != static_cast<uint32_t>(IndexRelation::kNotPositive)) return {};
  const IndexId e = atom.data[1];
  for (const auto& [a, coefficient] : std::vector<Indices::Item>(indices[e].items)) {
    if (indices.atom(a).kind != IndexAtom::kPosition || coefficient != 1) continue;
    if (indices.beyond(indices.of_atom(a), indices.axis_of(indices.atom(a).what)) == e) return a;
  }
  return {};
}

// Whether the condition holds where all bound variables are 0: of a position whose last parts are
// bound it says then that the tile of the first parts has an element.
bool Forms::holds_at_zero(AtomId condition, const std::vector<VarId>& binders,
                          const HasElements& tiles) {
  const std::optional<IndexAtomId> position = inside_of(condition);
  if (!position) {  // `k <= q + 240` at the first k of a tile
    IndexMap first;
    for (const VarId v : binders) {
      first.emplace(indices.atom(IndexAtom::kVariable, v), indices.constant(0));
    }
    std::vector<VarId> touched = binders;
    std::sort(touched.begin(), touched.end());
    const std::vector<uint32_t> data = atoms_[condition].data;
    return tiles.always(static_cast<IndexRelation>(data[0]),
                        substitute_index(data[1], first, touched));
  }
  const IndexAtom atom = indices.atom(*position);
  size_t free = 0;
  for (size_t i = 0; i < atom.parts.size(); ++i) {
    const std::optional<VarId> v = indices.as_variable(atom.parts[i]);
    if (!v || indices.domain_of(*v) != indices.factors_of(atom.what)[i]) return false;
    const bool bound = std::find(binders.begin(), binders.end(), *v) != binders.end();
    if (!bound && free < i) return false;
    free += bound ? 0 : 1;
  }
  if (free == atom.parts.size()) return false;
  return free == 0 || tiles.tile(atom.what, free);
}

bool Forms::is_positive(const Monomial& m, const std::vector<VarId>& binders,
                        const HasElements& tiles) {
  if (m.coefficient.sign() <= 0) return false;
  return std::all_of(m.powers.begin(), m.powers.end(), [&](const auto& item) {
    const auto [id, power] = item;
    const Sign own = sign_of_atom(id);
    if (own == Sign::kPositive || (own == Sign::kNotNegative && power < 0)) return true;
    const Atom& atom = atoms_[id];
    if (atom.kind == AtomKind::kCondition) return holds_at_zero(id, binders, tiles);
    if (atom.kind != AtomKind::kSum) return false;
    const std::vector<VarId> inner(atom.data.begin() + 1, atom.data.end());
    const Form& body = forms_[atom.data[0]];
    return body.terms.size() == 1 && is_positive(body.terms[0], inner, tiles);
  });
}

bool Forms::is_positive(FormId a, const HasElements& tiles) {
  const std::vector<Monomial> terms = forms_[a].terms;
  return !terms.empty() && std::all_of(terms.begin(), terms.end(), [&](const Monomial& m) {
    return is_positive(m, {}, tiles);
  });
}

bool Forms::is_finite(AtomId maximum, const HasElements& tiles) {
  const Atom& atom = atoms_[maximum];
  if (atom.kind != AtomKind::kMax) return false;
  return std::any_of(atom.data.begin(), atom.data.end(), [&](ElementId id) {
    const Element& e = elements_[id];
    const std::optional<std::vector<AtomId>> guard = as_conditions(e.guard);
    return guard && std::all_of(guard->begin(), guard->end(),
                                [&](AtomId c) { return holds_at_zero(c, e.binders, tiles); });
  });
}

// The form times `power` of a denominator, which is enough for all its terms.
FormId Forms::without_divisor(FormId a, AtomId divisor, int power) {
  FormId result = 0;
  for (const Monomial& m : forms_[a].terms) {
    Monomial rest = m;
    int left = power;
    for (const auto& [atom, own] : m.powers) {
      if (atom == divisor) left += own;
    }
    std::erase_if(rest.powers, [&](const auto& item) { return item.first == divisor; });
    const FormId expanded = this->power(atoms_[divisor].data[0], left);
    result = add(result, multiply(of_monomial(std::move(rest)), expanded));
  }
  return result;
}

bool Forms::equal(FormId a, FormId b) {
  FormId difference = subtract(a, b);
  if (difference != 0) difference = oriented(difference);
  constexpr int kMostRounds = 32;
  for (int round = 0; round < kMostRounds && difference != 0 && !over_limit(); ++round) {
    std::optional<std::pair<AtomId, int>> divisor;
    for (const Monomial& m : forms_[difference].terms) {
      for (const auto& [atom, power] : m.powers) {
        if (power >= 0 || atoms_[atom].kind != AtomKind::kFraction) continue;
        if (!divisor || atom < divisor->first) divisor = {atom, power};
        if (atom == divisor->first) divisor->second = std::min(divisor->second, power);
      }
    }
    if (!divisor) break;
    difference = without_divisor(difference, divisor->first, -divisor->second);
  }
  return difference == 0 && !failure_ && !indices.overflow();
}

}  // namespace sundog::verify
