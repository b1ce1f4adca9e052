// The factors of a lowered kernel.
//
// An axis that is on the grid of all outputs is cut into grid and tile; one that loops into loop
// and tile; a reduced one that may not loop here is a tile as a whole.  The factors of the bank map
// onto these: on an axis that is parallel in this kernel all three bank factors together are the
// axis.
#include <algorithm>

#include "core/check.h"
#include "search/kernel_lowerer.h"

namespace sundog::search {

int KernelLowerer::part_index(AxisId part) {
  const auto it = parent_.part_of_.find(part);
  if (it != parent_.part_of_.end()) return it->second;
  GraphPlan& plan = parent_.plan_;
  const AxisId base = bank_.axes()[part].base;
  const std::string name = plan.graph.axes[base].name + ".s";
  const AxisId mu_axis = static_cast<AxisId>(plan.graph.axes.size());
  plan.graph.axes.push_back({name, 2, static_cast<uint32_t>(plan.kernels.size()), 0});
  const int index = static_cast<int>(plan.parts.size());
  plan.parts.push_back({base, mu_axis, plan.graph.axes[base].extent, 2});
  parent_.part_of_[part] = index;
  return index;
}

// Whether something that has the part of an axis, and not the rest of it, is computed or read at
// this block's part.  What is loaded may be read at all parts besides.
bool KernelLowerer::has_bare_part(AxisId base) const {
  const BaseAxis& b = bank_.base(base);
  const auto is_bare = [&](int rank, AxisSet whole_here) {
    const AxisSet axes = term(rank).axes;
    return axes.has(b.part) && !axes.has(b.tile) && !whole_here.has(b.part);
  };
  return std::any_of(body_.items.begin(), body_.items.end(), [&](const BodyItem& item) {
    if (is_bare(item.term, whole(item.term))) return true;
    const RankedNode* n = node(item.term);
    if (n == nullptr) return false;
    AxisSet bound = whole(item.term);
    if (is_reduction(n->node.kind)) bound.insert(n->node.axis);
    return std::any_of(n->operands.begin(), n->operands.end(),
                       [&](int o) { return position(o) >= 0 && is_bare(o, bound); });
  });
}

void KernelLowerer::add_split_of(AxisId base) {
  const BaseAxis& b = bank_.base(base);
  const MuGraph& graph = parent_.plan_.graph;
  AxisSet used;  // own factors: parts that are only read as a whole are another axis
  for (const BodyItem& item : body_.items) {
    used |= (term(item.term).axes - whole(item.term)) & b.all;
  }
  if (used.empty()) return;
  AxisSet whole_here;
  for (AxisSet w : shape_.whole_parts) whole_here |= w;
  if (b.part != kNoAxis && used == AxisSet::of(b.part) && !whole_here.has(b.part)) {
    add_split_of_part(b.part);
    return;
  }
  Split s;
  s.axis = base;
  s.extent = graph.axes[base].extent;
  const std::string name = graph.axes[base].name;  // axes may be added below
  auto& factors = plan_.kernel.factors;
  const auto add = [&](const std::string& suffix) {
    factors.push_back({name + suffix, base, 1, 1});
    return static_cast<AxisId>(factors.size() - 1);
  };
  const bool parallel = shape_.parallel.has(base);
  if (b.part != kNoAxis && shape_.grid_parts.has(b.part) && (!parallel || has_bare_part(base))) {
    s.shared_part = part_index(b.part);
    s.part = add(".p");
    plan_.kernel.grid.push_back(s.part);
  }
  s.looped = shape_.looped.has(base);
  if (s.looped || parallel || !b.reduced) {
    s.outer = add(".o");
    if (!s.looped) plan_.kernel.grid.push_back(s.outer);
  }
  s.inner = add(".i");
  split_of_[base] = plan_.splits.size();
  plan_.splits.push_back(s);
  if (s.part != kNoFactor) {
    MuAxis& axis =
        parent_.plan_.graph.axes[parent_.plan_.parts[static_cast<size_t>(s.shared_part)].mu_axis];
    if (axis.kernel == parent_.plan_.kernels.size()) {
      axis.factor = s.part;
      factors[s.part].name = axis.name;
    }
  }
}

// A kernel that works on partial results alone: their axis is a parallel one like any other.
void KernelLowerer::add_split_of_part(AxisId part) {
  const int index = part_index(part);
  const AxisId axis = parent_.plan_.parts[static_cast<size_t>(index)].mu_axis;
  part_split_[part] = plan_.splits.size();
  add_split(plan_, parent_.plan_.graph, axis, false).whole_part = index;
}

void KernelLowerer::add_splits() {
  for (AxisId base = 0; base < bank_.base_count(); ++base) add_split_of(base);
  AxisSet whole_parts;
  for (AxisSet w : shape_.whole_parts) whole_parts |= w;
  for (AxisId part : whole_parts) {
    const int index = part_index(part);
    Split s;
    s.axis = parent_.plan_.parts[static_cast<size_t>(index)].mu_axis;
    s.extent = 2;
    s.whole_part = index;
    s.inner = static_cast<AxisId>(plan_.kernel.factors.size());
    plan_.kernel.factors.push_back({parent_.plan_.graph.axes[s.axis].name, s.axis, 1, 1});
    whole_split_[part] = plan_.splits.size();
    plan_.splits.push_back(s);
  }
}

AxisSet KernelLowerer::factors_of_axes(AxisSet axes, AxisSet whole_parts) const {
  AxisSet out;
  for (AxisId a : axes) {
    const BankAxis& axis = bank_.axes()[a];
    if (axis.level == Level::kPart && whole_parts.has(a)) {
      out.insert(plan_.splits[whole_split_.at(a)].inner);
      continue;
    }
    if (const auto part = part_split_.find(a); part != part_split_.end()) {
      out.insert(plan_.splits[part->second].outer);
      out.insert(plan_.splits[part->second].inner);
      continue;
    }
    const auto it = split_of_.find(axis.base);
    if (it == split_of_.end()) continue;
    const Split& s = plan_.splits[it->second];
    const auto insert = [&](AxisId f) {
      if (f != kNoFactor) out.insert(f);
    };
    switch (axis.level) {
      case Level::kWhole:
        insert(s.outer);
        insert(s.inner);
        break;
      case Level::kPart:
        insert(s.part);
        break;
      case Level::kStep:
        if (s.looped) insert(s.outer);
        break;
      case Level::kTile:
        insert(s.inner);
        if (!s.looped) insert(s.outer);
        break;
    }
  }
  return out;
}

void KernelLowerer::index_program() {
  for (AxisId a = 0; a < bank_.base_count(); ++a) {
    program_index_.push_back(axis_index(plan_.kernel, a));
  }
  of_program_.emplace(bank_.program().terms, plan_.kernel.terms, program_index_);
}

IndexExpr KernelLowerer::part_position(AxisId part, bool is_whole) const {
  if (is_whole) return IndexExpr::of(plan_.splits[whole_split_.at(part)].inner);
  if (const auto own = part_split_.find(part); own != part_split_.end()) {
    return axis_index(plan_.kernel, plan_.splits[own->second].axis);
  }
  const Split& s = plan_.splits[split_of_.at(bank_.axes()[part].base)];
  SUNDOG_CHECK(s.part != kNoFactor);
  return IndexExpr::of(s.part);
}

}  // namespace sundog::search
