// Lowering: each term of a kernel becomes an expression or a computation at its place.
//
// Statements are collected in slots, flat at a stage or in the loop of a stage over an axis; a term
// is built when its first reader asks, so within a slot operands come first, and between slots the
// stages order them.  Sums over several factors in a row become one reduction: over loop and tile
// factors together it is an accumulator, and what it sums is never materialised.
#include "search/lower.h"

#include <algorithm>

#include "core/check.h"
#include "search/hoist_loads.h"
#include "search/kernel_lowerer.h"
#include "search/roles.h"
#include "search/term_copy.h"

namespace sundog::search {

Lowerer::Lowerer(const Bank& bank, const TermTable& table)
    : bank_(bank),
      table_(table),
      plan_(empty_plan(bank.program())),
      narrow_is_f16_(
          std::any_of(bank.program().inputs.begin(), bank.program().inputs.end(),
                      [](const TensorDecl& input) { return input.dtype == DType::kF16; })) {}

void Lowerer::clear() {
  const Program& program = bank_.program();
  plan_.kernels.clear();
  plan_.parts.clear();
  plan_.graph.axes.resize(program.axes.size());
  plan_.graph.tensors.resize(program.inputs.size() + program.outputs.size());
  tensors_.clear();
  part_of_.clear();
}

void Lowerer::add_kernel(const KernelBody& body, const KernelShape& shape,
                         const RankSet& loaded_later) {
  KernelPlan kernel = KernelLowerer(*this, body, shape, loaded_later).run();
  kernel.kernel.name = "k" + std::to_string(plan_.kernels.size());
  hoist_loads(plan_.graph, kernel.kernel);
  separate_operands(kernel.kernel);
  // Copies of accumulators are as wide as those.
  for (const std::string& name : std::set<std::string>(kernel.wide)) kernel.wide.insert(name + "c");
  plan_.kernels.push_back(std::move(kernel));
}

uint32_t Lowerer::intermediate(int rank) {
  const auto it = tensors_.find(rank);
  if (it != tensors_.end()) return it->second;
  const RankedTerm& t = table_.terms[static_cast<size_t>(rank)];
  std::vector<AxisId> axes;
  // Partial axes outermost: each block then writes one run.
  for (const auto& [part, index] : part_of_) {
    if (t.axes.has(part) && !t.axes.has(bank_.base(bank_.axes()[part].base).tile)) {
      axes.push_back(plan_.parts[static_cast<size_t>(index)].mu_axis);
    }
  }
  for (AxisId b = 0; b < bank_.base_count(); ++b) {
    const BaseAxis& base = bank_.base(b);
    if (t.axes.has(base.reduced ? base.tile : base.whole)) axes.push_back(b);
  }
  std::string name =
      "p_" + (bank_[t.id].name.empty() ? "t" + std::to_string(rank) : bank_[t.id].name);
  const auto taken = [&](const DeviceTensor& d) { return d.decl.name == name; };
  while (std::any_of(plan_.graph.tensors.begin(), plan_.graph.tensors.end(), taken)) name += "_";
  return tensors_[rank] = add_intermediate(plan_.graph, name, axes);
}

KernelLowerer::KernelLowerer(Lowerer& parent, const KernelBody& body, const KernelShape& shape,
                             const RankSet& loaded_later)
    : parent_(parent),
      bank_(parent.bank_),
      table_(parent.table_),
      body_(body),
      shape_(shape),
      loaded_later_(loaded_later),
      position_(parent.table_.terms.size(), -1) {
  for (size_t i = 0; i < body.items.size(); ++i) {
    position_[static_cast<size_t>(body.items[i].term)] = static_cast<int>(i);
  }
}

KernelPlan KernelLowerer::run() {
  add_splits();
  index_program();
  count_uses();
  mark_operands();
  mark_invariants();
  mark_running_maxima();
  std::vector<int> outputs = body_.outputs;
  std::sort(outputs.begin(), outputs.end());
  for (int o : outputs) store(o);
  plan_.kernel.body = assemble();
  return std::move(plan_);
}

const RankedNode* KernelLowerer::node(int rank) const {
  if (position(rank) < 0) return nullptr;
  const int n = body_.items[static_cast<size_t>(position(rank))].node;
  return n < 0 ? nullptr : &term(rank).nodes[static_cast<size_t>(n)];
}

bool KernelLowerer::is_output(int rank) const {
  return std::find(body_.outputs.begin(), body_.outputs.end(), rank) != body_.outputs.end();
}

bool KernelLowerer::has_kind(int rank, NodeKind kind) const {
  const RankedNode* n = node(rank);
  return n != nullptr && n->node.kind == kind;
}

bool KernelLowerer::over_loop(int rank) const {
  const RankedNode* n = node(rank);
  return n != nullptr && is_reduction(n->node.kind) && shape_.loop_factors.has(n->node.axis);
}

bool KernelLowerer::over_inner_loop(int rank) const {
  const RankedNode* n = node(rank);
  return n != nullptr && is_reduction(n->node.kind) && shape_.inner_factors.has(n->node.axis);
}

bool KernelLowerer::is_deeper(int rank, int other) const {
  return in_inner_loop(rank) ? !in_inner_loop(other) : in_loop(rank) && !in_loop(other);
}

// What is in a loop is computed where its reader is, once more for readers at other stages.
KernelLowerer::Place KernelLowerer::place_of(int rank, Place at) const {
  if (in_inner_loop(rank)) return at;
  if (in_loop(rank)) return {at.stage, at.loop, inner_stage(rank)};
  return {stage(rank), kNoAxis, inner_stage(rank)};
}

KernelLowerer::Place KernelLowerer::place_of_operands(int rank, Place known) const {
  if (over_loop(rank)) {
    return {stage(rank) - 1, bank_.axes()[node(rank)->node.axis].base, inner_at(rank)};
  }
  if (over_inner_loop(rank)) known.inner = inner_at(rank);
  return known;
}

KernelLowerer::Slot KernelLowerer::slot_of(int rank, Place known) const {
  const Place place = place_of_operands(rank, known);
  if (over_inner_loop(rank)) return {place, bank_.axes()[node(rank)->node.axis].base};
  return {place, inner_base(term(rank).axes)};
}

TermId KernelLowerer::value(int rank, Place at) {
  TermGraph& g = plan_.kernel.terms;
  if (term(rank).leaf == LeafKind::kConstant) {
    const TermClass& c = term_class(rank);
    for (const View& v : c.views) {
      if (v.kind == ViewKind::kProduct && v.factors.size() == 1 && v.factors[0] == bank_.one()) {
        return to_term(v.coefficient, g);
      }
    }
    if (c.term == kNoTerm) return g.constant(Number(1));
    return g.constant(std::get<ConstantTerm>(bank_.program().terms[c.term]).value);
  }
  if (node(rank) == nullptr) return load(rank);
  const Place when = place_of(rank, at);
  const auto key = std::make_pair(rank, when);
  if (const auto it = done_.find(key); it != done_.end()) return it->second;
  // A stored term may be read both at this block's part and at all parts: its reader says which.
  const AxisSet outer = reader_whole_;
  reader_whole_ = whole(rank);
  TermId made = kNoTerm;
  if (running_.contains(rank)) {
    made = read(running_maximum(rank, when));
  } else if (is_reduction(node(rank)->node.kind)) {
    made = reduction(rank, when);
  } else if (wants_computation(rank)) {
    made = compute(rank, build(rank, when), slot_of(rank, when), kNone);
  } else {
    made = build(rank, when);
  }
  reader_whole_ = outer;
  done_[key] = made;
  return made;
}

TermId KernelLowerer::load(int rank) {
  const RankedTerm& t = term(rank);
  TermGraph& g = plan_.kernel.terms;
  if (t.leaf != LeafKind::kNone) {
    return of_program_->copy(term_class(rank).term);
  }
  const uint32_t tensor = parent_.intermediate(rank);
  const TensorDecl& decl = parent_.plan_.graph.tensors[tensor].decl;
  InputTerm in{tensor, {}};
  for (const IndexExpr& dim : decl.dims) {
    AxisId axis = 0;
    SUNDOG_CHECK(dim.is_axis(&axis));
    if (axis < bank_.base_count()) {
      in.index.push_back(axis_index(plan_.kernel, axis));
      continue;
    }
    for (const auto& [part, index] : parent_.part_of_) {
      if (parent_.plan_.parts[static_cast<size_t>(index)].mu_axis != axis) continue;
      in.index.push_back(part_position(part, reader_whole_.has(part)));
    }
  }
  return g.push(std::move(in));
}

TermId KernelLowerer::build(int rank, Place at) {
  const RankedNode& n = *node(rank);
  TermGraph& g = plan_.kernel.terms;
  switch (n.node.kind) {
    case NodeKind::kProduct:
      return build_product(n, at);
    case NodeKind::kLinear:
      return build_linear(n, at);
    case NodeKind::kScale: {
      const TermId x = value(n.operands[0], at);
      return scale(n.node.ca, x, g);
    }
    case NodeKind::kExp:
      return g.apply(op::Exp{}, {value(n.operands[0], at)});
    case NodeKind::kReciprocal: {
      const TermId x = value(n.operands[0], at);
      return g.apply(op::Div{}, {g.constant(Number(1)), x});
    }
    case NodeKind::kOpaque: {
      Term t = bank_.opaque(n.node.opaque).term;
      std::vector<TermId> in;
      for (int o : n.operands) in.push_back(value(o, at));
      if (auto* select = std::get_if<SelectTerm>(&t)) {
        select->condition.expr = substitute(select->condition.expr, program_index_);
        select->then = in[0];
        select->otherwise = in[1];
      } else if (auto* compare = std::get_if<CompareTerm>(&t)) {
        compare->left = in[0];
        compare->right = in[1];
        compare->then = in[2];
        compare->otherwise = in[3];
      } else {
        std::get<ApplyTerm>(t).operands = in;
      }
      return g.push(std::move(t));
    }
    case NodeKind::kSum:
    case NodeKind::kMax:
    case NodeKind::kOnlineSum:
      break;
  }
  SUNDOG_CHECK(false);
}

// A partial maximum over elements that a mask may have set to -inf, all of them.
bool KernelLowerer::may_be_all_masked(int rank) const {
  if (!term_class(rank).reaches_minus_infinity) return false;
  const TermClass& c = term_class(rank);
  const bool is_maximum = std::any_of(c.views.begin(), c.views.end(),
                                      [](const View& v) { return v.kind == ViewKind::kMax; });
  bool is_partial = false;
  for (AxisId a : c.axes) {
    is_partial |= bank_.axes()[a].level == Level::kStep || bank_.axes()[a].level == Level::kPart;
  }
  return is_maximum && is_partial;
}

// The partial maximum, or 0 where all that it is of is masked: then exp(s - 0) = exp(-inf) = 0 is
// what exp(s - m) has to be, and s - m would be the difference of two infinities.
TermId KernelLowerer::finite_maximum(TermId maximum) {
  TermGraph& g = plan_.kernel.terms;
  const TermId none = g.constant(Number::infinity(true)), zero = g.constant(Number(0));
  return g.push(CompareTerm{Relation::kEqual, maximum, none, zero, maximum});
}

// x * (1 / y) is a quotient where nothing else needs the reciprocal.
TermId KernelLowerer::build_product(const RankedNode& n, Place at) {
  TermGraph& g = plan_.kernel.terms;
  for (int i : {1, 0}) {
    const int r = n.operands[static_cast<size_t>(i)],
              other = n.operands[static_cast<size_t>(1 - i)];
    if (!has_kind(r, NodeKind::kReciprocal) || wants_computation(r) || r == other) continue;
    const TermId x = value(other, at);
    return g.apply(op::Div{}, {x, value(node(r)->operands[0], at)});
  }
  // A computed operand first, so that products of one chain agree on their rows.
  int first = n.operands[0], second = n.operands[1];
  if (node(first) == nullptr && node(second) != nullptr) std::swap(first, second);
  const TermId a = value(first, at), b = value(second, at);
  return g.apply(op::Mul{}, {a, b});
}

TermId KernelLowerer::build_linear(const RankedNode& n, Place at) {
  TermGraph& g = plan_.kernel.terms;
  const auto scaled = [&](const Coefficient& c, int rank) {
    if (term(rank).id == bank_.one()) return to_term(c, g);
    return scale(c, value(rank, at), g);
  };
  Coefficient first = n.node.ca, second = n.node.cb;
  int a = n.operands[0], b = n.operands[1];
  if (first.is_negative() && !second.is_negative()) {
    std::swap(first, second);
    std::swap(a, b);
  } else if (term(a).id == bank_.one() && !second.is_negative()) {
    std::swap(first, second);
    std::swap(a, b);
  }
  const TermId x = scaled(first, a);
  if (second.negated().is_one() && may_be_all_masked(b)) {
    return g.apply(op::Sub{}, {x, finite_maximum(value(b, at))});
  }
  if (second.is_negative()) return g.apply(op::Sub{}, {x, scaled(second.negated(), b)});
  return g.apply(op::Add{}, {x, scaled(second, b)});
}

// The reductions of one kind below `rank` that nothing else reads, as one: gives what is reduced.
TermId KernelLowerer::reduce_chain(int rank, Place at, AxisSet& axes) {
  const RankedNode& n = *node(rank);
  axes.insert(n.node.axis);
  if (bank_.axes()[n.node.axis].level == Level::kPart) reader_whole_.insert(n.node.axis);
  const int below = n.operands[0];
  if (has_kind(below, n.node.kind) && !is_output(below) && uses_[static_cast<size_t>(below)] == 1 &&
      !over_loop(below) && !over_inner_loop(below) && !running_.contains(below)) {
    return reduce_chain(below, at, axes);
  }
  return summand(below, at);
}

// What a reduction runs over: a product is written in place, so that it is never materialised.
TermId KernelLowerer::summand(int rank, Place at) {
  if (has_kind(rank, NodeKind::kProduct)) return build_product(*node(rank), at);
  if (written_in_place(rank)) return build(rank, at);
  return value(rank, at);
}

TermId KernelLowerer::reduction(int rank, Place at) {
  const RankedNode& n = *node(rank);
  if (n.node.kind == NodeKind::kOnlineSum) return online_sum(rank);
  const Place inside = place_of_operands(rank, at);
  if (n.node.kind == NodeKind::kMax && over_loop(rank) && running_.contains(n.operands[0])) {
    return read(running_maximum(n.operands[0], inside));
  }
  AxisSet axes;
  const TermId operand = reduce_chain(rank, inside, axes);
  const AxisSet factors = factors_of_axes(axes, axes);
  if (factors.empty()) {
    return is_output(rank) || uses_[static_cast<size_t>(rank)] > 1
               ? compute(rank, operand, slot_of(rank, at), kNone)
               : operand;
  }
  const ReduceKind kind = n.node.kind == NodeKind::kMax ? ReduceKind::kMax : ReduceKind::kSum;
  const TermId reduced = plan_.kernel.terms.reduce(kind, factors, operand);
  return compute(rank, reduced, slot_of(rank, at), kNone);
}

uint32_t KernelLowerer::running_maximum(int m, Place at) {
  const auto key = std::make_pair(m, at.stage);
  if (const auto it = maxima_.find(key); it != maxima_.end()) return it->second;
  const AxisId base = loop_base(term(m).axes);
  SUNDOG_CHECK(base != kNoAxis);
  AxisSet axes = AxisSet::of(bank_.base(base).step);
  const TermId operand = running_.contains(m) ? reduce_chain(m, at, axes) : value(m, at);
  const TermId reduced =
      plan_.kernel.terms.reduce(ReduceKind::kMax, factors_of_axes(axes, {}), operand);
  const TermId local = compute(m, reduced, {{at.stage, base, inner_stage(m)}}, kNone);
  return maxima_[key] = std::get<LocalTerm>(plan_.kernel.terms[local]).computation;
}

TermId KernelLowerer::online_sum(int rank) {
  const RankedNode& n = *node(rank);
  TermGraph& g = plan_.kernel.terms;
  const Place inside = place_of_operands(rank, {});
  const int m = n.operands[0], t = n.operands[1];
  const uint32_t maximum = running_maximum(m, inside);
  AxisSet axes = AxisSet::of(n.node.axis);
  TermId operand = kNoTerm;
  if (running_.contains(m)) {
    const bool chained = has_kind(t, NodeKind::kSum) && !is_output(t) && !over_loop(t) &&
                         !over_inner_loop(t) && uses_[static_cast<size_t>(t)] == 1;
    operand = chained ? reduce_chain(t, inside, axes) : summand(t, inside);
  } else {
    TermId known = read(maximum);
    if (term_class(m).reaches_minus_infinity) known = finite_maximum(known);
    const TermId factor = g.apply(op::Exp{}, {g.apply(op::Sub{}, {value(m, inside), known})});
    operand = g.apply(op::Mul{}, {value(t, inside), factor});
  }
  const TermId sum = g.reduce(ReduceKind::kSum, factors_of_axes(axes, {}), operand);
  return compute(rank, sum, {inside}, maximum);
}

TermId KernelLowerer::compute(int rank, TermId value, Slot slot, uint32_t rescale) {
  Kernel& k = plan_.kernel;
  AxisSet axes = term(rank).axes;
  // A running maximum is kept from one iteration to the next: the loop is no axis of it.
  const auto* reduce = std::get_if<ReduceTerm>(&k.terms[value]);
  AxisSet factors = factors_of_axes(axes, whole(rank));
  if (reduce != nullptr) factors = factors - reduce->axes;
  for (AxisId f : k.grid) factors.erase(f);
  for (const Split& s : plan_.splits) {
    if (s.looped) factors.erase(s.outer);
  }
  Computation c;
  c.name = fresh_name(rank);
  for (AxisId f : factors) c.axes.push_back(f);
  c.value = value;
  c.rescale = rescale;
  const bool unbounded = (term_class(rank).range & kUnboundedExp) != 0;
  if (unbounded && parent_.narrow_is_f16_) plan_.wide.insert(c.name);
  const uint32_t id = static_cast<uint32_t>(k.computations.size());
  k.computations.push_back(std::move(c));
  slots_[slot].push_back({Compute{id}});
  return read(id);
}

TermId KernelLowerer::read(uint32_t computation) {
  AxisSet axes;
  for (AxisId f : plan_.kernel.computations[computation].axes) axes.insert(f);
  return plan_.kernel.terms.local(computation, axes);
}

std::string KernelLowerer::fresh_name(int rank) {
  std::string base = term_class(rank).name;
  if (base.empty()) base = "t" + std::to_string(rank);
  std::replace(base.begin(), base.end(), '.', '_');
  for (char& c : base) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  const auto is_tensor = [&](const std::string& name) {
    return std::any_of(parent_.plan_.graph.tensors.begin(), parent_.plan_.graph.tensors.end(),
                       [&](const DeviceTensor& t) { return t.decl.name == name; });
  };
  std::string name = base;
  for (int n = 2; is_tensor(name) || !names_.insert(name).second; ++n) {
    name = base + "_" + std::to_string(n);
  }
  return name;
}

void KernelLowerer::store(int rank) {
  const Place at{stage(rank), loop_base(term(rank).axes), inner_stage(rank)};
  TermId stored = value(rank, at);
  const auto* local = std::get_if<LocalTerm>(&plan_.kernel.terms[stored]);
  const Slot slot{at, inner_base(term(rank).axes)};
  if (local == nullptr) {
    stored = compute(rank, stored, slot, kNone);
    local = std::get_if<LocalTerm>(&plan_.kernel.terms[stored]);
  }
  const uint32_t computation = local->computation;
  const auto put = [&](uint32_t tensor) {
    Store s{computation, tensor, {}};
    for (const IndexExpr& dim : parent_.plan_.graph.tensors[tensor].decl.dims) {
      AxisId axis = 0;
      if (dim.is_axis(&axis) && axis >= bank_.base_count()) {
        for (const auto& [part, index] : parent_.part_of_) {
          if (parent_.plan_.parts[static_cast<size_t>(index)].mu_axis == axis) {
            s.index.push_back(part_position(part, whole(rank).has(part)));
          }
        }
      } else {
        s.index.push_back(substitute(dim, program_index_));
      }
    }
    slots_[slot].push_back({std::move(s)});
  };
  const size_t inputs = bank_.program().inputs.size();
  bool is_result = false;
  for (size_t o = 0; o < table_.outputs.size(); ++o) {
    if (table_.outputs[o] != rank) continue;
    put(static_cast<uint32_t>(inputs + o));
    is_result = true;
  }
  if (!is_result || loaded_later_.has(rank)) put(parent_.intermediate(rank));
}

std::vector<Statement> KernelLowerer::assemble() {
  const auto put = [&](AxisId loop, std::vector<Statement> statements,
                       std::vector<Statement>& body) {
    if (loop == kNoAxis) {
      std::move(statements.begin(), statements.end(), std::back_inserter(body));
    } else {
      body.push_back({Loop{plan_.splits[split_of_.at(loop)].outer, 1, {}, std::move(statements)}});
    }
  };
  std::vector<Statement> all;
  for (auto it = slots_.begin(); it != slots_.end();) {
    const Place place = it->first.place;
    std::vector<Statement> body;
    for (; it != slots_.end() && it->first.place.body() == place.body(); ++it) {
      put(it->first.inner_loop, std::move(it->second), body);
    }
    put(place.loop, std::move(body), all);
  }
  return all;
}

}  // namespace sundog::search
