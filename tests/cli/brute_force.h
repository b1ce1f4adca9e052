// A second search, written to be obviously complete rather than fast: every straight line of
// operators that computes the program's value, every way to cut it into kernels, every grid, loop
// and tile.  It shares nothing with the search but what a kernel costs and what its threads do.
//
// Limits: one output; at most `most_steps` operators, those of the program and + * /; constants and
// sizes of the program; at most three kernels; one loop a kernel; no partial results (a reduced
// axis is not cut over blocks); intermediates stored in f32 over their own axes.
#pragma once

#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/program.h"
#include "search/cost.h"
#include "search/finish.h"
#include "search/hoist_loads.h"
#include "search/kernel_plan.h"
#include "search/sizes.h"
#include "tests/cli/straight_lines.h"

namespace sundog::search {

// A kernel of a cut: what it stores, computes and loads, as positions of the straight line.
struct CutKernel {
  std::set<int> stores, computes, loads;
  bool operator<(const CutKernel& o) const {
    return std::tie(stores, computes, loads) < std::tie(o.stores, o.computes, o.loads);
  }
};

// Prices every way to run one straight line.
class EveryPlacement {
 public:
  EveryPlacement(const Program& program, const std::vector<TermId>& leaves,
                 const std::vector<Step>& steps, const Machine& machine)
      : program_(program), leaves_(leaves), steps_(steps), machine_(machine) {
    for (TermId t : leaves) axes_.push_back(program.terms.axes(t));
    for (const Step& s : steps) {
      AxisSet axes;
      for (int o : s.operands) axes |= axes_[static_cast<size_t>(o)];
      axes_.push_back(axes - s.over);
    }
    goal_ = static_cast<int>(axes_.size()) - 1;
    // Intermediates that any cut might store.
    base_ = empty_plan(program);
    for (int i = first_step(); i < goal_; ++i) {
      std::vector<AxisId> dims;
      for (AxisId a : axes_[static_cast<size_t>(i)]) dims.push_back(a);
      tensor_[i] = add_intermediate(base_.graph, "v" + std::to_string(i), dims);
    }
    tensor_[goal_] = static_cast<uint32_t>(program.inputs.size());
  }

  // Calls `told` with the price of each µGraph that costs less than `limit`, and how to make it.
  void run(double limit, const std::function<void(double, const std::function<MuGraph()>&)>& told) {
    limit_ = limit;
    told_ = told;
    kernels({goal_}, 0);
  }
  uint64_t priced() const { return priced_; }

 private:
  struct Sized {
    double us = std::numeric_limits<double>::infinity();
    std::optional<KernelPlan> plan;
    std::vector<int64_t> tiles;
  };

  int first_step() const { return static_cast<int>(leaves_.size()); }
  const Step& step(int i) const { return steps_[static_cast<size_t>(i - first_step())]; }

  // The kernels before those chosen so far have to leave `needed` in memory.
  void kernels(const std::set<int>& needed, double us) {
    if (needed.empty()) {
      // Each kernel behind another starts before that one is done.
      us -= machine_.overlap_us * static_cast<double>(chosen_.size() - 1);
      if (us < limit_) told_(us, [&] { return finished(); });
      return;
    }
    if (chosen_.size() == 3) return;
    const int top = *needed.rbegin();
    std::vector<int> rest(needed.begin(), std::prev(needed.end()));
    for (uint64_t s = 0; s < uint64_t{1} << rest.size(); ++s) {
      CutKernel k;
      k.stores.insert(top);
      std::set<int> later;
      for (size_t i = 0; i < rest.size(); ++i) {
        (s >> i & 1 ? k.stores : later).insert(rest[i]);
      }
      fill(k, k.stores, later, us);
    }
  }

  void fill(CutKernel& k, std::set<int> open, const std::set<int>& later, double us) {
    if (open.empty()) {
      const Sized& sized = best_of(k);
      if (!sized.plan) return;
      chosen_.push_back(&sized);
      std::set<int> needed = later;
      needed.insert(k.loads.begin(), k.loads.end());
      kernels(needed, us + sized.us);
      chosen_.pop_back();
      return;
    }
    const int top = *open.rbegin();
    open.erase(top);
    if (!k.stores.contains(top) && chosen_.size() < 2) {
      k.loads.insert(top);
      fill(k, open, later, us);
      k.loads.erase(top);
    }
    for (int o : step(top).operands) {
      if (o >= first_step()) open.insert(o);
    }
    k.computes.insert(top);
    fill(k, open, later, us);
    k.computes.erase(top);
  }

  const Sized& best_of(const CutKernel& k) {
    const auto [it, fresh] = kernels_.try_emplace(k);
    if (!fresh) return it->second;
    for (AxisId loop = 0; loop <= program_.axes.size(); ++loop) {
      for (const bool inlined : {false, true}) size(k, loop, inlined, it->second);
    }
    return it->second;
  }

  // All tiles of a kernel that loops over `loop` (no axis: over none).
  void size(const CutKernel& k, AxisId loop, bool inlined, Sized& best) {
    auto plan = plan_of(k, loop, inlined);
    if (!plan) return;
    const KernelProfile p = profile(base_.graph, plan->kernel, plan->wide);
    std::vector<int64_t> tiles(plan->splits.size() + 1, 1);
    const std::function<void(size_t)> choose = [&](size_t i) {
      if (i < plan->splits.size()) {
        const Split& s = plan->splits[i];
        for (int64_t t = s.outer == kNoFactor ? s.extent : 1; t <= s.extent; ++t) {
          if (s.looped && t == s.extent && t > 1) continue;  // no loop
          tiles[i] = t;
          set_tile(*plan, s, t, 1);
          choose(i + 1);
        }
        return;
      }
      for (int64_t warps : {1, 2}) {
        tiles[i] = warps;
        const KernelPrice price = search::price(p, plan->kernel, factor_extents(plan->kernel),
                                                machine_, static_cast<int>(warps));
        ++priced_;
        if (!price.fits || price.us >= best.us) continue;
        best = {price.us, *plan, tiles};
      }
    };
    choose(0);
  }

  std::optional<KernelPlan> plan_of(const CutKernel& k, AxisId loop, bool inlined) {
    AxisSet all, summed, common(~uint64_t{0});
    for (const auto* part : {&k.computes, &k.loads}) {
      for (int i : *part) all |= axes_[static_cast<size_t>(i)];
    }
    for (int i : k.computes) {
      summed |= step(i).over;
      for (int o : step(i).operands) all |= axes_[static_cast<size_t>(o)];
    }
    for (int i : k.stores) common = common & axes_[static_cast<size_t>(i)];
    if (loop < program_.axes.size() && !all.has(loop)) return {};
    KernelPlan plan;
    for (AxisId a : all) {
      if (a == loop) {
        add_split(plan, base_.graph, a, true);
      } else if (common.has(a) && !summed.has(a)) {
        add_split(plan, base_.graph, a, false);
      } else {
        Split s;
        s.axis = a;
        s.extent = base_.graph.axes[a].extent;
        s.inner = static_cast<AxisId>(plan.kernel.factors.size());
        plan.kernel.factors.push_back({base_.graph.axes[a].name, a, s.extent, 1});
        plan.splits.push_back(s);
      }
    }
    plan.kernel.name = "k";
    return Body(*this, k, loop, inlined, plan).build() ? std::optional(plan) : std::nullopt;
  }

  // The statements of one kernel: before its loop, in it, after it.
  class Body {
   public:
    Body(const EveryPlacement& in, const CutKernel& k, AxisId loop, bool inlined, KernelPlan& plan)
        : in_(in), k_(k), loop_(loop), inlined_(inlined), plan_(plan) {
      for (AxisId a = 0; a < in.program_.axes.size(); ++a) {
        index_.push_back(axis_index(plan.kernel, a));
      }
      for (const Split& s : plan.splits) tile_of_[s.axis] = s.inner;
    }

    bool build() {
      for (int i : k_.computes) {
        if (!add(i)) return false;
      }
      Kernel& kernel = plan_.kernel;
      std::vector<Statement> body = std::move(part_[0]);
      if (loop_ < in_.program_.axes.size()) {
        if (part_[1].empty()) return false;
        AxisId outer = kNoFactor;
        for (const Split& s : plan_.splits) outer = s.looped ? s.outer : outer;
        body.push_back({Loop{outer, 1, {}, std::move(part_[1])}});
      }
      for (Statement& s : part_[2]) body.push_back(std::move(s));
      kernel.body = std::move(body);
      hoist_loads(in_.base_.graph, kernel);
      return true;
    }

   private:
    bool loops(AxisSet axes) const { return loop_ < in_.program_.axes.size() && axes.has(loop_); }

    bool add(int i) {
      const Step& s = in_.step(i);
      const AxisSet axes = in_.axes_[static_cast<size_t>(i)];
      const bool accumulates = loops(s.over);
      bool after = false, operand_loops = false;
      for (int o : s.operands) {
        after = after || after_.contains(o);
        operand_loops = operand_loops || loops(in_.axes_[static_cast<size_t>(o)]);
      }
      if (after && operand_loops) return false;  // a second loop
      if (after || accumulates) after_.insert(i);
      const size_t place = after ? 2 : operand_loops ? 1 : 0;
      TermId value = value_of(s);
      int users = 0;
      for (int j : k_.computes) {
        const auto& read = in_.step(j).operands;
        users += static_cast<int>(std::count(read.begin(), read.end(), i));
      }
      Kernel& kernel = plan_.kernel;
      if (inlined_ && s.op && users == 1 && !k_.stores.contains(i) && in_place(i, place)) {
        inline_[i] = value;
        return true;
      }
      Computation c;
      c.name = "c" + std::to_string(i);
      AxisSet factors;
      for (AxisId a : axes) {
        c.axes.push_back(tile_of_.at(a));
        factors.insert(tile_of_.at(a));
      }
      c.value = value;
      const auto number = static_cast<uint32_t>(kernel.computations.size());
      kernel.computations.push_back(std::move(c));
      part_[place].push_back({Compute{number}});
      computed_[i] = kernel.terms.local(number, factors);
      if (k_.stores.contains(i)) {
        const uint32_t tensor = in_.tensor_.at(i);
        const size_t stored = accumulates ? 2 : place;
        part_[stored].push_back(
            {Store{number, tensor, default_index(kernel, in_.base_.graph.tensors[tensor].decl)}});
      }
      return true;
    }

    // Whether its one user runs where it would itself: then the two can be one expression.
    bool in_place(int i, size_t place) const {
      for (int j : k_.computes) {
        const Step& s = in_.step(j);
        if (std::find(s.operands.begin(), s.operands.end(), i) == s.operands.end()) continue;
        bool after = false, in_loop = loops(in_.axes_[static_cast<size_t>(i)]);
        for (int o : s.operands) {
          after = after || after_.contains(o);
          in_loop = in_loop || loops(in_.axes_[static_cast<size_t>(o)]);
        }
        return (after ? 2u : in_loop ? 1u : 0u) == place;
      }
      return false;
    }

    TermId value_of(const Step& s) {
      TermGraph& terms = plan_.kernel.terms;
      std::vector<TermId> in;
      for (int o : s.operands) in.push_back(read(o));
      if (s.op) return terms.apply(*s.op, in);
      AxisSet factors;
      for (const Split& split : plan_.splits) {
        if (!s.over.has(split.axis)) continue;
        factors.insert(split.inner);
        if (split.looped) factors.insert(split.outer);
      }
      return terms.reduce(s.kind, factors, in[0]);
    }

    TermId read(int o) {
      TermGraph& terms = plan_.kernel.terms;
      if (const auto it = computed_.find(o); it != computed_.end()) return it->second;
      if (const auto it = inline_.find(o); it != inline_.end()) return it->second;
      if (o >= in_.first_step()) {
        const uint32_t tensor = in_.tensor_.at(o);
        return terms.input(tensor,
                           default_index(plan_.kernel, in_.base_.graph.tensors[tensor].decl));
      }
      const Term& leaf = in_.program_.terms[in_.leaves_[static_cast<size_t>(o)]];
      if (const auto* input = std::get_if<InputTerm>(&leaf)) {
        std::vector<IndexExpr> at;
        for (const IndexExpr& e : input->index) at.push_back(substitute(e, index_));
        return terms.input(input->tensor, at);
      }
      return terms.push(leaf);
    }

    const EveryPlacement& in_;
    const CutKernel& k_;
    AxisId loop_;
    bool inlined_;
    KernelPlan& plan_;
    std::vector<IndexExpr> index_;
    std::map<AxisId, AxisId> tile_of_;
    std::map<int, TermId> computed_, inline_;
    std::set<int> after_;
    std::array<std::vector<Statement>, 3> part_;
  };

  MuGraph finished() const {
    GraphPlan plan = base_;
    std::vector<std::vector<int64_t>> tiles;
    for (size_t k = chosen_.size(); k-- > 0;) {
      plan.kernels.push_back(*chosen_[k]->plan);
      plan.kernels.back().kernel.name = "k" + std::to_string(tiles.size());
      tiles.push_back(chosen_[k]->tiles);
    }
    drop_unused_tensors(plan);
    return finish(std::move(plan), tiles, {}, machine_);
  }

  // Intermediates of other cuts.
  void drop_unused_tensors(GraphPlan& plan) const {
    std::set<uint32_t> used;
    for (const KernelPlan& k : plan.kernels) {
      const std::function<void(const std::vector<Statement>&)> visit = [&](const auto& body) {
        for (const Statement& s : body) {
          if (const auto* store = std::get_if<Store>(&s.node)) used.insert(store->tensor);
          if (const auto* loop = std::get_if<Loop>(&s.node)) visit(loop->body);
        }
      };
      visit(k.kernel.body);
    }
    const auto first = static_cast<uint32_t>(program_.inputs.size() + program_.outputs.size());
    std::vector<uint32_t> new_id;
    std::vector<DeviceTensor> kept;
    for (uint32_t t = 0; t < plan.graph.tensors.size(); ++t) {
      new_id.push_back(static_cast<uint32_t>(kept.size()));
      if (t < first || used.contains(t)) kept.push_back(plan.graph.tensors[t]);
    }
    plan.graph.tensors = std::move(kept);
    for (KernelPlan& k : plan.kernels) renumber(k.kernel, new_id);
  }

  static void renumber(Kernel& kernel, const std::vector<uint32_t>& new_id) {
    TermGraph terms;
    for (TermId t = 0; t < kernel.terms.size(); ++t) {
      Term term = kernel.terms[t];
      if (auto* in = std::get_if<InputTerm>(&term)) in->tensor = new_id[in->tensor];
      terms.push(std::move(term));
    }
    kernel.terms = std::move(terms);
    const std::function<void(std::vector<Statement>&)> visit = [&](std::vector<Statement>& body) {
      for (Statement& s : body) {
        if (auto* store = std::get_if<Store>(&s.node)) store->tensor = new_id[store->tensor];
        if (auto* loop = std::get_if<Loop>(&s.node)) visit(loop->body);
      }
    };
    visit(kernel.body);
  }

  const Program& program_;
  const std::vector<TermId>& leaves_;
  const std::vector<Step>& steps_;
  const Machine& machine_;
  std::vector<AxisSet> axes_;
  int goal_ = 0;
  GraphPlan base_;
  std::map<int, uint32_t> tensor_;
  std::map<CutKernel, Sized> kernels_;
  std::vector<const Sized*> chosen_;  // last kernel first
  double limit_ = 0;
  std::function<void(double, const std::function<MuGraph()>&)> told_;
  uint64_t priced_ = 0;
};

}  // namespace sundog::search
