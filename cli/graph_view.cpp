#include "cli/graph_view.h"

#include <algorithm>
#include <map>
#include <set>

#include "core/text.h"
#include "core/via.h"

namespace sundog::cli {
namespace {

std::string in_quotes(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    if (c == '\n') {
      result += "\\l";
    } else {
      result += c;
    }
  }
  return result + "\"";
}

std::string shape_text(const TensorDecl& tensor) {
  std::string text(name(tensor.dtype));
  text += "[";
  for (size_t d = 0; d < tensor.extents.size(); ++d) {
    text += (d == 0 ? "" : ", ");
    if (d < tensor.dim_names.size()) text += tensor.dim_names[d] + "=";
    text += std::to_string(tensor.extents[d]);
  }
  return text + "]";
}

// Leaves of a computation.
struct Reads {
  std::set<uint32_t> tensors, computations;
};

Reads reads_of(const Kernel& kernel, const Computation& computation) {
  Reads reads;
  const TermId root[] = {computation.value};
  for (const TermId id : reachable(kernel.terms, root)) {
    if (const auto* input = std::get_if<InputTerm>(&kernel.terms[id])) {
      reads.tensors.insert(input->tensor);
    } else if (const auto* local = std::get_if<LocalTerm>(&kernel.terms[id])) {
      reads.computations.insert(local->computation);
    }
  }
  return reads;
}

template <class Visit>
void for_each_store(const std::vector<Statement>& body, Visit visit) {
  for (const Statement& statement : body) {
    if (const auto* store = std::get_if<Store>(&statement.node)) {
      visit(*store);
    } else if (const auto* loop = std::get_if<Loop>(&statement.node)) {
      for_each_store(loop->body, visit);
    }
  }
}

template <class Visit>
void for_each_loop(const std::vector<Statement>& body, Visit visit) {
  for (const Statement& statement : body) {
    if (const auto* loop = std::get_if<Loop>(&statement.node)) {
      visit(*loop);
      for_each_loop(loop->body, visit);
    }
  }
}

std::string grid_text(const Kernel& kernel) {
  std::string text;
  for (const AxisId factor : kernel.grid) {
    text += (text.empty() ? "" : " x ") + std::to_string(kernel.factors[factor].extent);
  }
  return text.empty() ? "1" : text;
}

// "1 block", "4 x 16 blocks".
std::string blocks_text(const Kernel& kernel) {
  const std::string text = grid_text(kernel);
  return text + (text == "1" ? " block" : " blocks");
}

// The term of a computation without its program's long names; computations and tensors by name.
std::string term_text(const MuGraph& graph, uint32_t kernel, const Computation& computation) {
  std::string text = print_term(graph, kernel, computation.value);
  if (text.size() > 90) text = text.substr(0, 87) + "...";
  return text;
}

std::string via_text(const Kernel& kernel) {
  return kernel.via == Via::kKernel ? "" : " via " + std::string(name(kernel.via));
}

// "4 x 16 blocks, 8 warps via last_block".
std::string place_text(const Kernel& kernel) {
  if (kernel.kind == KernelKind::kLibraryGemm) return "library gemm";
  return blocks_text(kernel) + ", " + std::to_string(kernel.warps) +
         (kernel.warps == 1 ? " warp" : " warps") + via_text(kernel);
}

// "4 x 16 blocks of 256".
std::string threads_text(const Kernel& kernel) {
  if (kernel.kind == KernelKind::kLibraryGemm) return "library gemm";
  return blocks_text(kernel) + " of " + std::to_string(32 * kernel.warps);
}

}  // namespace

std::string escaped_xml(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '<') {
      result += "&lt;";
    } else if (c == '>') {
      result += "&gt;";
    } else if (c == '&') {
      result += "&amp;";
    } else if (c == '"') {
      result += "&quot;";
    } else {
      result += c;
    }
  }
  return result;
}

std::string one_line(const MuGraph& graph) {
  const int launches = launch_count(graph);
  std::string text = std::to_string(launches) + (launches == 1 ? " kernel: " : " kernels: ");
  for (size_t k = 0; k < graph.kernels.size(); ++k) {
    const Kernel& kernel = graph.kernels[k];
    if (k > 0) text += " -> ";
    text += kernel.name + "[" + place_text(kernel);
    for_each_loop(kernel.body, [&](const Loop& loop) {
      text += ", loop " + kernel.factors[loop.factor].name + " " +
              std::to_string(kernel.factors[loop.factor].extent);
    });
    text += "]";
  }
  return text;
}

std::string launch_text(const MuGraph& graph) {
  std::string text;
  for (const Kernel& kernel : graph.kernels) {
    if (kernel.via != Via::kKernel) continue;
    text += (text.empty() ? "" : ", ") + threads_text(kernel);
  }
  return text;
}

std::string dot(const MuGraph& graph, const Program&) {
  std::string text = "digraph " + in_quotes(graph.name) +
                     " {\n  rankdir=TB; node [fontname=\"monospace\", fontsize=10];\n";
  for (size_t t = 0; t < graph.tensors.size(); ++t) {
    const DeviceTensor& tensor = graph.tensors[t];
    const char* colour = tensor.role == TensorRole::kInput    ? "lightblue"
                         : tensor.role == TensorRole::kOutput ? "palegreen"
                                                              : "lightgrey";
    text += "  t" + std::to_string(t) + " [shape=box, style=filled, fillcolor=" + colour +
            ", label=" + in_quotes(tensor.decl.name + "\n" + shape_text(tensor.decl) + "\n") +
            "];\n";
  }
  for (size_t k = 0; k < graph.kernels.size(); ++k) {
    const Kernel& kernel = graph.kernels[k];
    const std::string prefix = "k" + std::to_string(k) + "c";
    text += "  subgraph cluster" + std::to_string(k) +
            " {\n    label=" + in_quotes(kernel.name + ": " + place_text(kernel)) + ";\n";
    for (size_t c = 0; c < kernel.computations.size(); ++c) {
      const Computation& computation = kernel.computations[c];
      const bool shared = computation.storage == Storage::kShared;
      text +=
          "    " + prefix + std::to_string(c) + " [shape=" + (shared ? "box3d" : "ellipse") +
          ", label=" +
          in_quotes(computation.name + " = " +
                    term_text(graph, static_cast<uint32_t>(k), computation) + "\n" +
                    (shared ? "shared " : "reg ") + std::string(name(computation.dtype)) + "\n") +
          "];\n";
    }
    text += "  }\n";
    for (size_t c = 0; c < kernel.computations.size(); ++c) {
      const Reads reads = reads_of(kernel, kernel.computations[c]);
      const std::string self = prefix + std::to_string(c);
      for (const uint32_t t : reads.tensors)
        text += "  t" + std::to_string(t) + " -> " + self + ";\n";
      for (const uint32_t from : reads.computations) {
        text += "  " + prefix + std::to_string(from) + " -> " + self + ";\n";
      }
    }
    for_each_store(kernel.body, [&](const Store& store) {
      text += "  " + prefix + std::to_string(store.computation) + " -> t" +
              std::to_string(store.tensor) + ";\n";
    });
  }
  return text + "}\n";
}

std::string dot(const Program& program) {
  std::string text = "digraph " + in_quotes(program.name) +
                     " {\n  rankdir=TB; node [fontname=\"monospace\", fontsize=10];\n";
  std::vector<TermId> roots;
  for (const Output& output : program.outputs) roots.push_back(output.value);
  std::map<TermId, std::string> names;
  for (const Definition& definition : program.definitions)
    names[definition.value] = definition.name;
  for (const TermId id : reachable(program.terms, roots)) {
    const std::string node = "n" + std::to_string(id);
    const bool input = std::holds_alternative<InputTerm>(program.terms[id]);
    const auto named = names.find(id);
    const std::string label =
        (named == names.end() ? "" : named->second + " = ") + print_term(program, id);
    text += "  " + node + " [shape=" + (input ? "box" : "ellipse") +
            ", label=" + in_quotes(label.size() > 60 ? label.substr(0, 57) + "..." : label) +
            "];\n";
    for (const TermId operand : operands(program.terms[id])) {
      text += "  n" + std::to_string(operand) + " -> " + node + ";\n";
    }
  }
  for (const Output& output : program.outputs) {
    text +=
        "  " + in_quotes(output.tensor.name) + " [shape=box, style=filled, fillcolor=palegreen];\n";
    text += "  n" + std::to_string(output.value) + " -> " + in_quotes(output.tensor.name) + ";\n";
  }
  return text + "}\n";
}

// One box a kernel with a line for each of its computations, and the tensors that it reads on the
// left and writes on the right.
std::string svg(const MuGraph& graph, const Program&) {
  constexpr int kLine = 18, kLeft = 200, kWidth = 720, kRight = 200, kPad = 12;
  std::string shapes;
  int y = kPad;
  const auto text_at = [&](int x, int at, const std::string& text, const char* style) {
    shapes += "<text x=\"" + std::to_string(x) + "\" y=\"" + std::to_string(at) + "\" class=\"" +
              style + "\">" + escaped_xml(text) + "</text>\n";
  };
  const auto arrow = [&](int from, int to, int at) {
    shapes += "<line x1=\"" + std::to_string(from) + "\" y1=\"" + std::to_string(at) + "\" x2=\"" +
              std::to_string(to) + "\" y2=\"" + std::to_string(at) + "\" class=\"a\"/>\n";
  };
  for (size_t k = 0; k < graph.kernels.size(); ++k) {
    const Kernel& kernel = graph.kernels[k];
    std::set<uint32_t> read, written;
    for (const Computation& computation : kernel.computations) {
      read.merge(reads_of(kernel, computation).tensors);
    }
    for_each_store(kernel.body, [&](const Store& store) { written.insert(store.tensor); });
    const auto lines = static_cast<int>(
        std::max({kernel.computations.size() + 1, read.size() + 1, written.size() + 1}));
    const int height = lines * kLine + 2 * kPad;
    shapes += "<rect x=\"" + std::to_string(kLeft) + "\" y=\"" + std::to_string(y) + "\" width=\"" +
              std::to_string(kWidth) + "\" height=\"" + std::to_string(height) +
              "\" rx=\"6\" class=\"k\"/>\n";
    int at = y + kPad + kLine - 4;
    text_at(kLeft + kPad, at,
            kernel.name + ": " + threads_text(kernel) +
                (kernel.kind == KernelKind::kGraphDefined ? " threads" : "") + via_text(kernel),
            "h");
    for (const Computation& computation : kernel.computations) {
      at += kLine;
      const bool shared = computation.storage == Storage::kShared;
      text_at(kLeft + kPad, at,
              computation.name + " = " + term_text(graph, static_cast<uint32_t>(k), computation),
              shared ? "s" : "r");
    }
    const auto list = [&](const std::set<uint32_t>& tensors, bool left) {
      int line = y + kPad + 2 * kLine - 4;
      for (const uint32_t t : tensors) {
        text_at(left ? kPad : kLeft + kWidth + 40, line, graph.tensors[t].decl.name, "t");
        left ? arrow(kLeft - 40, kLeft - 4, line - 4)
             : arrow(kLeft + kWidth + 2, kLeft + kWidth + 34, line - 4);
        line += kLine;
      }
    };
    list(read, true);
    list(written, false);
    y += height + kPad;
  }
  const std::string size = std::to_string(kLeft + kWidth + kRight) + " " + std::to_string(y);
  return "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " + size +
         "\" role=\"img\">\n<style>text{font:13px monospace;fill:#222}.h{font-weight:bold}"
         ".s{fill:#7a3e00}.t{fill:#004a7a}.k{fill:#f7f7f4;stroke:#888}"
         ".a{stroke:#888;marker-end:url(#e)}</style>\n<defs><marker id=\"e\" markerWidth=\"8\" "
         "markerHeight=\"8\" refX=\"6\" refY=\"3\" orient=\"auto\"><path d=\"M0,0 L6,3 L0,6 z\" "
         "fill=\"#888\"/></marker></defs>\n" +
         shapes + "</svg>\n";
}

}  // namespace sundog::cli
