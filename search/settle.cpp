// A plan cuts every axis into grid, loop and tile; the chosen sizes often leave one value to a
// factor (a block that holds a whole row, a batch of one row a block).  Emitting those would hand
// loops of one iteration and index arithmetic over zeros to every later stage, so they are removed
// here, in one place, instead of being special cases of enumeration and lowering.
#include "search/settle.h"

#include "core/check.h"
#include "search/term_copy.h"

namespace sundog::search {
namespace {

class Settler {
 public:
  Settler(const MuGraph& graph, const Kernel& kernel, AxisId program_axes)
      : graph_(graph), from_(kernel), program_axes_(program_axes) {
    std::vector<int> left(graph.axes.size(), 0);
    for (const Factor& f : kernel.factors) ++left[f.axis];
    for (size_t f = 0; f < kernel.factors.size(); ++f) {
      const Factor& factor = kernel.factors[f];
      const bool drop = factor.extent == 1 && left[factor.axis] > 1;
      if (drop) --left[factor.axis];
      kept_.push_back(!drop);
    }
    renumber(left);
  }

  Settled run() {
    to_.name = from_.name;
    to_.warps = from_.warps;
    for (AxisId f : from_.grid) {
      if (kept_[f]) to_.grid.push_back(new_id_[f]);
    }
    TermCopier copier(from_.terms, to_.terms, index_of_);
    copier.replace = [&](TermId t) -> std::optional<TermId> {
      const auto* in = std::get_if<InputTerm>(&from_.terms[t]);
      if (in == nullptr) return {};
      return to_.terms.input(in->tensor, index(in->tensor, in->index, copier));
    };
    to_.computations = from_.computations;
    for (Computation& c : to_.computations) {
      std::vector<AxisId> axes;
      for (AxisId f : c.axes) {
        if (kept_[f]) axes.push_back(new_id_[f]);
      }
      c.axes = std::move(axes);
      c.value = copier.copy(c.value);
      SUNDOG_CHECK(c.warps.empty());
    }
    copy_body(from_.body, to_.body, copier);
    drop_idle_rescales();
    return {std::move(to_), std::move(new_id_)};
  }

 private:
  void renumber(const std::vector<int>& left) {
    for (size_t f = 0; f < from_.factors.size(); ++f) {
      if (!kept_[f]) {
        new_id_.push_back(0);
        index_of_.push_back(IndexExpr::of_constant(0));
        continue;
      }
      const AxisId id = static_cast<AxisId>(to_.factors.size());
      new_id_.push_back(id);
      index_of_.push_back(IndexExpr::of(id) * from_.factors[f].stride);
      Factor factor = from_.factors[f];
      if (left[factor.axis] == 1) {
        factor.name = graph_.axes[factor.axis].name;
        factor.stride = 1;
      }
      to_.factors.push_back(std::move(factor));
    }
  }

  std::vector<IndexExpr> index(uint32_t tensor, const std::vector<IndexExpr>& from,
                               const TermCopier& copier) const {
    std::vector<IndexExpr> out;
    for (size_t d = 0; d < from.size(); ++d) {
      AxisId axis = 0, part = 0;
      if (graph_.tensors[tensor].decl.dims[d].is_axis(&axis) && axis >= program_axes_ &&
          from[d].is_axis(&part) && from_.factors[part].axis < program_axes_) {
        out.push_back(kept_[part] ? IndexExpr::of(new_id_[part]) : IndexExpr::of_constant(0));
      } else {
        out.push_back(copier.copy(from[d]));
      }
    }
    return out;
  }

  void copy_body(const std::vector<Statement>& from, std::vector<Statement>& to,
                 const TermCopier& copier) {
    for (const Statement& s : from) {
      if (const auto* store = std::get_if<Store>(&s.node)) {
        to.push_back(
            {Store{store->computation, store->tensor, index(store->tensor, store->index, copier)}});
      } else if (const auto* loop = std::get_if<Loop>(&s.node)) {
        if (!kept_[loop->factor]) {
          copy_body(loop->body, to, copier);
          continue;
        }
        Loop copy{new_id_[loop->factor], loop->stages, {}, {}, loop->bulk};
        for (const IndexCondition& c : loop->trim) {
          copy.trim.push_back({copier.copy(c.expr), c.relation});
        }
        copy_body(loop->body, copy.body, copier);
        to.push_back({std::move(copy)});
      } else {
        to.push_back(s);
      }
    }
  }

  // A maximum that no longer runs over a loop never moves.
  void drop_idle_rescales() {
    for (uint32_t c = 0; c < to_.computations.size(); ++c) {
      if (accumulated_loops(to_, c).empty()) to_.computations[c].rescale = kNone;
    }
  }

  const MuGraph& graph_;
  const Kernel& from_;
  AxisId program_axes_;
  Kernel to_;
  std::vector<bool> kept_;
  std::vector<AxisId> new_id_;
  std::vector<IndexExpr> index_of_;
};

}  // namespace

Settled settle(const MuGraph& graph, const Kernel& kernel, AxisId program_axes) {
  return Settler(graph, kernel, program_axes).run();
}

}  // namespace sundog::search
