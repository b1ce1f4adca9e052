#include "core/check_statements.h"

#include <algorithm>
#include <optional>
#include <string>

#include "core/dependence.h"

namespace sundog {
namespace {

std::string quoted(const std::string& name) { return "'" + name + "'"; }

// A loop that is being run.  Two loops over one factor, one after the other, are two.
struct OpenLoop {
  AxisId factor = 0;
  int id = 0;
  bool operator==(const OpenLoop&) const = default;
};
using Loops = std::vector<OpenLoop>;

AxisSet set_of(const Loops& loops) {
  AxisSet set;
  for (const OpenLoop& loop : loops) set.insert(loop.factor);
  return set;
}

// Walks the statements in order and keeps what is computed so far and which loops are open.
class Walk {
 public:
  Walk(const MuGraph& graph, const Kernel& kernel)
      : graph_(graph),
        kernel_(kernel),
        grid_(AxisSet::of(kernel.grid)),
        loops_of_(kernel.computations.size()) {}

  Status run() {
    SUNDOG_RETURN_IF_ERROR(find_looped(kernel_.body));
    dependences_ = dependences(kernel_);
    SUNDOG_RETURN_IF_ERROR(statements(kernel_.body));
    for (size_t c = 0; c < loops_of_.size(); ++c) {
      if (!loops_of_[c]) {
        return bad_input(where(static_cast<uint32_t>(c)) + "no statement computes it");
      }
    }
    return {};
  }

 private:
  std::string where() const { return "kernel " + quoted(kernel_.name) + ": "; }
  std::string where(uint32_t c) const {
    return where() + "computation " + quoted(kernel_.computations[c].name) + ": ";
  }
  std::string factor(AxisId f) const { return "factor " + quoted(kernel_.factors[f].name); }

  Status find_looped(const std::vector<Statement>& body) {
    for (const Statement& statement : body) {
      const auto* loop = std::get_if<Loop>(&statement.node);
      if (loop == nullptr) continue;
      if (loop->factor >= kernel_.factors.size()) {
        return bad_input(where() + "a loop over an unknown factor");
      }
      if (grid_.has(loop->factor)) {
        return bad_input(where() + factor(loop->factor) + " is both in the grid and a loop");
      }
      looped_.insert(loop->factor);
      for (const IndexCondition& condition : loop->trim) {
        for (const auto& item : condition.expr.axes) {
          if (item.axis < kernel_.factors.size()) continue;
          return bad_input(where() + "a loop is trimmed by an unknown factor");
        }
      }
      SUNDOG_RETURN_IF_ERROR(find_looped(loop->body));
    }
    return {};
  }

  Status statements(const std::vector<Statement>& body) {
    for (const Statement& statement : body) {
      if (const auto* compute = std::get_if<Compute>(&statement.node)) {
        SUNDOG_RETURN_IF_ERROR(check_compute(compute->computation));
      } else if (const auto* store = std::get_if<Store>(&statement.node)) {
        SUNDOG_RETURN_IF_ERROR(check_store(*store));
      } else {
        SUNDOG_RETURN_IF_ERROR(check_loop(std::get<Loop>(statement.node)));
      }
    }
    return {};
  }

  Status check_loop(const Loop& loop) {
    if (set_of(open_).has(loop.factor)) {
      return bad_input(where() + "the loop over " + factor(loop.factor) + " is inside itself");
    }
    if (loop.stages < 1) {
      return bad_input(where() + "the loop over " + factor(loop.factor) + " has " +
                       std::to_string(loop.stages) + " stages");
    }
    open_.push_back({loop.factor, next_loop_++});
    for (const IndexCondition& condition : loop.trim) {
      for (const auto& item : condition.expr.axes) {
        if (item.axis < kernel_.factors.size() && bound().has(item.axis)) continue;
        return bad_input(where() + "the loop over " + factor(loop.factor) +
                         " is trimmed by what is neither a grid factor nor a loop around it");
      }
      for (const auto& item : condition.expr.sizes) {
        if (item.axis >= graph_.axes.size()) {
          return bad_input(where() + "a trim uses the size of an unknown axis");
        }
      }
    }
    SUNDOG_RETURN_IF_ERROR(statements(loop.body));
    open_.pop_back();
    return {};
  }

  AxisSet bound() const { return grid_ | set_of(open_); }

  Status check_compute(uint32_t id) {
    if (id >= kernel_.computations.size()) {
      return bad_input(where() + "an unknown computation is computed");
    }
    if (loops_of_[id]) return bad_input(where(id) + "it is computed twice");
    const Computation& c = kernel_.computations[id];
    SUNDOG_RETURN_IF_ERROR(check_places(id, c));
    const auto* reduce = std::get_if<ReduceTerm>(&kernel_.terms[c.value]);
    if (reduce != nullptr) SUNDOG_RETURN_IF_ERROR(check_reduction(id, c, *reduce));
    const TermId roots[] = {c.value};
    for (TermId t : reachable(kernel_.terms, roots)) {
      const auto* local = std::get_if<LocalTerm>(&kernel_.terms[t]);
      if (local != nullptr) SUNDOG_RETURN_IF_ERROR(check_local(id, *local));
    }
    if (c.rescale != kNone) SUNDOG_RETURN_IF_ERROR(check_rescale(id, c));
    if (c.accumulate_into != kNone) SUNDOG_RETURN_IF_ERROR(check_into(id, c));
    SUNDOG_RETURN_IF_ERROR(check_threads(id, c, reduce));
    loops_of_[id] = open_;
    return {};
  }

  // Every factor of the result has its place: a tile axis, the grid, or a loop around it.
  Status check_places(uint32_t id, const Computation& c) {
    AxisSet tile;
    for (AxisId f : c.axes) {
      if (f >= kernel_.factors.size()) return bad_input(where(id) + "it has an unknown factor");
      if (tile.has(f)) return bad_input(where(id) + factor(f) + " is listed twice");
      if (grid_.has(f) || looped_.has(f)) {
        return bad_input(where(id) + factor(f) +
                         " is in the grid or a loop, so it is no tile axis");
      }
      tile.insert(f);
    }
    for (AxisId f : kernel_.terms.axes(c.value)) {
      if (tile.has(f) || grid_.has(f)) continue;
      if (!looped_.has(f)) {
        return bad_input(where(id) + factor(f) + " of its value is missing from its axes");
      }
      if (!bound().has(f)) {
        return bad_input(where(id) + "its value uses " + factor(f) + " outside the loop over it");
      }
    }
    return {};
  }

  Status check_reduction(uint32_t id, const Computation& c, const ReduceTerm& reduce) {
    AxisSet loops;
    for (AxisId f : reduce.axes) {
      if (grid_.has(f)) {
        return bad_input(where(id) + "it reduces the grid " + factor(f),
                         "store the partial result and reduce it in a later kernel");
      }
      if (AxisSet::of(c.axes).has(f)) {
        return bad_input(where(id) + factor(f) + " is reduced and an axis of the result");
      }
      if (!looped_.has(f)) continue;
      if (!set_of(open_).has(f)) {
        return bad_input(where(id) + "it reduces " + factor(f) + " outside the loop over it");
      }
      loops.insert(f);
    }
    if (!loops.empty() && c.dtype != DType::kF32) {
      return bad_input(where(id) + "an accumulator is f32, not " + std::string(name(c.dtype)));
    }
    for (size_t i = open_.size() - static_cast<size_t>(loops.size()); i < open_.size(); ++i) {
      if (!loops.has(open_[i].factor)) {
        return bad_input(where(id) + "it accumulates over an outer loop but not over " +
                         factor(open_[i].factor) + " inside it");
      }
    }
    return {};
  }

  AxisSet accumulated(uint32_t id) const {
    const auto* reduce = std::get_if<ReduceTerm>(&kernel_.terms[kernel_.computations[id].value]);
    return reduce == nullptr ? AxisSet() : reduce->axes & set_of(*loops_of_[id]);
  }

  // What computation `id` was last must be its value here: computed before, in a loop still open or
  // accumulated over the loops that have ended.
  Status check_visible(const std::string& reader, uint32_t id) const {
    const std::string what = reader + "reads computation " + quoted(kernel_.computations[id].name);
    if (!loops_of_[id]) return bad_input(what + " before it is computed");
    if (kernel_.computations[id].accumulate_into != kNone) {
      return bad_input(what + ", which was added into another accumulator", "read that one");
    }
    const Loops& around = *loops_of_[id];
    size_t common = 0;
    while (common < around.size() && common < open_.size() && around[common] == open_[common]) {
      ++common;
    }
    const AxisSet loops = accumulated(id);
    for (size_t i = common; i < around.size(); ++i) {
      if (loops.has(around[i].factor)) continue;
      return bad_input(what + " after the loop over " + factor(around[i].factor) +
                       ", over which it does not accumulate");
    }
    return {};
  }

  Status check_local(uint32_t id, const LocalTerm& local) const {
    SUNDOG_RETURN_IF_ERROR(check_visible(where(id), local.computation));
    if (!(local.axes == AxisSet::of(kernel_.computations[local.computation].axes))) {
      return bad_input(where(id) + "reads computation " +
                       quoted(kernel_.computations[local.computation].name) +
                       " with axes that it does not have");
    }
    return {};
  }

  Status check_rescale(uint32_t id, const Computation& c) const {
    if (c.rescale >= kernel_.computations.size() || !loops_of_[c.rescale]) {
      return bad_input(where(id) + "it rescales by what is not computed before it");
    }
    const Computation& m = kernel_.computations[c.rescale];
    const auto* maximum = std::get_if<ReduceTerm>(&kernel_.terms[m.value]);
    const auto* own = std::get_if<ReduceTerm>(&kernel_.terms[c.value]);
    if (maximum == nullptr || maximum->kind != ReduceKind::kMax || accumulated(c.rescale).empty()) {
      return bad_input(where(id) + quoted(m.name) + " is no running maximum");
    }
    if (own == nullptr || own->kind != ReduceKind::kSum ||
        !((own->axes & set_of(open_)) == accumulated(c.rescale)) ||
        *loops_of_[c.rescale] != open_) {
      return bad_input(where(id) + "it is no sum over the loops of the maximum " + quoted(m.name));
    }
    if (!AxisSet::of(c.axes).contains(AxisSet::of(m.axes))) {
      return bad_input(where(id) + "the maximum " + quoted(m.name) + " has an axis that it lacks");
    }
    return {};
  }

  Status check_into(uint32_t id, const Computation& c) const {
    const uint32_t to = c.accumulate_into;
    if (to >= kernel_.computations.size()) {
      return bad_input(where(id) + "it accumulates into an unknown computation");
    }
    SUNDOG_RETURN_IF_ERROR(check_visible(where(id), to));
    const Computation& target = kernel_.computations[to];
    const auto* own = std::get_if<ReduceTerm>(&kernel_.terms[c.value]);
    const auto* its = std::get_if<ReduceTerm>(&kernel_.terms[target.value]);
    if (own == nullptr || its == nullptr || own->kind != its->kind) {
      return bad_input(where(id) + "it and " + quoted(target.name) +
                       " are not reductions of one kind");
    }
    if (c.axes != target.axes) {
      return bad_input(where(id) + "it and " + quoted(target.name) + " have different axes");
    }
    if (c.rescale != kNone || target.rescale != kNone) {
      return unsupported(where(id) + "a rescaled accumulator cannot be shared");
    }
    if (target.dtype != DType::kF32) {
      return bad_input(where(id) + "the accumulator " + quoted(target.name) + " must be f32");
    }
    // Each pass over a loop around it adds: those it does not reduce must also be around the
    // target.
    for (size_t i = 0; i < open_.size(); ++i) {
      const bool shared = i < loops_of_[to]->size() && (*loops_of_[to])[i] == open_[i];
      if (!shared && !own->axes.has(open_[i].factor)) {
        return bad_input(where(id) + "the loop over " + factor(open_[i].factor) +
                         " would add it again and again");
      }
    }
    return {};
  }

  Status check_threads(uint32_t id, const Computation& c, const ReduceTerm* reduce) const {
    if (c.mma != MmaAtom::kNoAtom) {
      const auto* product =
          reduce == nullptr ? nullptr : std::get_if<ApplyTerm>(&kernel_.terms[reduce->operand]);
      if (product == nullptr || reduce->kind != ReduceKind::kSum ||
          !std::holds_alternative<op::Mul>(product->op)) {
        return bad_input(where(id) + "an mma atom computes sums of products only");
      }
      if (c.dtype != DType::kF32) return bad_input(where(id) + "an mma accumulates in f32");
    } else if (c.mma_swap) {
      return bad_input(where(id) + "swap without an mma atom");
    }
    int warps = 1;
    for (const WarpSplit& split : c.warps) {
      const bool own = split.factor < kernel_.factors.size() &&
                       (AxisSet::of(c.axes).has(split.factor) ||
                        (reduce != nullptr && reduce->axes.has(split.factor)));
      if (!own || split.count < 1 || split.count > kernel_.warps) {
        return bad_input(where(id) + "its warps are split along a factor or count it cannot have");
      }
      warps *= split.count;
      if (warps > kernel_.warps) {
        return bad_input(where(id) + "it uses more warps than the " +
                         std::to_string(kernel_.warps) + " of the block");
      }
    }
    return {};
  }

  Status check_store(const Store& store) const {
    if (store.computation >= kernel_.computations.size()) {
      return bad_input(where() + "an unknown computation is stored");
    }
    const uint32_t id = store.computation;
    if (store.tensor >= graph_.tensors.size()) {
      return bad_input(where(id) + "it is stored to an unknown tensor");
    }
    const DeviceTensor& tensor = graph_.tensors[store.tensor];
    const std::string what = where() + "the store to tensor " + quoted(tensor.decl.name) + " ";
    if (tensor.role == TensorRole::kInput) return bad_input(what + "writes an input");
    SUNDOG_RETURN_IF_ERROR(check_visible(what, id));
    if (store.index.size() != tensor.decl.extents.size()) {
      return bad_input(what + "has " + std::to_string(store.index.size()) + " indices for " +
                       std::to_string(tensor.decl.extents.size()) + " dimensions");
    }
    AxisSet used;
    const AxisSet tile = AxisSet::of(kernel_.computations[id].axes);
    for (const IndexExpr& e : store.index) {
      for (const auto& item : e.axes) {
        if (item.axis < kernel_.factors.size() && (tile | bound()).has(item.axis)) continue;
        return bad_input(what + "is indexed by what is no factor of it, of the grid or of a loop");
      }
      for (const auto& item : e.sizes) {
        if (item.axis >= graph_.axes.size()) return bad_input(what + "uses an unknown axis");
      }
      used |= e.axis_set();
    }
    // A block along a grid factor that the value does not depend on computes the same again; the
    // first one stores it.
    const AxisSet needed = tile | set_of(open_) | (grid_ & dependences_[id].factors);
    for (AxisId f : needed - used) {
      if (kernel_.factors[f].extent <= 1) continue;
      return bad_input(what + "writes elements again for each index of " + factor(f));
    }
    return {};
  }

  const MuGraph& graph_;
  const Kernel& kernel_;
  AxisSet grid_, looped_;
  std::vector<Dependence> dependences_;
  Loops open_;  // loops around, outermost first
  int next_loop_ = 0;
  std::vector<std::optional<Loops>> loops_of_;  // of what is computed so far
};

}  // namespace

Status check_statements(const MuGraph& graph, const Kernel& kernel) {
  return Walk(graph, kernel).run();
}

}  // namespace sundog
