// The program cut where a library would cut it: at reductions and at the operands of products. What
// is between two cuts is one elementwise expression and stays one.  Intermediates are f32, so that
// this µGraph is as exact as kernels get and anything that is refused for its numbers is compared
// with it.
//
// A reduction to few results would leave the device to a few blocks.  A library splits it, and a
// baseline that does not is a straw man: long reductions are cut into parts where the cost model
// finds that faster.
//
// A reduction may stand under a select that keeps its reads in range (`select(i < a, sum[k](x[i,
// k]), 0)`).  In a kernel of its own it is computed for every i, so the condition moves into its
// operand; the same reduction under two conditions is two kernels.
#include "search/unfused.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <functional>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <type_traits>

#include "core/check.h"
#include "search/hoist_loads.h"
#include "search/library_kernel.h"
#include "search/roles.h"
#include "search/size_plan.h"
#include "search/sizes.h"
#include "search/term_copy.h"

namespace sundog::search {
namespace {

using Guard = std::vector<IndexCondition>;  // all of them hold

IndexCondition opposite(const IndexCondition& c) {
  const IndexExpr negated = c.expr * -1;
  switch (c.relation) {
    case Relation::kLess:
      return {negated, Relation::kLessEqual};
    case Relation::kLessEqual:
      return {negated, Relation::kLess};
    case Relation::kEqual:
      return {c.expr, Relation::kNotEqual};
    case Relation::kNotEqual:
      return {c.expr, Relation::kEqual};
  }
  return c;
}

// Whether an index expression stays inside [0, extent) for all values of its axes.
bool stays_inside(const Program& program, const IndexExpr& e, int64_t extent) {
  int64_t low = e.constant, high = e.constant;
  for (const auto& item : e.sizes) {
    low += item.coefficient * program.axes[item.axis].extent;
    high += item.coefficient * program.axes[item.axis].extent;
  }
  for (const auto& item : e.axes) {
    const int64_t last = std::max<int64_t>(program.axes[item.axis].extent - 1, 0);
    (item.coefficient > 0 ? high : low) += item.coefficient * last;
  }
  return low >= 0 && high < extent;
}

class Unfuser {
 public:
  Unfuser(const Program& program, const std::set<TermId>& split)
      : program_(program), split_(split), plan_(empty_plan(program)) {
    for (AxisId a = 0; a < program.axes.size(); ++a) identity_.push_back(IndexExpr::of(a));
  }

  GraphPlan run() {
    find_reductions_stored_once();
    for (const Output& o : program_.outputs) find_cuts(o.value, {});
    for (uint32_t o = 0; o < program_.outputs.size(); ++o) emit_output(o);
    return std::move(plan_);
  }

 private:
  struct Key {
    TermId term;
    std::vector<std::string> guard;
    bool operator<(const Key& o) const { return std::tie(term, guard) < std::tie(o.term, o.guard); }
  };

  static std::string text(const IndexCondition& c) {
    std::string s =
        std::to_string(static_cast<int>(c.relation)) + ":" + std::to_string(c.expr.constant);
    for (const auto& i : c.expr.axes)
      s += "a" + std::to_string(i.axis) + "*" + std::to_string(i.coefficient);
    for (const auto& i : c.expr.sizes)
      s += "s" + std::to_string(i.axis) + "*" + std::to_string(i.coefficient);
    return s;
  }

  // The part of a guard that matters to `term`: conditions on its own axes, if a read needs them.
  Guard relevant(TermId term, const Guard& guard) {
    if (guard.empty() || always_inside(term)) return {};
    Guard out;
    for (const IndexCondition& c : guard) {
      if (program_.terms.axes(term).contains(c.expr.axis_set())) out.push_back(c);
    }
    return out;
  }

  bool always_inside(TermId term) {
    if (const auto it = inside_.find(term); it != inside_.end()) return it->second;
    bool inside = true;
    if (const auto* in = std::get_if<InputTerm>(&program_.terms[term])) {
      const auto& extents = program_.inputs[in->tensor].extents;
      for (size_t d = 0; d < extents.size(); ++d) {
        inside = inside && stays_inside(program_, in->index[d], extents[d]);
      }
    } else {
      for (TermId o : operands(program_.terms[term])) inside = inside && always_inside(o);
    }
    inside_[term] = inside;
    return inside;
  }

  Key key(TermId term, const Guard& guard) {
    Key k{term, {}};
    for (const IndexCondition& c : relevant(term, guard)) k.guard.push_back(text(c));
    std::sort(k.guard.begin(), k.guard.end());
    return k;
  }

  // A leaf costs nothing to compute again, wherever it is read; nor does what only constants and
  // extents go into.
  bool is_leaf(TermId term) const {
    const Term& t = program_.terms[term];
    if (operands(t).empty()) return true;
    return std::holds_alternative<ApplyTerm>(t) && program_.terms.axes(term).empty() &&
           !reads_input(term);
  }

  bool reads_input(TermId term) const {
    for (TermId t : reachable(program_.terms, std::array{term})) {
      if (std::holds_alternative<InputTerm>(program_.terms[t])) return true;
    }
    return false;
  }

  bool is_product(TermId term) const {
    const auto* apply = std::get_if<ApplyTerm>(&program_.terms[term]);
    return apply != nullptr && std::holds_alternative<op::Mul>(apply->op);
  }

  void find_cuts(TermId term, const Guard& guard) {
    if (!visited_.insert(key(term, guard)).second) return;
    const Term& t = program_.terms[term];
    if (const auto* select = std::get_if<SelectTerm>(&t)) {
      Guard yes = guard, no = guard;
      yes.push_back(select->condition);
      no.push_back(opposite(select->condition));
      find_cuts(select->then, yes);
      find_cuts(select->otherwise, no);
      return;
    }
    for (TermId o : operands(t)) find_cuts(o, guard);
    if (const auto* reduce = std::get_if<ReduceTerm>(&t)) {
      if (is_product(reduce->operand)) {
        for (TermId side : operands(program_.terms[reduce->operand])) {
          if (!is_leaf(side) && !cuts_.contains(key(side, guard))) emit_cut(side, guard);
        }
      }
      if (!cuts_.contains(key(term, guard)) && !stored_once_.contains(term)) emit_cut(term, guard);
    }
  }

  // Reductions that are an output and nothing else: they need no intermediate, unless the output
  // repeats them along an axis that they reduce.
  void find_reductions_stored_once() {
    std::map<TermId, int> uses;
    std::vector<TermId> roots;
    for (const Output& o : program_.outputs) {
      roots.push_back(o.value);
      ++uses[o.value];
    }
    for (TermId t : reachable(program_.terms, roots)) {
      for (TermId o : operands(program_.terms[t])) ++uses[o];
    }
    for (const Output& o : program_.outputs) {
      const auto* reduce = std::get_if<ReduceTerm>(&program_.terms[o.value]);
      if (reduce == nullptr || uses[o.value] > 1) continue;
      AxisSet stored;
      for (const IndexExpr& e : o.tensor.dims) stored |= e.axis_set();
      if ((stored & reduce->axes).empty()) stored_once_.insert(o.value);
    }
  }

  // A kernel of its own for `term`, stored to an intermediate over its axes.
  void emit_cut(TermId term, const Guard& guard) {
    std::vector<AxisId> axes;
    for (AxisId a : program_.terms.axes(term)) axes.push_back(a);
    const uint32_t tensor = add_intermediate(plan_.graph, fresh_name(term), axes);
    emit(term, relevant(term, guard), program_.terms.axes(term), tensor);
    cuts_[key(term, guard)] = tensor;
  }

  void emit_output(uint32_t o) {
    const Output& out = program_.outputs[o];
    AxisSet axes = program_.terms.axes(out.value);
    for (const IndexExpr& e : out.tensor.dims) axes |= e.axis_set();
    emit(out.value, {}, axes, static_cast<uint32_t>(program_.inputs.size()) + o);
  }

  void emit(TermId term, const Guard& guard, AxisSet free, uint32_t tensor) {
    KernelPlan kernel;
    kernel.kernel.name =
        "k" + std::to_string(plan_.kernels.size()) + "_" + plan_.graph.tensors[tensor].decl.name;
    const auto* reduce = std::get_if<ReduceTerm>(&program_.terms[term]);
    if (cuts_.contains(key(term, {}))) reduce = nullptr;  // an output that is a cut: a copy
    if (reduce != nullptr && split_.contains(term)) {
      emit_parts(term, guard, free, tensor);
      return;
    }
    const AxisSet reduced = reduce == nullptr ? AxisSet() : reduce->axes;
    for (AxisId a : free) add_split(kernel, plan_.graph, a, false);
    for (AxisId a : reduced) add_split(kernel, plan_.graph, a, true);
    const TermId value = value_of(kernel.kernel, term, guard, {});
    auto index = default_index(kernel.kernel, plan_.graph.tensors[tensor].decl);
    add_kernel(std::move(kernel), value, tensor, std::move(index));
  }

  // One computation, accumulated over the loops and stored.
  void add_kernel(KernelPlan kernel, TermId value, uint32_t tensor, std::vector<IndexExpr> index) {
    Computation c;
    c.name = result_name(tensor);
    for (const Split& s : kernel.splits) {
      if (!s.looped) c.axes.push_back(s.inner);
    }
    c.value = value;
    kernel.kernel.computations.push_back(std::move(c));
    std::vector<Statement> body = {{Compute{0}}};
    for (const Split& s : kernel.splits) {
      if (s.looped) body = {{Loop{s.outer, 1, {}, std::move(body)}}};
    }
    Kernel& k = kernel.kernel;
    k.body = std::move(body);
    k.body.push_back({Store{0, tensor, std::move(index)}});
    hoist_loads(plan_.graph, k);
    plan_.kernels.push_back(std::move(kernel));
  }

  // A reduction as two kernels: parts of its longest axis over the grid, and their join.
  void emit_parts(TermId term, const Guard& guard, AxisSet free, uint32_t tensor) {
    const auto& reduce = std::get<ReduceTerm>(program_.terms[term]);
    AxisId longest = *reduce.axes.begin();
    for (AxisId a : reduce.axes) {
      if (program_.axes[a].extent > program_.axes[longest].extent) longest = a;
    }
    const auto part_axis = static_cast<AxisId>(plan_.graph.axes.size());
    const int part = static_cast<int>(plan_.parts.size());
    const std::string name = part_name(longest);
    plan_.graph.axes.push_back({name, 2, static_cast<uint32_t>(plan_.kernels.size()), 0});
    plan_.parts.push_back({longest, part_axis, program_.axes[longest].extent, 2});
    std::vector<AxisId> axes = {part_axis};
    for (AxisId a : free) axes.push_back(a);
    const std::string of = plan_.graph.tensors[tensor].decl.name;
    std::string partial_name = of + "_parts";
    while (is_taken(partial_name)) partial_name += "_";
    const uint32_t partial = add_intermediate(plan_.graph, partial_name, axes);

    KernelPlan kernel;
    kernel.kernel.name = "k" + std::to_string(plan_.kernels.size()) + "_" + partial_name;
    for (AxisId a : free) add_split(kernel, plan_.graph, a, false);
    // Factors of an axis stand in their order: the part is outermost.
    const auto factor = static_cast<AxisId>(kernel.kernel.factors.size());
    kernel.kernel.factors.push_back({name, longest, 1, 1});
    kernel.kernel.grid.push_back(factor);
    plan_.graph.axes[part_axis].factor = factor;
    for (AxisId a : reduce.axes) {
      Split& split = add_split(kernel, plan_.graph, a, true);
      if (a != longest) continue;
      split.part = factor;
      split.shared_part = part;
    }
    const TermId value = value_of(kernel.kernel, term, guard, AxisSet::of(factor));
    std::vector<IndexExpr> index = {IndexExpr::of(factor)};
    for (AxisId a : free) index.push_back(axis_index(kernel.kernel, a));
    add_kernel(std::move(kernel), value, partial, std::move(index));

    KernelPlan join;
    join.kernel.name = "k" + std::to_string(plan_.kernels.size()) + "_" + of;
    for (AxisId a : free) add_split(join, plan_.graph, a, false);
    Split& parts = add_split(join, plan_.graph, part_axis, true);
    parts.whole_part = part;
    AxisSet over = AxisSet::of(parts.outer);
    over.insert(parts.inner);
    const TermId read = join.kernel.terms.input(
        partial, default_index(join.kernel, plan_.graph.tensors[partial].decl));
    const TermId joined = join.kernel.terms.reduce(reduce.kind, over, read);
    index = default_index(join.kernel, plan_.graph.tensors[tensor].decl);
    add_kernel(std::move(join), joined, tensor, std::move(index));
  }

  // What is stored, as the program calls it: "m" to the tensor m_t, "r1" to the tensor t1.
  std::string result_name(uint32_t tensor) const {
    std::string name = plan_.graph.tensors[tensor].decl.name;
    if (const size_t at = name.rfind("_parts"); at != std::string::npos) name.resize(at);
    for (const Definition& d : program_.definitions) {
      if (d.name == name || d.name + "_t" == name) return d.name;
    }
    const bool numbered = name.size() > 1 && name[0] == 't' && std::isdigit(name[1]) != 0;
    return "r" + (numbered ? name.substr(1) : "");
  }

  std::string part_name(AxisId axis) const {
    std::string name = program_.axes[axis].name + ".s";
    const auto taken = [&](const MuAxis& a) { return a.name == name; };
    while (std::any_of(plan_.graph.axes.begin(), plan_.graph.axes.end(), taken)) name += "'";
    return name;
  }

  // Copies the term into the kernel; cuts below it are reads of their tensors.  The root reduction
  // leaves the factors in `kept` alone.
  TermId value_of(Kernel& kernel, TermId term, const Guard& guard, AxisSet kept) {
    std::vector<IndexExpr> index_of;
    for (AxisId a = 0; a < program_.axes.size(); ++a) index_of.push_back(axis_index(kernel, a));
    if (cuts_.contains(key(term, {}))) return copy_guarded(kernel, term, kNoTerm, {}, index_of);
    const auto* reduce = std::get_if<ReduceTerm>(&program_.terms[term]);
    const TermId root = reduce == nullptr ? term : reduce->operand;
    TermId value = copy_guarded(kernel, root, term, guard, index_of);
    TermCopier copier(program_.terms, kernel.terms, index_of);
    for (const IndexCondition& c : guard) {
      const TermId zero = kernel.terms.constant(Number(0));
      value = kernel.terms.push(SelectTerm{{copier.copy(c.expr), c.relation}, value, zero});
    }
    if (reduce == nullptr) return value;
    return kernel.terms.reduce(reduce->kind, copier.copy(reduce->axes) - kept, value);
  }

  // `self` is the term that the kernel computes: not to be read from where it is about to be
  // stored.
  TermId copy_guarded(Kernel& kernel, TermId term, TermId self, const Guard& guard,
                      const std::vector<IndexExpr>& index_of) {
    const auto cut = cuts_.find(key(term, guard));
    if (cut != cuts_.end() && term != self) {
      const TensorDecl& decl = plan_.graph.tensors[cut->second].decl;
      return kernel.terms.input(cut->second, default_index(kernel, decl));
    }
    const auto known = copies_.find({plan_.kernels.size(), key(term, guard)});
    if (known != copies_.end()) return known->second;
    const TermId made = copy_anew(kernel, term, self, guard, index_of);
    copies_[{plan_.kernels.size(), key(term, guard)}] = made;
    return made;
  }

  TermId copy_anew(Kernel& kernel, TermId term, TermId self, const Guard& guard,
                   const std::vector<IndexExpr>& index_of) {
    const Term t = program_.terms[term];
    const auto* select = std::get_if<SelectTerm>(&t);
    const auto below = [&](TermId o, const Guard& g) {
      return copy_guarded(kernel, o, self, g, index_of);
    };
    TermCopier copier(program_.terms, kernel.terms, index_of);
    if (select != nullptr) {
      Guard yes = guard, no = guard;
      yes.push_back(select->condition);
      no.push_back(opposite(select->condition));
      const TermId then = below(select->then, yes), otherwise = below(select->otherwise, no);
      const IndexCondition c{copier.copy(select->condition.expr), select->condition.relation};
      return kernel.terms.push(SelectTerm{c, then, otherwise});
    }
    std::map<TermId, TermId> children;
    for (TermId o : operands(t)) children[o] = below(o, guard);
    copier.replace = [&](TermId o) -> std::optional<TermId> {
      const auto it = children.find(o);
      return it == children.end() ? std::nullopt : std::optional(it->second);
    };
    return copier.copy(term);
  }

  std::string fresh_name(TermId term) {
    for (const Definition& d : program_.definitions) {
      if (d.value == term && !is_taken(d.name + "_t")) return d.name + "_t";
    }
    std::string name;
    do {
      name = "t" + std::to_string(next_name_++);
    } while (is_taken(name));
    return name;
  }

  bool is_taken(const std::string& name) {
    for (const DeviceTensor& t : plan_.graph.tensors) {
      if (t.decl.name == name) return true;
    }
    return false;
  }

  const Program& program_;
  const std::set<TermId>& split_;
  GraphPlan plan_;
  std::vector<IndexExpr> identity_;
  std::map<TermId, bool> inside_;
  std::set<Key> visited_;
  std::map<Key, uint32_t> cuts_;
  std::map<std::pair<size_t, Key>, TermId> copies_;
  std::set<TermId> stored_once_;
  int next_name_ = 0;
};

}  // namespace

GraphPlan unfused_plan(const Program& program, const std::set<TermId>& split) {
  return Unfuser(program, split).run();
}

namespace {

constexpr double kLongReduction = 4096;  // elements; a block is done with fewer before a launch is

Error misfit(const PlanSizer& sizer) {
  return unsupported("kernel '" + sizer.misfit() + "' does not fit the device");
}

// The best sizes of a plan; an error where some kernel fits at none, or an axis has no parts.
Result<SizedPlan> sized(GraphPlan plan, const Machine& machine, bool library) {
  SizedPlan result;
  for (KernelPlan& k : plan.kernels) {
    if (library) offer_library(plan.graph, machine, k);
  }
  result.part_counts.assign(plan.parts.size(), 1);
  result.tiles.resize(plan.kernels.size());
  PlanSizer sizer(plan, machine);
  const auto part_of = [](const KernelPlan& kernel) {
    int part = -1;
    for (const Split& s : kernel.splits) part = std::max({part, s.shared_part, s.whole_part});
    return part;
  };
  for (size_t k = 0; k < plan.kernels.size(); ++k) {
    const int part = part_of(plan.kernels[k]);
    if (part < 0) {
      auto size = sizer.at(result.part_counts, k, 1);
      if (!size) return misfit(sizer);
      result.us += size->us;
      result.tiles[k] = std::move(size->tiles[0]);
      continue;
    }
    // The kernel of the parts and, behind it, the one that joins them.
    double best = std::numeric_limits<double>::infinity();
    int64_t& count = result.part_counts[static_cast<size_t>(part)];
    int64_t best_count = 1;
    for (const int64_t n : part_candidates(plan.parts[static_cast<size_t>(part)].extent, machine)) {
      count = n;
      auto both = sizer.at(result.part_counts, k, 2);
      if (!both || both->us >= best) continue;
      best = both->us;
      best_count = n;
      result.tiles[k] = std::move(both->tiles[0]);
      result.tiles[k + 1] = std::move(both->tiles[1]);
    }
    if (best_count == 1) return misfit(sizer);
    count = best_count;
    result.us += best;
    ++k;
  }
  result.plan = std::move(plan);
  return result;
}

std::vector<TermId> long_reductions(const Program& program) {
  std::vector<TermId> roots, found;
  for (const Output& o : program.outputs) roots.push_back(o.value);
  const auto count = [&](AxisSet axes) {
    double n = 1;
    for (AxisId a : axes) n *= static_cast<double>(program.axes[a].extent);
    return n;
  };
  for (TermId t : reachable(program.terms, roots)) {
    const auto* reduce = std::get_if<ReduceTerm>(&program.terms[t]);
    if (reduce != nullptr && count(reduce->axes) >= kLongReduction) found.push_back(t);
  }
  return found;
}

}  // namespace

Result<SizedPlan> sized_unfused_plan(const Program& program, const Machine& machine, bool library) {
  std::set<TermId> split;
  Result<SizedPlan> best = sized(unfused_plan(program), machine, library);
  if (!best.ok()) return best;
  for (const TermId t : long_reductions(program)) {
    std::set<TermId> more = split;
    more.insert(t);
    Result<SizedPlan> other = sized(unfused_plan(program, more), machine, library);
    if (!other.ok() || other->us >= best->us) continue;
    best = std::move(other);
    split = std::move(more);
  }
  return best;
}

}  // namespace sundog::search
