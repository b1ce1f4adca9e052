// Rewrites the views of a bank to a fixpoint, and gives every class the steps that compute it.
#pragma once

#include <functional>
#include <span>
#include <string_view>

#include "search/bank.h"
#include "search/search_space.h"

namespace sundog::search {

struct Axiom {
  std::string_view name;
  std::string_view statement;
  bool SearchSpace::*enabled;
};
std::span<const Axiom> axioms();

struct RewriteReport {
  int rounds = 0;
  bool complete = true;  // false: stopped at the limit of classes or by `stop`
  int wrong = 0;         // proposals whose value is not that of their class: a wrong axiom
};

// `stop` is asked once a class.
RewriteReport saturate(Bank& bank, const SearchSpace& space, const std::function<bool()>& stop);

}  // namespace sundog::search
