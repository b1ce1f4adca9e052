#include "core/resize.h"

#include <algorithm>
#include <cstdlib>
#include <set>

#include "core/arithmetic.h"
#include "core/check.h"
#include "core/resize_index.h"
#include "core/size_relations.h"

namespace sundog {
namespace {

class ClassFinder {
 public:
  ClassFinder(const Program& program, LiteralPolicy literals)
      : program_(program),
        literals_(literals),
        extents_(extents(program)),
        ties_(program.axes.size()),
        pinned_(program.axes.size(), 0) {}

  AxisClasses run() {
    for (TermId id = 0; id < program_.terms.size(); ++id) {
      const Term& term = program_.terms[id];
      if (const auto* input = std::get_if<InputTerm>(&term)) {
        const TensorDecl& decl = program_.inputs[input->tensor];
        for (size_t d = 0; d < decl.dims.size(); ++d) relate(decl.dims[d], input->index[d]);
      } else if (const auto* select = std::get_if<SelectTerm>(&term)) {
        condition(select->condition.expr);
      } else if (const auto* size = std::get_if<SizeTerm>(&term)) {
        if (literals_ == LiteralPolicy::kKeepSizes) pinned_[size->axis] = 1;
      }
    }
    AxisClasses result;
    for (AxisId a = 0; a < pinned_.size(); ++a) {
      result.forms.push_back(ties_.of(a));
      result.class_of.push_back(result.forms[a].root);
      if (extents_[a] <= 1) pinned_[a] = 1;
      if (pinned_[a] != 0) pinned_[result.class_of[a]] = 1;
    }
    for (AxisId a = 0; a < pinned_.size(); ++a) {
      result.pinned.push_back(pinned_[result.class_of[a]]);
    }
    return result;
  }

 private:
  // Ties two axes of one dimension; where their extents differ neither may change.
  void tie(AxisId a, AxisId b) {
    if (extents_[a] != extents_[b] || !ties_.tie(a, b)) pinned_[a] = pinned_[b] = 1;
  }

  void pin(const IndexExpr& e) {
    for (const auto& item : e.axes) pinned_[item.axis] = 1;
    for (const auto& item : e.sizes) pinned_[item.axis] = 1;
  }

  // A dimension declared as `decl` is read at `e`.
  void relate(const IndexExpr& decl, const IndexExpr& e) {
    std::vector<IndexExpr::Item> declared = decl.axes, read = e.axes;
    const bool plain = decl.constant == 0 && decl.sizes.empty() &&
                       is_mixed_radix(declared, extents_) && is_mixed_radix(read, extents_) &&
                       declared.size() == read.size() && !declared.empty() &&
                       declared[0].coefficient == 1;
    if (plain && e.constant == 0 && e.sizes.empty() && read[0].coefficient == 1) {
      // One that is longer or shorter than the dimension, as where tensors are put side by side and
      // a condition says which is read, stays so much longer or shorter.
      const bool runs = read.size() == 1 && extents_[declared[0].axis] != extents_[read[0].axis];
      if (runs && literals_ == LiteralPolicy::kScale) return;
      if (runs && literals_ != LiteralPolicy::kPin && runs_along(decl, e)) return;
      for (size_t i = 0; i < read.size(); ++i) tie(declared[i].axis, read[i].axis);
      return;
    }
    const bool reversed = plain && read.size() == 1 && read[0].coefficient == -1 &&
                          e.constant == -1 && e.sizes.size() == 1 && e.sizes[0].coefficient == 1;
    if (reversed) {  // x[n - 1 - i]
      tie(declared[0].axis, read[0].axis);
      tie(declared[0].axis, e.sizes[0].axis);
      return;
    }
    if (literals_ == LiteralPolicy::kScale && reads_piece(decl, e, extents_)) return;
    if (literals_ != LiteralPolicy::kPin && runs_along(decl, e)) return;
    pin(decl);
    pin(e);
  }

  // x[2 * l + kk - 3]: the item that reaches farthest runs along the dimension and the rest is a
  // window, which stays.  Then all reads are as far from either end as they were.
  bool runs_along(const IndexExpr& decl, const IndexExpr& e) {
    AxisId dimension = 0;
    if (!decl.is_axis(&dimension) || e.axes.empty()) return false;
    const auto reach = [&](const IndexExpr::Item& item) {
      return std::abs(item.coefficient) * extents_[item.axis];
    };
    const IndexExpr::Item runs =
        *std::max_element(e.axes.begin(), e.axes.end(),
                          [&](const auto& x, const auto& y) { return reach(x) < reach(y); });
    const auto of_dimension = std::find_if(
        e.sizes.begin(), e.sizes.end(), [&](const auto& item) { return item.axis == dimension; });
    const int64_t from_end = of_dimension == e.sizes.end() ? 0 : of_dimension->coefficient;
    if (from_end != (runs.coefficient < 0 ? 1 : 0)) return false;
    for (const auto& item : e.axes) {
      if (item.axis != runs.axis) pinned_[item.axis] = 1;
    }
    for (const auto& item : e.sizes) {
      if (item.axis != dimension) pinned_[item.axis] = 1;
    }
    const int64_t scale = std::abs(runs.coefficient);
    const int64_t offset = extents_[dimension] - scale * extents_[runs.axis];
    if (!ties_.tie(dimension, runs.axis, scale, offset)) {
      pinned_[dimension] = pinned_[runs.axis] = 1;
    }
    return true;
  }

  void condition(const IndexExpr& e) {
    const bool literal = std::abs(e.constant) > 1 && literals_ != LiteralPolicy::kScale;
    const bool follows = literals_ == LiteralPolicy::kPin ? has_mixed_radix_sides(e, extents_)
                                                          : follows_extents(e, extents_);
    if (literal || !follows) return pin(e);
    // Positions along one sequence: a window has its elements only where both are as long.
    if (literals_ == LiteralPolicy::kScale && compares_two_axes(e) &&
        extents_[e.axes[0].axis] == extents_[e.axes[1].axis]) {
      tie(e.axes[0].axis, e.axes[1].axis);
    }
  }

  const Program& program_;
  const LiteralPolicy literals_;
  const std::vector<int64_t> extents_;
  AxisTies ties_;
  std::vector<uint8_t> pinned_;
};

// Copies a term graph with every index expression (of reads, and of indices as values) and
// condition mapped.
template <class Read, class Index, class Condition>
std::vector<TermId> copy_terms(const TermGraph& from, TermGraph& to, Read&& read, Index&& index,
                               Condition&& condition) {
  std::vector<TermId> now;
  for (TermId id = 0; id < from.size(); ++id) {
    Term term = from[id];
    if (auto* input = std::get_if<InputTerm>(&term)) {
      for (IndexExpr& e : input->index) e = read(e);
    } else if (auto* value = std::get_if<IndexTerm>(&term)) {
      value->index = index(value->index);
    } else if (auto* apply = std::get_if<ApplyTerm>(&term)) {
      for (TermId& operand : apply->operands) operand = now[operand];
    } else if (auto* reduce = std::get_if<ReduceTerm>(&term)) {
      reduce->operand = now[reduce->operand];
    } else if (auto* select = std::get_if<SelectTerm>(&term)) {
      select->condition = condition(select->condition);
      select->then = now[select->then];
      select->otherwise = now[select->otherwise];
    } else if (auto* compare = std::get_if<CompareTerm>(&term)) {
      for (TermId* t : {&compare->left, &compare->right, &compare->then, &compare->otherwise}) {
        *t = now[*t];
      }
    }
    now.push_back(to.push(std::move(term)));
  }
  return now;
}

// The index with the literal that stands for its constant, if one does.
IndexExpr with_moved_constant(IndexExpr e, const Literals& literals) {
  if (std::abs(e.constant) > 1) e.constant = literals.moved(e.constant).value_or(e.constant);
  return e;
}

// Axes of a condition whose extents may make up its constant.
constexpr size_t kMostEnds = 4;

// Index expressions over the factors of one kernel, at new sizes.
class KernelResizer {
 public:
  KernelResizer(const Kernel& before, const Kernel& after, const std::vector<int64_t>& old_axes,
                const std::vector<int64_t>& new_axes, const Literals& literals)
      : before_(before),
        after_(after),
        old_axes_(old_axes),
        new_axes_(new_axes),
        literals_(literals) {}

  IndexExpr index(const IndexExpr& e) const {
    std::vector<Part> parts = parts_of(e);
    IndexExpr result{e.constant, {}, e.sizes};
    for (const Part& part : parts) {
      const int64_t stride = part.literal ? 1 : after_.factors[part.factor].stride;
      result = result + IndexExpr::of(part.factor) * (part.after * stride);
    }
    return result;
  }

  // A shift of a read is a literal of the program, or stays.
  IndexExpr read(const IndexExpr& e) const { return with_moved_constant(index(e), literals_); }

  // Conditions on tiles have constants such as 63 in `k.o * 128 <= q.o * 64 + 63`: the last index
  // of the tile at q.o.  Those follow the tile; what is left beside them is at most 1, or a literal
  // of the program, or made of the extents of its axes (`4 * k.o < 4096` where k is 4096).
  IndexCondition condition(const IndexCondition& c) {
    IndexCondition result = c;
    result.expr = index(c.expr);
    const bool moves = !literals_.empty() && std::abs(c.expr.constant) > 1;
    if (c.expr.constant == 0 || (unchanged(c.expr) && !moves)) return result;
    for (const bool literal : {false, true}) {
      for (const auto& [low, high] :
           {std::pair(false, false), {true, false}, {false, true}, {true, true}}) {
        const int64_t left = c.expr.constant - hull(c.expr, low, high, false);
        const std::optional<int64_t> now = literal ? literals_.moved(left) : left;
        if (!now || (std::abs(left) > 1) != literal || (literal && literals_.empty())) continue;
        result.expr.constant = hull(c.expr, low, high, true) + *now;
        return result;
      }
    }
    if (const auto now = from_extents(c.expr)) {
      result.expr.constant = *now;
      return result;
    }
    failed_ = true;
    return result;
  }

  bool failed() const { return failed_; }

 private:
  // One item: coefficient = before * stride of the factor; a literal coefficient has no stride in
  // it.
  struct Part {
    AxisId factor = 0;
    bool literal = false;
    int64_t before = 0, after = 0;
  };

  std::vector<Part> parts_of(const IndexExpr& e) const {
    std::vector<Part> parts;
    IndexExpr over_axes;  // one item an axis, as far as its factors agree
    for (const auto& item : e.axes) {
      const Factor& factor = before_.factors[item.axis];
      Part part{item.axis, item.coefficient % factor.stride != 0, item.coefficient, 0};
      if (!part.literal) part.before = item.coefficient / factor.stride;
      part.after = part.before;
      parts.push_back(part);
      const bool known = over_axes.axis_set().has(factor.axis);
      if (!part.literal && !known) {
        over_axes = over_axes + IndexExpr::of(factor.axis) * part.before;
      }
    }
    const IndexExpr now = resized(over_axes, old_axes_, new_axes_);
    for (Part& part : parts) {
      const AxisId axis = before_.factors[part.factor].axis;
      for (size_t i = 0; i < over_axes.axes.size() && !part.literal; ++i) {
        if (over_axes.axes[i].axis != axis || over_axes.axes[i].coefficient != part.before)
          continue;
        part.after = now.axes[i].coefficient;
      }
    }
    return parts;
  }

  // The constant as a sum of extents of the axes in `e`, each taken as often as the axis or less,
  // and at most one beside it; at the new extents.
  std::optional<int64_t> from_extents(const IndexExpr& e) const {
    std::vector<std::pair<int64_t, int64_t>> ends;  // old and new, of each axis
    AxisSet done;
    for (const Part& part : parts_of(e)) {
      const AxisId axis = before_.factors[part.factor].axis;
      if (part.literal || done.has(axis)) continue;
      done.insert(axis);
      ends.emplace_back(part.before * old_axes_[axis], part.after * new_axes_[axis]);
    }
    std::optional<int64_t> best;
    size_t fewest = ends.size() + 1;
    if (ends.size() > kMostEnds) return std::nullopt;
    uint64_t all = 1;
    for (size_t i = 0; i < ends.size(); ++i) all *= 3;
    for (uint64_t choice = 1; choice < all; ++choice) {
      int64_t before = 0, after = 0;
      size_t used = 0;
      for (uint64_t rest = choice, i = 0; rest != 0; rest /= 3, ++i) {
        const int64_t times = static_cast<int64_t>((rest + 1) % 3) - 1;  // 0 for a digit of 0
        before += times * ends[i].first;
        after += times * ends[i].second;
        used += times != 0;
      }
      if (std::abs(e.constant - before) > 1 || used >= fewest) continue;
      fewest = used;
      best = after + (e.constant - before);
    }
    return best;
  }

  bool unchanged(const IndexExpr& e) const {
    for (const auto& item : e.axes) {
      const AxisId axis = before_.factors[item.axis].axis;
      if (old_axes_[axis] != new_axes_[axis]) return false;
      for (AxisId f : factors_of(before_, axis)) {
        if (before_.factors[f].extent != after_.factors[f].extent) return false;
      }
    }
    return true;
  }

  // The last index within the tiles that the innermost factors of each axis in `e` name, over the
  // axes with negative (`low`) and positive (`high`) coefficients.
  int64_t hull(const IndexExpr& e, bool low, bool high, bool now) const {
    const Kernel& kernel = now ? after_ : before_;
    const std::vector<Part> parts = parts_of(e);
    AxisSet done;
    int64_t total = 0;
    for (const Part& part : parts) {
      const AxisId axis = kernel.factors[part.factor].axis;
      if (part.literal || done.has(axis) || !(part.before < 0 ? low : high)) continue;
      done.insert(axis);
      int64_t stride = kernel.factors[part.factor].stride;
      for (const Part& other : parts) {
        if (kernel.factors[other.factor].axis == axis) {
          stride = std::min(stride, kernel.factors[other.factor].stride);
        }
      }
      total += (now ? part.after : part.before) * (stride - 1);
    }
    return total;
  }

  const Kernel& before_;
  const Kernel& after_;
  const std::vector<int64_t>& old_axes_;
  const std::vector<int64_t>& new_axes_;
  const Literals& literals_;
  bool failed_ = false;
};

void resize_statements(std::vector<Statement>& body, KernelResizer& resizer) {
  for (Statement& statement : body) {
    if (auto* store = std::get_if<Store>(&statement.node)) {
      for (IndexExpr& e : store->index) e = resizer.index(e);
    } else if (auto* loop = std::get_if<Loop>(&statement.node)) {
      for (IndexCondition& condition : loop->trim) condition = resizer.condition(condition);
      resize_statements(loop->body, resizer);
    }
  }
}

void set_factor_extents(Kernel& kernel, const std::vector<int64_t>& factor_extents, size_t axes) {
  SUNDOG_CHECK(factor_extents.size() == kernel.factors.size());
  for (size_t f = 0; f < kernel.factors.size(); ++f) kernel.factors[f].extent = factor_extents[f];
  for (AxisId axis = 0; axis < axes; ++axis) {
    const std::vector<AxisId> factors = factors_of(kernel, axis);
    int64_t stride = 1;
    for (size_t i = factors.size(); i-- > 0;) {
      kernel.factors[factors[i]].stride = stride;
      stride *= kernel.factors[factors[i]].extent;
    }
  }
}

}  // namespace

AxisClasses axis_classes(const Program& program, LiteralPolicy literals) {
  return ClassFinder(program, literals).run();
}

std::vector<SizeForm> size_forms(const std::vector<AxisTies::Form>& forms, uint32_t first) {
  std::vector<SizeForm> result;
  for (const AxisTies::Form& form : forms) {
    result.push_back(SizeForm::of(form.root + first) * form.scale +
                     SizeForm::of_constant(form.offset));
  }
  return result;
}

Program with_extents(const Program& program, const std::vector<int64_t>& new_extents,
                     const Literals& literals) {
  SUNDOG_CHECK(new_extents.size() == program.axes.size());
  const std::vector<int64_t> old_extents = extents(program);
  Program result = program;
  const auto set_parameter = [&](const std::string& name, int64_t value) {
    for (Parameter& parameter : result.parameters) {
      if (parameter.name != name || parameter.value == value) continue;
      parameter.value = value;
      parameter.expression.clear();
    }
  };
  for (size_t a = 0; a < new_extents.size(); ++a) {
    result.axes[a].extent = new_extents[a];
    set_parameter(result.axes[a].name, new_extents[a]);
  }
  for (ProgramSplit& split : result.splits) {
    split.extent = 1;
    for (AxisId factor : split.factors) split.extent *= new_extents[factor];
    set_parameter(split.axis, split.extent);
  }
  for (TensorDecl& input : result.inputs) input = resized(input, old_extents, new_extents);
  result.terms = TermGraph();
  const auto index = [&](const IndexExpr& e) { return resized(e, old_extents, new_extents); };
  const auto read = [&](const IndexExpr& e) { return with_moved_constant(index(e), literals); };
  const std::vector<TermId> now =
      copy_terms(program.terms, result.terms, read, index, [&](IndexCondition c) {
        c.expr = read(c.expr);
        return c;
      });
  for (Output& output : result.outputs) {
    output.tensor = resized(output.tensor, old_extents, new_extents);
    output.value = now[output.value];
  }
  for (Definition& definition : result.definitions) definition.value = now[definition.value];
  return result;
}

std::vector<int64_t> small_extents(const Program& program, int64_t least) {
  const AxisClasses classes = axis_classes(program);
  std::vector<int64_t> result = extents(program);
  int64_t prime = least - 1;
  for (AxisId a = 0; a < result.size(); ++a) {
    if (classes.pinned[a] != 0) continue;
    if (classes.class_of[a] != a) {
      result[a] = result[classes.class_of[a]];
      continue;
    }
    do ++prime;
    while (!is_prime(static_cast<uint64_t>(prime)));
    result[a] = std::min(result[a], prime);
  }
  return result;
}

MuSizes sizes_of(const MuGraph& graph) {
  MuSizes sizes{axis_extents(graph), {}};
  for (const Kernel& kernel : graph.kernels) sizes.factors.push_back(factor_extents(kernel));
  return sizes;
}

Result<MuGraph> with_sizes(const MuGraph& graph, const MuSizes& sizes, const Literals& literals) {
  SUNDOG_CHECK(sizes.factors.size() == graph.kernels.size());
  const std::vector<int64_t> old_axes = axis_extents(graph);
  MuGraph result = graph;
  for (size_t k = 0; k < graph.kernels.size(); ++k) {
    set_factor_extents(result.kernels[k], sizes.factors[k], graph.axes.size());
  }
  for (size_t a = 0; a < graph.axes.size(); ++a) {
    MuAxis& axis = result.axes[a];
    if (axis.kernel == kNone) {
      axis.extent = sizes.axes[a];
    } else {
      axis.extent = result.kernels[axis.kernel].factors[axis.factor].extent;
    }
  }
  const std::vector<int64_t> new_axes = axis_extents(result);
  for (DeviceTensor& tensor : result.tensors) {
    tensor.decl = resized(tensor.decl, old_axes, new_axes);
  }
  for (size_t k = 0; k < graph.kernels.size(); ++k) {
    Kernel& kernel = result.kernels[k];
    KernelResizer resizer(graph.kernels[k], kernel, old_axes, new_axes, literals);
    kernel.terms = TermGraph();
    const std::vector<TermId> now = copy_terms(
        graph.kernels[k].terms, kernel.terms, [&](const IndexExpr& e) { return resizer.read(e); },
        [&](const IndexExpr& e) { return resizer.index(e); },
        [&](const IndexCondition& c) { return resizer.condition(c); });
    for (Computation& c : kernel.computations) c.value = now[c.value];
    resize_statements(kernel.body, resizer);
    if (resizer.failed()) {
      return unsupported("kernel '" + kernel.name +
                         "' has a condition with a constant that does not follow from its tiles");
    }
  }
  return result;
}

}  // namespace sundog
