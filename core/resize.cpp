#include "core/resize.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <set>

#include "core/check.h"
#include "core/resize_index.h"

namespace sundog {
namespace {

class ClassFinder {
 public:
  ClassFinder(const Program& program, LiteralPolicy literals)
      : program_(program),
        literals_(literals),
        extents_(extents(program)),
        parent_(program.axes.size()),
        pinned_(program.axes.size(), 0) {
    std::iota(parent_.begin(), parent_.end(), uint32_t{0});
  }

  AxisClasses run() {
    for (TermId id = 0; id < program_.terms.size(); ++id) {
      const Term& term = program_.terms[id];
      if (const auto* input = std::get_if<InputTerm>(&term)) {
        const TensorDecl& decl = program_.inputs[input->tensor];
        for (size_t d = 0; d < decl.dims.size(); ++d) relate(decl.dims[d], input->index[d]);
      } else if (const auto* select = std::get_if<SelectTerm>(&term)) {
        condition(select->condition.expr);
      }
    }
    AxisClasses result;
    for (AxisId a = 0; a < parent_.size(); ++a) {
      if (extents_[a] <= 1) pinned_[a] = 1;
      if (pinned_[a] != 0) pinned_[root(a)] = 1;
    }
    for (AxisId a = 0; a < parent_.size(); ++a) {
      result.class_of.push_back(root(a));
      result.pinned.push_back(pinned_[root(a)]);
    }
    return result;
  }

 private:
  AxisId root(AxisId a) {
    while (parent_[a] != a) a = parent_[a];
    return a;
  }

  // Ties two axes of one dimension; where their extents differ neither may change.
  void tie(AxisId a, AxisId b) {
    if (extents_[a] != extents_[b]) pinned_[a] = pinned_[b] = 1;
    if (extents_[a] != extents_[b]) return;
    const AxisId x = root(a), y = root(b);
    parent_[std::max(x, y)] = std::min(x, y);
    pinned_[std::min(x, y)] |= pinned_[std::max(x, y)];
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
    pin(decl);
    pin(e);
  }

  void condition(const IndexExpr& e) {
    const bool literal = std::abs(e.constant) > 1 && literals_ == LiteralPolicy::kPin;
    if (literal || !follows_extents(e, extents_)) pin(e);
  }

  const Program& program_;
  const LiteralPolicy literals_;
  const std::vector<int64_t> extents_;
  std::vector<uint32_t> parent_;
  std::vector<uint8_t> pinned_;
};

bool is_prime(int64_t n) {
  for (int64_t d = 2; d * d <= n; ++d) {
    if (n % d == 0) return false;
  }
  return n >= 2;
}

// Copies a term graph with every index expression and condition mapped.
template <class Index, class Condition>
std::vector<TermId> copy_terms(const TermGraph& from, TermGraph& to, Index&& index,
                               Condition&& condition) {
  std::vector<TermId> now;
  for (TermId id = 0; id < from.size(); ++id) {
    Term term = from[id];
    if (auto* input = std::get_if<InputTerm>(&term)) {
      for (IndexExpr& e : input->index) e = index(e);
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

  // Conditions on tiles have constants such as 63 in `k.o * 128 <= q.o * 64 + 63`: the last index
  // of the tile at q.o.  Those follow the tile; what is left beside them is at most 1, or a literal
  // of the program.
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
  const std::vector<TermId> now =
      copy_terms(program.terms, result.terms, index, [&](IndexCondition c) {
        const int64_t constant = c.expr.constant;
        c.expr = index(c.expr);
        if (std::abs(constant) > 1) c.expr.constant = literals.moved(constant).value_or(constant);
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
    while (!is_prime(prime));
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
        graph.kernels[k].terms, kernel.terms, [&](const IndexExpr& e) { return resizer.index(e); },
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
