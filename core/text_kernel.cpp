#include "core/text_kernel.h"

#include <algorithm>

#include "core/dependence.h"
#include "core/index_limit.h"
#include "core/text.h"
#include "core/text_kernel_factors.h"
#include "core/text_suggest.h"
#include "core/text_tensor.h"
#include "core/text_terms.h"

// A kernel is built over the factors of every axis that its text may mean; when all its statements
// are there, those in use are kept and renumbered.

namespace sundog::text {
namespace {

IntegerOf parameter_values(const Program& program, Diagnostics& diagnostics) {
  return [&program, &diagnostics](const Ident& ident) -> std::optional<int64_t> {
    std::vector<std::string> known;
    for (const Parameter& p : program.parameters) {
      if (p.name == ident.text) return p.value;
      known.push_back(p.name);
    }
    diagnostics.fail(ident.at, "unknown parameter '" + ident.text + "'",
                     suggestion(ident.text, known));
    return std::nullopt;
  };
}

std::vector<std::string> axis_names(const MuGraph& graph) {
  std::vector<std::string> names;
  for (const MuAxis& axis : graph.axes) names.push_back(axis.name);
  return names;
}

class KernelBuilder : public Scope {
 public:
  KernelBuilder(MuGraph& graph, const Program& program, const KernelSyntax& syntax,
                Diagnostics& diagnostics)
      : graph_(graph),
        program_(program),
        syntax_(syntax),
        diagnostics_(diagnostics),
        builder_(*this, diagnostics),
        id_(static_cast<uint32_t>(graph.kernels.size() - 1)) {}

  void build(const std::map<AxisId, std::string>& factor_of) {
    kernel().name = syntax_.name.text;
    if (syntax_.warps < 1 || syntax_.warps > 32) {
      return diagnostics_.fail(syntax_.warps_at, "kernel '" + syntax_.name.text +
                                                     "': a block has 1 to 32 warps, not " +
                                                     std::to_string(syntax_.warps));
    }
    kernel().warps = static_cast<int>(syntax_.warps);
    kernel().via = syntax_.via;
    kernel().kind = syntax_.kind;
    make_factors();
    if (failed()) return;
    for (const auto& [axis, name] : factor_of) {
      const auto factor = find_factor(name);
      graph_.axes[axis].kernel = id_;
      graph_.axes[axis].factor = factor.value_or(0);
    }
    kernel().grid = builder_.axis_list(syntax_.grid);
    add_steps(syntax_.body, kernel().body);
    if (failed()) return;
    declare_dependent();
    if (!failed()) finish();
  }

  TermGraph& terms() override { return kernel().terms; }

  double reach(const IndexExpr& index) const override {
    return index_reach(index, factor_extents(graph_.kernels[id_]), axis_extents(graph_));
  }

  std::vector<AxisId> axes(const Ident& ident) override {
    if (const auto factor = find_factor(ident.text)) return {*factor};
    if (const auto axis = find_axis(graph_, ident.text)) {
      std::vector<std::string> names;
      for (AxisId f : factors_of(kernel(), *axis)) names.push_back(kernel().factors[f].name);
      std::string list;
      for (const std::string& name : names) list += (list.empty() ? "" : ", ") + name;
      diagnostics_.fail(ident.at,
                        "axis '" + ident.text + "' is split in kernel '" + kernel().name + "'",
                        "name its factors: " + list);
    } else {
      unknown_factor(ident);
    }
    return {};
  }

  IndexExpr index(const Ident& ident, AxisSet) override {
    if (const auto factor = find_factor(ident.text)) return IndexExpr::of(*factor);
    if (const auto axis = find_axis(graph_, ident.text)) {
      if (graph_.axes[*axis].kernel == id_) return IndexExpr::of(graph_.axes[*axis].factor);
      return axis_index(kernel(), *axis);
    }
    for (const Parameter& p : program_.parameters) {
      if (p.name == ident.text) return IndexExpr::of_constant(p.value);
    }
    unknown_factor(ident);
    return {};
  }

  IndexExpr extent(const Ident& ident) override {
    if (const auto axis = find_axis(graph_, ident.text)) return IndexExpr{0, {}, {{*axis, 1}}};
    no_size(ident);
    return {};
  }

  TermId size(const Ident& ident) override {
    if (const auto axis = find_axis(graph_, ident.text)) return terms().size(*axis);
    no_size(ident);
    return builder_.nothing();
  }

  bool is_index_name(std::string_view name) const override {
    if (find_factor(name) || find_axis(graph_, name)) return true;
    return std::any_of(program_.parameters.begin(), program_.parameters.end(),
                       [&](const Parameter& p) { return p.name == name; });
  }

  TermId read(const Expr& e, AxisSet bound, const Guards& guards, TermBuilder& builder) override;

 private:
  // While it is built, the kernel is the last of the graph: the functions of core see it there.
  Kernel& kernel() { return graph_.kernels[id_]; }
  const Kernel& kernel() const { return graph_.kernels[id_]; }
  bool failed() const { return diagnostics_.failed(); }

  std::optional<AxisId> find_factor(std::string_view name) const {
    for (size_t f = 0; f < kernel().factors.size(); ++f) {
      if (kernel().factors[f].name == name) return static_cast<AxisId>(f);
    }
    return std::nullopt;
  }
  std::optional<uint32_t> find_computation(std::string_view name) const {
    for (size_t c = 0; c < kernel().computations.size(); ++c) {
      if (kernel().computations[c].name == name) return static_cast<uint32_t>(c);
    }
    return std::nullopt;
  }

  void unknown_factor(const Ident& ident) {
    std::vector<std::string> known;
    for (const Factor& factor : kernel().factors) known.push_back(factor.name);
    diagnostics_.fail(ident.at, "kernel '" + kernel().name + "' has no factor '" + ident.text + "'",
                      suggestion(ident.text, known));
  }
  void no_size(const Ident& ident) {
    const bool factor = find_factor(ident.text).has_value();
    diagnostics_.fail(ident.at,
                      factor ? "'" + ident.text + "' is a factor; size() is of whole axes"
                             : "unknown axis '" + ident.text + "'",
                      suggestion(ident.text, axis_names(graph_)));
  }

  void make_factors();
  void add_steps(const std::vector<StepSyntax>& steps, std::vector<Statement>& body);
  Loop make_loop(const LoopSyntax& syntax);
  uint32_t add_computation(const ComputeSyntax& syntax);
  uint32_t computation(const Ident& ident);
  Store make_store(const StoreSyntax& syntax);
  uint32_t declare_tensor(const StoreSyntax& syntax);
  std::optional<AxisId> stored_axis(const Ident& ident);
  void set_dims(TensorDecl& decl, const std::vector<AxisId>& axes);
  void declare_dependent();
  void fill_stores(std::vector<Statement>& body, uint32_t tensor);
  void finish();

  MuGraph& graph_;
  const Program& program_;
  const KernelSyntax& syntax_;
  Diagnostics& diagnostics_;
  TermBuilder builder_;
  uint32_t id_;
  std::map<std::string, TermId> lets_;
  std::vector<std::pair<uint32_t, Ident>> dependent_;  // tensors whose dimensions follow
};

void KernelBuilder::make_factors() {
  std::map<std::string, const SplitSyntax*> splits;
  for (const SplitSyntax& split : syntax_.splits) {
    if (!find_axis(graph_, split.axis.text)) {
      return diagnostics_.fail(split.axis.at, "unknown axis '" + split.axis.text + "'",
                               suggestion(split.axis.text, axis_names(graph_)));
    }
    if (!splits.emplace(split.axis.text, &split).second) {
      return diagnostics_.fail(split.axis.at, "'" + split.axis.text + "' is split twice",
                               "name all its factors in one split");
    }
  }
  std::set<AxisId> meant;  // axes that the text may mean
  for (const DeviceTensor& tensor : graph_.tensors) {
    if (!syntax_.words.contains(tensor.decl.name)) continue;
    for (const IndexExpr& dim : tensor.decl.dims) {
      for (AxisId axis : dim.axis_set()) meant.insert(axis);
    }
  }
  std::set<std::string> made;  // a factor of a split hides an axis of its name
  for (const SplitSyntax& split : syntax_.splits) {
    for (const FactorSyntax& factor : split.factors) made.insert(factor.name.text);
  }
  for (AxisId axis = 0; axis < graph_.axes.size(); ++axis) {
    const std::string& name = graph_.axes[axis].name;
    const auto split = splits.find(name);
    if (split == splits.end()) {
      if (meant.contains(axis) || (syntax_.words.contains(name) && !made.contains(name))) {
        // An axis that stems from this kernel is one of the factors below.
        if (graph_.axes[axis].kernel == id_) continue;
        kernel().factors.push_back({name, axis, graph_.axes[axis].extent, 1});
      }
      continue;
    }
    const std::vector<int64_t> extents =
        split_extents(*split->second, graph_.axes[axis].extent,
                      parameter_values(program_, diagnostics_), false, diagnostics_);
    int64_t stride = 1;
    std::vector<Factor> factors;
    for (size_t i = extents.size(); i-- > 0;) {
      factors.push_back({split->second->factors[i].name.text, axis, extents[i], stride});
      stride *= extents[i];
    }
    kernel().factors.insert(kernel().factors.end(), factors.rbegin(), factors.rend());
  }
  if (kernel().factors.size() > static_cast<size_t>(kMaxAxes)) {
    return diagnostics_.fail(syntax_.name.at,
                             "kernel '" + kernel().name + "' has more than 64 factors", {},
                             ErrorCode::kUnsupported);
  }
  for (const SplitSyntax& split : syntax_.splits) {
    for (const FactorSyntax& factor : split.factors) {
      const auto same = [&](const Factor& f) { return f.name == factor.name.text; };
      if (std::count_if(kernel().factors.begin(), kernel().factors.end(), same) > 1) {
        diagnostics_.fail(factor.name.at, "two factors are called '" + factor.name.text + "'");
      }
    }
  }
}

TermId KernelBuilder::read(const Expr& e, AxisSet bound, const Guards&, TermBuilder& builder) {
  if (!e.device) {
    if (const auto let = lets_.find(e.text); let != lets_.end() && !e.has_index) return let->second;
    if (const auto c = find_computation(e.text)) {
      if (e.has_index) {
        diagnostics_.fail(e.at, "computation '" + e.text + "' is read by its name alone",
                          "a computation is read at the indices it was computed at");
        return builder.nothing();
      }
      AxisSet axes;
      for (AxisId f : kernel().computations[*c].axes) axes.insert(f);
      return terms().local(*c, axes);
    }
  }
  const auto tensor = find_tensor(graph_, e.text);
  if (!tensor) {
    std::vector<std::string> known;
    for (const Computation& c : kernel().computations) known.push_back(c.name);
    for (const DeviceTensor& t : graph_.tensors) known.push_back(t.decl.name);
    diagnostics_.fail(e.at, "unknown name '" + e.text + "'", suggestion(e.text, known));
    return builder.nothing();
  }
  const TensorDecl& decl = graph_.tensors[*tensor].decl;
  if (!e.has_index) return terms().input(*tensor, tensor_index(graph_, id_, decl));
  if (e.index.size() != decl.extents.size()) {
    diagnostics_.fail(e.at, "tensor '" + e.text + "' has " + std::to_string(decl.extents.size()) +
                                " dimensions and is read with " + std::to_string(e.index.size()));
    return builder.nothing();
  }
  std::vector<IndexExpr> index;
  for (const Expr& part : e.index) index.push_back(builder.index(part, bound));
  return failed() ? builder.nothing() : terms().input(*tensor, std::move(index));
}

void KernelBuilder::add_steps(const std::vector<StepSyntax>& steps, std::vector<Statement>& body) {
  for (const StepSyntax& step : steps) {
    if (failed()) return;
    if (const auto* compute = std::get_if<ComputeSyntax>(&step.node)) {
      body.emplace_back().node = Compute{add_computation(*compute)};
    } else if (const auto* store = std::get_if<StoreSyntax>(&step.node)) {
      body.emplace_back().node = make_store(*store);
    } else if (const auto* loop = std::get_if<LoopSyntax>(&step.node)) {
      body.emplace_back().node = make_loop(*loop);
    } else {
      const auto& let = std::get<DefinitionSyntax>(step.node);
      builder_.axis_list(let.axes);
      if (!lets_.emplace(let.name.text, builder_.value(let.value, {})).second) {
        diagnostics_.fail(let.name.at, "the name '" + let.name.text + "' is used twice");
      }
    }
  }
}

Loop KernelBuilder::make_loop(const LoopSyntax& syntax) {
  Loop loop;
  const std::vector<AxisId> factor = builder_.axis_list({syntax.factor});
  if (failed()) return loop;
  loop.factor = factor[0];
  if (syntax.stages < 1 || syntax.stages > 64) {
    diagnostics_.fail(syntax.factor.at,
                      "a loop has 1 to 64 stages, not " + std::to_string(syntax.stages));
  }
  loop.stages = static_cast<int>(std::clamp<int64_t>(syntax.stages, 1, 64));
  loop.bulk = syntax.bulk;
  for (const Expr& condition : syntax.trim) loop.trim.push_back(builder_.condition(condition, {}));
  add_steps(syntax.body, loop.body);
  return loop;
}

uint32_t KernelBuilder::computation(const Ident& ident) {
  if (const auto c = find_computation(ident.text)) return *c;
  std::vector<std::string> known;
  for (const Computation& c : kernel().computations) known.push_back(c.name);
  diagnostics_.fail(ident.at,
                    "no computation '" + ident.text + "' so far in kernel '" + kernel().name + "'",
                    suggestion(ident.text, known));
  return 0;
}

uint32_t KernelBuilder::add_computation(const ComputeSyntax& syntax) {
  Computation c;
  c.name = syntax.name.text;
  c.axes = builder_.axis_list(syntax.axes);
  c.value = builder_.value(syntax.value, {});
  c.storage = syntax.storage;
  c.dtype = syntax.dtype;
  c.mma = syntax.mma;
  c.mma_swap = syntax.mma_swap;
  for (const auto& [ident, count] : syntax.warps) {
    const std::vector<AxisId> factor = builder_.axis_list({ident});
    if (count < 1 || count > 1024) {
      diagnostics_.fail(ident.at,
                        "the warps along '" + ident.text + "' cannot be " + std::to_string(count));
    }
    if (!failed()) c.warps.push_back({factor[0], static_cast<int>(count)});
  }
  if (syntax.rescale) c.rescale = computation(*syntax.rescale);
  if (syntax.into) c.accumulate_into = computation(*syntax.into);
  if (find_computation(c.name) || lets_.contains(c.name)) {
    diagnostics_.fail(syntax.name.at, "two computations of kernel '" + kernel().name +
                                          "' are called '" + c.name + "'");
  }
  kernel().computations.push_back(std::move(c));
  return static_cast<uint32_t>(kernel().computations.size() - 1);
}

Store KernelBuilder::make_store(const StoreSyntax& syntax) {
  Store store;
  store.computation = computation(syntax.computation);
  if (failed()) return store;
  const auto tensor = find_tensor(graph_, syntax.tensor.text);
  if (tensor && syntax.dtype) {
    diagnostics_.fail(syntax.tensor.at, "tensor '" + syntax.tensor.text + "' is declared twice",
                      "leave its type out here");
  } else if (!tensor && !syntax.dtype) {
    std::vector<std::string> known;
    for (const DeviceTensor& t : graph_.tensors) known.push_back(t.decl.name);
    const auto guess = nearest(syntax.tensor.text, known);
    diagnostics_.fail(syntax.tensor.at, "unknown tensor '" + syntax.tensor.text + "'",
                      guess ? "did you mean '" + *guess + "'?"
                            : "to declare an intermediate tensor, give its type: -> " +
                                  syntax.tensor.text + " : f32");
  }
  if (failed()) return store;
  store.tensor = tensor ? *tensor : declare_tensor(syntax);
  if (failed()) return store;
  const TensorDecl& decl = graph_.tensors[store.tensor].decl;
  if (!syntax.index) {
    store.index = tensor_index(graph_, id_, decl);
    return store;
  }
  if (!syntax.dtype || syntax.dims) {
    if (syntax.index->size() != decl.extents.size()) {
      diagnostics_.fail(syntax.tensor.at, "tensor '" + decl.name + "' has " +
                                              std::to_string(decl.extents.size()) +
                                              " dimensions and is stored with " +
                                              std::to_string(syntax.index->size()));
    }
  } else {
    diagnostics_.fail(syntax.tensor.at, "a store with an index must give the axes of its tensor",
                      "write " + decl.name + "[...] : f32[axes]");
  }
  for (const Expr& e : *syntax.index) store.index.push_back(builder_.index(e, {}));
  return store;
}

uint32_t KernelBuilder::declare_tensor(const StoreSyntax& syntax) {
  const auto id = static_cast<uint32_t>(graph_.tensors.size());
  DeviceTensor tensor;
  tensor.decl.name = syntax.tensor.text;
  tensor.decl.dtype = *syntax.dtype;
  if (syntax.dims) {
    std::vector<AxisId> axes;
    for (const Ident& ident : *syntax.dims) {
      const auto axis = stored_axis(ident);
      if (!axis) return 0;
      axes.push_back(*axis);
    }
    set_dims(tensor.decl, axes);
    set_attributes({syntax.tensor, {}, {}, {}, {}, {}, {}, {}},
                   parameter_values(program_, diagnostics_), true, diagnostics_, tensor.decl);
  } else {
    dependent_.emplace_back(id, syntax.tensor);
  }
  graph_.tensors.push_back(std::move(tensor));
  return id;
}

// The axis that a dimension of a new tensor runs over: one of the µGraph, or a grid factor, which
// becomes one.
std::optional<AxisId> KernelBuilder::stored_axis(const Ident& ident) {
  if (const auto axis = find_axis(graph_, ident.text)) {
    if (graph_.axes[*axis].kernel == id_ || !factors_of(kernel(), *axis).empty()) return axis;
  }
  const auto factor = find_factor(ident.text);
  if (!factor) {
    unknown_factor(ident);
    return std::nullopt;
  }
  if (std::find(kernel().grid.begin(), kernel().grid.end(), *factor) == kernel().grid.end()) {
    diagnostics_.fail(
        ident.at, "factor '" + ident.text + "' is not in the grid",
        "only grid factors stay visible in what is stored; other axes are stored whole");
    return std::nullopt;
  }
  if (graph_.axes.size() == static_cast<size_t>(kMaxAxes)) {
    diagnostics_.fail(ident.at, "the µGraph has more than 64 axes", {}, ErrorCode::kUnsupported);
    return std::nullopt;
  }
  std::string name = ident.text;
  while (find_axis(graph_, name)) name += "'";
  graph_.axes.push_back({name, kernel().factors[*factor].extent, id_, *factor});
  return static_cast<AxisId>(graph_.axes.size() - 1);
}

void KernelBuilder::set_dims(TensorDecl& decl, const std::vector<AxisId>& axes) {
  for (AxisId axis : axes) {
    decl.dim_names.push_back(graph_.axes[axis].name);
    decl.dims.push_back(IndexExpr::of(axis));
    decl.extents.push_back(graph_.axes[axis].extent);
  }
}

// Tensors declared without axes get those that the stored value depends on: first the grid factors
// of axes that are otherwise reduced, then whole axes in their order.
void KernelBuilder::declare_dependent() {
  if (dependent_.empty()) return;
  const std::vector<Dependence> dependence = dependences(kernel());
  const std::vector<const Store*> stores = stores_of(kernel());
  for (const auto& [tensor, ident] : dependent_) {
    const auto at = std::find_if(stores.begin(), stores.end(),
                                 [t = tensor](const Store* s) { return s->tensor == t; });
    SUNDOG_CHECK(at != stores.end());
    const Store* store = *at;
    AxisSet present = dependence[store->computation].factors;
    for (AxisId f : kernel().computations[store->computation].axes) present.insert(f);
    std::vector<AxisId> partial, whole;
    const auto count = static_cast<AxisId>(graph_.axes.size());
    for (AxisId axis = 0; axis < count; ++axis) {
      const std::vector<AxisId> factors = factors_of(kernel(), axis);
      const auto has = [&](AxisId f) { return present.has(f); };
      if (factors.empty() || std::none_of(factors.begin(), factors.end(), has)) continue;
      if (std::all_of(factors.begin(), factors.end(), has)) {
        whole.push_back(axis);
        continue;
      }
      for (AxisId f : factors) {
        if (!has(f)) continue;
        const auto visible = stored_axis({kernel().factors[f].name, ident.at});
        if (!visible) return;
        partial.push_back(*visible);
      }
    }
    partial.insert(partial.end(), whole.begin(), whole.end());
    TensorDecl& decl = graph_.tensors[tensor].decl;
    set_dims(decl, partial);
    TensorSyntax attributes;
    attributes.name = ident;
    set_attributes(attributes, parameter_values(program_, diagnostics_), true, diagnostics_, decl);
    fill_stores(kernel().body, tensor);
  }
}

void KernelBuilder::fill_stores(std::vector<Statement>& body, uint32_t tensor) {
  for (Statement& statement : body) {
    if (auto* store = std::get_if<Store>(&statement.node)) {
      if (store->tensor == tensor) {
        store->index = tensor_index(graph_, id_, graph_.tensors[tensor].decl);
      }
    } else if (auto* loop = std::get_if<Loop>(&statement.node)) {
      fill_stores(loop->body, tensor);
    }
  }
}

void KernelBuilder::finish() {
  const MuGraph numbered = renumbered(graph_);
  kernel() = numbered.kernels[id_];
  std::vector<AxisId> keep = factors_in_use(kernel());
  if (syntax_.factors) {
    const std::vector<AxisId> listed = builder_.axis_list(*syntax_.factors);
    for (AxisId f : keep) {
      if (failed() || std::find(listed.begin(), listed.end(), f) != listed.end()) continue;
      diagnostics_.fail(syntax_.name.at, "factor '" + kernel().factors[f].name +
                                             "' is used but missing in factors(...)");
    }
    keep = listed;
  }
  if (failed()) return;
  const std::vector<AxisId> ids = keep_factors(kernel(), keep);
  for (MuAxis& axis : graph_.axes) {
    if (axis.kernel == id_) axis.factor = ids[axis.factor] == kNone ? 0 : ids[axis.factor];
  }
}

}  // namespace

std::vector<IndexExpr> tensor_index(const MuGraph& graph, uint32_t kernel,
                                    const TensorDecl& tensor) {
  std::vector<IndexExpr> result;
  for (const IndexExpr& dim : tensor.dims) {
    IndexExpr e{dim.constant, {}, dim.sizes};
    for (const auto& item : dim.axes) {
      const MuAxis& axis = graph.axes[item.axis];
      const IndexExpr along = axis.kernel == kernel ? IndexExpr::of(axis.factor)
                                                    : axis_index(graph.kernels[kernel], item.axis);
      e = e + along * item.coefficient;
    }
    result.push_back(std::move(e));
  }
  return result;
}

FactorShape factor_shape(const MuGraph& graph, const Program& program, const KernelSyntax& syntax,
                         const Ident& factor, Diagnostics& diagnostics) {
  for (const SplitSyntax& split : syntax.splits) {
    for (size_t i = 0; i < split.factors.size(); ++i) {
      if (split.factors[i].name.text != factor.text) continue;
      const auto axis = find_axis(graph, split.axis.text);
      if (!axis) break;
      const std::vector<int64_t> extents =
          split_extents(split, graph.axes[*axis].extent, parameter_values(program, diagnostics),
                        false, diagnostics);
      return {*axis, i < extents.size() ? extents[i] : 0};
    }
  }
  if (const auto axis = find_axis(graph, factor.text)) return {*axis, graph.axes[*axis].extent};
  diagnostics.fail(factor.at,
                   "kernel '" + syntax.name.text + "' has no factor '" + factor.text + "'",
                   "an axis of partial results stems from a grid factor");
  return {};
}

std::optional<AxisId> find_axis(const MuGraph& graph, std::string_view name) {
  for (size_t i = 0; i < graph.axes.size(); ++i) {
    if (graph.axes[i].name == name) return static_cast<AxisId>(i);
  }
  return std::nullopt;
}

std::optional<uint32_t> find_tensor(const MuGraph& graph, std::string_view name) {
  for (size_t i = 0; i < graph.tensors.size(); ++i) {
    if (graph.tensors[i].decl.name == name) return static_cast<uint32_t>(i);
  }
  return std::nullopt;
}

void build_kernel(MuGraph& graph, const Program& program, const KernelSyntax& syntax,
                  const std::map<AxisId, std::string>& factor_of, Diagnostics& diagnostics) {
  graph.kernels.emplace_back();
  KernelBuilder(graph, program, syntax, diagnostics).build(factor_of);
}

}  // namespace sundog::text
