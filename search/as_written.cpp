// Terms become computations where more than one reads them or a reduction is at their root; what is
// between is one expression, as in the unfused program.
#include "search/as_written.h"

#include <algorithm>
#include <map>
#include <vector>

#include "search/finish.h"
#include "search/hoist_loads.h"
#include "search/kernel_plan.h"
#include "search/size_plan.h"
#include "search/sizes.h"
#include "search/term_copy.h"

namespace sundog::search {
namespace {

class RowKernel {
 public:
  explicit RowKernel(const Program& program) : program_(program), plan_(empty_plan(program)) {
    std::vector<TermId> roots;
    for (const Output& o : program.outputs) roots.push_back(o.value);
    terms_ = reachable(program.terms, roots);
  }

  std::optional<GraphPlan> run() {
    if (program_.terms.size() == 0 || guards_a_reduction()) return std::nullopt;
    const AxisSet rows = free_axes();
    if (rows.empty()) return std::nullopt;
    kernel_.kernel.name = "k0";
    for (AxisId a : used_axes()) cut(a, rows.has(a));
    for (AxisId a = 0; a < program_.axes.size(); ++a) {
      index_of_.push_back(axis_index(kernel_.kernel, a));
    }
    count_uses();
    for (const TermId t : terms_) {
      if (is_computed(t)) compute(t);
    }
    for (uint32_t o = 0; o < program_.outputs.size(); ++o) store(o);
    hoist_loads(plan_.graph, kernel_.kernel);
    plan_.kernels.push_back(std::move(kernel_));
    return std::move(plan_);
  }

 private:
  // A reduction whose reads may leave the tensor where its select does not ask for it.
  bool guards_a_reduction() const {
    for (const TermId t : terms_) {
      const auto* select = std::get_if<SelectTerm>(&program_.terms[t]);
      if (select == nullptr) continue;
      const TermId branches[] = {select->then, select->otherwise};
      for (const TermId below : reachable(program_.terms, branches)) {
        if (std::holds_alternative<ReduceTerm>(program_.terms[below])) return true;
      }
    }
    return false;
  }

  AxisSet output_axes(const Output& o) const {
    AxisSet axes = program_.terms.axes(o.value);
    for (const IndexExpr& e : o.tensor.dims) axes |= e.axis_set();
    return axes;
  }

  AxisSet used_axes() const {
    AxisSet axes;
    for (const TermId t : terms_) {
      axes |= program_.terms.axes(t);
      if (const auto* r = std::get_if<ReduceTerm>(&program_.terms[t])) axes |= r->axes;
    }
    for (const Output& o : program_.outputs) axes |= output_axes(o);
    return axes;
  }

  AxisSet free_axes() const {
    AxisSet free = used_axes();
    for (const Output& o : program_.outputs) free = free & output_axes(o);
    for (const TermId t : terms_) {
      const auto* reduce = std::get_if<ReduceTerm>(&program_.terms[t]);
      if (reduce == nullptr) continue;
      free = (free - reduce->axes) & program_.terms.axes(t);
    }
    return free;
  }

  void cut(AxisId axis, bool over_blocks) {
    if (over_blocks) {
      add_split(kernel_, plan_.graph, axis, false);
      return;
    }
    Split whole;
    whole.axis = axis;
    whole.extent = plan_.graph.axes[axis].extent;
    whole.inner = static_cast<AxisId>(kernel_.kernel.factors.size());
    kernel_.kernel.factors.push_back({plan_.graph.axes[axis].name, axis, 1, 1});
    kernel_.splits.push_back(whole);
  }

  void count_uses() {
    for (const TermId t : terms_) {
      for (const TermId o : operands(program_.terms[t])) ++uses_[o];
    }
    for (const Output& o : program_.outputs) ++uses_[o.value];
  }

  // What is read once, or costs no more than to read it, is written where it is read.
  bool is_computed(TermId term) const {
    const Term& t = program_.terms[term];
    if (std::holds_alternative<ReduceTerm>(t)) return true;
    const auto uses = uses_.find(term);
    return uses != uses_.end() && uses->second > 1 && !operands(t).empty();
  }

  // The tile factors of `axes`.
  std::vector<AxisId> tile_of(AxisSet axes) const {
    std::vector<AxisId> tile;
    for (const Split& s : kernel_.splits) {
      if (axes.has(s.axis)) tile.push_back(s.inner);
    }
    return tile;
  }

  TermId value_of(TermId term) {
    TermGraph& to = kernel_.kernel.terms;
    TermCopier copier(program_.terms, to, index_of_);
    copier.replace = [&](TermId t) -> std::optional<TermId> {
      const auto known = computed_.find(t);
      if (known == computed_.end()) return {};
      return to.local(known->second, AxisSet::of(kernel_.kernel.computations[known->second].axes));
    };
    return copier.copy(term);
  }

  // Gives the computation.
  uint32_t add(TermId term, AxisSet axes, std::string name) {
    Computation c;
    c.name = std::move(name);
    c.axes = tile_of(axes);
    c.value = value_of(term);
    const auto id = static_cast<uint32_t>(kernel_.kernel.computations.size());
    kernel_.kernel.computations.push_back(std::move(c));
    kernel_.kernel.body.push_back({Compute{id}});
    return id;
  }

  void compute(TermId term) {
    const uint32_t id = add(term, program_.terms.axes(term), name_of(term));
    kernel_.wide.insert(kernel_.kernel.computations[id].name);
    computed_[term] = id;
  }

  void store(uint32_t o) {
    const Output& output = program_.outputs[o];
    const AxisSet axes = output_axes(output);
    const auto known = computed_.find(output.value);
    const bool ready = known != computed_.end() && program_.terms.axes(output.value) == axes;
    const uint32_t id =
        ready ? known->second : add(output.value, axes, fresh_name(output.tensor.name));
    const auto tensor = static_cast<uint32_t>(program_.inputs.size()) + o;
    auto index = default_index(kernel_.kernel, plan_.graph.tensors[tensor].decl);
    kernel_.kernel.body.push_back({Store{id, tensor, std::move(index)}});
  }

  std::string name_of(TermId term) const {
    for (const Definition& d : program_.definitions) {
      if (d.value == term) return fresh_name(d.name);
    }
    return fresh_name("t" + std::to_string(kernel_.kernel.computations.size()));
  }

  std::string fresh_name(const std::string& base) const {
    const auto taken = [&](const std::string& n) {
      return std::any_of(plan_.graph.tensors.begin(), plan_.graph.tensors.end(),
                         [&](const DeviceTensor& t) { return t.decl.name == n; }) ||
             std::any_of(kernel_.kernel.computations.begin(), kernel_.kernel.computations.end(),
                         [&](const Computation& c) { return c.name == n; });
    };
    std::string name = base;
    for (int n = 2; taken(name); ++n) name = base + "_" + std::to_string(n);
    return name;
  }

  const Program& program_;
  GraphPlan plan_;
  KernelPlan kernel_;
  std::vector<TermId> terms_;  // operands before their readers
  std::vector<IndexExpr> index_of_;
  std::map<TermId, int> uses_;
  std::map<TermId, uint32_t> computed_;
};

}  // namespace

std::optional<Candidate> as_written(const Program& program, const Machine& machine,
                                    const Device& device) {
  std::optional<GraphPlan> plan = RowKernel(program).run();
  if (!plan) return std::nullopt;
  const auto sized = PlanSizer(*plan, machine).at({});
  if (!sized) return std::nullopt;
  Candidate c =
      candidate_of(finish(std::move(*plan), sized->tiles, {}, machine), "as written", machine);
  if (!fits_device(c.graph, device)) return std::nullopt;
  return c;
}

}  // namespace sundog::search
