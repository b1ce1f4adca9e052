// Sizes and warps are known here, so everything that depends on them is decided, in an order in
// which each step sees what it needs: factors of one value go first, since loops and rows of one
// value are no loops and rows; then threads and storage; then the order of loads, which the
// threads' storage decides.
#include "search/finish.h"

#include <algorithm>

#include "core/check.h"
#include "core/via.h"
#include "search/arrange_loops.h"
#include "search/early_loads.h"
#include "search/library_kernel.h"
#include "search/merge_repeats.h"
#include "search/settle.h"
#include "search/shares.h"
#include "search/sizes.h"
#include "search/trim_masked.h"

namespace sundog::search {
namespace {

// With `bulk`, loads ahead are bulk copies wherever the plan can make them so.
void set_stages(std::vector<Statement>& body, const Kernel& kernel, int stages, bool bulk) {
  for (Statement& s : body) {
    auto* loop = std::get_if<Loop>(&s.node);
    if (loop == nullptr) continue;
    const bool loads = std::any_of(loop->body.begin(), loop->body.end(), [&](const Statement& b) {
      const auto* compute = std::get_if<Compute>(&b.node);
      if (compute == nullptr) return false;
      const Computation& c = kernel.computations[compute->computation];
      return c.storage == Storage::kShared &&
             std::holds_alternative<InputTerm>(kernel.terms[c.value]);
    });
    const int64_t iterations = kernel.factors[loop->factor].extent;
    loop->stages =
        loads ? static_cast<int>(std::min<int64_t>(stages, std::max<int64_t>(iterations, 1))) : 1;
    loop->bulk = bulk && loop->stages > 1;
    set_stages(loop->body, kernel, stages, bulk);
  }
}

// The order in which loaded operands of tensor cores lie in shared memory: the last axis stays
// where it is in memory; before it comes an axis of the other side of the matrix, so that the eight
// rows that are read together lie one after the other, where the swizzle keeps them in different
// banks.
void order_operands(const std::vector<Role>& roles, Kernel& kernel) {
  constexpr int64_t kRows = 8;
  const auto place = [&](uint32_t id, AxisSet rows, AxisSet reduced) {
    std::vector<AxisId>& axes = kernel.computations[id].axes;
    if (!roles[id].is_load || axes.size() < 3) return;
    const AxisSet other = reduced.has(axes.back()) ? rows : reduced;
    const auto good = [&](AxisId f) { return other.has(f) && kernel.factors[f].extent >= kRows; };
    const auto last = axes.end() - 1;
    const auto found = std::find_if(std::make_reverse_iterator(last), axes.rend(), good);
    if (found == axes.rend()) return;
    std::rotate(found.base() - 1, found.base(), last);
  };
  for (uint32_t i = 0; i < roles.size(); ++i) {
    if (kernel.computations[i].mma == MmaAtom::kNoAtom || !roles[i].contraction) continue;
    const Contraction& c = *roles[i].contraction;
    place(c.left, c.m, c.k);
    place(c.right, c.n, c.k);
  }
}

// Whether registers are dear: loops and products on tensor cores would hold what is loaded early
// for long beside their own.
bool needs_registers(const Kernel& kernel) {
  const auto is_loop = [](const Statement& s) { return std::holds_alternative<Loop>(s.node); };
  const auto is_product = [](const Computation& c) { return c.mma != MmaAtom::kNoAtom; };
  return std::any_of(kernel.body.begin(), kernel.body.end(), is_loop) ||
         std::any_of(kernel.computations.begin(), kernel.computations.end(), is_product);
}

// `new_id`: of each factor of the plan, if it is kept.  `shares`: the most that the kernel is cut
// into.
Kernel finish_kernel(const MuGraph& graph, const KernelPlan& plan, const Machine& machine,
                     AxisId program_axes, int warp_choice, int64_t shares,
                     std::vector<AxisId>& new_id) {
  Settled settled = settle(graph, plan.kernel, program_axes);
  Kernel kernel = std::move(settled.kernel);
  new_id = std::move(settled.new_id);
  merge_repeats(kernel);
  trim_masked(kernel);
  if (const std::optional<ShareFactor> cut = share_factor(graph, kernel, shares)) {
    kernel = cut_into_shares(kernel, *cut);
    for (AxisId& id : new_id) id += id >= cut->factor ? 1 : 0;
  }
  const KernelProfile p = profile(graph, kernel, plan.wide);
  const std::vector<int64_t> extents = priced_extents(kernel);
  const ThreadLevel level = choose_thread_level(kernel, p.roles, extents, machine, warp_choice);
  apply(level, kernel);
  order_operands(p.roles, kernel);
  for (size_t i = 0; i < kernel.computations.size(); ++i) {
    kernel.computations[i].warps = level.splits[i];
  }
  const KernelPrice priced = price(p, kernel, extents, machine, warp_choice);
  set_stages(kernel.body, kernel, std::max(1, priced.stages), machine.bulk);
  const double blocks = tile_count(AxisSet::of(kernel.grid), extents);
  const bool at_once = blocks <= machine.sms * priced.resident;
  start_loads_early(graph, kernel, at_once || !needs_registers(kernel));
  keep_in_registers(p.roles, kernel);
  separate_sums(p.roles, kernel);
  overlap_products(kernel);
  return kernel;
}

// A kernel that the blocks of a cluster run, and by how many of them.
struct InCluster {
  std::optional<size_t> kernel;
  int64_t blocks = 1;
};

MuGraph finish(GraphPlan plan, const std::vector<std::vector<int64_t>>& tiles,
               const std::vector<int64_t>& part_counts, const Machine& machine,
               const InCluster& cluster) {
  for (size_t i = 0; i < plan.parts.size(); ++i) plan.parts[i].count = part_counts[i];
  set_part_counts(plan);
  const AxisId program_axes = static_cast<AxisId>(plan.graph.axes.size() - plan.parts.size());
  for (size_t k = 0; k < plan.kernels.size(); ++k) {
    KernelPlan& kernel = plan.kernels[k];
    if (is_library(tiles[k])) {
      SUNDOG_CHECK(kernel.library.has_value());
      plan.graph.kernels.push_back(std::move(kernel.library->kernel));
      continue;
    }
    for (size_t s = 0; s < kernel.splits.size(); ++s) {
      Split& split = kernel.splits[s];
      split.extent = plan.graph.axes[split.axis].extent;
      const int64_t count =
          split.shared_part < 0 ? 1 : part_counts[static_cast<size_t>(split.shared_part)];
      set_tile(kernel, split, tiles[k][s], count);
    }
    std::vector<AxisId> new_id;
    Kernel done =
        finish_kernel(plan.graph, kernel, machine, program_axes, static_cast<int>(tiles[k].back()),
                      cluster.kernel == k ? cluster.blocks : 1, new_id);
    for (const Part& p : plan.parts) {
      MuAxis& axis = plan.graph.axes[p.mu_axis];
      if (axis.kernel == k) axis.factor = new_id[axis.factor];
    }
    plan.graph.kernels.push_back(std::move(done));
  }
  return std::move(plan.graph);
}

// A tile of `split` as large as what a block of the kernel before it makes: the whole axis, where
// that kernel does not cut it over blocks.
int64_t tile_of_blocks(const KernelPlan& before, const std::vector<int64_t>& tiles,
                       const Split& split, int64_t axis_extent) {
  for (size_t s = 0; s < before.splits.size(); ++s) {
    const Split& other = before.splits[s];
    const bool cut = other.axis == split.axis && other.outer != kNoFactor && !other.looped;
    if (cut) return tiles[s];
  }
  return axis_extent;
}

std::vector<int64_t> tiles_of_blocks(const GraphPlan& plan,
                                     const std::vector<std::vector<int64_t>>& tiles,
                                     size_t joined) {
  const std::vector<Split>& splits = plan.kernels[joined].splits;
  std::vector<int64_t> own = tiles[joined];
  for (size_t s = 0; s < splits.size(); ++s) {
    if (splits[s].looped || splits[s].outer == kNoFactor) continue;
    own[s] = tile_of_blocks(plan.kernels[joined - 1], tiles[joined - 1], splits[s],
                            plan.graph.axes[splits[s].axis].extent);
  }
  return own;
}

bool has_products(const Kernel& kernel) {
  return std::any_of(kernel.computations.begin(), kernel.computations.end(),
                     [](const Computation& c) { return c.mma != MmaAtom::kNoAtom; });
}

// The blocks of a cluster are neighbours: what tells them apart comes last in the grid.
void make_neighbours(Kernel& before, const Kernel& joined) {
  const auto tells_groups_apart = [&](AxisId g) {
    const Factor& factor = before.factors[g];
    return std::any_of(joined.grid.begin(), joined.grid.end(), [&](AxisId f) {
      const Factor& own = joined.factors[f];
      return own.axis == factor.axis && own.stride == factor.stride && own.extent == factor.extent;
    });
  };
  std::stable_partition(before.grid.begin(), before.grid.end(), tells_groups_apart);
}

// Lets blocks of the kernel before it run kernel `joined`.  Whether they can.
bool join_by(MuGraph& graph, size_t joined, Via via) {
  Kernel& kernel = graph.kernels[joined];
  // Warps of a product are laid out by their number.
  if (has_products(kernel)) return false;
  kernel.warps = graph.kernels[joined - 1].warps;
  kernel.via = via;
  for (Statement& s : kernel.body) {
    if (auto* loop = std::get_if<Loop>(&s.node)) loop->bulk = false;
  }
  if (via == Via::kCluster) make_neighbours(graph.kernels[joined - 1], kernel);
  const Result<Arrival> arrival = arrival_of(graph, static_cast<uint32_t>(joined));
  return arrival.ok() && arrival->count > 1;
}

}  // namespace

MuGraph finish(GraphPlan plan, const std::vector<std::vector<int64_t>>& tiles,
               const std::vector<int64_t>& part_counts, const Machine& machine) {
  return finish(std::move(plan), tiles, part_counts, machine, {});
}

std::optional<MuGraph> finish_joined(GraphPlan plan, std::vector<std::vector<int64_t>> tiles,
                                     const std::vector<int64_t>& part_counts,
                                     const Machine& machine, size_t joined) {
  if (is_library(tiles[joined - 1]) || is_library(tiles[joined])) return std::nullopt;
  tiles[joined] = tiles_of_blocks(plan, tiles, joined);
  MuGraph graph = finish(std::move(plan), tiles, part_counts, machine, {});
  if (!join_by(graph, joined, Via::kLastBlock)) return std::nullopt;
  return graph;
}

// How many blocks there are to share the work is known when the kernel before it is finished.
std::optional<MuGraph> finish_in_cluster(GraphPlan plan, std::vector<std::vector<int64_t>> tiles,
                                         const std::vector<int64_t>& part_counts,
                                         const Machine& machine, size_t joined) {
  if (!machine.clusters || is_library(tiles[joined - 1]) || is_library(tiles[joined])) {
    return std::nullopt;
  }
  tiles[joined] = tiles_of_blocks(plan, tiles, joined);
  MuGraph graph = finish(plan, tiles, part_counts, machine, {});
  if (!join_by(graph, joined, Via::kCluster)) return std::nullopt;
  const Result<Arrival> arrival = arrival_of(graph, static_cast<uint32_t>(joined));
  graph = finish(std::move(plan), tiles, part_counts, machine, {joined, arrival->count});
  if (!join_by(graph, joined, Via::kCluster)) return std::nullopt;
  return graph;
}

}  // namespace sundog::search
