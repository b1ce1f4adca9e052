// Statements of a kernel, read once each.
//
// Inside its loops an accumulator has one opaque value for each iteration; whatever is right about
// a use of it there must not depend on what it is (the running maximum of online softmax cancels).
// When its outermost loop ends it becomes the big sum or maximum of its iterations.  That a
// rescaled accumulator is the sum of exp(m_o - M) * t_o is proved by induction over the iterations
// in docs/verification.md; its condition, that no finite term meets a maximum of minus infinity, is
// checked here.
#include "verify/symbolic_kernel.h"

#include <algorithm>

#include "core/check.h"
#include "core/resize_index.h"

namespace sundog::verify {

SymbolicKernel::SymbolicKernel(SymbolicAlgebra& algebra, const MuGraph& graph, uint32_t kernel,
                               GraphSymbols& symbols, SymbolicMuGraph& result,
                               Implications& implications)
    : SymbolicTerms(algebra, graph.kernels[kernel].terms),
      graph_(graph),
      id_(kernel),
      kernel_(graph.kernels[kernel]),
      symbols_(symbols),
      result_(result),
      implications_(implications),
      dependences_(dependences(kernel_)),
      loops_of_(enclosing_loops(kernel_)),
      values_(kernel_.computations.size()) {
  Indices& indices = forms_.indices;
  for (AxisId f = 0; f < kernel_.factors.size(); ++f) {
    variables_.push_back(indices.variable(kernel_.name + "." + kernel_.factors[f].name,
                                          symbols_.factors[kernel][f]));
  }
  for (AxisId a = 0; a < graph.axes.size(); ++a) {
    const std::vector<AxisId> factors = sundog::factors_of(kernel_, a);
    const bool whole =
        factors.size() == 1 && symbols_.factors[kernel][factors[0]] == symbols_.domains[a];
    is_split_.push_back(!whole && !factors.empty());
    if (is_own_partial(a)) {
      positions_.push_back(indices.of_variable(variables_[graph.axes[a].factor]));
    } else if (factors.empty()) {
      positions_.push_back(indices.constant(0));
    } else if (whole) {
      positions_.push_back(indices.of_variable(variables_[factors[0]]));
    } else {
      std::vector<DomainId> domains;
      std::vector<IndexId> parts;
      for (const AxisId f : factors) {
        domains.push_back(symbols_.factors[kernel][f]);
        parts.push_back(indices.of_variable(variables_[f]));
      }
      const SplitId split = indices.split(symbols_.domains[a], std::move(domains));
      symbols_.splits.emplace(split, GraphSymbols::SplitAxis{kernel, a});
      positions_.push_back(indices.of_atom(indices.atom(IndexAtom::kPosition, split, parts)));
    }
  }
}

void SymbolicKernel::run() {
  for (const Store* store : stores_of(kernel_)) stored_.insert(store->computation);
  statements(kernel_.body);
}

bool SymbolicKernel::has_position(AxisId axis) const {
  return is_own_partial(axis) || !sundog::factors_of(kernel_, axis).empty();
}

IndexExpr SymbolicKernel::position_of(AxisId axis) const {
  return is_own_partial(axis) ? IndexExpr::of(graph_.axes[axis].factor) : axis_index(kernel_, axis);
}

// --- indices and leaves

IndexId SymbolicKernel::index(const IndexExpr& e) {
  Indices& indices = forms_.indices;
  IndexId result = indices.constant(e.constant);
  for (const auto& item : e.sizes) {
    result = indices.add(result, indices.size(symbols_.domains[item.axis]), item.coefficient);
  }
  std::map<AxisId, std::map<AxisId, int64_t>> by_axis;
  for (const auto& item : e.axes) {
    by_axis[kernel_.factors[item.axis].axis][item.axis] = item.coefficient;
  }
  for (auto& [axis, coefficients] : by_axis) {
    std::optional<int64_t> times;
    bool whole = true;
    std::vector<AxisId> left_out;
    for (const AxisId f : sundog::factors_of(kernel_, axis)) {
      const Factor& factor = kernel_.factors[f];
      const int64_t coefficient = coefficients.contains(f) ? coefficients[f] : 0;
      if (coefficient == 0 && factor.extent == 1) {
        left_out.push_back(f);
        continue;
      }
      whole = whole && coefficient % factor.stride == 0 &&
              (!times || *times == coefficient / factor.stride);
      times = coefficient / factor.stride;
    }
    if (whole && times) {
      for (const AxisId f : left_out) assume(kernel_.factors[f].name + " = 1");
      result = indices.add(result, positions_[axis], *times);
      continue;
    }
    assume("tiles of " + graph_.axes[axis].name + " as given");
    for (const auto& [f, coefficient] : coefficients) {
      result = indices.add(result, indices.of_variable(variables_[f]), coefficient);
    }
  }
  return result;
}

Symbolic SymbolicKernel::leaf(const Term& term) {
  if (const auto* input = std::get_if<InputTerm>(&term)) return read(*input);
  if (const auto* other = std::get_if<LocalTerm>(&term)) return local(other->computation);
  fail("a reduction inside a term");
  return algebra_.minus_infinity();
}

// Whether a dimension is read at the index along axes of its size, which is added to the map from
// its own axes.
bool SymbolicKernel::is_along(const IndexExpr& dim, IndexId at, Forms::IndexMap* map) {
  Indices& indices = forms_.indices;
  const auto variable_of = [&](AxisId axis) {
    return indices.atom(IndexAtom::kVariable, symbols_.variables[axis]);
  };
  IndexId own = indices.constant(dim.constant);
  for (const auto& item : dim.axes) {
    own = indices.add(own, positions_[item.axis], item.coefficient);
  }
  if (own == at && dim.sizes.empty()) {
    for (const auto& item : dim.axes) {
      if (!has_position(item.axis)) return false;
      map->emplace(variable_of(item.axis), positions_[item.axis]);
    }
    return true;
  }
  AxisId axis = 0;
  if (!dim.is_axis(&axis)) return false;
  for (AxisId other = 0; other < graph_.axes.size(); ++other) {
    const bool is_other = positions_[other] == at &&
                          symbols_.domains[other] == symbols_.domains[axis] && has_position(other);
    if (!is_other) continue;
    map->emplace(variable_of(axis), at);
    return true;
  }
  return false;
}

// What is read at another index than one along an axis has to lie inside its dimension wherever it
// is evaluated; what was stored is a function of the index then.
Symbolic SymbolicKernel::read(const InputTerm& input) {
  const DeviceTensor& tensor = graph_.tensors[input.tensor];
  const bool is_input = tensor.role == TensorRole::kInput;
  std::vector<IndexId> at;
  Forms::IndexMap map;
  bool plain = true;
  for (size_t d = 0; d < input.index.size(); ++d) {
    at.push_back(index(input.index[d]));
    const IndexExpr& dim = tensor.decl.dims[d];
    if (is_along(dim, at[d], &map)) continue;
    AxisId axis = 0;
    plain &= dim.is_axis(&axis);
    if (!dim.is_axis(&axis)) continue;
    algebra_.need_inside(at[d], symbols_.domains[axis]);
    map.emplace(forms_.indices.atom(IndexAtom::kVariable, symbols_.variables[axis]), at[d]);
  }
  if (is_input) {
    const FormId value = forms_.read(input.tensor, at);
    if (!plain) algebra_.need_inside(value);
    return algebra_.finite(value);
  }
  const std::optional<Symbolic>& stored = symbols_.stored[input.tensor];
  if (!stored || !plain) {
    fail("tensor '" + tensor.decl.name + "' is read at an index for which there is no rule");
    return algebra_.minus_infinity();
  }
  return {forms_.substitute(stored->form, map), forms_.substitute(stored->guard, map)};
}

uint32_t SymbolicKernel::running_tag(uint32_t id) {
  // Another value after each statement that adds to it, and in each loop.
  std::vector<uint32_t> key{id, static_cast<uint32_t>(accumulators_[id].parts.size())};
  for (const Loop* loop : open_) {
    key.push_back(loop_numbers_.try_emplace(loop, loop_numbers_.size()).first->second);
  }
  const auto [at, is_new] = tags_.try_emplace(key, symbols_.next_tag);
  if (is_new) {
    ++symbols_.next_tag;
    computation_of_tag_[at->second] = id;
    const uint32_t maximum = kernel_.computations[id].rescale;
    const auto guard = operand_guards_.find(maximum == kNone ? id : maximum);
    if (guard != operand_guards_.end() && guard->second != forms_.one()) {
      algebra_.may_be_infinite(at->second);
    }
  }
  return at->second;
}

Symbolic SymbolicKernel::local(uint32_t id) {
  for (const Need& need : waiting_[id]) algebra_.need_again(need);
  if (accumulators_.contains(id)) {
    const AxisSet varies = dependences_[id].factors | AxisSet::of(loops_of_[id]);
    AxisSet fixed =
        (varies & AxisSet::of(kernel_.computations[id].axes)) | AxisSet::of(kernel_.grid);
    for (const Loop* loop : open_) fixed.insert(loop->factor);
    std::vector<IndexId> at;
    for (const AxisId f : varies& fixed) at.push_back(forms_.indices.of_variable(variables_[f]));
    return algebra_.finite(forms_.running(running_tag(id), at));
  }
  if (!values_[id]) {
    fail("computation " + name(id) + " is read where it has no value");
    return algebra_.minus_infinity();
  }
  return *values_[id];
}

// --- statements

void SymbolicKernel::statements(const std::vector<Statement>& body) {
  for (const Statement& statement : body) {
    if (forms_.failure()) return;
    if (const auto* step = std::get_if<Compute>(&statement.node)) {
      compute(step->computation);
    } else if (const auto* write = std::get_if<Store>(&statement.node)) {
      store(*write);
    } else {
      loop(std::get<Loop>(statement.node));
    }
  }
}

void SymbolicKernel::compute(uint32_t id) {
  forget();
  algebra_.take_needs();
  const Computation& c = kernel_.computations[id];
  if (const auto* term = std::get_if<ReduceTerm>(&kernel_.terms[c.value])) {
    reduce(id, *term);
  } else {
    values_[id] = value(c.value);
  }
  keep_needs(id);
}

// The condition that the index along each of these axes is inside it.
FormId SymbolicKernel::presence(AxisSet along, uint32_t id) {
  const Computation& c = kernel_.computations[id];
  AxisSet bound = AxisSet::of(c.axes) | AxisSet::of(kernel_.grid) | AxisSet::of(loops_of_[id]);
  if (const auto* term = std::get_if<ReduceTerm>(&kernel_.terms[c.value])) bound |= term->axes;
  FormId result = forms_.one();
  for (const AxisId a : along) {
    if (is_split_[a] == 0) continue;
    if (!bound.contains(AxisSet::of(sundog::factors_of(kernel_, a)))) {
      fail(name(id) + " varies with a part of axis " + graph_.axes[a].name);
      return forms_.zero();
    }
    const IndexId beyond = forms_.indices.beyond(positions_[a], symbols_.domains[a]);
    result = forms_.multiply(result, forms_.condition(IndexRelation::kNotPositive, beyond));
  }
  return result;
}

// Loops around an accumulator that it does not run over.
size_t SymbolicKernel::loops_outside(uint32_t id) const {
  return loops_of_[id].size() - static_cast<size_t>(accumulated_loops(kernel_, id).size());
}

// What one evaluation adds: the reduction over the tile.
SymbolicKernel::Part SymbolicKernel::part_of(uint32_t id, const ReduceTerm& term) {
  const Symbolic operand = value(term.operand);
  AxisSet touched;
  for (const AxisId f : term.axes) touched.insert(kernel_.factors[f].axis);
  const FormId present = presence(dependences_[id].operand_absent_along & touched, id);
  Part part;
  for (const AxisId f : term.axes - accumulated_loops(kernel_, id)) {
    part.binders.push_back(variables_[f]);
  }
  const uint32_t into = kernel_.computations[id].accumulate_into;
  const size_t outside = loops_outside(into == kNone ? id : into);
  part.loops.assign(open_.begin() + static_cast<ptrdiff_t>(outside), open_.end());
  if (term.kind == ReduceKind::kMax) {
    part.value = {operand.form, trimmed(part, forms_.multiply(present, operand.guard))};
    operand_guards_[id] = part.value.guard;
    operand_presence_[id] = present;
    return part;
  }
  const FormId body = trimmed(part, forms_.multiply(present, algebra_.plain_finite(operand)));
  if (kernel_.computations[id].rescale != kNone) rescale(id, body, &part);
  part.value = algebra_.finite(forms_.sum(part.binders, body));
  part.binders.clear();
  return part;
}

// Each iteration of the sum weighs exp(m at that iteration), to be divided by exp(m at the end).
void SymbolicKernel::rescale(uint32_t id, FormId body, Part* part) {
  const uint32_t m = kernel_.computations[id].rescale;
  const auto maximum = accumulators_.find(m);
  if (maximum == accumulators_.end() || maximum->second.kind != ReduceKind::kMax ||
      maximum->second.parts.size() != 1 || maximum->second.parts[0].loops != part->loops) {
    fail(name(id) + " is rescaled by what is no maximum over the same loops");
    return;
  }
  // Where the running maximum is still minus infinity, so must be what the sum adds nothing for.
  const FormId guard = operand_guards_[m];
  const bool safe = guard == forms_.one() ||
                    std::all_of(forms_[body].terms.begin(), forms_[body].terms.end(),
                                [&](const Monomial& t) { return forms_.has_conditions(t, guard); });
  if (!safe) {
    fail(name(id) + " adds terms that are not masked where its maximum " + name(m) +
         " may be minus infinity");
    return;
  }
  part->maximum = m;
  part->factor = forms_.exp(local(m).form);
}

void SymbolicKernel::reduce(uint32_t id, const ReduceTerm& term) {
  Part part = part_of(id, term);
  if (forms_.failure()) return;
  const uint32_t into = kernel_.computations[id].accumulate_into;
  if (into != kNone) {
    const auto target = accumulators_.find(into);
    if (target != accumulators_.end()) {
      target->second.parts.push_back(std::move(part));
    } else if (part.loops.empty()) {
      values_[into] = with(term.kind, *values_[into], combined(term.kind, {part}));
    } else {
      late_.push_back({into, std::move(part)});
    }
    return;
  }
  if (accumulated_loops(kernel_, id).empty()) {
    part.loops.clear();
    values_[id] = combined(term.kind, {part});
    return;
  }
  const Loop* outermost = part.loops.front();
  accumulators_[id] = {term.kind, {std::move(part)}, outermost};
}

void SymbolicKernel::loop(const Loop& loop) {
  open_.push_back(&loop);
  statements(loop.body);
  open_.pop_back();
  // Maxima first: sums are rescaled by them.
  for (const ReduceKind kind : {ReduceKind::kMax, ReduceKind::kSum}) {
    std::vector<uint32_t> ended;
    for (const auto& [id, accumulator] : accumulators_) {
      if (accumulator.outermost == &loop && accumulator.kind == kind) ended.push_back(id);
    }
    for (const uint32_t id : ended) finish(id);
  }
  for (const LatePart& late : late_) {
    if (late.part.loops.front() != &loop) continue;
    const auto& own = std::get<ReduceTerm>(kernel_.terms[kernel_.computations[late.target].value]);
    values_[late.target] = with(own.kind, *values_[late.target], combined(own.kind, {late.part}));
  }
  std::erase_if(late_, [&](const LatePart& late) { return late.part.loops.front() == &loop; });
}

void SymbolicKernel::finish(uint32_t id) {
  if (forms_.failure()) return;
  algebra_.take_needs();
  const Accumulator accumulator = std::move(accumulators_[id]);
  accumulators_.erase(id);
  values_[id] = combined(accumulator.kind, accumulator.parts);
  keep_needs(id);
}

Symbolic SymbolicKernel::with(ReduceKind kind, const Symbolic& a, const Symbolic& b) {
  return kind == ReduceKind::kSum ? algebra_.add(a, b) : algebra_.max(a, b);
}

Symbolic SymbolicKernel::combined(ReduceKind kind, const std::vector<Part>& parts) {
  std::vector<Element> elements;
  FormId total = forms_.zero();
  for (const Part& part : parts) {
    std::vector<VarId> binders = part.binders;
    for (const Loop* loop : part.loops) binders.push_back(variables_[loop->factor]);
    if (kind == ReduceKind::kMax) {
      elements.push_back({binders, part.value.guard, part.value.form});
      continue;
    }
    FormId form = part.value.form;
    if (part.maximum != kNone) {
      const Symbolic& m = *values_[part.maximum];
      // With masks some element must be left at the end; what is absent is never evaluated.
      const bool masked = operand_guards_[part.maximum] != operand_presence_[part.maximum];
      const FormId last = masked ? algebra_.plain_finite(m) : algebra_.plain(m);
      const FormId back = forms_.exp(forms_.scale(last, Rational::of(-1)));
      form = forms_.multiply(form, forms_.multiply(part.factor, back));
    }
    total = forms_.add(total, forms_.sum(binders, form));
  }
  if (kind == ReduceKind::kMax) return algebra_.maximum(std::move(elements));
  return algebra_.finite(total);
}

}  // namespace sundog::verify
