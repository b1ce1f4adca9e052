// Big sums and maxima: the rules in which sizes matter.
//
// A sum over a product is brought to one form in this order: inner sums that depend on a bound
// variable are taken into it (exchange); the parts of a split that occur only as the position of
// that split, under the condition that it lies inside the axis, become one variable over the axis
// (splitting); a variable that occurs nowhere gives a factor, the size of its domain; factors
// without bound variables leave (linearity); factors that share no variable part into sums of their
// own; and bound variables are named by structure (renaming).
//
// Names: variables are told apart by colour refinement and, where that leaves a tie, by trying each
// of the tied ones and keeping the least hash of the whole.  The level in a name is the nesting
// depth of binders inside, so that no inner binder ever has the name of an outer one and nothing is
// captured.
#include <algorithm>
#include <numeric>

#include "core/check.h"
#include "core/field.h"
#include "verify/canonical_form.h"

namespace sundog::verify {
namespace {

std::vector<VarId> sorted(std::vector<VarId> list) {
  std::sort(list.begin(), list.end());
  return list;
}

constexpr uint64_t kSelf = 0x5e1f;
constexpr int kMostLabellings = 720;

}  // namespace

// --- names of bound variables

std::vector<VarId> Forms::ordered(const std::vector<VarId>& binders, const HashFunction& hash) {
  std::vector<VarId> best;
  uint64_t best_hash = 0;
  int tried = 0;
  // Refines the colours, then orders what they tell apart and tries each of what they do not.
  const std::function<void(Colours)> refine = [&](Colours colours) {
    for (size_t round = 0; round < binders.size(); ++round) {
      Colours next = colours;
      for (size_t i = 0; i < colours.size(); ++i) {
        Colours marked = colours;
        marked[i].second = kSelf;
        next[i].second = mix(colours[i].second, hash(marked));
      }
      colours = std::move(next);
    }
    Colours order = colours;
    std::sort(order.begin(), order.end(),
              [](const auto& a, const auto& b) { return a.second < b.second; });
    for (size_t i = 0; i + 1 < order.size(); ++i) {
      if (order[i].second != order[i + 1].second) continue;
      for (size_t j = i; j < order.size() && order[j].second == order[i].second; ++j) {
        if (tried > kMostLabellings || over_limit()) return;
        Colours split = colours;
        for (auto& [v, colour] : split) {
          if (v == order[j].first) colour = mix(colour, kSelf);
        }
        refine(std::move(split));
      }
      return;
    }
    ++tried;
    Colours numbered;
    for (size_t i = 0; i < order.size(); ++i) {
      const DomainId d = indices.domain_of(order[i].first);
      numbered.emplace_back(order[i].first, mix(mix(7, indices.hash_of_domain(d)), i));
    }
    const uint64_t whole = hash(numbered);
    if (!best.empty() && whole >= best_hash) return;
    best_hash = whole;
    best.clear();
    for (const auto& [v, colour] : order) best.push_back(v);
  };
  Colours start;
  for (const VarId v : binders) {
    start.emplace_back(v, mix(6, indices.hash_of_domain(indices.domain_of(v))));
  }
  refine(std::move(start));
  return best.empty() ? binders : best;
}

std::vector<VarId> Forms::canonical_names(const std::vector<VarId>& binders, uint32_t level) {
  std::vector<VarId> names;
  std::map<DomainId, uint32_t> count;
  for (const VarId v : binders) {
    const DomainId d = indices.domain_of(v);
    names.push_back(indices.bound(level, d, count[d]++));
  }
  return names;
}

std::vector<VarId> Forms::fresh_like(const std::vector<VarId>& binders) {
  std::vector<VarId> result;
  for (const VarId v : binders) result.push_back(indices.fresh(indices.domain_of(v)));
  return result;
}

FormId Forms::renamed(FormId a, const std::vector<VarId>& from, const std::vector<VarId>& to) {
  IndexMap map;
  for (size_t i = 0; i < from.size(); ++i) {
    map.emplace(indices.atom(IndexAtom::kVariable, from[i]), indices.of_variable(to[i]));
  }
  return substitute(a, map, sorted(from));
}

// --- substitution

FormId Forms::substitute(FormId a, const IndexMap& map) {
  std::vector<VarId> touched;
  for (const auto& [atom, index] : map) touched = merged(touched, indices.free_of_atom(atom));
  return substitute(a, map, touched);
}

IndexId Forms::substitute_index(IndexId i, const IndexMap& map, const Touched& touched) {
  if (!intersect(indices.free(i), touched)) return i;
  const Indices::Index index = indices[i];
  IndexId result = indices.constant(index.constant);
  for (const auto& [a, coefficient] : index.items) {
    const auto at = map.find(a);
    if (at != map.end()) {
      result = indices.add(result, at->second, coefficient);
      continue;
    }
    IndexAtom atom = indices.atom(a);
    for (IndexId& part : atom.parts) part = substitute_index(part, map, touched);
    const IndexAtomId now = indices.atom(atom.kind, atom.what, atom.parts);
    result = indices.add(result, indices.of_atom(now), coefficient);
  }
  return result;
}

FormId Forms::substitute(FormId a, const IndexMap& map, const Touched& touched) {
  if (over_limit() || !intersect(forms_[a].free, touched)) return a;
  FormId result = 0;
  for (const Monomial& m : forms_[a].terms) {
    Monomial kept{m.coefficient, {}, 0};
    FormId changed = exp(substitute(m.exponent, map, touched));
    for (const auto& [atom, power] : m.powers) {
      if (intersect(atoms_[atom].free, touched)) {
        changed = multiply(changed, this->power(substitute_atom(atom, map, touched), power));
      } else {
        kept.powers.emplace_back(atom, power);
      }
    }
    result = add(result, multiply(of_monomial(std::move(kept)), changed));
  }
  return result;
}

FormId Forms::oriented(FormId a) {
  if (over_limit()) return a;
  FormId result = 0;
  for (const Monomial& m : std::vector<Monomial>(forms_[a].terms)) {
    FormId product = of_monomial({m.coefficient, {}, 0});
    if (m.exponent != 0) product = multiply(product, exp(oriented(m.exponent)));
    for (const auto& [atom, power] : m.powers) {
      product = multiply(product, this->power(oriented_atom(atom), power));
    }
    result = add(result, product);
  }
  return result;
}

FormId Forms::oriented_atom(AtomId id) {
  const Atom& a = atoms_[id];
  const auto inner = [&](size_t i) { return oriented(a.data[i]); };
  switch (a.kind) {
    case AtomKind::kCondition:
      return oriented_condition(static_cast<IndexRelation>(a.data[0]), a.data[1]);
    case AtomKind::kSum: {
      const FormId body = inner(0);
      if (body == a.data[0]) return of_atom(id);
      const std::vector<VarId> binders(a.data.begin() + 1, a.data.end());
      const std::vector<VarId> fresh = fresh_like(binders);
      return sum(fresh, renamed(body, binders, fresh));
    }
    case AtomKind::kFraction:
      return inner(0) == a.data[0] ? of_atom(id) : inner(0);
    case AtomKind::kSqrt:
      return sqrt(inner(0));
    case AtomKind::kLog:
      return log(inner(0));
    case AtomKind::kCall:
      return call(a.data[0], inner(1));
    case AtomKind::kCast:
      return cast(static_cast<DType>(a.data[0]), inner(1));
    case AtomKind::kCompare:
      return compare(static_cast<Relation>(a.data[0]), inner(1), 0);
    case AtomKind::kRead:
    case AtomKind::kSize:
    case AtomKind::kIndex:
    case AtomKind::kMax:
    case AtomKind::kRunning:
      return of_atom(id);
  }
  SUNDOG_CHECK(false);
}

FormId Forms::substitute_max(AtomId id, const IndexMap& map, const Touched& touched) {
  std::vector<Element> elements;
  for (const ElementId e : std::vector<ElementId>(atoms_[id].data)) {
    Element element = opened(e);
    element.guard = substitute(element.guard, map, touched);
    element.body = substitute(element.body, map, touched);
    elements.push_back(std::move(element));
  }
  const std::optional<FormId> result = max(std::move(elements));
  if (!result) fail("a maximum of nothing");
  return result.value_or(0);
}

FormId Forms::substitute_atom(AtomId id, const IndexMap& map, const Touched& touched) {
  const Atom& a = atoms_[id];
  std::vector<uint32_t> data = a.data;
  const auto form = [&](size_t i) { return substitute(a.data[i], map, touched); };
  switch (a.kind) {
    case AtomKind::kRead:
    case AtomKind::kRunning:
      for (size_t i = 1; i < data.size(); ++i) data[i] = substitute_index(data[i], map, touched);
      return of_atom(intern_atom(a.kind, std::move(data)));
    case AtomKind::kCondition:
      return condition(static_cast<IndexRelation>(data[0]),
                       substitute_index(data[1], map, touched));
    case AtomKind::kSize:
      return of_atom(id);
    case AtomKind::kIndex:
      return index(substitute_index(indices.of_atom(data[0]), map, touched));
    case AtomKind::kSum: {
      const std::vector<VarId> binders(data.begin() + 1, data.end());
      const std::vector<VarId> fresh = fresh_like(binders);
      return sum(fresh, substitute(renamed(data[0], binders, fresh), map, touched));
    }
    case AtomKind::kMax:
      return substitute_max(id, map, touched);
    case AtomKind::kFraction:
      return form(0);
    case AtomKind::kSqrt:
      return sqrt(form(0));
    case AtomKind::kLog:
      return log(form(0));
    case AtomKind::kCall:
      return call(data[0], form(1));
    case AtomKind::kCast:
      return cast(static_cast<DType>(data[0]), form(1));
    case AtomKind::kCompare:
      return compare(static_cast<Relation>(data[0]), form(1), 0);
  }
  SUNDOG_CHECK(false);
}

// --- sums

FormId Forms::sum(const std::vector<VarId>& binders, FormId body) {
  FormId result = 0;
  for (const Monomial& m : std::vector<Monomial>(forms_[body].terms)) {
    if (over_limit()) return 0;
    result = add(result, sum_term(binders, m));
  }
  return result;
}

// Exchange: x * sum[T](y) = sum[T](x * y) for x without T.
std::optional<FormId> Forms::open_inner_sum(std::vector<VarId>* binders, const Monomial& m) {
  for (size_t i = 0; i < m.powers.size(); ++i) {
    const auto [id, power] = m.powers[i];
    const Atom& a = atoms_[id];
    if (a.kind != AtomKind::kSum || power < 1 || !intersect(a.free, sorted(*binders))) continue;
    Monomial rest = m;
    rest.powers[i].second = power - 1;
    if (power == 1) rest.powers.erase(rest.powers.begin() + static_cast<ptrdiff_t>(i));
    const std::vector<VarId> inner(a.data.begin() + 1, a.data.end());
    const std::vector<VarId> fresh = fresh_like(inner);
    const FormId body = renamed(a.data[0], inner, fresh);
    binders->insert(binders->end(), fresh.begin(), fresh.end());
    return multiply(of_monomial(std::move(rest)), body);
  }
  return {};
}

// Splitting.  `guard` must contain, in each of its terms, that the position lies inside its axis.
std::optional<Forms::Merge> Forms::mergeable(const std::vector<VarId>& binders, FormId guard,
                                             const std::vector<FormId>& parts) {
  if (forms_[guard].terms.empty()) return {};
  for (const AtomId condition : conditions_of(forms_[guard].terms[0])) {
    const std::optional<IndexAtomId> position = inside_of(condition);
    if (!position) continue;
    const IndexAtom atom = indices.atom(*position);
    Merge merge;
    for (size_t i = 0; i < atom.parts.size(); ++i) {
      const std::optional<VarId> v = indices.as_variable(atom.parts[i]);
      const bool own = v && std::find(binders.begin(), binders.end(), *v) != binders.end() &&
                       indices.domain_of(*v) == indices.factors_of(atom.what)[i];
      if (own) merge.gone.push_back(*v);
    }
    std::sort(merge.gone.begin(), merge.gone.end());
    const bool distinct =
        std::adjacent_find(merge.gone.begin(), merge.gone.end()) == merge.gone.end();
    if (merge.gone.size() != atom.parts.size() || !distinct) continue;
    merge.variable = indices.fresh(indices.axis_of(atom.what));
    merge.map.emplace(*position, indices.of_variable(merge.variable));
    const auto has_condition = [&](const Monomial& m) {
      const std::vector<AtomId> all = conditions_of(m);
      return std::find(all.begin(), all.end(), condition) != all.end();
    };
    const bool everywhere =
        std::all_of(forms_[guard].terms.begin(), forms_[guard].terms.end(), has_condition);
    const bool alone = std::all_of(parts.begin(), parts.end(), [&](FormId part) {
      return !intersect(forms_[substitute(part, merge.map)].free, merge.gone);
    });
    if (everywhere && alone) return merge;
  }
  return {};
}

FormId Forms::sum_term(std::vector<VarId> binders, const Monomial& m) {
  if (over_limit()) return 0;
  if (const std::optional<FormId> body = open_inner_sum(&binders, m)) return sum(binders, *body);
  const FormId whole = of_monomial(m);
  if (const std::optional<Merge> merge = mergeable(binders, whole, {whole})) {
    std::erase_if(binders, [&](VarId v) { return contains(merge->gone, v); });
    binders.push_back(merge->variable);
    return sum(binders, substitute(whole, merge->map));
  }
  if (const std::optional<FormId> pieces = sum_over_range(binders, m)) return *pieces;
  return close_sum(binders, m);
}

// Linearity and parting: what is free of the binders leaves, what shares none is apart.
FormId Forms::close_sum(const std::vector<VarId>& binders, const Monomial& m) {
  std::vector<size_t> group(binders.size());
  std::iota(group.begin(), group.end(), size_t{0});
  const auto join = [&](const std::vector<VarId>& free) {
    size_t first = binders.size();
    for (size_t i = 0; i < binders.size(); ++i) {
      if (!contains(free, binders[i])) continue;
      if (first == binders.size()) first = group[i];
      const size_t other = group[i];
      for (size_t& g : group) {
        if (g == other) g = first;
      }
    }
    return first;  // binders.size(): none
  };
  for (const auto& [atom, power] : m.powers) join(atoms_[atom].free);
  for (const Monomial& e : forms_[m.exponent].terms) join(free_of(*this, e));
  std::vector<Monomial> parts(binders.size() + 1, Monomial{Rational::of(1), {}, 0});
  parts.back().coefficient = m.coefficient;
  for (const auto& [atom, power] : m.powers) {
    parts[join(atoms_[atom].free)].powers.emplace_back(atom, power);
  }
  for (const Monomial& e : forms_[m.exponent].terms) {
    Monomial& part = parts[join(free_of(*this, e))];
    part.exponent = add(part.exponent, of_monomial(e));
  }
  FormId result = normal(parts.back());
  for (size_t g = 0; g < binders.size(); ++g) {
    std::vector<VarId> own;
    for (size_t i = 0; i < binders.size(); ++i) {
      if (group[i] == g) own.push_back(binders[i]);
    }
    if (own.empty()) continue;
    const bool unused = parts[g].powers.empty() && parts[g].exponent == 0;
    result =
        multiply(result, unused ? size(indices.domain_of(own[0])) : close_component(own, parts[g]));
  }
  return result;
}

FormId Forms::close_component(const std::vector<VarId>& binders, const Monomial& m) {
  const std::vector<VarId> order =
      ordered(binders, [&](const Colours& colours) { return hash_monomial(m, colours); });
  const FormId body = of_monomial(m);
  const std::vector<VarId> names = canonical_names(order, forms_[body].level + 1);
  std::vector<uint32_t> data{renamed(body, order, names)};
  data.insert(data.end(), names.begin(), names.end());
  return of_atom(intern_atom(AtomKind::kSum, std::move(data)));
}

// --- maxima

Element Forms::opened(ElementId id) {
  const Element& e = elements_[id];
  const std::vector<VarId> fresh = fresh_like(e.binders);
  return {fresh, renamed(e.guard, e.binders, fresh), renamed(e.body, e.binders, fresh)};
}

Element Forms::simplified(Element e) {
  if (forms_[e.guard].terms.size() == 1) e.body = where(forms_[e.guard].terms[0], e.body);
  while (const std::optional<Merge> merge = mergeable(e.binders, e.guard, {e.guard, e.body})) {
    e.guard = substitute(e.guard, merge->map);
    e.body = substitute(e.body, merge->map);
    std::erase_if(e.binders, [&](VarId v) { return contains(merge->gone, v); });
    e.binders.push_back(merge->variable);
  }
  const std::vector<VarId> used = merged(forms_[e.guard].free, forms_[e.body].free);
  std::erase_if(e.binders, [&](VarId v) { return !contains(used, v); });
  return e;
}

ElementId Forms::closed(Element e) {
  e = simplified(std::move(e));
  const std::vector<VarId> order = ordered(e.binders, [&](const Colours& colours) {
    return mix(hash_form(e.guard, colours), hash_form(e.body, colours));
  });
  const uint32_t level = std::max(forms_[e.guard].level, forms_[e.body].level) + 1;
  const std::vector<VarId> names = canonical_names(order, level);
  return intern_element({names, renamed(e.guard, order, names), renamed(e.body, order, names)});
}

Element Forms::relevant(Element e) {
  if (forms_[e.guard].terms.size() != 1) {
    e.guard = one_;
    return e;
  }
  Monomial kept = forms_[e.guard].terms[0];
  std::erase_if(kept.powers, [&](const auto& item) {
    return !intersect(atoms_[item.first].free, forms_[e.body].free);
  });
  e.guard = of_monomial(std::move(kept));
  return e;
}

// max(a * max(x) + b) = max(a * x + b) for positive a: the elements inside, false if there is no
// such maximum.
bool Forms::flatten(const Element& e, std::vector<Element>* result) {
  for (const Monomial& m : forms_[e.body].terms) {
    std::optional<AtomId> inner;
    Monomial factor = m;
    for (const auto& [atom, power] : m.powers) {
      if (atoms_[atom].kind == AtomKind::kMax && power == 1) inner = atom;
    }
    if (!inner) continue;
    std::erase_if(factor.powers, [&](const auto& item) { return item.first == *inner; });
    if (sign_of_monomial(factor) != Sign::kPositive) continue;
    const FormId scale = of_monomial(factor);
    const FormId rest = subtract(e.body, of_monomial(m));
    for (const ElementId id : std::vector<ElementId>(atoms_[*inner].data)) {
      Element each = opened(id);
      each.binders.insert(each.binders.end(), e.binders.begin(), e.binders.end());
      each.guard = multiply(each.guard, e.guard);
      each.body = add(rest, multiply(scale, each.body));
      result->push_back(std::move(each));
    }
    return true;
  }
  return false;
}

// What the body of the only element adds that does not depend on its binders.
FormId Forms::common_addend(const Element& e) {
  FormId result = 0;
  const std::vector<VarId> binders = sorted(e.binders);
  for (const Monomial& m : forms_[e.body].terms) {
    if (!intersect(free_of(*this, m), binders)) result = add(result, of_monomial(m));
  }
  return result;
}

// A positive factor of all bodies: a rational, and what is positive and free of all binders.
Monomial Forms::common_factor(const std::vector<Element>& elements) const {
  Monomial result{Rational::of(0), {}, 0};
  bool first = true;
  std::vector<VarId> bound;
  for (const Element& e : elements) bound = merged(bound, sorted(e.binders));
  for (const Element& e : elements) {
    if (forms_[e.body].terms.empty()) continue;
    Monomial own = content(forms_[e.body]);
    std::erase_if(own.powers, [&](const auto& item) {
      const Monomial alone{Rational::of(1), {item}, 0};
      return intersect(atoms_[item.first].free, bound) ||
             sign_of_monomial(alone) != Sign::kPositive;
    });
    for (const Monomial& m : forms_[e.body].terms) {
      Rational size = m.coefficient;
      if (size.sign() < 0) size.numerator = -size.numerator;
      if (result.coefficient.is_zero()) result.coefficient = size;
      const auto measure = common_measure(result.coefficient, size);
      result.coefficient = measure.value_or(Rational::of(1));
    }
    if (first) result.powers = own.powers;
    std::erase_if(result.powers, [&](const auto& item) {
      return std::find(own.powers.begin(), own.powers.end(), item) == own.powers.end();
    });
    first = false;
  }
  if (result.coefficient.is_zero()) result.coefficient = Rational::of(1);
  return result;
}

void Forms::drop_repeats(std::vector<Element>* elements) {
  std::vector<ElementId> known;
  std::erase_if(*elements, [&](const Element& e) {
    const ElementId id = closed(e);
    if (std::find(known.begin(), known.end(), id) != known.end()) return true;
    known.push_back(id);
    return false;
  });
}

std::optional<FormId> Forms::max(std::vector<Element> elements) {
  std::vector<Element> flat;
  while (!elements.empty() && !over_limit()) {
    Element e = std::move(elements.back());
    elements.pop_back();
    if (e.guard == 0 || part_element(e, &elements) || flatten(e, &elements)) continue;
    e = element_over_range(simplified(std::move(e)));
    if (e.guard != 0) flat.push_back(std::move(e));
  }
  if (flat.empty()) return {};
  drop_repeats(&flat);
  FormId addend = 0;
  if (flat.size() == 1) {
    if (flat[0].binders.empty() && flat[0].guard == one_) return flat[0].body;
    addend = common_addend(flat[0]);
    flat[0].body = subtract(flat[0].body, addend);
  }
  const Monomial factor = common_factor(flat);
  std::vector<ElementId> ids;
  for (Element& e : flat) {
    e.body = divided_by_unit(e.body, factor);
    ids.push_back(closed(e));
  }
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  const FormId atom = of_atom(intern_atom(AtomKind::kMax, std::move(ids)));
  return add(addend, multiply(of_monomial(factor), atom));
}

}  // namespace sundog::verify
