// The interpreter of µGraphs; include core/interpret.h.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/dependence.h"
#include "core/interpret.h"
#include "core/via.h"

namespace sundog {
namespace interpreting {

// Memory of the device: the tensors of a µGraph, with a mark for each element that was written.
template <class V>
struct DeviceMemory {
  std::vector<Array<V>> tensors;  // `defined`: written (empty for inputs)
};

// Runs the blocks of one kernel.
template <Algebra A>
class KernelRun {
 public:
  using V = typename A::Value;

  // `kept`: tensors of which every block stores what it computes, for its own group.
  KernelRun(A& algebra, const MuGraph& graph, const Kernel& kernel, DeviceMemory<V>& memory,
            std::vector<uint32_t> kept = {})
      : kept_(std::move(kept)),
        a_(algebra),
        graph_(graph),
        kernel_(kernel),
        memory_(memory),
        sizes_(axis_extents(graph)),
        extents_(factor_extents(kernel)),
        index_(kernel.factors.size(), 0),
        loops_(enclosing_loops(kernel)),
        dependences_(dependences(kernel)) {
    steps_.reserve(kernel.computations.size());
    for (uint32_t id = 0; id < kernel.computations.size(); ++id) tiles_.push_back(tile_of(id));
    for (uint32_t id = 0; id < kernel.computations.size(); ++id) steps_.push_back(step_of(id));
  }

  // All blocks, or those that `chosen` holds for: its argument has the index of each factor, those
  // of the grid set.  `after` is called behind each, likewise.
  Status run(const std::function<bool(const std::vector<int64_t>&)>& chosen = {},
             const std::function<Status(const std::vector<int64_t>&)>& after = {}) {
    for (AxisId f : kernel_.grid) {
      if (extents_[f] == 0) return {};
    }
    while (true) {
      if (!chosen || chosen(index_)) {
        SUNDOG_RETURN_IF_ERROR(statements(kernel_.body));
        SUNDOG_RETURN_IF_ERROR(poll(a_));
        if (after) SUNDOG_RETURN_IF_ERROR(after(index_));
      }
      size_t d = kernel_.grid.size();
      for (; d > 0; --d) {
        const AxisId f = kernel_.grid[d - 1];
        if (++index_[f] < extents_[f]) break;
        index_[f] = 0;
      }
      if (d == 0) return {};
    }
  }

  // The block at these grid indices, one a grid factor.
  Status run_block(const std::vector<int64_t>& grid_index) {
    for (size_t d = 0; d < grid_index.size(); ++d) index_[kernel_.grid[d]] = grid_index[d];
    SUNDOG_RETURN_IF_ERROR(statements(kernel_.body));
    return poll(a_);
  }

 private:
  // An axis along which elements can be absent: the factors that are bound where it is looked at.
  struct Edge {
    int64_t extent = 0;
    std::vector<IndexExpr::Item> fixed;  // factors outside the box, with strides
    std::vector<int64_t> box;            // stride of each axis of the box, 0 where it has none
  };

  struct Step {
    std::optional<Sink<A>> sink;
    std::unique_ptr<BoxEvaluator<A>> evaluate;
    std::vector<Edge> edges;              // of the operand
    std::vector<Edge> result_edges;       // of the result
    std::vector<uint8_t> present;         // scratch
    AxisSet loops;                        // accumulated over
    std::vector<V> last_maximum;          // of a rescaled accumulator
    std::vector<int64_t> factor_strides;  // of the maximum along the axes of the accumulator
  };

  Array<V> tile_of(uint32_t id) const {
    Array<V> tile;
    for (AxisId f : kernel_.computations[id].axes) tile.extents.push_back(extents_[f]);
    tile.strides = row_major(tile.extents);
    tile.values.assign(static_cast<size_t>(product(tile.extents)), a_.constant(Number()));
    return tile;
  }

  std::optional<typename BoxEvaluator<A>::Leaf> leaf(TermId id) const {
    const Term& term = kernel_.terms[id];
    if (const auto* input = std::get_if<InputTerm>(&term)) {
      return typename BoxEvaluator<A>::Leaf{&memory_.tensors[input->tensor], input->index};
    }
    const auto* local = std::get_if<LocalTerm>(&term);
    if (local == nullptr) return std::nullopt;
    typename BoxEvaluator<A>::Leaf result{&tiles_[local->computation], {}};
    for (AxisId f : kernel_.computations[local->computation].axes) {
      result.index.push_back(IndexExpr::of(f));
    }
    return result;
  }

  Step step_of(uint32_t id) {
    const Computation& c = kernel_.computations[id];
    const auto* reduce = std::get_if<ReduceTerm>(&kernel_.terms[c.value]);
    Array<V>& to = tiles_[c.accumulate_into == kNone ? id : c.accumulate_into];
    Step step;
    step.sink.emplace(Sink<A>{a_, to, to.strides, {}});
    std::vector<AxisId> box = c.axes;
    if (reduce != nullptr) {
      step.sink->reduce = reduce->kind;
      step.loops = accumulated_loops(kernel_, id);
      for (AxisId f : reduce->axes - step.loops) {
        box.push_back(f);
        step.sink->to_strides.push_back(0);
      }
    }
    step.edges = edges(dependences_[id].operand_absent_along, id, box);
    step.result_edges = edges(dependences_[id].absent_along, id, c.axes);
    if (c.rescale != kNone) {
      const Computation& m = kernel_.computations[c.rescale];
      for (AxisId f : c.axes) {
        const auto at = std::find(m.axes.begin(), m.axes.end(), f);
        const auto position = static_cast<size_t>(at - m.axes.begin());
        step.factor_strides.push_back(at == m.axes.end() ? 0 : tiles_[c.rescale].strides[position]);
      }
    }
    step.evaluate = std::make_unique<BoxEvaluator<A>>(
        a_, kernel_.terms, reduce == nullptr ? c.value : reduce->operand, std::move(box), extents_,
        sizes_, [this](TermId t) { return leaf(t); });
    return step;
  }

  std::vector<Edge> edges(AxisSet along, uint32_t id, const std::vector<AxisId>& box) const {
    std::vector<Edge> result;
    for (AxisId axis : along) {
      if (!is_ragged(graph_, kernel_, axis)) continue;
      Edge edge;
      edge.extent = sizes_[axis];
      edge.box.assign(box.size(), 0);
      for (AxisId f : factors_of(kernel_, axis)) {
        const int64_t stride = kernel_.factors[f].stride;
        const auto at = std::find(box.begin(), box.end(), f);
        const auto& grid = kernel_.grid;
        const auto& loops = loops_[id];
        if (at != box.end()) {
          edge.box[static_cast<size_t>(at - box.begin())] = stride;
        } else if (std::find(grid.begin(), grid.end(), f) != grid.end() ||
                   std::find(loops.begin(), loops.end(), f) != loops.end()) {
          edge.fixed.push_back({f, stride});
        }
      }
      result.push_back(std::move(edge));
    }
    return result;
  }

  int64_t base(const Edge& edge) const {
    int64_t value = 0;
    for (const auto& item : edge.fixed) value += item.coefficient * index_[item.axis];
    return value;
  }

  // --- statements

  Status statements(const std::vector<Statement>& body) {
    for (const Statement& statement : body) {
      if (const auto* compute = std::get_if<Compute>(&statement.node)) {
        run_step(compute->computation);
      } else if (const auto* store = std::get_if<Store>(&statement.node)) {
        SUNDOG_RETURN_IF_ERROR(run_store(*store));
      } else {
        SUNDOG_RETURN_IF_ERROR(run_loop(std::get<Loop>(statement.node)));
      }
    }
    return {};
  }

  // Starts the accumulators whose outermost loop this is.
  void enter(const Loop& loop, const std::vector<Statement>& body) {
    for (const Statement& statement : body) {
      if (const auto* inner = std::get_if<Loop>(&statement.node)) enter(loop, inner->body);
      const auto* compute = std::get_if<Compute>(&statement.node);
      if (compute == nullptr) continue;
      Step& step = steps_[compute->computation];
      const Computation& c = kernel_.computations[compute->computation];
      if (c.accumulate_into != kNone) continue;
      const auto& loops = loops_[compute->computation];
      const auto outermost =
          std::find_if(loops.begin(), loops.end(), [&](AxisId f) { return step.loops.has(f); });
      if (outermost == loops.end() || *outermost != loop.factor) continue;
      start(step);
      if (c.rescale != kNone) {
        step.last_maximum.assign(tiles_[c.rescale].values.size(),
                                 a_.constant(Number::infinity(true)));
      }
    }
  }

  // Puts a reduction at its unit; its absent elements have no value.
  void start(Step& step) {
    step.sink->reset();
    Array<V>& to = step.sink->to;
    for (const Edge& edge : step.result_edges) {
      const int64_t first = base(edge);
      int64_t last = first;
      for (size_t d = 0; d < edge.box.size(); ++d) last += edge.box[d] * (to.extents[d] - 1);
      if (last < edge.extent) continue;
      if (to.defined.empty()) to.defined.assign(to.values.size(), 1);
      for_runs<2>(to.extents, {to.strides, edge.box},
                  [&](const auto& at, int64_t count, const auto& by) {
                    for (int64_t i = 0; i < count; ++i) {
                      if (first + at[1] + i * by[1] < edge.extent) continue;
                      to.defined[static_cast<size_t>(at[0] + i * by[0])] = 0;
                    }
                  });
    }
  }

  Status run_loop(const Loop& loop) {
    enter(loop, loop.body);
    for (int64_t i = 0; i < extents_[loop.factor]; ++i) {
      index_[loop.factor] = i;
      const bool runs = std::all_of(
          loop.trim.begin(), loop.trim.end(),
          [&](const IndexCondition& condition) { return holds(condition, index_, sizes_); });
      if (!runs) continue;
      SUNDOG_RETURN_IF_ERROR(statements(loop.body));
      SUNDOG_RETURN_IF_ERROR(poll(a_));
    }
    index_[loop.factor] = 0;
    return {};
  }

  void run_step(uint32_t id) {
    const Computation& c = kernel_.computations[id];
    Step& step = steps_[id];
    Sink<A>& sink = *step.sink;
    if (c.rescale != kNone) rescale(id);
    if (sink.reduce && step.loops.empty() && c.accumulate_into == kNone) start(step);
    if (!sink.reduce) sink.to.defined.clear();
    step.evaluate->run(index_, [&](const Operand<V>& x, const std::vector<int64_t>& outer) {
      bool some = true;
      const uint8_t* present = presence(step, outer, &some);
      if (some || !sink.reduce) sink.add(*step.evaluate, x, outer, present);
    });
    round_to_storage(a_, c.dtype, sink.to.values);
  }

  // Which elements of a chunk are present: null if all are; *some is false if none is.
  const uint8_t* presence(Step& step, const std::vector<int64_t>& outer, bool* some) {
    const std::span<const int64_t> sizes = step.evaluate->inner_extents();
    bool ragged = false;
    for (const Edge& edge : step.edges) {
      int64_t last = base(edge);
      for (size_t d = 0; d < outer.size(); ++d) last += edge.box[d] * outer[d];
      for (size_t d = 0; d < sizes.size(); ++d) last += edge.box[outer.size() + d] * (sizes[d] - 1);
      ragged |= last >= edge.extent;
    }
    if (!ragged) return nullptr;
    step.present.assign(static_cast<size_t>(product(sizes)), 1);
    const std::vector<int64_t> dense = row_major(sizes);
    for (const Edge& edge : step.edges) {
      int64_t first = base(edge);
      for (size_t d = 0; d < outer.size(); ++d) first += edge.box[d] * outer[d];
      const std::span<const int64_t> strides = std::span(edge.box).subspan(outer.size());
      for_runs<2>(sizes, {dense, strides}, [&](const auto& at, int64_t count, const auto& by) {
        for (int64_t i = 0; i < count; ++i) {
          if (first + at[1] + i * by[1] < edge.extent) continue;
          step.present[static_cast<size_t>(at[0] + i * by[0])] = 0;
        }
      });
    }
    *some = std::find(step.present.begin(), step.present.end(), 1) != step.present.end();
    return step.present.data();
  }

  // Multiplies the accumulator by exp(last maximum - maximum), by 0 while the last one is -inf
  // (then whatever it holds is void, NaN included).
  void rescale(uint32_t id) {
    Step& step = steps_[id];
    const Array<V>& maximum = tiles_[kernel_.computations[id].rescale];
    Array<V>& to = step.sink->to;
    for_runs<2>(to.extents, {to.strides, step.factor_strides},
                [&](const auto& at, int64_t count, const auto& by) {
                  for (int64_t i = 0; i < count; ++i) {
                    const auto m = static_cast<size_t>(at[1] + i * by[1]);
                    if (!maximum.defined.empty() && maximum.defined[m] == 0) continue;
                    V& value = to.values[static_cast<size_t>(at[0] + i * by[0])];
                    const V& last = step.last_maximum[m];
                    if (a_.is_minus_infinity(last)) {
                      value = a_.constant(Number(0));
                    } else {
                      value = a_.mul(value, a_.exp(subtract(a_, last, maximum.values[m])));
                    }
                  }
                });
    for (size_t m = 0; m < maximum.values.size(); ++m) {
      if (maximum.defined.empty() || maximum.defined[m] != 0) {
        step.last_maximum[m] = maximum.values[m];
      }
    }
  }

  // --- stores

  std::string store_name(const Store& store) const {
    return "kernel '" + kernel_.name + "': the store of '" +
           kernel_.computations[store.computation].name + "' to tensor '" +
           graph_.tensors[store.tensor].decl.name + "' ";
  }

  Status run_store(const Store& store) {
    const Computation& c = kernel_.computations[store.computation];
    const Dependence& dependence = dependences_[store.computation];
    AxisSet used;
    for (const IndexExpr& e : store.index) used |= e.axis_set();
    const bool kept = std::find(kept_.begin(), kept_.end(), store.tensor) != kept_.end();
    for (AxisId f : kernel_.grid) {  // blocks that compute the same: the first one stores
      if (!kept && index_[f] != 0 && !used.has(f) && !dependence.factors.has(f)) return {};
    }
    const Array<V>& tile = tiles_[store.computation];
    const std::vector<Edge>& absent = steps_[store.computation].result_edges;
    std::vector<int64_t> index = index_;
    for (AxisId f : c.axes) index[f] = 0;
    for (size_t element = 0; element < tile.values.size(); ++element) {
      bool present = true;
      for (const Edge& edge : absent) {
        int64_t at = base(edge);
        for (size_t d = 0; d < c.axes.size(); ++d) at += edge.box[d] * index[c.axes[d]];
        present = present && at < edge.extent;
      }
      if (present) SUNDOG_RETURN_IF_ERROR(write(store, tile, element, index));
      for (size_t d = c.axes.size(); d-- > 0;) {
        if (++index[c.axes[d]] < tile.extents[d]) break;
        index[c.axes[d]] = 0;
      }
    }
    return {};
  }

  Status write(const Store& store, const Array<V>& tile, size_t element,
               const std::vector<int64_t>& index) {
    Array<V>& tensor = memory_.tensors[store.tensor];
    int64_t offset = 0;
    for (size_t d = 0; d < store.index.size(); ++d) {
      const int64_t at = evaluate(store.index[d], index, sizes_);
      if (at < 0 || at >= tensor.extents[d]) {
        return bad_input(store_name(store) + "leaves the tensor: index " + std::to_string(at) +
                         " in dimension " + std::to_string(d) + " of extent " +
                         std::to_string(tensor.extents[d]));
      }
      offset += at * tensor.strides[d];
    }
    const auto to = static_cast<size_t>(offset);
    if (!tile.defined.empty() && tile.defined[element] == 0) {
      return bad_input(store_name(store) + "writes element " +
                       element_name(tensor.extents, offset) +
                       ", which depends on what was never computed or on a read out of range");
    }
    if (tensor.defined[to] != 0) {
      return bad_input(store_name(store) + "writes element " +
                       element_name(tensor.extents, offset) + " a second time");
    }
    tensor.defined[to] = 1;
    tensor.values[to] = tile.values[element];
    if constexpr (requires(V v) { a_.store(DType::kF16, v); }) {
      const DType dtype = graph_.tensors[store.tensor].decl.dtype;
      if (!is_widening(DType::kF32, dtype)) tensor.values[to] = a_.store(dtype, tensor.values[to]);
    }
    return {};
  }

  const std::vector<uint32_t> kept_;
  A& a_;
  const MuGraph& graph_;
  const Kernel& kernel_;
  DeviceMemory<V>& memory_;
  const std::vector<int64_t> sizes_;    // of the axes of the µGraph
  const std::vector<int64_t> extents_;  // of the factors
  std::vector<int64_t> index_;          // of the factors: grid and loops at their current values
  const std::vector<std::vector<AxisId>> loops_;
  const std::vector<Dependence> dependences_;
  std::vector<Array<V>> tiles_;  // what each computation holds, over its axes
  std::vector<Step> steps_;
};

}  // namespace interpreting

namespace interpreting {

// Inputs in place, nothing written.
template <Algebra A>
DeviceMemory<typename A::Value> device_memory(
    A& algebra, const MuGraph& graph, std::span<const TensorValues<typename A::Value>> inputs) {
  DeviceMemory<typename A::Value> memory;
  for (size_t i = 0; i < graph.tensors.size(); ++i) {
    if (i < inputs.size()) {
      memory.tensors.push_back(to_array(inputs[i]));
      continue;
    }
    Array<typename A::Value> tensor;
    tensor.extents = graph.tensors[i].decl.extents;
    tensor.strides = row_major(tensor.extents);
    tensor.values.assign(static_cast<size_t>(product(tensor.extents)), algebra.constant(Number()));
    tensor.defined.assign(tensor.values.size(), 0);
    memory.tensors.push_back(std::move(tensor));
  }
  return memory;
}

// Runs kernel k, and with it the one that its blocks run when those of a group have arrived, if
// there is one.  The blocks of a cluster come one after the other, and what they keep to themselves
// is gone behind them.
template <Algebra A>
Status run_launch(A& algebra, const MuGraph& graph, uint32_t k,
                  DeviceMemory<typename A::Value>& memory) {
  if (k + 1 == graph.kernels.size() || graph.kernels[k + 1].via == Via::kKernel) {
    return KernelRun<A>(algebra, graph, graph.kernels[k], memory).run();
  }
  const Result<Arrival> arrival = arrival_of(graph, k + 1);
  if (!arrival.ok()) return arrival.error();
  const std::vector<uint32_t> kept = kept_in_cluster(graph, k + 1);
  const Kernel& own = graph.kernels[k + 1];
  KernelRun<A> kernel(algebra, graph, graph.kernels[k], memory, kept);
  KernelRun<A> joined(algebra, graph, own, memory);
  std::map<std::vector<int64_t>, int64_t> arrived;  // by group
  return kernel.run({}, [&](const std::vector<int64_t>& index) -> Status {
    std::vector<int64_t> group;
    for (AxisId f : arrival->group) group.push_back(index[f]);
    if (++arrived[group] < arrival->count) return {};
    for (int64_t share = 0; share < arrival->shares; ++share) {
      std::vector<int64_t> block = group;
      int64_t inner = arrival->shares;
      for (AxisId f : arrival->sharing) {
        inner /= own.factors[f].extent;
        block.push_back(share / inner % own.factors[f].extent);
      }
      SUNDOG_RETURN_IF_ERROR(joined.run_block(block));
    }
    for (uint32_t t : kept)
      std::fill_n(memory.tensors[t].defined.begin(), memory.tensors[t].defined.size(), 0);
    return {};
  });
}

}  // namespace interpreting

// The outputs of the program as the µGraph computes them.  Errors (kBadInput): an ill-formed
// µGraph, a result that depends on a read out of range or of what was not written, two writes to
// one element, an output element that is not written.  kLimit: the algebra gives up.
template <Algebra A>
Result<std::vector<TensorValues<typename A::Value>>> interpret(
    A& algebra, const MuGraph& graph, const Program& program,
    std::span<const TensorValues<typename A::Value>> inputs) {
  using V = typename A::Value;
  SUNDOG_RETURN_IF_ERROR(check(graph, program));
  SUNDOG_RETURN_IF_ERROR(interpreting::check_inputs(program, inputs));
  interpreting::DeviceMemory<V> memory = interpreting::device_memory(algebra, graph, inputs);
  for (uint32_t k = 0; k < graph.kernels.size(); ++k) {
    if (graph.kernels[k].via != Via::kKernel) continue;  // ran with the one before
    SUNDOG_RETURN_IF_ERROR(interpreting::run_launch(algebra, graph, k, memory));
  }
  std::vector<TensorValues<V>> results;
  for (size_t i = 0; i < program.outputs.size(); ++i) {
    Array<V>& tensor = memory.tensors[inputs.size() + i];
    const auto missing = std::find(tensor.defined.begin(), tensor.defined.end(), 0);
    if (missing != tensor.defined.end()) {
      return bad_input(
          "element " +
          interpreting::element_name(tensor.extents, missing - tensor.defined.begin()) +
          " of output '" + program.outputs[i].tensor.name + "' is never written");
    }
    results.push_back({std::move(tensor.extents), std::move(tensor.values)});
  }
  return results;
}

// Which blocks run: number of the kernel, and the index of each of its factors with those of the
// grid set.
using BlockChoice = std::function<bool(uint32_t kernel, const std::vector<int64_t>& index)>;

// What the chosen blocks alone write of each output; `defined` says which elements they wrote.
// Errors as interpret(), but for elements that are not written; a chosen block that reads what a
// block left out would have written is one.
template <Algebra A>
Result<std::vector<Array<typename A::Value>>> interpret_blocks(
    A& algebra, const MuGraph& graph, const Program& program,
    std::span<const TensorValues<typename A::Value>> inputs, const BlockChoice& choice) {
  using V = typename A::Value;
  SUNDOG_RETURN_IF_ERROR(check(graph, program));
  SUNDOG_RETURN_IF_ERROR(interpreting::check_inputs(program, inputs));
  interpreting::DeviceMemory<V> memory = interpreting::device_memory(algebra, graph, inputs);
  for (uint32_t k = 0; k < graph.kernels.size(); ++k) {
    interpreting::KernelRun<A> kernel(algebra, graph, graph.kernels[k], memory);
    SUNDOG_RETURN_IF_ERROR(
        kernel.run([&](const std::vector<int64_t>& index) { return choice(k, index); }));
  }
  const auto first = memory.tensors.begin() + static_cast<std::ptrdiff_t>(inputs.size());
  return std::vector<Array<V>>(
      std::make_move_iterator(first),
      std::make_move_iterator(first + static_cast<std::ptrdiff_t>(program.outputs.size())));
}

}  // namespace sundog
