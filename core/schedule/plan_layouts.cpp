// Pass 1 of planning: who evaluates what.
//
// Layouts follow the data.  Tensor-core sums have the layout of their atom.  Whatever reads
// registers takes over their layout.  Only where nothing is in registers yet is a blocked layout
// made, whose vectors lie along the axis in which most bytes are contiguous; a load into registers
// waits for its first reader, so that it lands where it is used.  Neighbouring lanes read a line of
// 128 bytes together, also where its sum then takes more shuffles: a lane that reads a row by
// itself asks memory for half a sector at a time, and two that share one meet others in their
// banks.  A short reduction follows the larger computation that its values end up in, where a warp
// of that has all that is reduced: the parts of an attention are joined so, without a barrier.
#include <algorithm>
#include <map>
#include <optional>

#include "core/check.h"
#include "core/schedule/planner.h"

namespace sundog::planning {
namespace {

constexpr int kVectorBytes = 16;
constexpr int kLineBytes = 128;

// The axis along which what a computation reads and writes is contiguous, and for how many
// elements.
struct Contiguity {
  AxisId axis = kNone;
  int width = 1;
  int line_lanes = 1;  // that share a line of memory, a vector each
};

class LayoutPass {
 public:
  explicit LayoutPass(Context& context) : x_(context) {}

  void run() {
    for (uint32_t id : order()) begin(id);
    for (uint32_t id : order()) follow_product(id);
    for (uint32_t id : order()) plan(id);
    for (uint32_t id = 0; id < x_.pending.size(); ++id) {
      if (x_.pending[id]) settle(id, blocked(id, x_.tile(x_.computation(id).axes), {}));
    }
    for (uint32_t id = 0; id < x_.plan.computations.size(); ++id) plan_window(id);
  }

 private:
  std::vector<uint32_t> order() const {
    std::vector<uint32_t> ids(x_.kernel.computations.size());
    for (uint32_t i = 0; i < ids.size(); ++i) ids[i] = i;
    std::sort(ids.begin(), ids.end(), [&](uint32_t a, uint32_t b) {
      return x_.scan.computations[a].position < x_.scan.computations[b].position;
    });
    return ids;
  }

  void begin(uint32_t id) {
    ComputationPlan& p = x_.plan.computations[id];
    p.position = x_.scan.computations[id].position;
    p.in_registers = x_.computation(id).storage == Storage::kReg;
    if (const ReduceTerm* reduce = root_reduction(x_.kernel, id)) {
      p.reduced = reduce->axes - x_.looped;
      p.loops = reduce->axes & x_.looped;
    }
  }

  // Operands that threads compute and keep in registers are computed where the product `id` wants
  // them, each warp what its own atoms read, if they are whole atoms.
  void follow_product(uint32_t id) {
    const Computation& c = x_.computation(id);
    if (c.mma != MmaAtom::kM16N8K16 || c.accumulate_into != kNone) return;
    Layout accumulator;
    const std::optional<MmaPlan> mma = plan_mma(x_, id, accumulator);
    if (!mma || covered(mma->a_layout, mma->k) != x_.extent(mma->k)) return;
    for (const auto& [operand, layout] :
         {std::pair(mma->a, mma->a_layout), std::pair(mma->b, mma->b_layout)}) {
      if (x_.computation(operand).dtype == mma->dtype) follow(operand, layout);
    }
  }

  // So are the registers that they are computed from, element by element.
  void follow(uint32_t id, const Layout& fragments) {
    const Computation& c = x_.computation(id);
    const bool free = c.storage == Storage::kReg && c.warps.empty() && c.mma == MmaAtom::kNoAtom &&
                      root_reduction(x_.kernel, id) == nullptr;
    if (!free || !(axes_of(fragments) == x_.tile_axes(id))) return;
    if (!fragments_.emplace(id, fragments).second) return;
    for (uint32_t operand : x_.scan.locals[id]) follow(operand, fragments);
  }

  void plan(uint32_t id) {
    const Computation& c = x_.computation(id);
    ComputationPlan& p = x_.plan.computations[id];
    const ReduceTerm* reduce = root_reduction(x_.kernel, id);
    const auto* load = std::get_if<InputTerm>(&x_.kernel.terms[c.value]);
    if (load != nullptr && c.storage == Storage::kShared && try_async(id, *load)) return;
    if (load != nullptr && c.storage == Storage::kReg && c.warps.empty()) {
      x_.pending[id] = true;
      return;
    }
    if (c.mma != MmaAtom::kNoAtom) p.mma = plan_mma(x_, id, p.iteration);
    p.kind = p.mma               ? Realisation::kMma
             : reduce != nullptr ? Realisation::kReduce
                                 : Realisation::kElementwise;
    if (!p.mma) p.iteration = choose(id);
    settle(id, p.iteration);
    if (reduce != nullptr) {
      plan_combination(id);
      p.row_sum = plan_row_sum(x_, id);
      if (p.row_sum) p.combine.lanes = 0;
    }
    for (uint32_t operand : x_.scan.locals[id]) {
      if (!x_.pending[operand]) continue;
      settle(operand, p.mma ? blocked(operand, x_.tile(x_.computation(operand).axes), {})
                            : slice(p.iteration, x_.tile_axes(operand)));
    }
    if (c.storage == Storage::kShared) {
      const Mode vector = vector_mode(p.layout);
      add_shared(x_, id, vector.extent > 1 ? vector.axis : kNone);
    }
  }

  void settle(uint32_t id, Layout iteration) {
    ComputationPlan& p = x_.plan.computations[id];
    p.iteration = std::move(iteration);
    p.partial = slice(p.iteration, x_.tile_axes(id));
    p.layout = p.partial;
    x_.pending[id] = false;
  }

  // Partial sums that lie on several warps are added up through scratch memory.  With few registers
  // a thread does so for the elements it holds; with many, each element is fetched by one thread
  // only, in a blocked layout.
  void plan_combination(uint32_t id) {
    ComputationPlan& p = x_.plan.computations[id];
    p.combine.lanes = lane_bits(p.iteration, p.reduced);
    p.combine.warps = warp_modes(p.iteration, p.reduced);
    constexpr int64_t kFew = 4;
    if (p.combine.warps.empty() || slots(p.partial) <= kFew) return;
    p.combine.redistribute = true;
    p.layout = blocked(id, x_.tile(x_.computation(id).axes), {}, result_contiguity(id));
  }

  // The axis in which results of this shape are stored.
  Contiguity result_contiguity(uint32_t id) const {
    const AxisSet tile = x_.tile_axes(id);
    for (const StoreSite& s : x_.scan.stores) {
      if (!(x_.tile_axes(s.store->computation) == tile)) continue;
      const Store& store = *s.store;
      const AxisId f = contiguous_factor(x_.graph, x_.kernel, store.tensor, store.index, tile);
      if (f == kNone) continue;
      const std::vector<Bound> bounds =
          presence_bounds(x_.graph, x_.kernel, x_.dependences[id].absent_along,
                          x_.bound(id) - x_.plan.computations[id].reduced);
      // Words of four f32 parts: neighbouring threads read neighbouring ones, in all banks at once.
      return {f, vector_width(x_.graph, x_.kernel, store.tensor, store.index, bounds, f, 4), 1};
    }
    return {};
  }

  bool try_async(uint32_t id, const InputTerm& load) {
    const Computation& c = x_.computation(id);
    const TensorDecl& decl = x_.graph.tensors[load.tensor].decl;
    if (decl.dtype != c.dtype) return false;
    // No copy reads the shared memory of another block.
    if (x_.graph.tensors[load.tensor].role == TensorRole::kCluster) return false;
    const AxisId inner =
        contiguous_factor(x_.graph, x_.kernel, load.tensor, load.index, x_.tile_axes(id));
    int width = 1;
    if (inner != kNone) {
      width = vector_width(x_.graph, x_.kernel, load.tensor, load.index, x_.read_bounds(id, load),
                           inner, kVectorBytes / bytes(c.dtype));
    }
    if (width * bytes(c.dtype) < 4) return false;
    if (width == 1 && decl.alignment % bytes(c.dtype) != 0) return false;
    ComputationPlan& p = x_.plan.computations[id];
    p.kind = Realisation::kAsyncCopy;
    p.async_bytes = width * bytes(c.dtype);
    add_shared(x_, id, inner);
    const auto& around = x_.scan.computations[id].around;
    if (around.empty()) return true;
    const Loop& loop = *x_.scan.loops[static_cast<size_t>(around.back())].loop;
    if (loop.stages > 1 && is_interval(loop)) {
      p.ring = loop.factor;
      p.shared->copies = loop.stages;
      if (loop.bulk && around.size() == 1) p.bulk = plan_bulk(x_, id, load);
    }
    return true;
  }

  // Elements of a run in which `id`, whose value is a load, may fetch rows that begin anywhere, if
  // not even words of 4 bytes are aligned; else 1.
  int window(uint32_t id, const InputTerm& load, AxisId axis) const {
    constexpr int kWordBytes = 4;
    const int size = bytes(x_.graph.tensors[load.tensor].decl.dtype);
    const std::vector<Bound> bounds = x_.read_bounds(id, load);
    const int aligned = vector_width(x_.graph, x_.kernel, load.tensor, load.index, bounds, axis,
                                     std::max(1, kWordBytes / size));
    if (aligned * size >= kWordBytes) return 1;
    return window_width(x_.graph, x_.kernel, load.tensor, load.index, bounds, axis,
                        kVectorBytes / size);
  }

  void plan_window(uint32_t id) {
    ComputationPlan& p = x_.plan.computations[id];
    const auto* load = std::get_if<InputTerm>(&x_.kernel.terms[x_.computation(id).value]);
    const Mode run = vector_mode(p.iteration);
    if (load == nullptr || p.kind != Realisation::kElementwise || p.in_registers) return;
    if (run.extent <= 1) return;
    int width = window(id, *load, run.axis);
    while (width > 1 && run.extent % width != 0) width /= 2;
    if (width <= 1) return;
    p.window = width;
    const auto& around = x_.scan.computations[id].around;
    if (around.size() != 1) return;
    const Loop& loop = *x_.scan.loops[static_cast<size_t>(around.back())].loop;
    p.ahead = loop.stages > 1 && is_interval(loop);
  }

  static bool is_interval(const Loop& loop) {
    return std::none_of(loop.trim.begin(), loop.trim.end(), [](const IndexCondition& condition) {
      return condition.relation == Relation::kNotEqual;
    });
  }

  // The layout of the register operand that has all axes, that of what it is part of, else a
  // blocked one.
  Layout choose(uint32_t id) {
    if (x_.computation(id).warps.empty()) {
      const AxisSet wanted = iterated(id);
      for (uint32_t operand : x_.scan.locals[id]) {
        const ComputationPlan& o = x_.plan.computations[operand];
        if (x_.pending[operand] || !o.in_registers) continue;
        if (x_.tile_axes(operand) == wanted && !o.layout.modes.empty()) return o.layout;
      }
      if (const Layout* fragments = fragments_of(id)) return *fragments;
      if (const auto followed = followed_.find(id); followed != followed_.end()) {
        return followed->second;
      }
      if (std::optional<Layout> part = part_of_larger(id)) return *part;
    }
    return blocked_iteration(id);
  }

  // Those that a product wants of `id`, or of a load that `id` is the first to read.
  const Layout* fragments_of(uint32_t id) const {
    if (const auto it = fragments_.find(id); it != fragments_.end()) return &it->second;
    for (uint32_t operand : x_.scan.locals[id]) {
      const auto it = fragments_.find(operand);
      if (it == fragments_.end() || !x_.pending[operand]) continue;
      if (x_.tile_axes(operand) == iterated(id)) return &it->second;
    }
    return nullptr;
  }

  AxisSet iterated(uint32_t id) const {
    return x_.tile_axes(id) | x_.plan.computations[id].reduced;
  }

  Layout blocked_iteration(uint32_t id) {
    std::vector<AxisId> axes = x_.computation(id).axes;
    for (AxisId f : x_.plan.computations[id].reduced) axes.push_back(f);
    return blocked(id, x_.tile(axes), reduced_next(id));
  }

  // What it reduces; of other values what threads reduce them over, so that a warp has whole rows
  // where there are rows enough: their sums then need neither scratch memory nor a barrier.
  AxisSet reduced_next(uint32_t id) const {
    if (root_reduction(x_.kernel, id) != nullptr) return x_.plan.computations[id].reduced;
    AxisSet reduced;
    for (uint32_t reader : x_.scan.readers[id]) {
      if (x_.computation(reader).mma != MmaAtom::kNoAtom) continue;
      reduced |= x_.plan.computations[reader].reduced & x_.tile_axes(id);
    }
    return reduced;
  }

  // Of a reduction: the elements that the threads of a larger computation, which its values end up
  // in, would need, if each warp has all that is reduced, and each thread not much of it.
  std::optional<Layout> part_of_larger(uint32_t id) {
    constexpr int64_t kMostHeld = 32;
    const AxisSet reduced = x_.plan.computations[id].reduced;
    const uint32_t larger = reduced.empty() ? kNone : larger_user(id);
    if (larger == kNone) return {};
    const Layout whole = blocked_iteration(larger);
    Layout part = slice(whole, iterated(id));
    if (!warp_modes(whole, reduced).empty() || slots(part) > kMostHeld) return {};
    followed_[larger] = whole;
    return part;
  }

  // The largest sum of threads in the same loops that reads `id`, or what is made of it, and runs
  // over all its axes and more.
  uint32_t larger_user(uint32_t id) const {
    std::vector<uint32_t> reached = {id};
    uint32_t best = kNone;
    for (size_t i = 0; i < reached.size(); ++i) {
      for (uint32_t user : x_.scan.readers[reached[i]]) {
        if (std::find(reached.begin(), reached.end(), user) != reached.end()) continue;
        reached.push_back(user);
        const bool fixed = x_.computation(user).mma != MmaAtom::kNoAtom ||
                           !x_.computation(user).warps.empty() ||
                           root_reduction(x_.kernel, user) == nullptr;
        const bool apart = x_.scan.computations[user].around != x_.scan.computations[id].around;
        if (fixed || apart || !(iterated(id) - iterated(user)).empty()) continue;
        const AxisSet most = iterated(best == kNone ? id : best);
        if (iterated(user).size() > most.size()) best = user;
      }
    }
    return best;
  }

  Layout blocked(uint32_t id, std::vector<TileAxis> axes, AxisSet reduced) {
    return blocked(id, std::move(axes), reduced, contiguity(id));
  }

  Layout blocked(uint32_t id, std::vector<TileAxis> axes, AxisSet reduced, Contiguity run) {
    for (size_t i = 0; i < axes.size(); ++i) {
      if (axes[i].axis != run.axis) continue;
      const TileAxis inner = axes[i];
      axes.erase(axes.begin() + static_cast<std::ptrdiff_t>(i));
      axes.push_back(inner);
    }
    BlockedRequest request{axes, reduced, run.width, x_.kernel.warps, {}, run.line_lanes};
    int64_t elements = 1;
    for (const TileAxis& axis : axes) elements *= axis.extent;
    while (request.vector > 1 && elements < int64_t{kLanes} * x_.kernel.warps * request.vector) {
      request.vector /= 2;
    }
    for (const WarpSplit& split : x_.computation(id).warps) {
      const bool iterated = std::any_of(axes.begin(), axes.end(), [&](const TileAxis& axis) {
        return axis.axis == split.factor;
      });
      if (split.count > 1 && iterated && !x_.plan.computations[id].combine.redistribute) {
        request.fixed_warps.push_back({split.factor, split.count, 1, Holder::kWarp, 1});
      }
    }
    return blocked_layout(request);
  }

  // Sums the bytes of everything that is contiguous along each axis; the heaviest axis wins.
  Contiguity contiguity(uint32_t id) {
    struct Weight {
      int64_t bytes = 0;
      int width = 1, most = kVectorBytes, narrowest = kVectorBytes;
    };
    std::map<AxisId, Weight> weights;
    const auto add = [&](AxisId axis, int width, AxisSet tile, DType dtype) {
      if (axis == kNone) return;
      int64_t weight = bytes(dtype);
      for (AxisId f : tile) weight *= std::max<int64_t>(x_.extent(f), 1);
      weights[axis].bytes += weight;
      weights[axis].width = std::max(weights[axis].width, width);
      weights[axis].narrowest = std::min(weights[axis].narrowest, bytes(dtype));
    };
    const auto add_access = [&](uint32_t tensor, const std::vector<IndexExpr>& index,
                                const std::vector<Bound>& bounds, AxisSet tile, int least = 1) {
      const AxisId f = contiguous_factor(x_.graph, x_.kernel, tensor, index, tile);
      if (f == kNone) return;
      const DType dtype = x_.graph.tensors[tensor].decl.dtype;
      const int width = vector_width(x_.graph, x_.kernel, tensor, index, bounds, f,
                                     std::max(1, kVectorBytes / bytes(dtype)));
      add(f, std::max(width, least), tile, dtype);
    };
    const AxisSet iterated = this->iterated(id);
    const TermId roots[] = {x_.computation(id).value};
    for (TermId t : reachable(x_.kernel.terms, roots)) {
      const auto* input = std::get_if<InputTerm>(&x_.kernel.terms[t]);
      if (input == nullptr) continue;
      const AxisSet tile = x_.kernel.terms.axes(t) & iterated;
      int least = 1;
      const AxisId f = contiguous_factor(x_.graph, x_.kernel, input->tensor, input->index, tile);
      if (t == roots[0] && f != kNone && x_.computation(id).storage == Storage::kShared) {
        least = window(id, *input, f);
      }
      add_access(input->tensor, input->index, x_.read_bounds(id, *input), tile, least);
    }
    for (uint32_t operand : x_.scan.locals[id]) {
      const ComputationPlan& o = x_.plan.computations[operand];
      const AxisSet tile = x_.tile_axes(operand);
      if (x_.pending[operand]) {
        const auto& load = std::get<InputTerm>(x_.kernel.terms[x_.computation(operand).value]);
        add_access(load.tensor, load.index, x_.read_bounds(operand, load), tile);
      } else if (o.shared && !o.shared->axes.empty()) {
        const TileAxis inner = o.shared->axes.back();
        int width = kVectorBytes / bytes(o.shared->dtype);
        // More in two words would have neighbours meet in the banks of each.
        if (o.bulk) weights[inner.axis].most = std::min(weights[inner.axis].most, width);
        while (width > 1 && inner.extent % width != 0) width /= 2;
        add(inner.axis, width, tile, o.shared->dtype);
      }
    }
    for (const StoreSite& s : x_.scan.stores) {
      if (s.store->computation != id) continue;
      std::vector<Bound> bounds =
          presence_bounds(x_.graph, x_.kernel, x_.dependences[id].absent_along, x_.bound(id));
      add_access(s.store->tensor, s.store->index, bounds, x_.tile_axes(id));
    }
    Contiguity best;
    int64_t most = 0;
    for (const auto& [axis, weight] : weights) {
      if (!iterated.has(axis) || weight.bytes <= most) continue;
      most = weight.bytes;
      const int width = std::min(weight.width, weight.most);
      best = {axis, width, std::max(kLineBytes / (width * weight.narrowest), 1)};
    }
    return best;
  }

  Context& x_;
  std::map<uint32_t, Layout> followed_;   // iterations that smaller ones follow
  std::map<uint32_t, Layout> fragments_;  // what products read from registers, as they want it
};

}  // namespace

Context::Context(const MuGraph& g, const Kernel& k)
    : graph(g), kernel(k), scan(sundog::scan(k)), dependences(sundog::dependences(k)) {
  for (AxisId f : k.grid) grid.insert(f);
  for (const LoopSite& loop : scan.loops) looped.insert(loop.loop->factor);
  plan.computations.resize(k.computations.size());
  plan.warps = k.warps;
  pending.resize(k.computations.size(), false);
}

AxisSet Context::tile_axes(uint32_t id) const {
  AxisSet set;
  for (AxisId f : kernel.computations[id].axes) set.insert(f);
  return set;
}

AxisSet Context::bound(uint32_t id) const {
  AxisSet set = grid | tile_axes(id) | plan.computations[id].reduced;
  for (int loop : scan.computations[id].around) {
    set.insert(scan.loops[static_cast<size_t>(loop)].loop->factor);
  }
  return set;
}

std::vector<Bound> Context::read_bounds(uint32_t id, const InputTerm& input) const {
  std::vector<Bound> bounds =
      presence_bounds(graph, kernel, dependences[id].operand_absent_along, bound(id));
  for (Bound& b : tensor_bounds(graph, kernel, input.tensor, input.index)) {
    if (std::find(bounds.begin(), bounds.end(), b) == bounds.end()) bounds.push_back(std::move(b));
  }
  return bounds;
}

std::vector<TileAxis> Context::tile(const std::vector<AxisId>& axes) const {
  std::vector<TileAxis> result;
  for (AxisId f : axes) result.push_back({f, std::max<int64_t>(extent(f), 1)});
  return result;
}

const ReduceTerm* root_reduction(const Kernel& kernel, uint32_t id) {
  return std::get_if<ReduceTerm>(&kernel.terms[kernel.computations[id].value]);
}

void plan_layouts(Context& context) { LayoutPass(context).run(); }

void add_shared(Context& context, uint32_t id, AxisId inner) {
  std::optional<SharedTile>& tile = context.plan.computations[id].shared;
  if (tile) return;
  tile.emplace();
  tile->dtype = context.computation(id).dtype;
  std::vector<AxisId> axes = context.computation(id).axes;
  const auto at = std::find(axes.begin(), axes.end(), inner);
  if (at != axes.end()) std::rotate(at, at + 1, axes.end());
  tile->axes = context.tile(axes);
}

}  // namespace sundog::planning
