// Each choice of axes with parts has a bank of its own: with every axis cut there would be more
// terms than can be searched, most of them partial results that nothing joins.
#include "search/make_bank.h"

#include <algorithm>

#include "search/import.h"
#include "search/rewrite.h"
#include "search/sizes.h"

namespace sundog::search {

MadeBank make_bank(const Program& program, AxisSet parts, uint64_t seed, const SearchSpace& space,
                   const Machine& machine, const std::function<bool()>& stop) {
  BankOptions o;
  o.parts = parts;
  o.seed = seed;
  o.shortest_loop = space.shortest_loop;
  o.rounding = space.rounding;
  MadeBank made;
  made.run.bank = std::make_unique<Bank>(program, o);
  Bank& bank = *made.run.bank;
  const auto outputs = import_program(bank);
  if (!outputs.ok()) {
    made.notes.push_back(outputs.error().message);
    return made;
  }
  const RewriteReport r = saturate(bank, space, stop);
  if (bank.failure()) {
    made.notes.push_back("the program is not searched: " + *bank.failure());
    return made;
  }
  if (!r.complete) made.notes.push_back("rewriting stopped before it was complete");
  if (r.wrong > 0) {
    made.notes.push_back("rewriting proposed " + std::to_string(r.wrong) + " unequal terms");
  }
  made.run.table = term_table(bank, *outputs, machine, space.store_anything);
  made.terms = made.run.table.terms.size();
  made.usable = !made.run.table.too_large;
  const auto& ranks = made.run.table.outputs;
  if (std::any_of(ranks.begin(), ranks.end(), [](int rank) { return rank < 0; })) {
    made.usable = false;
    made.notes.push_back("no chain of steps computes an output");
    return made;
  }
  if (!made.usable) {
    made.notes.push_back("a bank of " + std::to_string(made.terms) +
                         " terms is too large to search");
  }
  return made;
}

std::vector<AxisSet> part_sets(const Bank& bank, const SearchSpace& space, const Machine& machine) {
  std::vector<AxisSet> sets;
  if (space.most_split_axes < 1) return sets;
  const Program& program = bank.program();
  std::vector<AxisId> axes;
  for (AxisId a = 0; a < program.axes.size(); ++a) {
    if (bank.base(a).reduced && !part_candidates(program.axes[a].extent, machine).empty() &&
        program.axes[a].extent > space.shortest_loop) {
      axes.push_back(a);
    }
  }
  for (AxisId a : axes) sets.push_back(AxisSet::of(a));
  if (space.most_split_axes < 2) return sets;
  for (size_t i = 0; i < axes.size(); ++i) {
    for (size_t j = i + 1; j < axes.size(); ++j) {
      sets.push_back(AxisSet::of(axes[i]) | AxisSet::of(axes[j]));
    }
  }
  return sets;
}

}  // namespace sundog::search
