// Mutation of µGraphs.  A mutant is built by copying a kernel's terms with one of them replaced;
// nothing of the verifier is used to choose it, so that what the verifier overlooks is not what is
// never tried.
#include "verify/mutate.h"

#include <algorithm>
#include <variant>

#include "core/check.h"
#include "verify/mutate_terms.h"

namespace sundog::verify {
namespace {

using mutating::Dice;
using mutating::replace_term;
using mutating::terms_of;

void collect_stores(std::vector<Statement>* body, std::vector<Store*>* stores) {
  for (Statement& statement : *body) {
    if (auto* store = std::get_if<Store>(&statement.node)) stores->push_back(store);
    if (auto* loop = std::get_if<Loop>(&statement.node)) collect_stores(&loop->body, stores);
  }
}

void collect_conditions(std::vector<Statement>* body, std::vector<IndexCondition*>* conditions) {
  for (Statement& statement : *body) {
    auto* loop = std::get_if<Loop>(&statement.node);
    if (loop == nullptr) continue;
    for (IndexCondition& c : loop->trim) conditions->push_back(&c);
    collect_conditions(&loop->body, conditions);
  }
}

// Each of the following changes `kernel` and says what it did, or leaves it and says nothing.

std::string drop_accumulator(Kernel* kernel, Dice* dice) {
  std::vector<uint32_t> accumulators;
  for (uint32_t c = 0; c < kernel->computations.size(); ++c) {
    if (!accumulated_loops(*kernel, c).empty()) accumulators.push_back(c);
  }
  if (accumulators.empty()) return {};
  const uint32_t chosen = dice->pick(accumulators);
  Computation& c = kernel->computations[chosen];
  if (c.accumulate_into != kNone && dice->below(2) == 0) {
    c.accumulate_into = kNone;
    return "'" + c.name + "' is no longer added to another accumulator";
  }
  auto reduce = std::get<ReduceTerm>(kernel->terms[c.value]);
  reduce.axes = reduce.axes - accumulated_loops(*kernel, chosen);
  c.rescale = kNone;
  const std::string name = c.name;
  replace_term(kernel, c.value, reduce);
  return "'" + name + "' keeps only the last iteration";
}

std::string wrong_split(Kernel* kernel, Dice* dice) {
  std::vector<std::pair<size_t, size_t>> pairs;
  for (size_t i = 0; i < kernel->factors.size(); ++i) {
    for (size_t j = i + 1; j < kernel->factors.size(); ++j) {
      if (kernel->factors[i].axis == kernel->factors[j].axis) pairs.emplace_back(i, j);
    }
  }
  if (pairs.empty()) return {};
  // The reads that the strides went into are indices of their own: exchange the factors there.
  const auto [i, j] = dice->pick(pairs);
  const auto a = static_cast<AxisId>(i), b = static_cast<AxisId>(j);
  const std::vector<TermId> inputs = terms_of<InputTerm>(*kernel);
  std::vector<TermId> using_both;
  for (const TermId id : inputs) {
    if (kernel->terms.axes(id).has(a) && kernel->terms.axes(id).has(b)) using_both.push_back(id);
  }
  if (using_both.empty()) return {};
  const TermId chosen = dice->pick(using_both);
  auto input = std::get<InputTerm>(kernel->terms[chosen]);
  std::vector<IndexExpr> exchange;
  for (AxisId f = 0; f < kernel->factors.size(); ++f) {
    exchange.push_back(IndexExpr::of(f == a ? b : f == b ? a : f));
  }
  for (IndexExpr& e : input.index) e = substitute(e, exchange);
  replace_term(kernel, chosen, input);
  return "a read exchanges " + kernel->factors[a].name + " and " + kernel->factors[b].name;
}

std::string drop_mask(Kernel* kernel, Dice* dice) {
  const std::vector<TermId> selects = terms_of<SelectTerm>(*kernel);
  if (selects.empty()) return {};
  const TermId chosen = dice->pick(selects);
  auto select = std::get<SelectTerm>(kernel->terms[chosen]);
  select.otherwise = select.then;
  replace_term(kernel, chosen, select);
  return "a mask is left out";
}

std::string wrong_axis(Kernel* kernel, Dice* dice) {
  const std::vector<TermId> inputs = terms_of<InputTerm>(*kernel);
  if (inputs.empty() || kernel->factors.size() < 2) return {};
  const TermId chosen = dice->pick(inputs);
  auto input = std::get<InputTerm>(kernel->terms[chosen]);
  const auto from = static_cast<AxisId>(dice->below(kernel->factors.size()));
  const auto to = static_cast<AxisId>(dice->below(kernel->factors.size()));
  if (from == to || !kernel->terms.axes(chosen).has(from)) return {};
  std::vector<IndexExpr> map;
  for (AxisId f = 0; f < kernel->factors.size(); ++f)
    map.push_back(IndexExpr::of(f == from ? to : f));
  for (IndexExpr& e : input.index) e = substitute(e, map);
  replace_term(kernel, chosen, input);
  return "a read uses " + kernel->factors[to].name + " for " + kernel->factors[from].name;
}

std::string off_by_one(Kernel* kernel, Dice* dice) {
  std::vector<IndexCondition*> conditions;
  collect_conditions(&kernel->body, &conditions);
  const int64_t by = dice->below(2) == 0 ? 1 : -1;
  if (!conditions.empty() && dice->below(2) == 0) {
    dice->pick(conditions)->expr.constant += by;
    return "the trim of a loop is off by one";
  }
  const std::vector<TermId> selects = terms_of<SelectTerm>(*kernel);
  if (!selects.empty() && dice->below(2) == 0) {
    const TermId chosen = dice->pick(selects);
    auto select = std::get<SelectTerm>(kernel->terms[chosen]);
    select.condition.expr.constant += by;
    replace_term(kernel, chosen, select);
    return "a mask is off by one";
  }
  const std::vector<TermId> inputs = terms_of<InputTerm>(*kernel);
  if (inputs.empty()) return {};
  const TermId chosen = dice->pick(inputs);
  auto input = std::get<InputTerm>(kernel->terms[chosen]);
  if (input.index.empty()) return {};
  input.index[dice->below(input.index.size())].constant += by;
  replace_term(kernel, chosen, input);
  return "a read is off by one";
}

std::string wrong_operand(Kernel* kernel, Dice* dice) {
  const std::vector<TermId> applies = terms_of<ApplyTerm>(*kernel);
  if (applies.empty()) return {};
  const TermId chosen = dice->pick(applies);
  auto apply = std::get<ApplyTerm>(kernel->terms[chosen]);
  const size_t position = dice->below(apply.operands.size());
  std::vector<TermId> others;
  for (TermId id = 0; id < chosen; ++id) {
    const bool fits = kernel->terms.axes(chosen).contains(kernel->terms.axes(id));
    if (fits && id != apply.operands[position]) others.push_back(id);
  }
  if (others.empty()) return {};
  apply.operands[position] = dice->pick(others);
  replace_term(kernel, chosen, apply);
  return "an operand of '" + std::string(name(apply.op)) + "' is another term";
}

std::string wrong_operator(Kernel* kernel, Dice* dice) {
  const std::vector<TermId> reduces = terms_of<ReduceTerm>(*kernel);
  if (!reduces.empty() && dice->below(4) == 0) {
    const TermId chosen = dice->pick(reduces);
    auto reduce = std::get<ReduceTerm>(kernel->terms[chosen]);
    const bool sum = reduce.kind == ReduceKind::kSum;
    reduce.kind = sum ? ReduceKind::kMax : ReduceKind::kSum;
    replace_term(kernel, chosen, reduce);
    return sum ? "a sum is a maximum" : "a maximum is a sum";
  }
  const std::vector<TermId> applies = terms_of<ApplyTerm>(*kernel);
  if (applies.empty()) return {};
  const TermId chosen = dice->pick(applies);
  auto apply = std::get<ApplyTerm>(kernel->terms[chosen]);
  std::vector<Op> others;
  for_each_op([&]<class O>() {
    if (O::arity == arity(apply.op) && !(Op(O{}) == apply.op)) others.push_back(O{});
  });
  const std::string before(name(apply.op));
  apply.op = dice->pick(others);
  replace_term(kernel, chosen, apply);
  return "'" + before + "' is '" + std::string(name(apply.op)) + "'";
}

std::string drop_rescale(Kernel* kernel, Dice* dice) {
  std::vector<size_t> rescaled;
  for (size_t i = 0; i < kernel->computations.size(); ++i) {
    if (kernel->computations[i].rescale != kNone) rescaled.push_back(i);
  }
  if (rescaled.empty()) return {};
  Computation& c = kernel->computations[dice->pick(rescaled)];
  c.rescale = kNone;
  return "'" + c.name + "' forgets its running maximum";
}

std::string swap_stores(Kernel* kernel, Dice* dice) {
  std::vector<Store*> stores;
  collect_stores(&kernel->body, &stores);
  if (stores.empty()) return {};
  Store& first = *dice->pick(stores);
  Store& second = *dice->pick(stores);
  if (&first != &second) {
    std::swap(first.computation, second.computation);
    return "two stores are exchanged";
  }
  first.computation = static_cast<uint32_t>(dice->below(kernel->computations.size()));
  return "'" + kernel->computations[first.computation].name + "' is stored instead";
}

// The bodies of a kernel, the outermost first.
void collect_bodies(std::vector<Statement>* body, std::vector<std::vector<Statement>*>* bodies) {
  bodies->push_back(body);
  for (Statement& statement : *body) {
    if (auto* loop = std::get_if<Loop>(&statement.node)) collect_bodies(&loop->body, bodies);
  }
}

std::string wrong_place(Kernel* kernel, Dice* dice) {
  std::vector<std::vector<Statement>*> bodies;
  collect_bodies(&kernel->body, &bodies);
  std::vector<Statement>& body = *dice->pick(bodies);
  if (body.size() < 2) return {};
  const size_t at = 1 + dice->below(body.size() - 1);
  auto* loop = std::get_if<Loop>(&body[at].node);
  if (loop != nullptr && !loop->body.empty() && dice->below(2) == 0) {
    const Statement first = loop->body.front();
    loop->body.erase(loop->body.begin());
    body.insert(body.begin() + static_cast<std::ptrdiff_t>(at), first);
    return "the first statement of a loop stands before it";
  }
  std::swap(body[at - 1], body[at]);
  return "two statements are exchanged";
}

std::string wrong_layout(Kernel* kernel, Dice* dice) {
  std::vector<Store*> stores;
  collect_stores(&kernel->body, &stores);
  if (stores.empty()) return {};
  Store& store = *dice->pick(stores);
  if (store.index.empty()) return {};
  const size_t d = dice->below(store.index.size()), e = dice->below(store.index.size());
  if (d != e) {
    std::swap(store.index[d], store.index[e]);
    return "a store exchanges two dimensions";
  }
  if (store.index[d].axes.empty()) return {};
  auto& item = store.index[d].axes[dice->below(store.index[d].axes.size())];
  item.coefficient += dice->below(2) == 0 ? 1 : -1;
  if (item.coefficient == 0) item.coefficient = 1;
  return "a store has another stride";
}

std::string apply_mutation(Mutation mutation, Kernel* kernel, Dice* dice) {
  switch (mutation) {
    case Mutation::kDroppedAccumulator:
      return drop_accumulator(kernel, dice);
    case Mutation::kWrongSplit:
      return wrong_split(kernel, dice);
    case Mutation::kMissingMask:
      return drop_mask(kernel, dice);
    case Mutation::kWrongAxis:
      return wrong_axis(kernel, dice);
    case Mutation::kOffByOne:
      return off_by_one(kernel, dice);
    case Mutation::kWrongOperand:
      return wrong_operand(kernel, dice);
    case Mutation::kWrongOperator:
      return wrong_operator(kernel, dice);
    case Mutation::kDroppedRescale:
      return drop_rescale(kernel, dice);
    case Mutation::kSwappedStores:
      return swap_stores(kernel, dice);
    case Mutation::kWrongPlace:
      return wrong_place(kernel, dice);
    case Mutation::kWrongLayout:
      return wrong_layout(kernel, dice);
  }
  SUNDOG_CHECK(false);
}

}  // namespace

std::optional<Mutant> mutate(const MuGraph& graph, const Program& program, uint64_t seed) {
  if (graph.kernels.empty()) return std::nullopt;
  Dice dice(seed);
  Mutant mutant{graph, static_cast<Mutation>(seed % kMutationCount), {}};
  Kernel& kernel = mutant.graph.kernels[dice.below(graph.kernels.size())];
  const std::string what = apply_mutation(mutant.mutation, &kernel, &dice);
  if (what.empty() || mutant.graph == graph || !check(mutant.graph, program).ok()) {
    return std::nullopt;
  }
  mutant.what = "kernel " + kernel.name + ": " + what;
  return mutant;
}

}  // namespace sundog::verify
