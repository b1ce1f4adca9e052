#include <algorithm>

#include "core/text.h"
#include "core/text_kernel.h"
#include "core/text_limits.h"
#include "core/text_suggest.h"
#include "core/text_tensor.h"
#include "core/text_terms.h"

// From the syntax of a µGraph to a MuGraph: its axes and tensors, then kernel by kernel.

namespace sundog {
namespace text {
namespace {

class MuGraphBuilder {
 public:
  MuGraphBuilder(const MuGraphSyntax& syntax, const Program& program, Diagnostics& diagnostics)
      : syntax_(syntax), program_(program), diagnostics_(diagnostics) {}

  MuGraph build() {
    graph_.name = syntax_.name.text;
    graph_.program = syntax_.program.text;
    if (graph_.program != program_.name) {
      diagnostics_.fail(syntax_.program.at, "this µGraph is of program '" + graph_.program +
                                                "', not of '" + program_.name + "'");
    }
    for (const Axis& axis : program_.axes) graph_.axes.push_back({axis.name, axis.extent});
    for (const TensorDecl& input : program_.inputs) {
      graph_.tensors.push_back({input, TensorRole::kInput});
    }
    for (const Output& output : program_.outputs) {
      graph_.tensors.push_back({output.tensor, TensorRole::kOutput});
    }
    std::vector<std::map<AxisId, std::string>> factor_of(syntax_.kernels.size());
    for (const AxisSyntax& axis : syntax_.axes) add_axis(axis, factor_of);
    for (const TensorSyntax& tensor : syntax_.tensors) add_tensor(tensor);
    for (size_t k = 0; k < syntax_.kernels.size() && !diagnostics_.failed(); ++k) {
      build_kernel(graph_, program_, syntax_.kernels[k], factor_of[k], diagnostics_);
    }
    return std::move(graph_);
  }

  // Where the kernel, computation, store or split stands that a message of check() is about.
  Place place_of(const std::string& message) const {
    for (const KernelSyntax& kernel : syntax_.kernels) {
      const std::string start = "kernel '" + kernel.name.text + "'";
      if (!message.starts_with(start)) continue;
      for (const SplitSyntax& split : kernel.splits) {
        if (message.starts_with(start + ": axis '" + split.axis.text + "'")) return split.axis.at;
      }
      const Place inside = place_in(kernel.body, message.substr(start.size()));
      return inside.line > 0 ? inside : kernel.name.at;
    }
    return syntax_.name.at;
  }

 private:
  static Place place_in(const std::vector<StepSyntax>& steps, const std::string& message) {
    for (const StepSyntax& step : steps) {
      Place place;
      if (const auto* compute = std::get_if<ComputeSyntax>(&step.node)) {
        if (message.starts_with(": computation '" + compute->name.text + "'")) {
          place = compute->name.at;
        }
      } else if (const auto* store = std::get_if<StoreSyntax>(&step.node)) {
        if (message.starts_with(": the store to tensor '" + store->tensor.text + "'")) {
          place = store->tensor.at;
        }
      } else if (const auto* loop = std::get_if<LoopSyntax>(&step.node)) {
        place = place_in(loop->body, message);
      }
      if (place.line > 0) return place;
    }
    return {};
  }

  void add_axis(const AxisSyntax& axis, std::vector<std::map<AxisId, std::string>>& factor_of) {
    if (diagnostics_.failed()) return;
    for (size_t k = 0; k < syntax_.kernels.size(); ++k) {
      if (syntax_.kernels[k].name.text != axis.kernel.text) continue;
      const FactorShape shape =
          factor_shape(graph_, program_, syntax_.kernels[k], axis.factor, diagnostics_);
      const auto id = static_cast<AxisId>(graph_.axes.size());
      if (find_axis(graph_, axis.name.text)) {
        diagnostics_.fail(axis.name.at, "the axis '" + axis.name.text + "' is declared twice");
      }
      if (graph_.axes.size() == static_cast<size_t>(kMaxAxes)) {
        diagnostics_.fail(axis.name.at, "the µGraph has more than 64 axes", {},
                          ErrorCode::kUnsupported);
      }
      if (diagnostics_.failed()) return;
      graph_.axes.push_back({axis.name.text, shape.extent, static_cast<uint32_t>(k), 0});
      factor_of[k].emplace(id, axis.factor.text);
      return;
    }
    std::vector<std::string> known;
    for (const KernelSyntax& kernel : syntax_.kernels) known.push_back(kernel.name.text);
    diagnostics_.fail(axis.kernel.at, "unknown kernel '" + axis.kernel.text + "'",
                      suggestion(axis.kernel.text, known));
  }

  void add_tensor(const TensorSyntax& syntax) {
    if (diagnostics_.failed()) return;
    DeviceTensor tensor;
    tensor.decl.name = syntax.name.text;
    tensor.decl.dtype = syntax.dtype;
    if (find_tensor(graph_, syntax.name.text)) {
      diagnostics_.fail(syntax.name.at, "two tensors are called '" + syntax.name.text + "'");
    }
    for (const Ident& dim : syntax.dims) {
      const auto axis = find_axis(graph_, dim.text);
      if (!axis) {
        std::vector<std::string> known;
        for (const MuAxis& a : graph_.axes) known.push_back(a.name);
        return diagnostics_.fail(dim.at, "unknown axis '" + dim.text + "'",
                                 suggestion(dim.text, known));
      }
      tensor.decl.dim_names.push_back(dim.text);
      tensor.decl.dims.push_back(IndexExpr::of(*axis));
      tensor.decl.extents.push_back(graph_.axes[*axis].extent);
    }
    const auto value_of = [&](const Ident& ident) -> std::optional<int64_t> {
      for (const Parameter& p : program_.parameters) {
        if (p.name == ident.text) return p.value;
      }
      diagnostics_.fail(ident.at, "unknown parameter '" + ident.text + "'");
      return std::nullopt;
    };
    set_attributes(syntax, value_of, true, diagnostics_, tensor.decl);
    graph_.tensors.push_back(std::move(tensor));
  }

  const MuGraphSyntax& syntax_;
  const Program& program_;
  Diagnostics& diagnostics_;
  MuGraph graph_;
};

}  // namespace
}  // namespace text

Result<MuGraph> parse_mugraph(std::string_view text, std::string_view file_name,
                              const Program& program) {
  text::Diagnostics diagnostics(file_name);
  text::Cursor cursor(text, diagnostics);
  const text::MuGraphSyntax syntax = text::parse_mugraph_syntax(cursor);
  if (diagnostics.failed()) return diagnostics.error();
  text::MuGraphBuilder builder(syntax, program, diagnostics);
  MuGraph graph = builder.build();
  if (diagnostics.failed()) return diagnostics.error();
  Status status = check(graph, program);
  if (status.ok()) status = text::check_limits(graph);
  if (!status.ok()) {
    Error error = status.error();
    error.position = diagnostics.position(builder.place_of(error.message));
    return error;
  }
  return graph;
}

std::optional<ProgramReference> program_reference(std::string_view text) {
  constexpr std::string_view kStart = "# program:";
  if (!text.starts_with(kStart)) return std::nullopt;
  std::string_view line = text.substr(kStart.size(), text.find('\n') - kStart.size());
  std::vector<std::string> words;
  while (true) {
    const size_t begin = line.find_first_not_of(" \t\r");
    if (begin == std::string_view::npos) break;
    const size_t end = std::min(line.find_first_of(" \t\r", begin), line.size());
    words.emplace_back(line.substr(begin, end - begin));
    line.remove_prefix(end);
  }
  if (words.empty()) return std::nullopt;
  ProgramReference result{words[0], {}};
  for (size_t i = 1; i < words.size(); ++i) {
    const size_t equal = words[i].find('=');
    if (equal == std::string::npos) return std::nullopt;
    const auto value = Number::parse(words[i].substr(equal + 1));
    if (!value || !value->is_integer() || value->exponent() != 0) return std::nullopt;
    result.defines[words[i].substr(0, equal)] = value->numerator();
  }
  return result;
}

std::string rounding_line(Rounding rounding) {
  return rounding == Rounding::kEager ? "# rounding: eager\n" : "# rounding: wide\n";
}

std::optional<Rounding> rounding_reference(std::string_view text) {
  while (text.starts_with('#')) {
    const size_t end = std::min(text.find('\n'), text.size() - 1) + 1;
    for (const Rounding rounding : {Rounding::kWide, Rounding::kEager}) {
      std::string line = rounding_line(rounding);
      line.pop_back();
      const std::string_view rest = text.substr(0, end);
      if (!rest.starts_with(line)) continue;
      if (rest.find_first_not_of(" \t\r\n", line.size()) == std::string_view::npos) return rounding;
    }
    text.remove_prefix(end);
  }
  return std::nullopt;
}

}  // namespace sundog
