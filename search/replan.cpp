// The inverse of settle(): a finished kernel becomes a plan again.  Factors are told by where they
// stand (grid, loop, tile); index expressions lose the strides of the old tiles; a parallel axis
// that a block held whole gets its grid back, since a longer one may not fit.  Everything that the
// thread level decided is forgotten.  Where a loop was dropped because it had one iteration it
// stays dropped: the loads and sums that it had around them are no longer known, so a much longer
// axis may not fit, which is said.
#include "search/replan.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "core/check.h"
#include "core/via.h"
#include "search/cost.h"
#include "search/finish.h"
#include "search/kernel_plan.h"
#include "search/library_kernel.h"
#include "search/merge_repeats.h"
#include "search/settle.h"
#include "search/size_plan.h"
#include "search/sizes.h"
#include "search/term_copy.h"

namespace sundog::search {
namespace {

class KernelReplanner {
 public:
  KernelReplanner(const MuGraph& from, uint32_t number, const GraphPlan& plan,
                  const std::vector<uint32_t>& tensor_of, const std::vector<int>& part_of)
      : from_(from),
        old_(from.kernels[number]),
        number_(number),
        plan_(plan),
        tensor_of_(tensor_of),
        part_of_(part_of) {}

  Result<KernelPlan> run() {
    out_.kernel.name = old_.name;
    find_places(old_.body);
    find_parts();
    find_shares();
    std::vector<Split> splits;
    for (AxisId axis = 0; axis < from_.axes.size(); ++axis) {
      auto split = split_of(axis);
      if (!split.ok()) return split.error();
      if (*split) splits.push_back(**split);
    }
    place_factors(splits);
    copy();
    if (failed_) return *failed_;
    return std::move(out_);
  }

 private:
  bool is_program_axis(AxisId axis) const { return part_of_[axis] < 0; }

  Error unsupported_cut(AxisId axis) const {
    return unsupported("kernel '" + old_.name + "' cuts axis '" + from_.axes[axis].name +
                       "' in another way than grid or loop around a tile");
  }

  void find_places(const std::vector<Statement>& body) {
    for (AxisId f : old_.grid) grid_.insert(f);
    for (const Statement& s : body) {
      if (const auto* loop = std::get_if<Loop>(&s.node)) {
        loops_.insert(loop->factor);
        find_places(loop->body);
      } else if (const auto* store = std::get_if<Store>(&s.node)) {
        stores_.push_back(store);
      }
    }
    for (const Computation& c : old_.computations) {
      if (const auto* r = std::get_if<ReduceTerm>(&old_.terms[c.value])) reduced_ |= r->axes;
    }
  }

  // Grid factors that count partial results: what the µGraph says, and what indexes a dimension of
  // partial results by itself.
  void find_parts() {
    for (AxisId axis = 0; axis < from_.axes.size(); ++axis) {
      if (part_of_[axis] >= 0 && from_.axes[axis].kernel == number_) {
        parts_[from_.axes[axis].factor] = part_of_[axis];
      }
    }
    const auto look = [&](uint32_t tensor, const std::vector<IndexExpr>& index) {
      const TensorDecl& decl = from_.tensors[tensor].decl;
      for (size_t d = 0; d < index.size() && d < decl.dims.size(); ++d) {
        AxisId dim = 0, factor = 0;
        if (!decl.dims[d].is_axis(&dim) || part_of_[dim] < 0) continue;
        if (!index[d].is_axis(&factor) || !grid_.has(factor)) continue;
        if (old_.factors[factor].axis != dim) parts_[factor] = part_of_[dim];
      }
    };
    for (TermId t = 0; t < old_.terms.size(); ++t) {
      if (const auto* in = std::get_if<InputTerm>(&old_.terms[t])) look(in->tensor, in->index);
    }
    for (const Store* s : stores_) look(s->tensor, s->index);
  }

  // Grid factors that cut the tile behind them into shares of the blocks of a cluster: they are
  // part of the tile.
  void find_shares() {
    if (old_.via != Via::kCluster) return;
    const Result<Arrival> arrival = arrival_of(from_, number_);
    SUNDOG_CHECK(arrival.ok());
    for (AxisId f : arrival->sharing) {
      const AxisId tile = f + 1;
      const bool cuts = tile < old_.factors.size() && !grid_.has(tile) && !loops_.has(tile) &&
                        old_.factors[tile].axis == old_.factors[f].axis;
      if (cuts) shares_.insert(f);
    }
  }

  // By old factors; nothing where the axis is not cut here, or one element at a time.
  Result<std::optional<Split>> split_of(AxisId axis) {
    const std::vector<AxisId> factors = factors_of(old_, axis);
    Split s;
    s.axis = axis;
    s.extent = plan_.graph.axes[axis].extent;
    if (!is_program_axis(axis)) s.whole_part = part_of_[axis];
    for (AxisId f : factors) {
      if (shares_.has(f)) continue;
      if (s.inner != kNoFactor) return unsupported_cut(axis);
      if (parts_.contains(f) && s.part == kNoFactor && s.outer == kNoFactor) {
        s.part = f;
        s.shared_part = parts_.at(f);
      } else if (!grid_.has(f) && !loops_.has(f)) {
        s.inner = f;
      } else if (s.outer == kNoFactor) {
        s.outer = f;
        s.looped = loops_.has(f);
      } else {
        return unsupported_cut(axis);
      }
    }
    if (s.inner != kNoFactor) return std::optional(s);
    if (s.part != kNoFactor) return unsupported_cut(axis);
    return std::optional<Split>();
  }

  // The factors of the plan, those of an axis in order, and what each old one is in an index, where
  // all factors count as stride 1: a tile stands for itself and a grid that it did not have.
  void place_factors(const std::vector<Split>& splits) {
    auto& all = out_.kernel.factors;
    std::map<AxisId, AxisId> new_grid;  // old tile -> new factor
    for (AxisId f = 0; f < old_.factors.size(); ++f) {
      const Factor& factor = old_.factors[f];
      if (shares_.has(f)) {
        new_id_.push_back(kNoFactor);
        index_of_.push_back(IndexExpr::of_constant(0));
        continue;
      }
      const std::string& name = from_.axes[factor.axis].name;
      const auto split =
          std::find_if(splits.begin(), splits.end(), [&](const Split& s) { return s.inner == f; });
      const bool gets_grid = split != splits.end() && split->outer == kNoFactor && is_parallel(f);
      if (gets_grid) {
        new_grid[f] = static_cast<AxisId>(all.size());
        all.push_back({name + ".o", factor.axis, 1, 1});
      }
      new_id_.push_back(static_cast<AxisId>(all.size()));
      // Without a split the axis is taken one element at a time.
      all.push_back({factor.name, factor.axis, plan_.graph.axes[factor.axis].extent, 1});
      if (gets_grid) all.back().name = name + ".i";
      index_of_.push_back(IndexExpr::of(new_id_[f]));
      if (gets_grid) index_of_[f] = index_of_[f] + IndexExpr::of(new_grid[f]);
    }
    for (AxisId f : old_.grid) {
      if (!shares_.has(f)) out_.kernel.grid.push_back(new_id_[f]);
    }
    for (const auto& [tile, outer] : new_grid) out_.kernel.grid.push_back(outer);
    for (Split s : splits) {
      const auto grid = new_grid.find(s.inner);
      for (AxisId* f : {&s.part, &s.outer, &s.inner}) {
        if (*f != kNoFactor) *f = new_id_[*f];
      }
      if (grid != new_grid.end()) s.outer = grid->second;
      out_.splits.push_back(s);
    }
  }

  AxisSet mapped(AxisSet factors) const {
    AxisSet out;
    for (AxisId f : factors) out.insert(new_id_[f]);
    return out;
  }

  // Whether blocks can share the axis out: all stores run along it, nothing is reduced over it.
  bool is_parallel(AxisId factor) const {
    if (reduced_.has(factor)) return false;
    return std::all_of(stores_.begin(), stores_.end(), [&](const Store* s) {
      const auto& axes = old_.computations[s->computation].axes;
      return std::find(axes.begin(), axes.end(), factor) != axes.end();
    });
  }

  // An expression without the strides of factors.
  IndexExpr unstrided(const IndexExpr& e) {
    IndexExpr out = e;
    for (IndexExpr::Item& item : out.axes) {
      const int64_t stride = std::max<int64_t>(old_.factors[item.axis].stride, 1);
      if (item.coefficient % stride != 0) {
        failed_ = unsupported("kernel '" + old_.name + "' has an index that mixes factors");
        continue;
      }
      item.coefficient /= stride;
    }
    for (const IndexExpr::Item& item : out.axes) {
      if (!shares_.has(item.axis)) continue;
      const bool with_tile =
          std::any_of(out.axes.begin(), out.axes.end(), [&](const IndexExpr::Item& other) {
            return other.axis == item.axis + 1 && other.coefficient == item.coefficient;
          });
      if (!with_tile) {
        failed_ = unsupported("kernel '" + old_.name + "' has an index that mixes factors");
      }
    }
    return substitute(out, index_of_);
  }

  std::vector<IndexExpr> index(uint32_t tensor, const std::vector<IndexExpr>& from) {
    std::vector<IndexExpr> out;
    const TensorDecl& decl = from_.tensors[tensor].decl;
    for (size_t d = 0; d < from.size(); ++d) {
      AxisId dim = 0, factor = 0;
      const bool part = decl.dims[d].is_axis(&dim) && part_of_[dim] >= 0 &&
                        from[d].is_axis(&factor) && parts_.contains(factor);
      out.push_back(part ? IndexExpr::of(new_id_[factor]) : unstrided(from[d]));
    }
    return out;
  }

  void copy() {
    // No reduction runs over a new factor, since only parallel axes get one.
    TermGraph& to = out_.kernel.terms;
    std::vector<TermId> new_term;
    for (TermId t = 0; t < old_.terms.size(); ++t) {
      new_term.push_back(to.push(copied(old_.terms[t], new_term)));
    }
    std::set<uint32_t> rounded;  // for a product of warp groups alone
    for (const Computation& c : old_.computations) {
      if (const uint32_t source = unrounded(c); source != kNone) rounded.insert(source);
    }
    for (uint32_t id = 0; id < old_.computations.size(); ++id) {
      const Computation& c = old_.computations[id];
      const uint32_t source = unrounded(c);
      Computation made;
      made.name = c.name;
      for (AxisId f : c.axes) made.axes.push_back(new_id_[f]);
      made.value = new_term[source == kNone ? c.value : old_.computations[source].value];
      made.rescale = c.rescale;
      made.accumulate_into = c.accumulate_into;
      const bool is_load = std::holds_alternative<InputTerm>(old_.terms[c.value]);
      if (is_load) made.dtype = c.dtype;
      if (!is_load && c.dtype == DType::kF32 && !rounded.contains(id)) out_.wide.insert(c.name);
      out_.kernel.computations.push_back(std::move(made));
    }
    out_.kernel.body = copied(old_.body);
    if (!rounded.empty()) merge_repeats(out_.kernel);
  }

  // What separate_sums() has made a copy of 16 bits of; kNone where `c` is no such copy.
  uint32_t unrounded(const Computation& c) const {
    const auto* local = std::get_if<LocalTerm>(&old_.terms[c.value]);
    if (local == nullptr || c.storage != Storage::kReg) return kNone;
    if (c.dtype != DType::kF16 && c.dtype != DType::kBF16) return kNone;
    const Computation& source = old_.computations[local->computation];
    const bool computed = source.storage == Storage::kReg && source.dtype == DType::kF32 &&
                          !std::holds_alternative<ReduceTerm>(old_.terms[source.value]);
    return computed && source.axes == c.axes ? local->computation : kNone;
  }

  Term copied(const Term& term, const std::vector<TermId>& new_term) {
    Term out = term;
    const auto move = [&](TermId& t) { t = new_term[t]; };
    if (auto* in = std::get_if<InputTerm>(&out)) {
      in->index = index(in->tensor, in->index);
      in->tensor = tensor_of_[in->tensor];
    } else if (auto* at = std::get_if<IndexTerm>(&out)) {
      at->index = unstrided(at->index);
    } else if (auto* apply = std::get_if<ApplyTerm>(&out)) {
      for (TermId& o : apply->operands) move(o);
    } else if (auto* local = std::get_if<LocalTerm>(&out)) {
      local->axes = mapped(local->axes);
    } else if (auto* reduce = std::get_if<ReduceTerm>(&out)) {
      reduce->axes = mapped(reduce->axes);
      move(reduce->operand);
    } else if (auto* select = std::get_if<SelectTerm>(&out)) {
      select->condition.expr = unstrided(select->condition.expr);
      move(select->then), move(select->otherwise);
    } else if (auto* compare = std::get_if<CompareTerm>(&out)) {
      move(compare->left), move(compare->right), move(compare->then), move(compare->otherwise);
    }
    return out;
  }

  std::vector<Statement> copied(const std::vector<Statement>& body) {
    std::vector<Statement> out;
    for (const Statement& s : body) {
      if (const auto* store = std::get_if<Store>(&s.node)) {
        out.push_back({Store{store->computation, tensor_of_[store->tensor],
                             index(store->tensor, store->index)}});
      } else if (const auto* loop = std::get_if<Loop>(&s.node)) {
        out.push_back({Loop{new_id_[loop->factor], 1, {}, copied(loop->body)}});
      } else {
        out.push_back(s);
      }
    }
    return out;
  }

  const MuGraph& from_;
  const Kernel& old_;
  uint32_t number_;
  const GraphPlan& plan_;
  const std::vector<uint32_t>& tensor_of_;
  const std::vector<int>& part_of_;  // index into the plan's parts of each µGraph axis, or -1
  KernelPlan out_;
  AxisSet grid_, loops_, reduced_, shares_;
  std::map<AxisId, int> parts_;
  std::vector<const Store*> stores_;
  std::vector<AxisId> new_id_;  // of each old factor
  std::vector<IndexExpr> index_of_;
  std::optional<Error> failed_;
};

class Replanner {
 public:
  Replanner(const MuGraph& graph, const Program& program, const Device& device, size_t most)
      : from_(graph),
        program_(program),
        device_(device),
        machine_(machine_of(device)),
        most_(most) {}

  Result<std::vector<Candidate>> run() {
    if (Status s = match(); !s.ok()) return s.error();
    for (uint32_t k = 0; k < from_.kernels.size(); ++k) {
      if (from_.kernels[k].kind == KernelKind::kLibraryGemm) {
        auto kernel = library_plan(from_.kernels[k]);
        if (!kernel.ok()) return kernel.error();
        plan_.kernels.push_back(std::move(*kernel));
        continue;
      }
      auto kernel = KernelReplanner(from_, k, plan_, tensor_of_, part_of_).run();
      if (!kernel.ok()) return kernel.error();
      for (const Part& part : plan_.parts) {
        MuAxis& axis = plan_.graph.axes[part.mu_axis];
        if (axis.kernel != k) continue;
        for (const Split& s : kernel->splits) {
          if (s.shared_part >= 0 &&
              plan_.parts[static_cast<size_t>(s.shared_part)].mu_axis == part.mu_axis) {
            axis.factor = s.part;
          }
        }
      }
      plan_.kernels.push_back(std::move(*kernel));
    }
    std::vector<Candidate> found;
    add_sized(plan_, found);  // with what was kept wide
    for (KernelPlan& k : plan_.kernels) k.wide.clear();
    add_sized(plan_, found);
    std::stable_sort(found.begin(), found.end(), [](const Candidate& a, const Candidate& b) {
      return a.predicted_us < b.predicted_us;
    });
    if (found.empty()) {
      return unsupported("no sizes of '" + from_.name + "' fit " + device_.name + " at this shape");
    }
    if (found.size() > most_) found.resize(most_);
    return found;
  }

 private:
  // A library's kernel stays one, at the extents that there are now.
  Result<KernelPlan> library_plan(const Kernel& old) const {
    KernelPlan out;
    out.kernel = old;
    for (Factor& f : out.kernel.factors) f.extent = plan_.graph.axes[f.axis].extent;
    out.kernel.terms = {};
    for (TermId t = 0; t < old.terms.size(); ++t) {
      Term term = old.terms[t];
      if (auto* in = std::get_if<InputTerm>(&term)) in->tensor = tensor_of_[in->tensor];
      out.kernel.terms.push(std::move(term));
    }
    for (Statement& s : out.kernel.body) {
      if (auto* store = std::get_if<Store>(&s.node)) store->tensor = tensor_of_[store->tensor];
    }
    const Result<LibraryGemm> gemm = library_gemm(plan_.graph, out.kernel);
    if (!gemm.ok()) return gemm.error();
    out.library = {out.kernel, library_price(*gemm, machine_).us};
    out.library_alone = true;
    return out;
  }

  // Axes and tensors of the program by name; axes and tensors of partial results anew.
  Status match() {
    plan_ = empty_plan(program_);
    plan_.graph.name = from_.name;
    const AxisId program_axes = static_cast<AxisId>(program_.axes.size());
    part_of_.assign(from_.axes.size(), -1);
    for (AxisId a = 0; a < from_.axes.size(); ++a) {
      const MuAxis& axis = from_.axes[a];
      if (a < program_axes) {
        if (axis.kernel != kNone || axis.name != program_.axes[a].name) {
          return bad_input("the µGraph is one of another program: its axis '" + axis.name + "'");
        }
        continue;
      }
      if (axis.kernel == kNone) {
        return bad_input("the µGraph is one of another program: its axis '" + axis.name + "'");
      }
      const AxisId base = from_.kernels[axis.kernel].factors[axis.factor].axis;
      part_of_[a] = static_cast<int>(plan_.parts.size());
      plan_.graph.axes.push_back(axis);
      plan_.parts.push_back({base, a, program_.axes[base].extent, 2});
    }
    if (from_.axes.size() < program_.axes.size()) {
      return bad_input("the µGraph lacks axes of the program");
    }
    for (const DeviceTensor& t : from_.tensors) {
      if (t.role == TensorRole::kIntermediate) {
        tensor_of_.push_back(static_cast<uint32_t>(plan_.graph.tensors.size()));
        DeviceTensor made = t;
        made.decl.strides.clear();
        for (size_t d = 0; d < made.decl.dims.size(); ++d) {
          AxisId axis = 0;
          if (!made.decl.dims[d].is_axis(&axis)) {
            return unsupported("tensor '" + t.decl.name + "' has a dimension that is no axis");
          }
          made.decl.extents[d] = plan_.graph.axes[axis].extent;
        }
        plan_.graph.tensors.push_back(std::move(made));
        continue;
      }
      const auto& mine = plan_.graph.tensors;
      const auto it = std::find_if(mine.begin(), mine.end(), [&](const DeviceTensor& m) {
        return m.decl.name == t.decl.name && m.role == t.role;
      });
      if (it == mine.end() || it->decl.dims.size() != t.decl.dims.size()) {
        return bad_input("the program has no tensor like '" + t.decl.name + "' of the µGraph");
      }
      tensor_of_.push_back(static_cast<uint32_t>(it - mine.begin()));
    }
    return {};
  }

  // Numbers of parts to try, for all parts together.
  std::vector<std::vector<int64_t>> part_choices() const {
    constexpr size_t kMostChoices = 64;
    std::vector<std::vector<int64_t>> choices{{}};
    for (const Part& part : plan_.parts) {
      std::vector<int64_t> counts = part_candidates(part.extent, machine_);
      if (counts.empty()) counts = {1};
      std::vector<std::vector<int64_t>> next;
      for (const auto& choice : choices) {
        for (int64_t n : counts) {
          next.push_back(choice);
          next.back().push_back(n);
        }
      }
      choices = std::move(next);
    }
    if (choices.size() > kMostChoices) choices.resize(kMostChoices);
    return choices;
  }

  void add_sized(GraphPlan plan, std::vector<Candidate>& found) const {
    struct Sized {
      double us;
      std::vector<std::vector<int64_t>> tiles;
      std::vector<int64_t> counts;
    };
    std::vector<Sized> all;
    PlanSizer sizer(plan, machine_, SizeStart::kLast);
    for (const std::vector<int64_t>& counts : part_choices()) {
      if (auto sized = sizer.at(counts))
        all.push_back({sized->us, std::move(sized->tiles), counts});
    }
    std::stable_sort(all.begin(), all.end(),
                     [](const Sized& a, const Sized& b) { return a.us < b.us; });
    // Parts for a cluster are fewer than are best otherwise.
    for (size_t k = 1; k < from_.kernels.size(); ++k) {
      if (from_.kernels[k].via != Via::kCluster) continue;
      for (const Sized& s : all) {
        auto cluster = finish_in_cluster(plan, s.tiles, s.counts, machine_, k);
        if (cluster) add(std::move(*cluster), found);
      }
    }
    if (all.size() > most_) all.resize(most_);
    for (const Sized& s : all) {
      add(finish(plan, s.tiles, s.counts, machine_), found);
      for (size_t k = 1; k < from_.kernels.size(); ++k) {
        if (from_.kernels[k].via == Via::kKernel) continue;
        auto joined = finish_joined(plan, s.tiles, s.counts, machine_, k);
        if (joined) add(std::move(*joined), found);
      }
    }
  }

  void add(MuGraph graph, std::vector<Candidate>& found) const {
    if (!check(graph, program_).ok() || !fits_device(graph, device_)) return;
    const bool known = std::any_of(found.begin(), found.end(),
                                   [&](const Candidate& other) { return other.graph == graph; });
    if (!known) found.push_back(candidate_of(std::move(graph), "given", machine_));
  }

  const MuGraph& from_;
  const Program& program_;
  const Device& device_;
  const Machine machine_;
  size_t most_;
  GraphPlan plan_;
  std::vector<uint32_t> tensor_of_;
  std::vector<int> part_of_;
};

}  // namespace

Result<std::vector<Candidate>> replan(const MuGraph& graph, const Program& program,
                                      const Device& device, size_t most) {
  return Replanner(graph, program, device, most).run();
}

}  // namespace sundog::search
