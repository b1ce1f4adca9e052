// The axes of a program stand first in each of its parts' graphs, with the same ids; behind them
// stand those of partial results, which get new ids and, where two parts cut the same axis, new
// names.
#include "search/join.h"

#include <algorithm>

#include "core/check.h"
#include "search/kernel_plan.h"
#include "search/term_copy.h"

namespace sundog::search {
namespace {

class Joiner {
 public:
  Joiner(const Program& program, const Partition& partition)
      : program_(program), out_(empty_plan(program).graph) {
    for (const TensorDecl& t : partition.intermediates) {
      out_.tensors.push_back({t, TensorRole::kIntermediate});
    }
  }

  void add(const ProgramPart& part, const MuGraph& graph) {
    const uint32_t first_kernel = static_cast<uint32_t>(out_.kernels.size());
    axis_of_.clear();
    for (AxisId a = 0; a < graph.axes.size(); ++a) {
      if (a < program_.axes.size()) {
        axis_of_.push_back(a);
        continue;
      }
      MuAxis axis = graph.axes[a];
      axis.name = fresh_axis(axis.name);
      if (axis.kernel != kNone) axis.kernel += first_kernel;
      axis_of_.push_back(static_cast<AxisId>(out_.axes.size()));
      out_.axes.push_back(std::move(axis));
    }
    tensor_of_ = part.tensors;
    for (size_t t = part.tensors.size(); t < graph.tensors.size(); ++t) {
      DeviceTensor tensor = graph.tensors[t];
      tensor.decl.name = fresh_tensor(tensor.decl.name);
      for (size_t d = 0; d < tensor.decl.dims.size(); ++d) {
        AxisId axis = 0;
        SUNDOG_CHECK(tensor.decl.dims[d].is_axis(&axis));
        tensor.decl.dims[d] = IndexExpr::of(axis_of_[axis]);
        tensor.decl.dim_names[d] = out_.axes[axis_of_[axis]].name;
      }
      tensor_of_.push_back(static_cast<uint32_t>(out_.tensors.size()));
      out_.tensors.push_back(std::move(tensor));
    }
    for (uint32_t k = 0; k < graph.kernels.size(); ++k) add(graph, graph.kernels[k], k);
  }

  MuGraph take() { return std::move(out_); }

 private:
  void add(const MuGraph& graph, const Kernel& from, uint32_t number) {
    Kernel to = from;
    to.name = "k" + std::to_string(out_.kernels.size());
    for (AxisId f = 0; f < to.factors.size(); ++f) {
      Factor& factor = to.factors[f];
      // A factor that an axis of partial results stems from, or that is all of one, has its name.
      for (AxisId a = static_cast<AxisId>(program_.axes.size()); a < graph.axes.size(); ++a) {
        const MuAxis& axis = graph.axes[a];
        const bool stems = axis.kernel == number && axis.factor == f;
        const std::string& name = out_.axes[axis_of_[a]].name;
        if (stems || (factor.axis == a && factor.name == axis.name)) {
          factor.name = name;
        } else if (factor.axis == a && factor.name.starts_with(axis.name + ".")) {
          factor.name = name + factor.name.substr(axis.name.size());
        }
      }
      factor.axis = axis_of_[factor.axis];
    }
    to.terms = {};
    TermCopier copier(from.terms, to.terms);
    copier.replace = [&](TermId t) -> std::optional<TermId> {
      const auto* in = std::get_if<InputTerm>(&from.terms[t]);
      if (in == nullptr) return {};
      return to.terms.input(tensor_of_[in->tensor], in->index);
    };
    for (Computation& c : to.computations) c.value = copier.copy(c.value);
    redirect(to.body);
    out_.kernels.push_back(std::move(to));
  }

  void redirect(std::vector<Statement>& body) const {
    for (Statement& s : body) {
      if (auto* store = std::get_if<Store>(&s.node)) store->tensor = tensor_of_[store->tensor];
      if (auto* loop = std::get_if<Loop>(&s.node)) redirect(loop->body);
    }
  }

  std::string fresh_axis(const std::string& base) const {
    const auto taken = [&](const std::string& n) {
      return std::any_of(out_.axes.begin(), out_.axes.end(),
                         [&](const MuAxis& a) { return a.name == n; });
    };
    std::string name = base;
    for (int n = 2; taken(name); ++n) name = base + std::to_string(n);
    return name;
  }

  std::string fresh_tensor(std::string name) const {
    const auto taken = [&](const DeviceTensor& t) { return t.decl.name == name; };
    while (std::any_of(out_.tensors.begin(), out_.tensors.end(), taken)) name += "_";
    return name;
  }

  const Program& program_;
  MuGraph out_;
  std::vector<AxisId> axis_of_;      // of the part's graph -> of the whole's
  std::vector<uint32_t> tensor_of_;  // likewise
};

}  // namespace

MuGraph join(const Program& program, const Partition& partition,
             const std::vector<const MuGraph*>& graphs) {
  Joiner joiner(program, partition);
  for (size_t i = 0; i < graphs.size(); ++i) joiner.add(partition.parts[i], *graphs[i]);
  return joiner.take();
}

}  // namespace sundog::search
