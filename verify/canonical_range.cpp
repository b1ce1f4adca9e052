// Sums and maxima over pieces of a range whose ends are numbers.
//
// A sum over two tensors joined, sum[k](select(k < 256, a[k], b[k - 256])), is two sums, one over
// each.  Where the size of k is a number, conditions on k alone are an interval of it.  With the
// formal antidifference of f,
//
//   Q(n) = sum of f(v) over 0 <= v < n,   Q(-n) = -(sum of f(v) over -n <= v < 0),
//
// the sum over low <= v < high is Q(high) - Q(low), whatever the two are, so that pieces that meet
// cancel where they do and neither "before 256" nor "from 256 on" is the one that is kept.  f is
// moved along v first, until the least index that it reads at is v itself: b[k - 256] from 256 on
// is then b[j] from 0 on, which is how a sum over b alone is written, and that form stays as it is.
// As in the rule of selects, f has some real value at indices that no tensor has; the two sides
// are equal whatever it is, since each counts it as often with either sign.
//
// A maximum needs no signs: an element under an interval is one over a shorter range, and one whose
// body has such a condition is two.
#include <algorithm>
#include <set>

#include "verify/canonical_form.h"

namespace sundog::verify {
namespace {

// low <= v < high
struct Interval {
  int64_t low = 0, high = 0;
};

// Where the condition says `v <= number` or `v >= number` and no more: narrows the interval to it.
bool narrow(const Forms& forms, AtomId condition, VarId v, Interval* interval) {
  const Atom& atom = forms.atom(condition);
  if (atom.kind != AtomKind::kCondition) return false;
  if (atom.data[0] != static_cast<uint32_t>(IndexRelation::kNotPositive)) return false;
  const Indices::Index& index = forms.indices[atom.data[1]];
  constexpr int64_t kMost = int64_t{1} << 60;
  if (index.items.size() != 1 || index.constant > kMost || index.constant < -kMost) return false;
  const auto& [variable, coefficient] = index.items[0];
  const IndexAtom& what = forms.indices.atom(variable);
  if (what.kind != IndexAtom::kVariable || what.what != v) return false;
  if (coefficient == 1) {
    interval->high = std::min(interval->high, 1 - index.constant);
  } else if (coefficient == -1) {
    interval->low = std::max(interval->low, index.constant);
  }
  return coefficient == 1 || coefficient == -1;
}

// The interval of v that conditions among the factors of `m` leave, and how many they are; `m` is
// then without them.
std::pair<Interval, size_t> take_interval(const Forms& forms, VarId v, int64_t extent,
                                          Monomial* m) {
  Interval interval{0, extent};
  const size_t bounds = std::erase_if(
      m->powers, [&](const auto& item) { return narrow(forms, item.first, v, &interval); });
  return {interval, bounds};
}

// How a form depends on a variable, binders inside included.
class Uses {
 public:
  Uses(const Forms& forms, VarId v) : forms_(forms), v_(v) {}

  void form(FormId id) {
    if (!contains(forms_[id].free, v_) || !seen_.insert(id).second) return;
    for (const Monomial& m : forms_[id].terms) monomial(m);
  }
  void monomial(const Monomial& m) {
    form(m.exponent);
    for (const auto& [a, power] : m.powers) {
      if (contains(forms_.atom(a).free, v_)) atom(forms_.atom(a));
    }
  }

  std::optional<int64_t> least;  // c of the reads at v + c (+ other variables)
  bool in_position = false;      // v is a part of the position of a split

 private:
  void atom(const Atom& a) {
    switch (a.kind) {
      case AtomKind::kRead:
      case AtomKind::kRunning:
        for (size_t i = 1; i < a.data.size(); ++i) index(a.data[i], true);
        return;
      case AtomKind::kCondition:
        return index(a.data[1], false);
      case AtomKind::kIndex:
        return index_atom(a.data[0]);
      case AtomKind::kSize:
        return;
      case AtomKind::kSum:
      case AtomKind::kFraction:
      case AtomKind::kSqrt:
      case AtomKind::kLog:
        return form(a.data[0]);
      case AtomKind::kCall:
      case AtomKind::kCast:
      case AtomKind::kCompare:
        return form(a.data[1]);
      case AtomKind::kMax:
        for (const ElementId e : a.data) {
          form(forms_.element(e).guard);
          form(forms_.element(e).body);
        }
        return;
    }
  }
  void index_atom(IndexAtomId id) {
    in_position |= forms_.indices.atom(id).kind == IndexAtom::kPosition &&
                   contains(forms_.indices.free_of_atom(id), v_);
  }
  void index(IndexId id, bool is_read) {
    const Indices::Index& e = forms_.indices[id];
    for (const auto& [a, coefficient] : e.items) {
      index_atom(a);
      const IndexAtom& what = forms_.indices.atom(a);
      const bool plain = what.kind == IndexAtom::kVariable && what.what == v_ && coefficient == 1;
      if (is_read && plain) least = std::min(least.value_or(e.constant), e.constant);
    }
  }

  const Forms& forms_;
  VarId v_;
  std::set<FormId> seen_;
};

// A condition on v alone among the factors of the terms.
std::optional<AtomId> bound_in(const Forms& forms, FormId form, VarId v) {
  Interval unused;
  for (const Monomial& m : forms[form].terms) {
    for (const auto& [a, power] : m.powers) {
      if (narrow(forms, a, v, &unused)) return a;
    }
  }
  return {};
}

}  // namespace

// An atom also where the sizes settle it, which `where` is to see and `narrow` to take away.
FormId Forms::opposite_of(AtomId condition) {
  const IndexId index = indices.add(indices.constant(1), atoms_[condition].data[1], -1);
  return of_atom(intern_atom(AtomKind::kCondition,
                             {static_cast<uint32_t>(IndexRelation::kNotPositive), index}));
}

// Nothing where the sum has its form already.
std::optional<FormId> Forms::sum_over_range(const std::vector<VarId>& binders, const Monomial& m) {
  for (size_t i = 0; i < binders.size(); ++i) {
    const VarId v = binders[i];
    const std::optional<int64_t> extent = indices.extent_of(indices.domain_of(v));
    if (!extent) continue;
    // exp(f(c)) = c exp(f(1)) + (1 - c) exp(f(0))
    if (const std::optional<AtomId> c = bound_in(*this, m.exponent, v)) {
      const FormId whole = of_monomial(m);
      const FormId where_so = sum(binders, multiply(whole, of_atom(*c)));
      return add(where_so, sum(binders, multiply(whole, opposite_of(*c))));
    }
    Monomial rest = m;
    const auto [interval, bounds] = take_interval(*this, v, *extent, &rest);
    Uses uses(*this, v);
    uses.monomial(rest);
    if (uses.in_position) continue;
    const int64_t shift = uses.least.value_or(0);
    if (bounds == 0 && (shift == 0 || shift == -*extent)) continue;  // Q(n), or -Q(-n)
    if (interval.high <= interval.low) return zero();
    const FormId body = of_monomial(rest);
    const auto up_to = [&](int64_t end) {  // Q(end) of f moved by shift
      if (end == 0) return zero();
      std::vector<VarId> others = binders;
      others[i] = indices.fresh(indices.range(end < 0 ? -end : end));
      const IndexId moved = indices.add(indices.of_variable(others[i]),
                                        indices.constant(std::min<int64_t>(end, 0) - shift));
      const IndexMap map{{indices.atom(IndexAtom::kVariable, v), moved}};
      return scale(sum(others, substitute(body, map)), Rational::of(end < 0 ? -1 : 1));
    };
    return subtract(up_to(interval.high + shift), up_to(interval.low + shift));
  }
  return {};
}

// max[v](f(c)) = max(max[v where c](f(1)), max[v where not c](f(0))), false if there is no such c.
bool Forms::part_element(const Element& e, std::vector<Element>* result) {
  if (forms_[e.guard].terms.size() != 1) return false;
  for (const VarId v : e.binders) {
    if (!indices.extent_of(indices.domain_of(v))) continue;
    const std::optional<AtomId> c = bound_in(*this, e.body, v);
    if (!c) continue;
    for (const FormId piece : {of_atom(*c), opposite_of(*c)}) {
      Element each = e;
      each.guard = multiply(e.guard, piece);
      if (each.guard == 0) continue;
      each.body = where(forms_[each.guard].terms[0], e.body);
      result->push_back(std::move(each));
    }
    return true;
  }
  return false;
}

Element Forms::element_over_range(Element e) {
  for (size_t i = 0; i < e.binders.size(); ++i) {
    const VarId v = e.binders[i];
    const std::optional<int64_t> extent = indices.extent_of(indices.domain_of(v));
    if (!extent || forms_[e.guard].terms.size() != 1) continue;
    Monomial rest = forms_[e.guard].terms[0];
    const auto [interval, bounds] = take_interval(*this, v, *extent, &rest);
    Uses uses(*this, v);
    uses.monomial(rest);
    uses.form(e.body);
    if (bounds == 0 || uses.in_position) continue;
    if (interval.high <= interval.low) return {e.binders, zero(), e.body};
    e.binders[i] = indices.fresh(indices.range(interval.high - interval.low));
    const IndexId moved =
        indices.add(indices.of_variable(e.binders[i]), indices.constant(interval.low));
    const IndexMap map{{indices.atom(IndexAtom::kVariable, v), moved}};
    e.guard = substitute(of_monomial(std::move(rest)), map);
    e.body = substitute(e.body, map);
  }
  return e;
}

}  // namespace sundog::verify
