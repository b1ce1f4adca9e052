#include <algorithm>

#include "core/text.h"
#include "core/text_kernel.h"
#include "core/text_kernel_factors.h"
#include "core/text_mugraph_syntax.h"
#include "core/text_print.h"
#include "core/text_print_decl.h"
#include "core/via.h"

namespace sundog {
namespace text {
namespace {

// With `program`, its parameters may stand in indices as well.
Names kernel_names(const MuGraph& graph, uint32_t kernel_id, const Program* program) {
  const Kernel& kernel = graph.kernels[kernel_id];
  Names names;
  names.axis = [&kernel](AxisId factor) {
    return factor < kernel.factors.size() ? kernel.factors[factor].name : "?";
  };
  names.sized = [&graph](AxisId axis) {
    return axis < graph.axes.size() ? graph.axes[axis].name : "?";
  };
  names.computation = [&kernel](uint32_t c) {
    return c < kernel.computations.size() ? kernel.computations[c].name : "?";
  };
  names.tensor = [&graph, &kernel](uint32_t tensor) {
    const std::string& name = graph.tensors[tensor].decl.name;
    const bool hidden = std::any_of(kernel.computations.begin(), kernel.computations.end(),
                                    [&](const Computation& c) { return c.name == name; });
    return (hidden ? "@" : "") + name;
  };
  names.default_index = [&graph, kernel_id](uint32_t tensor) {
    return tensor_index(graph, kernel_id, graph.tensors[tensor].decl);
  };
  names.is_index_name = [&graph, &kernel, program](std::string_view name) {
    const auto named = [&](const auto& entry) { return entry.name == name; };
    if (program != nullptr &&
        std::any_of(program->parameters.begin(), program->parameters.end(), named)) {
      return true;
    }
    return std::any_of(kernel.factors.begin(), kernel.factors.end(), named) ||
           std::any_of(graph.axes.begin(), graph.axes.end(), named);
  };
  for (const Computation& c : kernel.computations) names.taken.insert(c.name);
  for (const DeviceTensor& tensor : graph.tensors) names.taken.insert(tensor.decl.name);
  for (const MuAxis& axis : graph.axes) names.taken.insert(axis.name);
  for (const Factor& factor : kernel.factors) names.taken.insert(factor.name);
  return names;
}

class KernelPrinter {
 public:
  KernelPrinter(const MuGraph& graph, uint32_t id, const Program& program)
      : graph_(graph),
        kernel_(graph.kernels[id]),
        id_(id),
        names_(kernel_names(graph, id, &program)),
        terms_(kernel_.terms, names_) {}

  std::string run() {
    header();
    splits();
    body(kernel_.body, "    ");
    return out_ + "  }\n";
  }

 private:
  std::string list(const std::vector<AxisId>& factors) const {
    std::vector<std::string> parts;
    for (AxisId f : factors) parts.push_back(kernel_.factors[f].name);
    return join(parts);
  }

  void header() {
    out_ += "  kernel " + kernel_.name + " ";
    switch (kernel_.kind) {
      case KernelKind::kGraphDefined:
        out_ += "grid(" + list(kernel_.grid) + ") warps(" + std::to_string(kernel_.warps) + ")";
        break;
      case KernelKind::kLibraryGemm:
        out_ += "library(gemm)";
        break;
    }
    if (kernel_.via != Via::kKernel) out_ += " via " + std::string(sundog::name(kernel_.via));
    std::vector<AxisId> all;
    for (size_t f = 0; f < kernel_.factors.size(); ++f) all.push_back(static_cast<AxisId>(f));
    if (all != factors_in_use(kernel_)) out_ += " factors(" + list(all) + ")";
    out_ += " {\n";
  }

  void splits() {
    for (AxisId axis = 0; axis < graph_.axes.size(); ++axis) {
      const std::vector<AxisId> factors = factors_of(kernel_, axis);
      const bool whole = factors.size() == 1 &&
                         kernel_.factors[factors[0]].name == graph_.axes[axis].name &&
                         kernel_.factors[factors[0]].extent == graph_.axes[axis].extent;
      if (factors.empty() || whole) continue;
      std::vector<std::pair<std::string, int64_t>> parts;
      for (AxisId f : factors)
        parts.emplace_back(kernel_.factors[f].name, kernel_.factors[f].extent);
      out_ += "    " + split_text(graph_.axes[axis].name, graph_.axes[axis].extent, parts) + "\n";
    }
  }

  void body(const std::vector<Statement>& statements, const std::string& indent) {
    for (const Statement& statement : statements) {
      if (const auto* compute = std::get_if<Compute>(&statement.node)) {
        computation(kernel_.computations[compute->computation], indent);
      } else if (const auto* store = std::get_if<Store>(&statement.node)) {
        out_ += indent + "store " + kernel_.computations[store->computation].name + " -> " +
                graph_.tensors[store->tensor].decl.name;
        if (store->index != tensor_index(graph_, id_, graph_.tensors[store->tensor].decl)) {
          std::vector<std::string> index;
          for (const IndexExpr& e : store->index) index.push_back(index_text(e, names_));
          out_ += "[" + join(index) + "]";
        }
        out_ += "\n";
      } else {
        const Loop& loop = std::get<Loop>(statement.node);
        out_ += indent + "loop " + kernel_.factors[loop.factor].name;
        if (loop.stages != 1 || loop.bulk) {
          out_ += " stages(" + std::to_string(loop.stages) + (loop.bulk ? ") bulk" : ")");
        }
        std::vector<std::string> trim;
        for (const IndexCondition& c : loop.trim) trim.push_back(condition_text(c, names_));
        if (!trim.empty()) out_ += " trim(" + join(trim) + ")";
        out_ += " {\n";
        body(loop.body, indent + "  ");
        out_ += indent + "}\n";
      }
    }
  }

  void computation(const Computation& c, const std::string& indent) {
    for (const std::string& line : terms_.lets(c.value)) out_ += indent + line + "\n";
    out_ += indent + c.name + "[" + list(c.axes) + "] = " + terms_.text(c.value) + " : " +
            std::string(name(c.storage)) + " " + std::string(sundog::name(c.dtype));
    if (c.mma != MmaAtom::kNoAtom) {
      out_ += " mma(" + std::string(name(c.mma)) + (c.mma_swap ? ", swap)" : ")");
    }
    if (!c.warps.empty()) {
      std::vector<std::string> parts;
      for (const WarpSplit& split : c.warps) {
        parts.push_back(kernel_.factors[split.factor].name + "/" + std::to_string(split.count));
      }
      out_ += " warps(" + join(parts) + ")";
    }
    if (c.rescale != kNone) out_ += " rescale " + kernel_.computations[c.rescale].name;
    if (c.accumulate_into != kNone) {
      out_ += " into " + kernel_.computations[c.accumulate_into].name;
    }
    out_ += "\n";
  }

  const MuGraph& graph_;
  const Kernel& kernel_;
  uint32_t id_;
  Names names_;
  TermPrinter terms_;
  std::string out_;
};

}  // namespace
}  // namespace text

std::string print(const MuGraph& graph, const Program& program) {
  std::string result = "ugraph " + graph.name + " of " + graph.program + " {\n";
  for (const MuAxis& axis : graph.axes) {
    if (axis.kernel == kNone) continue;
    const Kernel& kernel = graph.kernels[axis.kernel];
    result += "  axis " + axis.name + " = " + kernel.factors[axis.factor].name + " of " +
              kernel.name + "\n";
  }
  for (const DeviceTensor& tensor : graph.tensors) {
    if (tensor.role != TensorRole::kIntermediate) continue;
    std::vector<std::string> dims;
    for (const IndexExpr& dim : tensor.decl.dims) {
      AxisId axis = 0;
      dims.push_back(dim.is_axis(&axis) ? graph.axes[axis].name : "?");
    }
    result += "  tensor " + text::tensor_text(tensor.decl, dims) + "\n";
  }
  for (uint32_t k = 0; k < graph.kernels.size(); ++k) {
    result += text::KernelPrinter(graph, k, program).run();
  }
  return result + "}\n";
}

std::string print_term(const MuGraph& graph, uint32_t kernel, TermId term) {
  return text::TermPrinter(graph.kernels[kernel].terms, text::kernel_names(graph, kernel, nullptr))
      .short_text(term, 400);
}

std::string print_index(const MuGraph& graph, uint32_t kernel, const IndexExpr& index) {
  return text::index_text(index, text::kernel_names(graph, kernel, nullptr));
}

}  // namespace sundog
