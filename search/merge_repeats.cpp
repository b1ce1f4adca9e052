// A term that is needed in two loops is computed in both.  Where the chosen sizes leave one
// iteration to these loops they are gone, and the second computation finds the first one's result
// still in registers: that is how a row gets to be read once and held.  Placement need not know,
// and prices the two alike.
#include "search/merge_repeats.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

#include "core/field.h"
#include "search/term_copy.h"

namespace sundog::search {
namespace {

void in_order(const std::vector<Statement>& body, std::vector<uint32_t>& order) {
  for (const Statement& s : body) {
    if (const auto* compute = std::get_if<Compute>(&s.node)) order.push_back(compute->computation);
    if (const auto* loop = std::get_if<Loop>(&s.node)) in_order(loop->body, order);
  }
}

// A term with reads of computations redirected.
TermId redirect(const TermGraph& from, TermGraph& to, TermId term,
                const std::vector<uint32_t>& target) {
  TermCopier copier(from, to);
  copier.replace = [&](TermId t) -> std::optional<TermId> {
    const auto* local = std::get_if<LocalTerm>(&from[t]);
    if (local == nullptr) return {};
    return to.local(target[local->computation], local->axes);
  };
  return copier.copy(term);
}

// Loop bodies, numbered; for each computation the numbers of those around it.
void find_paths(const std::vector<Statement>& body, std::vector<uint32_t>& path, uint32_t& next,
                std::vector<std::vector<uint32_t>>& paths) {
  for (const Statement& s : body) {
    if (const auto* compute = std::get_if<Compute>(&s.node)) paths[compute->computation] = path;
    if (const auto* loop = std::get_if<Loop>(&s.node)) {
      path.push_back(next++);
      find_paths(loop->body, path, next, paths);
      path.pop_back();
    }
  }
}

void redirect_statements(std::vector<Statement>& body, const std::vector<uint32_t>& target) {
  std::vector<Statement> kept;
  for (Statement& s : body) {
    if (const auto* compute = std::get_if<Compute>(&s.node)) {
      if (target[compute->computation] != compute->computation) continue;
    } else if (auto* store = std::get_if<Store>(&s.node)) {
      store->computation = target[store->computation];
    } else {
      redirect_statements(std::get<Loop>(s.node).body, target);
    }
    kept.push_back(std::move(s));
  }
  body = std::move(kept);
}

void renumber(std::vector<Statement>& body, const std::vector<uint32_t>& number) {
  for (Statement& s : body) {
    if (auto* compute = std::get_if<Compute>(&s.node))
      compute->computation = number[compute->computation];
    if (auto* store = std::get_if<Store>(&s.node)) store->computation = number[store->computation];
    if (auto* loop = std::get_if<Loop>(&s.node)) renumber(loop->body, number);
  }
}

// Two computations of the same axes, the least that a repeat takes.
bool may_repeat(const Kernel& kernel) {
  std::vector<uint64_t> axes;
  for (const Computation& c : kernel.computations) {
    AxisSet set;
    for (AxisId a : c.axes) set.insert(a);
    // What they compute is of one kind, too: a load of one tensor, a reduction of one kind.
    const Term& value = kernel.terms[c.value];
    uint64_t key = mix(set.bits(), value.index());
    if (const auto* in = std::get_if<InputTerm>(&value)) key = mix(key, in->tensor);
    axes.push_back(key);
  }
  std::sort(axes.begin(), axes.end());
  return std::adjacent_find(axes.begin(), axes.end()) != axes.end();
}

}  // namespace

std::vector<uint32_t> repeats(const Kernel& kernel) {
  if (!may_repeat(kernel)) return std::vector<uint32_t>(kernel.computations.size(), kNone);
  std::vector<uint32_t> order;
  in_order(kernel.body, order);
  const size_t n = kernel.computations.size();
  std::vector<uint32_t> target(n), out(n, kNone);
  for (uint32_t i = 0; i < n; ++i) target[i] = i;
  TermGraph scratch;
  using Key = std::tuple<TermId, std::vector<AxisId>, uint32_t, uint32_t>;
  std::map<Key, uint32_t> known;
  for (uint32_t i : order) {
    const Computation& c = kernel.computations[i];
    const TermId value = redirect(kernel.terms, scratch, c.value, target);
    const uint32_t rescale = c.rescale == kNone ? kNone : target[c.rescale];
    const auto [it, fresh] = known.try_emplace({value, c.axes, rescale, c.accumulate_into}, i);
    if (fresh) continue;
    out[i] = target[i] = it->second;
  }
  return out;
}

void merge_repeats(Kernel& kernel) {
  const std::vector<uint32_t> same = repeats(kernel);
  const size_t n = kernel.computations.size();
  std::vector<std::vector<uint32_t>> paths(n);
  std::vector<uint32_t> path, target(n);
  uint32_t next = 0;
  find_paths(kernel.body, path, next, paths);
  for (uint32_t i = 0; i < n; ++i) target[i] = i;
  for (uint32_t i = 0; i < n; ++i) {
    if (same[i] == kNone) continue;
    const auto& there = paths[same[i]];
    const auto& here = paths[i];
    const bool around =
        there.size() <= here.size() && std::equal(there.begin(), there.end(), here.begin());
    const bool accumulates = !accumulated_loops(kernel, i).empty();
    if (around && (!accumulates || there == here)) target[i] = same[i];
  }
  for (uint32_t i = 0; i < n; ++i) {
    while (target[target[i]] != target[i]) target[i] = target[target[i]];
  }
  redirect_statements(kernel.body, target);
  const TermGraph before = kernel.terms;
  std::vector<Computation> kept;
  std::vector<uint32_t> number(n, kNone);
  for (uint32_t i = 0; i < n; ++i) {
    if (target[i] != i) continue;
    number[i] = static_cast<uint32_t>(kept.size());
    kept.push_back(kernel.computations[i]);
  }
  std::vector<uint32_t> final_target(n);
  for (uint32_t i = 0; i < n; ++i) final_target[i] = number[target[i]];
  TermGraph terms;
  for (Computation& c : kept) {
    c.value = redirect(before, terms, c.value, final_target);
    if (c.rescale != kNone) c.rescale = final_target[c.rescale];
    if (c.accumulate_into != kNone) c.accumulate_into = final_target[c.accumulate_into];
  }
  kernel.terms = std::move(terms);
  kernel.computations = std::move(kept);
  renumber(kernel.body, number);
}

}  // namespace sundog::search
