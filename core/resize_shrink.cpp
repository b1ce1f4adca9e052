#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <set>

#include "core/check.h"
#include "core/resize.h"
#include "core/size_relations.h"
#include "core/via.h"

// Shrinking picks an extent for each class of axes, the smallest at which every kernel can still
// split it in the way it did: into as many factors, evenly or raggedly.  Both policies are such a
// search; they differ in which factors may be cut, and how far.

namespace sundog {
namespace {

// Extents of axes that literals relate which are looked through; more where tiles are kept, which
// may be large.
constexpr int64_t kMostFew = 256, kMostKept = 1 << 16;
constexpr int64_t kMostTie = 32;  // tried as what tied kernels have in common

// How one kernel splits one axis.
struct Split {
  AxisId axis = 0;
  uint32_t kernel = 0;
  std::vector<AxisId> factors;  // outermost first
  std::vector<int64_t> extents;
  std::vector<int64_t> least;  // kKeepTiles: how far a grid or loop may be cut; 0: not at all
  int64_t axis_extent = 0;
  bool tied = false;  // its outermost factor counts the same parts as that of another kernel

  int64_t reach() const {
    int64_t product = 1;
    for (int64_t extent : extents) product *= extent;
    return product;
  }
  bool ragged() const { return reach() > axis_extent; }
};

void find_loops(const std::vector<Statement>& body, std::map<AxisId, int>& stages) {
  for (const Statement& statement : body) {
    if (const auto* loop = std::get_if<Loop>(&statement.node)) {
      int& most = stages[loop->factor];
      most = std::max(most, loop->stages);
      find_loops(loop->body, stages);
    }
  }
}

// Whether the factor tells the blocks of a cluster apart: they stay as many as there were shares
// for.
bool is_rank(const MuGraph& graph, uint32_t k, AxisId f) {
  if (k + 1 >= graph.kernels.size() || graph.kernels[k + 1].via != Via::kCluster) return false;
  const Result<Arrival> arrival = arrival_of(graph, k + 1);
  if (!arrival.ok()) return false;
  return std::find(arrival->arriving.begin(), arrival->arriving.end(), f) !=
         arrival->arriving.end();
}

std::vector<Split> splits_of(const MuGraph& graph, AxisId axis) {
  std::vector<Split> result;
  for (uint32_t k = 0; k < graph.kernels.size(); ++k) {
    const Kernel& kernel = graph.kernels[k];
    Split split{axis, k, factors_of(kernel, axis), {}, {}, graph.axes[axis].extent};
    if (split.factors.empty()) continue;
    std::map<AxisId, int> stages;
    find_loops(kernel.body, stages);
    for (AxisId f : split.factors) {
      split.extents.push_back(kernel.factors[f].extent);
      const bool grid = std::find(kernel.grid.begin(), kernel.grid.end(), f) != kernel.grid.end();
      // A share of a block's tile is as large as the tile allows.
      const bool share = kernel.via == Via::kCluster && f != split.factors[0];
      int64_t least = grid && !share ? 2 : 0;
      // A library cuts axes as it likes; unlike extents tell rows from columns.
      if (kernel.kind != KernelKind::kGraphDefined) least = 2 + static_cast<int64_t>(f);
      if (const auto loop = stages.find(f); loop != stages.end()) {
        least = loop->second > 1 ? loop->second + 1 : 2;
      }
      if (is_rank(graph, k, f)) least = split.extents.back();
      split.least.push_back(std::min(least, split.extents.back()));
    }
    result.push_back(std::move(split));
  }
  return result;
}

// Factors of an axis of `extent` with the inner ones given; nothing if they are not ragged as
// before.
std::optional<std::vector<int64_t>> with_outermost(const Split& split, std::vector<int64_t> factors,
                                                   int64_t extent, int64_t least) {
  int64_t inner = 1;
  for (size_t i = 1; i < factors.size(); ++i) inner *= factors[i];
  factors[0] = (extent + inner - 1) / inner;
  if (factors[0] < std::min(least, split.extents[0])) return std::nullopt;
  if (split.extents[0] == 1 && factors[0] != 1) return std::nullopt;
  if ((factors[0] * inner > extent) != split.ragged()) return std::nullopt;
  return factors;
}

// Tied kernels must agree on how many parts there are, which their splits follow from in different
// ways; so both are given a number to meet: `tie`, 0 for those that are free.

// `tie`: what the factors inside the outermost hold together; then there are equally many parts at
// every extent.
std::optional<std::vector<int64_t>> few_elements(const Split& split, int64_t extent, int64_t tie) {
  std::vector<int64_t> factors;
  size_t innermost = 0;  // the last factor that is none of 1
  for (size_t i = 0; i < split.extents.size(); ++i) {
    factors.push_back(std::min<int64_t>(split.extents[i], 2));
    if (split.extents[i] > 1) innermost = i;
  }
  if (innermost == 0) {
    if (tie > 1) return std::nullopt;
    factors[0] = extent + (split.ragged() ? 1 : 0);
    return factors;
  }
  const int64_t most = split.extents[0] == 1 ? extent + 1 : std::min<int64_t>(extent, 5);
  for (int64_t v = 2; v <= std::min(most, split.extents[innermost]); ++v) {
    factors[innermost] = v;
    int64_t inner = 1;
    for (size_t i = 1; i < factors.size(); ++i) inner *= factors[i];
    if (tie > 0 && inner != tie) continue;
    if (auto result = with_outermost(split, factors, extent, 2)) return result;
  }
  return std::nullopt;
}

// `tie`: the number of parts; a loop inside them takes as many steps as that leaves.
std::optional<std::vector<int64_t>> keep_tiles(const Split& split, int64_t extent, int64_t tie) {
  std::vector<int64_t> factors = split.extents;
  int64_t tile = 1;
  bool inside = true;
  for (size_t i = factors.size(); i-- > 0;) {
    inside = inside && split.least[i] == 0;
    if (inside) tile *= factors[i];
    if (i > 0 && split.least[i] > 0) factors[i] = split.least[i];
  }
  if (split.least[0] == 0 && split.extents[0] > 1) {  // a tile outside: nothing can be cut
    if (extent != split.axis_extent) return std::nullopt;
    return split.extents;
  }
  if (extent % tile != split.axis_extent % tile) return std::nullopt;
  if (tie == 0) return with_outermost(split, factors, extent, split.least[0]);
  const size_t loop = factors.size() > 1 && split.least[1] > 0 ? 1 : 0;
  const int64_t most = loop == 0 ? factors[0] : split.extents[1];
  for (int64_t steps = factors[loop]; steps <= most; ++steps) {
    factors[loop] = steps;
    auto result = with_outermost(split, factors, extent, split.least[0]);
    if (result && (*result)[0] == tie) return result;
  }
  return std::nullopt;
}

std::optional<std::vector<int64_t>> refit(const Split& split, int64_t extent, ShrinkPolicy policy,
                                          int64_t tie) {
  switch (policy) {
    case ShrinkPolicy::kFewElements:
      return few_elements(split, extent, tie);
    case ShrinkPolicy::kKeepTiles:
      return keep_tiles(split, extent, tie);
  }
  SUNDOG_CHECK(false);
}

using FactorOf = std::pair<uint32_t, AxisId>;  // a kernel and its factor

// Factors that count the parts of an axis that is another kernel's to cut, with those of that
// kernel: each stores or reads one part of what the other reads or stores, or it is run by the
// other's blocks.
std::set<FactorOf> tied_factors(const MuGraph& graph) {
  std::set<FactorOf> tied;
  const auto add = [&](uint32_t k, uint32_t tensor, const std::vector<IndexExpr>& index) {
    const TensorDecl& decl = graph.tensors[tensor].decl;
    for (size_t d = 0; d < index.size(); ++d) {
      AxisId axis = 0, factor = 0;
      if (!decl.dims[d].is_axis(&axis) || !index[d].is_axis(&factor)) continue;
      const MuAxis& parts = graph.axes[axis];
      const Factor& counted = graph.kernels[k].factors[factor];
      if (parts.kernel == kNone || counted.axis == axis || counted.extent != parts.extent) continue;
      if (parts.kernel == k && parts.factor == factor) continue;
      tied.insert({k, factor});
      tied.insert({parts.kernel, parts.factor});
    }
  };
  for (uint32_t k = 0; k < graph.kernels.size(); ++k) {
    const TermGraph& terms = graph.kernels[k].terms;
    for (TermId t = 0; t < terms.size(); ++t) {
      if (const auto* in = std::get_if<InputTerm>(&terms[t])) add(k, in->tensor, in->index);
    }
    for (const Store* store : stores_of(graph.kernels[k])) add(k, store->tensor, store->index);
    if (graph.kernels[k].via == Via::kKernel) continue;
    const Result<Arrival> arrival = arrival_of(graph, k);
    for (size_t i = 0; arrival.ok() && i < arrival->group.size(); ++i) {
      tied.insert({k, graph.kernels[k].grid[i]});
      tied.insert({k - 1, arrival->group[i]});
    }
  }
  return tied;
}

class Shrinker {
 public:
  Shrinker(const MuGraph& graph, const Program& program, ShrinkPolicy policy,
           LiteralPolicy literals, const std::vector<int64_t>& above)
      : graph_(graph),
        program_(program),
        policy_(policy),
        literals_(literals),
        above_(above),
        classes_(axis_classes(program, literals)),
        tied_(tied_factors(graph)),
        sizes_(sizes_of(graph)) {}

  Result<Shrunk> run() {
    for (AxisId a = 0; a < program_.axes.size(); ++a) {
      if (classes_.pinned[a] != 0) used_.insert(sizes_.axes[a]);
    }
    std::vector<std::vector<AxisId>> related;
    std::optional<SizeSystem> system;
    if (literals_ == LiteralPolicy::kScale) {
      const RelatedProgram all[] = {{program_, size_forms(classes_.forms)}};
      system.emplace(extents(program_), all);
    }
    for (std::vector<AxisId>& members : members_of_classes()) {
      if (system && system->concerns(members[0])) {
        related.push_back(std::move(members));
      } else {
        shrink_class(members);
      }
    }
    std::optional<Literals> literals = Literals();
    if (!related.empty()) literals = shrink_related(related, *system);
    if (!literals) return unsupported("its literals have no counterparts at small sizes");
    for (AxisId a = static_cast<AxisId>(program_.axes.size()); a < graph_.axes.size(); ++a) {
      shrink_partial(a);
    }
    const std::vector<int64_t> extents(
        sizes_.axes.begin(),
        sizes_.axes.begin() + static_cast<std::ptrdiff_t>(program_.axes.size()));
    Result<MuGraph> graph = with_sizes(graph_, sizes_, *literals);
    if (!graph.ok()) return graph.error();
    // Where two kernels no longer cut an axis alike, the second is launched; it means the same.
    for (uint32_t k = 0; k < graph->kernels.size(); ++k) {
      Kernel& kernel = graph->kernels[k];
      if (kernel.via != Via::kKernel && !arrival_of(*graph, k).ok()) kernel.via = Via::kKernel;
    }
    Shrunk result{with_extents(program_, extents, *literals), *std::move(graph), *literals};
    for (size_t i = 0; i < program_.inputs.size(); ++i) {
      result.graph.tensors[i].decl = result.program.inputs[i];
    }
    for (size_t i = 0; i < program_.outputs.size(); ++i) {
      result.graph.tensors[program_.inputs.size() + i].decl = result.program.outputs[i].tensor;
    }
    return result;
  }

 private:
  void take(const Split& split, const std::vector<int64_t>& factors) {
    for (size_t i = 0; i < factors.size(); ++i) {
      sizes_.factors[split.kernel][split.factors[i]] = factors[i];
    }
  }

  // The classes that may change, of each the axis first that the others follow.
  std::vector<std::vector<AxisId>> members_of_classes() const {
    std::map<AxisId, std::vector<AxisId>> by_root;
    for (AxisId a = 0; a < program_.axes.size(); ++a) {
      if (classes_.pinned[a] == 0) by_root[classes_.class_of[a]].push_back(a);
    }
    std::vector<std::vector<AxisId>> result;
    for (auto& [root, members] : by_root) {
      std::iter_swap(members.begin(), std::find(members.begin(), members.end(), root));
      result.push_back(std::move(members));
    }
    return result;
  }

  // Extents that are taken by no other class, if they are to be distinct.
  bool are_new(const std::vector<int64_t>& extents) const {
    return policy_ != ShrinkPolicy::kFewElements ||
           std::none_of(extents.begin(), extents.end(),
                        [&](int64_t extent) { return used_.contains(extent); });
  }

  std::vector<Split> splits_of_class(const std::vector<AxisId>& members) const {
    std::vector<Split> splits;
    for (const AxisId a : members) {
      for (Split& split : splits_of(graph_, a)) {
        split.tied = tied_.contains({split.kernel, split.factors[0]});
        splits.push_back(std::move(split));
      }
    }
    return splits;
  }

  // Of the members of a class, whose first has the extent `root`.
  std::vector<int64_t> extents_of(const std::vector<AxisId>& members, int64_t root) const {
    std::vector<int64_t> extents;
    for (const AxisId a : members) extents.push_back(classes_.forms[a].at(root));
    return extents;
  }

  // Whether a class may be as small: two of each axis, and more than there are to be.
  bool has_enough(const std::vector<AxisId>& members, const std::vector<int64_t>& extents) const {
    for (size_t i = 0; i < members.size(); ++i) {
      if (extents[i] < 2 || (!above_.empty() && extents[i] <= above_[members[i]])) return false;
    }
    return true;
  }

  void take_class(const std::vector<AxisId>& members, const std::vector<Split>& splits,
                  int64_t root) {
    const auto fits = refit_all(splits, root);
    for (size_t i = 0; i < fits.size(); ++i) take(splits[i], fits[i]);
    const std::vector<int64_t> extents = extents_of(members, root);
    for (size_t i = 0; i < members.size(); ++i) sizes_.axes[members[i]] = extents[i];
    used_.insert(extents.begin(), extents.end());
  }

  void shrink_class(const std::vector<AxisId>& members) {
    const std::vector<Split> splits = splits_of_class(members);
    const int64_t original = graph_.axes[members[0]].extent;
    for (int64_t root = 2; root < original; ++root) {
      const std::vector<int64_t> extents = extents_of(members, root);
      if (!has_enough(members, extents) || !are_new(extents)) continue;
      if (refit_all(splits, root).empty() && !splits.empty()) continue;
      take_class(members, splits, root);
      return;
    }
    for (const AxisId a : members) used_.insert(graph_.axes[a].extent);
  }

  // Classes that literals relate, all at once; nothing if they can only stay as they are.
  std::optional<Literals> shrink_related(const std::vector<std::vector<AxisId>>& classes,
                                         SizeSystem& system) {
    const bool few = policy_ == ShrinkPolicy::kFewElements;
    std::vector<std::vector<Split>> splits;
    for (const std::vector<AxisId>& members : classes) {
      splits.push_back(splits_of_class(members));
      const int64_t original = graph_.axes[members[0]].extent;
      std::vector<int64_t> values;
      for (int64_t root = 2; root < std::min(original, few ? kMostFew : kMostKept); ++root) {
        if (!has_enough(members, extents_of(members, root))) continue;
        if (!refit_all(splits.back(), root).empty() || splits.back().empty()) {
          values.push_back(root);
        }
      }
      system.allow(members[0], std::move(values));
    }
    const auto choice = system.choose(few ? used_ : std::set<int64_t>(), tile_step(classes));
    if (!choice) return std::nullopt;
    for (size_t i = 0; i < classes.size(); ++i) {
      const AxisId root = classes[i][0];
      if (choice->extents[root] == graph_.axes[root].extent) continue;
      take_class(classes[i], splits[i], choice->extents[root]);
    }
    return choice->literals;
  }

  // Of each split, or nothing if one of them cannot be as it was.
  std::vector<std::vector<int64_t>> refit_all(const std::vector<Split>& splits,
                                              int64_t root) const {
    const bool any =
        std::any_of(splits.begin(), splits.end(), [](const Split& s) { return s.tied; });
    for (int64_t tie = any ? 1 : 0; tie <= (any ? kMostTie : 0); ++tie) {
      std::vector<std::vector<int64_t>> fits;
      for (const Split& split : splits) {
        const int64_t extent = classes_.forms[split.axis].at(root);
        auto factors = refit(split, extent, policy_, split.tied ? tie : 0);
        if (!factors) break;
        fits.push_back(*std::move(factors));
      }
      if (fits.size() == splits.size()) return fits;
    }
    return {};
  }

  // Where a literal stands in a tile is kept: with tiles of their own extents it moves by whole
  // ones.
  int64_t tile_step(const std::vector<std::vector<AxisId>>& classes) const {
    int64_t step = 1;
    if (policy_ != ShrinkPolicy::kKeepTiles) return step;
    for (const std::vector<AxisId>& members : classes) {
      for (const AxisId axis : members) {
        for (const Kernel& kernel : graph_.kernels) {
          for (const AxisId factor : factors_of(kernel, axis)) {
            step = std::lcm(step, kernel.factors[factor].stride);
          }
        }
      }
    }
    return step;
  }

  // An axis of partial results has the extent of its factor; kernels that split it do so as before
  // if they can, else not at all.
  void shrink_partial(AxisId axis) {
    const MuAxis& from = graph_.axes[axis];
    const int64_t extent = sizes_.factors[from.kernel][from.factor];
    sizes_.axes[axis] = extent;
    if (extent == from.extent) return;
    for (const Split& split : splits_of(graph_, axis)) {
      auto factors = refit(split, extent, policy_, 0);
      if (!factors) {
        factors = std::vector<int64_t>(split.factors.size(), 1);
        (*factors)[0] = extent;
      }
      take(split, *factors);
    }
  }

  const MuGraph& graph_;
  const Program& program_;
  const ShrinkPolicy policy_;
  const LiteralPolicy literals_;
  const std::vector<int64_t>& above_;
  const AxisClasses classes_;
  const std::set<FactorOf> tied_;
  MuSizes sizes_;
  std::set<int64_t> used_;
};

}  // namespace

Result<Shrunk> shrink(const MuGraph& graph, const Program& program, ShrinkPolicy policy,
                      LiteralPolicy literals, const std::vector<int64_t>& above) {
  return Shrinker(graph, program, policy, literals, above).run();
}

}  // namespace sundog
