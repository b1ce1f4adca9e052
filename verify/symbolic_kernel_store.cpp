// Trims, stores, and the needs of a kernel.
//
// A trimmed loop leaves out iterations: what it would have added must vanish there, which the
// conditions of its terms have to imply: of those together that differ in conditions alone, since
// `select(c, x, 0)` may be written x - x (not c).  A store must write each element of its tensor
// once: the index of each dimension is the position of its axis over factors that all run, in the
// grid, in loops around the store or in the tile; positions are a bijection, so coverage and
// disjointness follow.
#include <algorithm>
#include <map>

#include "core/check.h"
#include "core/join.h"
#include "core/resize_index.h"
#include "verify/symbolic_kernel.h"

namespace sundog::verify {
// --- trims

// An implication was shown with the extents of inner factors as they are.
void SymbolicKernel::assume_tiles_of(IndexId e) {
  for (const auto& [a, coefficient] : forms_.indices[e].items) {
    const IndexAtom& atom = forms_.indices.atom(a);
    if (atom.kind != IndexAtom::kPosition) continue;
    assume("tiles of " + forms_.indices.name_of(forms_.indices.axis_of(atom.what)) + " as given");
  }
}

namespace {

// The terms of a form in groups that differ in nothing but conditions and coefficients.
std::vector<std::vector<Monomial>> alike_but_for_conditions(const Forms& forms, FormId form) {
  std::map<std::pair<std::vector<std::pair<AtomId, int>>, FormId>, std::vector<Monomial>> groups;
  for (const Monomial& m : forms[form].terms) {
    std::vector<std::pair<AtomId, int>> rest;
    for (const auto& power : m.powers) {
      if (forms.atom(power.first).kind != AtomKind::kCondition) rest.push_back(power);
    }
    groups[{std::move(rest), m.exponent}].push_back(m);
  }
  std::vector<std::vector<Monomial>> result;
  for (auto& [rest, terms] : groups) result.push_back(std::move(terms));
  return result;
}

}  // namespace

FormId SymbolicKernel::under_trim(FormId form, const IndexCondition& trim) {
  const IndexId e = index(trim.expr);
  const ConditionForms condition = condition_forms(forms_, trim.relation, e);
  if (condition.yes == forms_.one()) return form;
  const bool asked = trim.relation != Relation::kNotEqual;
  const IndexId goal =
      trim.relation == Relation::kLess ? forms_.indices.add(e, forms_.indices.constant(1)) : e;
  const IndexRelation relation =
      trim.relation == Relation::kEqual ? IndexRelation::kZero : IndexRelation::kNotPositive;
  const auto vanishes = [&](const std::vector<Monomial>& terms) {
    std::vector<ConditionedWeight> weights;
    for (const Monomial& m : terms) {
      const auto weight = divide(m.coefficient, terms[0].coefficient);
      if (!asked || !weight || !weight->is_integer()) return false;
      const auto small = static_cast<int64_t>(weight->numerator);
      if (small != weight->numerator) return false;
      weights.push_back({small, forms_.conditions_of(m)});
    }
    if (!implications_.hold(forms_, {weights, relation, goal})) return false;
    assume_tiles_of(goal);
    for (const ConditionedWeight& each : weights) {
      for (const AtomId c : each.conditions) assume_tiles_of(forms_.atom(c).data[1]);
    }
    return true;
  };
  FormId result = forms_.zero();
  for (const std::vector<Monomial>& together : alike_but_for_conditions(forms_, form)) {
    const bool all = vanishes(together);
    for (const Monomial& m : together) {
      const FormId term = forms_.of_monomial(m);
      const bool implied = all || (together.size() > 1 && vanishes({m}));
      result = forms_.add(result, implied ? term : forms_.multiply(term, condition.yes));
    }
  }
  return result;
}

FormId SymbolicKernel::trimmed(const Part& part, FormId form) {
  for (const Loop* loop : part.loops) {
    for (const IndexCondition& trim : loop->trim) form = under_trim(form, trim);
  }
  return form;
}

// --- stores

// The dimension is indexed by its axes, all of it, each element once.
bool SymbolicKernel::dimension_covers(const TensorDecl& tensor, size_t d, const IndexExpr& at,
                                      AxisSet* axes) const {
  const IndexExpr& dim = tensor.dims[d];
  if (dim.constant != 0 || !dim.sizes.empty()) return false;
  IndexExpr expected;
  int64_t reach = 1;
  for (const auto& item : dim.axes) {
    if (axes->has(item.axis)) return false;  // a diagonal
    axes->insert(item.axis);
    if (!has_position(item.axis)) return false;
    expected = expected + position_of(item.axis) * item.coefficient;
    reach *= graph_.axes[item.axis].extent;
  }
  std::vector<IndexExpr::Item> items = dim.axes;
  const bool digits =
      is_mixed_radix(items, axis_extents(graph_)) && (items.empty() || items[0].coefficient == 1);
  return digits && reach == tensor.extents[d] && expected == at;
}

bool SymbolicKernel::store_covers(const Store& store, const std::string& what) {
  const TensorDecl& tensor = graph_.tensors[store.tensor].decl;
  const uint32_t id = store.computation;
  AxisSet axes, used;
  for (size_t d = 0; d < tensor.dims.size(); ++d) {
    used |= store.index[d].axis_set();
    if (dimension_covers(tensor, d, store.index[d], &axes)) continue;
    fail(what + " is not indexed by the axes of its dimensions");
    return false;
  }
  AxisSet needed = AxisSet::of(kernel_.computations[id].axes);
  for (const Loop* loop : open_) {
    needed.insert(loop->factor);
    if (!loop->trim.empty()) {
      fail(what + " stands in a trimmed loop");
      return false;
    }
  }
  needed |= AxisSet::of(kernel_.grid) & dependences_[id].factors;
  if (!used.contains(needed)) {
    fail(what + " writes elements again for each index of a factor");
    return false;
  }
  for (const AxisId a : axes) {
    if (is_split_[a] == 0 || dependences_[id].absent_along.has(a)) continue;
    if (is_ragged(graph_, kernel_, a)) {
      fail(what + " leaves the tensor along axis " + graph_.axes[a].name);
      return false;
    }
    assume("the factors of " + graph_.axes[a].name + " cover it exactly");
  }
  return true;
}

void SymbolicKernel::store(const Store& store) {
  const TensorDecl& tensor = graph_.tensors[store.tensor].decl;
  const std::string what = "the store to '" + tensor.name + "'";
  if (symbols_.stored[store.tensor]) return fail(what + " is not the only one");
  if (!store_covers(store, what)) return;
  const Symbolic value = local(store.computation);
  for (const Need& need : waiting_[store.computation]) require(need);
  Indices& indices = forms_.indices;
  Forms::IndexMap map;
  std::vector<VarId> own;
  for (const IndexExpr& dim : tensor.dims) {
    for (const auto& item : dim.axes) {
      const Indices::Index position = indices[positions_[item.axis]];
      if (position.items.empty()) continue;  // 0, along an axis of extent 1
      SUNDOG_CHECK(position.items.size() == 1);
      own.push_back(symbols_.variables[item.axis]);
      map.emplace(position.items[0].first, indices.of_variable(own.back()));
    }
  }
  std::sort(own.begin(), own.end());
  Symbolic stored{forms_.substitute(value.form, map), forms_.substitute(value.guard, map)};
  const std::vector<VarId> free = merged(forms_[stored.form].free, forms_[stored.guard].free);
  if (!std::includes(own.begin(), own.end(), free.begin(), free.end())) {
    return fail(what + " depends on more than its index: " + forms_.text(stored.form));
  }
  symbols_.stored[store.tensor] = stored;
}

// --- needs

bool SymbolicKernel::reads(uint32_t reader, uint32_t id) const {
  const TermId roots[] = {kernel_.computations[reader].value};
  for (const TermId t : reachable(kernel_.terms, roots)) {
    const auto* other = std::get_if<LocalTerm>(&kernel_.terms[t]);
    if (other != nullptr && other->computation == id) return true;
  }
  return false;
}

// Whatever `id` is while the maximum is minus infinity is thrown away when the maximum moves: all
// that reads it ends in sums that are rescaled by that maximum.
bool SymbolicKernel::only_feeds(uint32_t id, uint32_t maximum) const {
  if (kernel_.computations[id].rescale == maximum) return true;
  if (kernel_.computations[id].accumulate_into != kNone) return false;
  if (std::holds_alternative<ReduceTerm>(kernel_.terms[kernel_.computations[id].value]) &&
      !accumulated_loops(kernel_, id).empty()) {
    return false;
  }
  if (stored_.contains(id)) return false;
  for (uint32_t reader = 0; reader < kernel_.computations.size(); ++reader) {
    if (reader != id && reads(reader, id) && !only_feeds(reader, maximum)) return false;
  }
  return true;
}

// One of the elements of the maximum is the one that is computed: the maximum is finite there.
bool SymbolicKernel::is_present(AtomId maximum, FormId present) {
  if (forms_[present].terms.size() != 1) return false;
  const Monomial given = forms_[present].terms[0];
  const auto has_all = [&](FormId guard) { return forms_.has_conditions(given, guard); };
  const Atom& atom = forms_.atom(maximum);
  if (atom.kind == AtomKind::kRunning) {
    const auto id = computation_of_tag_.find(atom.data[0]);
    if (id == computation_of_tag_.end()) return false;
    const auto guard = operand_guards_.find(id->second);
    return guard != operand_guards_.end() && has_all(guard->second);
  }
  for (const ElementId e : std::vector<ElementId>(atom.data)) {
    const Element element = forms_.opened(e);
    Forms::IndexMap map;
    for (const VarId v : element.binders) {
      for (const VarId own : variables_) {
        if (forms_.indices.domain_of(own) != forms_.indices.domain_of(v)) continue;
        map.emplace(forms_.indices.atom(IndexAtom::kVariable, v), forms_.indices.of_variable(own));
      }
    }
    if (has_all(forms_.substitute(element.guard, map))) return true;
  }
  return false;
}

// Whether what must hold follows from the conditions under which the computation is evaluated.
bool SymbolicKernel::is_inside(FormId condition, FormId present) {
  if (!implications_.follows(forms_, condition, present)) return false;
  for (const FormId form : {condition, present}) {
    for (const Monomial& m : forms_[form].terms) {
      for (const AtomId c : forms_.conditions_of(m)) assume_tiles_of(forms_.atom(c).data[1]);
    }
  }
  return true;
}

// The greatest value of an index over all values of its variables, with the factors of axes of
// known extents as they are; nothing if it is not bounded so.
std::optional<int64_t> SymbolicKernel::greatest(IndexId e) const {
  const Indices& indices = forms_.indices;
  const Indices::Index index = indices[e];
  int64_t total = index.constant;
  for (const auto& [a, coefficient] : index.items) {
    const IndexAtom& atom = indices.atom(a);
    if (atom.kind == IndexAtom::kSize) {  // at least 1
      if (coefficient > 0) return {};
      total += coefficient;
      continue;
    }
    if (coefficient < 0) continue;  // at least 0
    if (atom.kind == IndexAtom::kVariable) {
      const auto extent = indices.extent_of(indices.domain_of(atom.what));
      if (!extent) return {};
      total += coefficient * (*extent - 1);
      continue;
    }
    if (!indices.extent_of(indices.axis_of(atom.what))) return {};
    const std::vector<DomainId>& factors = indices.factors_of(atom.what);
    int64_t stride = coefficient;
    for (size_t i = factors.size(); i-- > 0;) {
      const auto extent = implications_.extents.find(factors[i]);
      if (extent == implications_.extents.end()) return {};
      const std::optional<VarId> v = indices.as_variable(atom.parts[i]);
      const bool is_first = indices[atom.parts[i]].items.empty();
      if (!is_first && (!v || indices.domain_of(*v) != factors[i])) return {};
      total += stride * (is_first ? indices[atom.parts[i]].constant : extent->second - 1);
      stride *= extent->second;
    }
  }
  return total;
}

// Whether a sum is positive, or a maximum finite, since no tile that it runs over is empty.  That
// is taken as given where it is so in the file: such a tile begins inside its axis.
bool SymbolicKernel::has_elements(FormId form) {
  std::vector<std::string> given;
  Forms::HasElements tiles;
  tiles.tile = [&](SplitId split, size_t count) {
    const auto& [kernel, axis] = symbols_.splits.at(split);
    const std::vector<AxisId> factors = sundog::factors_of(graph_.kernels[kernel], axis);
    int64_t last = 0;
    std::vector<std::string> names;
    for (size_t i = 0; i < count; ++i) {
      const Factor& factor = graph_.kernels[kernel].factors[factors[i]];
      last += (factor.extent - 1) * factor.stride;
      names.push_back(factor.name);
    }
    given.push_back("kernel " + graph_.kernels[kernel].name + ": no tile of " + join(names, ", ") +
                    " is empty");
    return last < graph_.axes[axis].extent;
  };
  tiles.always = [&](IndexRelation relation, IndexId index) {
    const std::optional<int64_t> most = greatest(index);
    if (relation != IndexRelation::kNotPositive || !most || *most > 0) return false;
    assume_tiles_of(index);
    return true;
  };
  const std::optional<AtomId> atom = forms_.as_atom(form);
  const bool found = (atom && forms_.is_finite(*atom, tiles)) || forms_.is_positive(form, tiles);
  if (found) {
    result_.assumptions.insert(result_.assumptions.end(), given.begin(), given.end());
  }
  return found;
}

bool SymbolicKernel::settled(uint32_t id, const Need& need, FormId present) {
  if (need.kind == Need::kInside) return is_inside(need.form, present);
  if (need.kind != Need::kFinite) return has_elements(need.form);
  const std::optional<AtomId> atom = forms_.as_atom(need.form);
  if (!atom) return false;
  if (is_present(*atom, present) || has_elements(need.form)) return true;
  const Atom& running = forms_.atom(*atom);
  if (running.kind != AtomKind::kRunning) return false;
  const auto of = computation_of_tag_.find(running.data[0]);
  return of != computation_of_tag_.end() && only_feeds(id, of->second);
}

// Keeps what the computation needs for all elements that it is evaluated at.
void SymbolicKernel::keep_needs(uint32_t id) {
  const std::vector<Need> needs = algebra_.take_needs();
  if (needs.empty() || forms_.failure()) return;
  const FormId inside = presence(dependences_[id].operand_absent_along, id);
  for (const Need& need : needs) {
    const FormId present = forms_.multiply(inside, need.given);
    if (settled(id, need, present)) continue;
    const Need left{need.kind, need.form, present};
    if (may_wait(id, need)) {
      waiting_[id].push_back(left);
    } else {
      require(left);
    }
  }
}

// A value that is undefined somewhere is no fault if it is not used there.  Of an accumulator that
// other statements add to, uses may come before all of it is known.
bool SymbolicKernel::may_wait(uint32_t id, const Need& need) const {
  if (need.kind != Need::kInside) return false;
  if (kernel_.computations[id].accumulate_into != kNone) return false;
  return std::none_of(kernel_.computations.begin(), kernel_.computations.end(),
                      [&](const Computation& c) { return c.accumulate_into == id; });
}

void SymbolicKernel::require(const Need& need) {
  Element e{merged(forms_[need.form].free, forms_[need.given].free), need.given, need.form};
  // Conditions on other variables than those of the need say nothing about it.
  result_.needs.emplace(need.kind, forms_.closed(forms_.relevant(std::move(e))));
}

}  // namespace sundog::verify
