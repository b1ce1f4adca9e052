// What mutate.cpp and vary.cpp have in common: dice, and a kernel with one of its terms replaced.
// NOLINT(sundog-mirror): the insides of mutate.h
#pragma once

#include <functional>
#include <variant>
#include <vector>

#include "core/mugraph.h"
#include "verify/prime_field.h"

namespace sundog::verify::mutating {

class Dice {
 public:
  explicit Dice(uint64_t seed) : seed_(seed) {}
  size_t below(size_t n) { return static_cast<size_t>(prf(seed_, count_++, 0x6d75) % n); }
  template <class T>
  const T& pick(const std::vector<T>& from) {
    return from[below(from.size())];
  }

 private:
  uint64_t seed_, count_ = 0;
};

// A copy of the term with its operands renamed.
inline Term renamed(Term term, const std::function<TermId(TermId)>& f) {
  if (auto* apply = std::get_if<ApplyTerm>(&term)) {
    for (TermId& t : apply->operands) t = f(t);
  } else if (auto* reduce = std::get_if<ReduceTerm>(&term)) {
    reduce->operand = f(reduce->operand);
  } else if (auto* select = std::get_if<SelectTerm>(&term)) {
    select->then = f(select->then);
    select->otherwise = f(select->otherwise);
  } else if (auto* compare = std::get_if<CompareTerm>(&term)) {
    for (TermId* t : {&compare->left, &compare->right, &compare->then, &compare->otherwise}) {
      *t = f(*t);
    }
  }
  return term;
}

// The kernel with term `target` replaced; operands of `replacement` are earlier terms of the old
// graph.
inline void replace_term(Kernel* kernel, TermId target, const Term& replacement) {
  TermGraph terms;
  std::vector<TermId> map;
  for (TermId id = 0; id < kernel->terms.size(); ++id) {
    const Term& source = id == target ? replacement : kernel->terms[id];
    map.push_back(terms.push(renamed(source, [&](TermId t) { return map[t]; })));
  }
  for (Computation& c : kernel->computations) c.value = map[c.value];
  kernel->terms = std::move(terms);
}

template <class T>
std::vector<TermId> terms_of(const Kernel& kernel) {
  std::vector<TermId> roots, found;
  for (const Computation& c : kernel.computations) roots.push_back(c.value);
  for (const TermId id : reachable(kernel.terms, roots)) {
    if (std::holds_alternative<T>(kernel.terms[id])) found.push_back(id);
  }
  return found;
}

}  // namespace sundog::verify::mutating
