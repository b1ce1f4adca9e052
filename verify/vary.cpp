// Variants of a µGraph that are as right as it is: what a verifier must not refuse.  Only what
// holds for real numbers and rounds alike is changed, so that no verdict may depend on it.
// NOLINT(sundog-mirror): declared in mutate.h
#include <algorithm>
#include <iterator>

#include "verify/mutate.h"
#include "verify/mutate_terms.h"

namespace sundog::verify {
namespace {

using mutating::Dice;
using mutating::replace_term;
using mutating::terms_of;

// Each changes the kernel and says what it did, or says nothing.

std::string exchange_operands(Kernel* kernel, Dice* dice) {
  std::vector<TermId> commutative;
  for (const TermId id : terms_of<ApplyTerm>(*kernel)) {
    const Op& op = std::get<ApplyTerm>(kernel->terms[id]).op;
    const bool exchangeable = std::holds_alternative<op::Add>(op) ||
                              std::holds_alternative<op::Mul>(op) ||
                              std::holds_alternative<op::Max>(op);
    if (exchangeable) commutative.push_back(id);
  }
  if (commutative.empty()) return {};
  const TermId chosen = dice->pick(commutative);
  auto apply = std::get<ApplyTerm>(kernel->terms[chosen]);
  if (apply.operands[0] == apply.operands[1]) return {};
  std::swap(apply.operands[0], apply.operands[1]);
  replace_term(kernel, chosen, apply);
  return "operands exchanged";
}

// x - y as x + -1 * y, x^2 as x * x.  Not x / y as x * (1 / y): 1 / y can overflow where x / y does
// not, and a verifier is right to say so.  The graph is copied with the new terms in their place.
std::string rewrite_operator(Kernel* kernel, Dice* dice) {
  const std::vector<TermId> applies = terms_of<ApplyTerm>(*kernel);
  if (applies.empty()) return {};
  const TermId chosen = dice->pick(applies);
  const auto apply = std::get<ApplyTerm>(kernel->terms[chosen]);
  const bool sub = std::holds_alternative<op::Sub>(apply.op);
  const bool square = std::holds_alternative<op::Square>(apply.op);
  if (!sub && !square) return {};
  TermGraph terms;
  std::vector<TermId> map;
  for (TermId id = 0; id < kernel->terms.size(); ++id) {
    const auto renamed = [&](TermId t) { return map[t]; };
    if (id != chosen) {
      map.push_back(terms.push(mutating::renamed(kernel->terms[id], renamed)));
      continue;
    }
    const TermId x = map[apply.operands[0]], y = map[apply.operands.back()];
    if (sub) {
      map.push_back(terms.apply(op::Add{}, {x, terms.apply(op::Neg{}, {y})}));
    } else {
      map.push_back(terms.apply(op::Mul{}, {x, x}));
    }
  }
  for (Computation& c : kernel->computations) c.value = map[c.value];
  kernel->terms = std::move(terms);
  return sub ? "a difference as a sum" : "a square as a product";
}

// Two neighbours in a body of which neither reads the other.
std::string exchange_statements(Kernel* kernel, Dice* dice) {
  std::vector<Statement>* body = &kernel->body;
  for (Statement& statement : kernel->body) {
    if (auto* loop = std::get_if<Loop>(&statement.node); loop != nullptr && dice->below(2) == 0) {
      body = &loop->body;
    }
  }
  if (body->size() < 2) return {};
  const size_t at = 1 + dice->below(body->size() - 1);
  const auto* first = std::get_if<Compute>(&(*body)[at - 1].node);
  const auto* second = std::get_if<Compute>(&(*body)[at].node);
  if (first == nullptr || second == nullptr) return {};
  const auto depends = [&](uint32_t a, uint32_t b) {
    const Computation& c = kernel->computations[a];
    if (c.rescale == b || c.accumulate_into == b) return true;
    const TermId root[] = {c.value};
    for (const TermId id : reachable(kernel->terms, root)) {
      const auto* local = std::get_if<LocalTerm>(&kernel->terms[id]);
      if (local != nullptr && local->computation == b) return true;
    }
    return false;
  };
  if (depends(first->computation, second->computation) ||
      depends(second->computation, first->computation)) {
    return {};
  }
  std::swap((*body)[at - 1], (*body)[at]);
  return "independent statements exchanged";
}

std::string change_schedule(Kernel* kernel, Dice* dice) {
  const size_t which = dice->below(3);
  if (which == 0) {
    kernel->warps = 1 << dice->below(4);
    for (Computation& c : kernel->computations) c.warps.clear();
    return "other warps";
  }
  if (which == 1) {
    if (kernel->grid.size() < 2) return {};
    std::rotate(kernel->grid.begin(), kernel->grid.begin() + 1, kernel->grid.end());
    return "the grid in another order";
  }
  Computation& c = kernel->computations[dice->below(kernel->computations.size())];
  if (c.dtype != DType::kF32 || c.mma != MmaAtom::kNoAtom) return {};
  c.storage = c.storage == Storage::kReg ? Storage::kShared : Storage::kReg;
  return "'" + c.name + "' in another storage";
}

using Variation = std::string (*)(Kernel*, Dice*);
constexpr Variation kVariations[] = {exchange_operands, rewrite_operator, exchange_statements,
                                     change_schedule};

}  // namespace

std::optional<Mutant> vary(const MuGraph& graph, const Program& program, uint64_t seed) {
  if (graph.kernels.empty()) return std::nullopt;
  Dice dice(prf(seed, 0x76));
  Mutant variant{graph, Mutation::kWrongOperand, {}};
  const size_t steps = 1 + dice.below(4);
  for (size_t i = 0; i < steps; ++i) {
    MuGraph next = variant.graph;
    Kernel& kernel = next.kernels[dice.below(next.kernels.size())];
    if (kernel.computations.empty()) continue;
    const std::string what = kVariations[dice.below(std::size(kVariations))](&kernel, &dice);
    if (what.empty() || !check(next, program).ok()) continue;
    variant.what += (variant.what.empty() ? "kernel " : "; kernel ") + kernel.name + ": " + what;
    variant.graph = std::move(next);
  }
  if (variant.graph == graph) return std::nullopt;
  return variant;
}

}  // namespace sundog::verify
