// From inferred axes to program text.  A value that is read once, along its own axes, is written
// where it is read; any other becomes a definition, since only a definition can be read elsewhere.
// Text and not terms, because the text is what a person sees in a repro, and its reader checks it
// once more.
#include <algorithm>
#include <cctype>
#include <functional>
#include <optional>
#include <set>

#include "core/graph.pb.h"
#include "core/number.h"
#include "core/proto.h"
#include "core/text.h"
#include "frontend/coalesce.h"
#include "frontend/inference.h"

namespace sundog::frontend {
namespace {

constexpr size_t kLongExpression = 300;

// A condition: a relation of two texts, or conditions joined.
struct Condition {
  enum class Kind { kRelation, kAnd, kOr, kNot } kind = Kind::kRelation;
  std::string text;
  std::vector<Condition> parts;
};

struct Written {
  std::string text;                   // an atom or a text in brackets
  std::optional<std::string> affine;  // the same as an index expression, where it is one
  std::optional<Condition> condition;
};

class Writer {
 public:
  Writer(const Graph& graph, Inference inference)
      : graph_(graph), in_(std::move(inference)), written_(in_.values.size()) {}

  Result<std::string> write() {
    SUNDOG_RETURN_IF_ERROR(align_renamed());
    runs_ = coalesce(graph_, in_);
    for (const GraphTensor& input : graph_.inputs) take_name(input.name, input_names_);
    for (const GraphOutput& output : graph_.outputs) take_name(output.tensor.name, output_names_);
    name_axes();
    std::string inputs, outputs;
    for (size_t i = 0; i < graph_.inputs.size(); ++i) {
      written_[i].text = input_names_[i];
      inputs += "  input " + input_names_[i] + ": " +
                declared(graph_.inputs[i], in_.values[i].dims) + "\n";
    }
    for (size_t v = graph_.inputs.size(); v < in_.values.size(); ++v) {
      const Status status = write_value(v);
      if (status.ok()) continue;
      const GraphNode& node = graph_.nodes[static_cast<size_t>(in_.values[v].node)];
      Error error = status.error();
      error.message = (node.label.empty() ? node.op : node.label) + ": " + error.message;
      return error;
    }
    for (size_t i = 0; i < graph_.outputs.size(); ++i) {
      const GraphOutput& output = graph_.outputs[i];
      const size_t v = in_.by_name.at(output.value);
      if (in_.values[v].condition)
        return unsupported("output " + output.tensor.name + " is a condition");
      outputs += "  output " + output_names_[i] + ": " +
                 declared(output.tensor, in_.values[v].dims) + " = " + written_[v].text + "\n";
    }
    std::string header = "program " + word(graph_.name) + "(";
    for (size_t i = 0; i < axis_order_.size(); ++i) {
      header += (i == 0 ? "" : ", ") + axis_names_[axis_order_[i]] + " = " +
                std::to_string(in_.axes.extent(axis_order_[i]));
    }
    return header + ") {\n" + inputs + definitions_ + outputs + "}\n";
  }

 private:
  // Where a renamed reader's axes are cut otherwise than the value's own, both are cut.
  Status align_renamed() {
    for (bool changed = true; changed;) {
      changed = false;
      for (const Value& value : in_.values) {
        for (const Access& access : value.operands) {
          if (!access.renamed) continue;
          const Dims& own = in_.values[access.value].dims;
          for (size_t d = 0; d < own.size(); ++d) {
            if (static_cast<int>(d) == access.dim) continue;
            Result<bool> cut = in_.axes.align(own[d], access.dims[d]);
            if (!cut.ok()) return cut.error();
            changed = changed || *cut;
          }
        }
      }
    }
    return {};
  }

  static std::string word(const std::string& name) {
    std::string result;
    for (const char c : name) {
      result += std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' ? c : '_';
    }
    if (result.empty() || std::isdigit(static_cast<unsigned char>(result[0])) != 0) {
      result.insert(0, "t");
    }
    return result;
  }

  std::string fresh(const std::string& wanted) {
    std::string name = wanted;
    for (int number = 1; !taken_.insert(name).second; ++number) {
      name = wanted + "_" + std::to_string(number);
    }
    return name;
  }

  void take_name(const std::string& wanted, std::vector<std::string>& names) {
    names.push_back(fresh(word(wanted)));
  }

  void name_axes() {
    const auto name_all = [&](const Dims& dims) {
      for (const Dim& dim : dims) {
        for (const AxisVar axis : shown(dim)) {
          if (axis_names_.count(axis) != 0) continue;
          std::string name;
          do {
            const int number = next_axis_++;
            name = std::string(1, static_cast<char>('a' + number % 26));
            if (number >= 26) name += std::to_string(number / 26);
          } while (!taken_.insert(name).second);
          axis_names_[axis] = name;
          axis_order_.push_back(axis);
        }
      }
    };
    for (const Value& value : in_.values) {
      name_all(value.dims);
      for (const Access& access : value.operands) name_all(access.dims);
      name_all({value.reduced});
    }
  }

  Dim shown(const Dim& dim) const { return runs_.shown(in_.axes.resolved(dim)); }

  Dim leaves(const Dims& dims) const {
    Dim out;
    for (const Dim& dim : dims) {
      const Dim axes = shown(dim);
      out.insert(out.end(), axes.begin(), axes.end());
    }
    return out;
  }

  std::string names(const Dim& axes) const {
    std::string text;
    for (size_t i = 0; i < axes.size(); ++i) text += (i == 0 ? "" : ", ") + axis_names_.at(axes[i]);
    return text;
  }

  // The index along a list of axes, outer to inner.
  std::string index_text(const Dim& dim) const {
    const Dim axes = shown(dim);
    std::string text;
    int64_t stride = 1;
    for (size_t i = axes.size(); i-- > 0;) {
      const std::string factor = stride == 1 ? "" : std::to_string(stride) + " * ";
      const std::string term = factor + axis_names_.at(axes[i]);
      text = text.empty() ? term : term + " + " + text;
      stride *= in_.axes.extent(axes[i]);
    }
    return text.empty() ? "0" : text;
  }

  // A tensor as program text declares it: a dimension for each axis.
  std::string declared(const GraphTensor& tensor, const Dims& dims) const {
    const std::vector<int64_t> strides = axis_strides(tensor, dims, in_.axes);
    const Dim axes = leaves(dims);
    std::vector<int64_t> factored;
    size_t at = 0;
    for (const Dim& dim : dims) {
      for (const AxisVar axis : in_.axes.resolved(dim)) {
        if (runs_.others.count(axis) != 0) factored.pop_back();  // the last of a run counts
        factored.push_back(strides[at++]);
      }
    }
    std::string text = std::string(name(tensor.dtype)) + "[" + names(axes) + "]", listed;
    bool plain = true;
    int64_t expected = 1;
    for (size_t i = axes.size(); i-- > 0;) {
      plain = plain && factored[i] == expected;
      expected *= in_.axes.extent(axes[i]);
      listed = std::to_string(factored[i]) + (listed.empty() ? "" : ", " + listed);
    }
    if (!plain) text += " stride(" + listed + ")";
    if (tensor.offset != 0) text += " offset " + std::to_string(tensor.offset);
    if (tensor.alignment > 0 && tensor.alignment != 16) {
      text += " align " + std::to_string(tensor.alignment);
    }
    return text;
  }

  // The index at which an access reads the dimension that it moves.
  std::string moved_index(const Access& access) const {
    std::string text;
    const auto add = [&](const Dim& axes, int64_t step) {
      if (shown(axes).empty()) return;
      std::string term = index_text(axes);
      if (step != 1) term = std::to_string(step) + " * (" + term + ")";
      text += (text.empty() ? "" : " + ") + term;
    };
    add(access.along, access.step);
    add(access.window, access.spread);
    if (text.empty()) return std::to_string(access.first);
    if (access.first > 0) text += " + " + std::to_string(access.first);
    if (access.first < 0) text += " - " + std::to_string(-access.first);
    return text;
  }

  // An element of a window, or the number outside, asked for only where the window sticks out.
  std::string windowed(const Value& value, const std::string& inside,
                       const std::string& outside) const {
    const Access& access = value.operands[0];
    if (access.dim < 0) return inside;
    const auto d = static_cast<size_t>(access.dim);
    const int64_t extent = in_.values[access.value].extents[d];
    const int64_t last = access.first + (value.extents[d] - 1) * access.step +
                         (value.extents.back() - 1) * access.spread;
    const std::string index = moved_index(access);
    std::string text = inside;
    if (last >= extent) {
      text =
          "select(" + index + " < " + std::to_string(extent) + ", " + text + ", " + outside + ")";
    }
    if (access.first < 0) text = "select(" + index + " >= 0, " + text + ", " + outside + ")";
    return text;
  }

  // Makes sure that a value can be indexed: an input, or a definition.
  std::string defined(size_t v) {
    Written& written = written_[v];
    if (v < graph_.inputs.size() || defined_.count(v) != 0) return written.text;
    const std::string name = fresh("v" + std::to_string(v - graph_.inputs.size()));
    definitions_ +=
        "  " + name + "[" + names(leaves(in_.values[v].dims)) + "] = " + written.text + "\n";
    written.text = name;
    defined_.insert(v);
    return name;
  }

  Result<std::string> read(const Access& access) {
    if (!access.renamed && access.dim < 0) return written_[access.value].text;
    const std::string name = defined(access.value);
    const Dims& own = in_.values[access.value].dims;
    std::string text;
    const auto add = [&](const std::string& index) { text += (text.empty() ? "" : ", ") + index; };
    for (size_t d = 0; d < own.size(); ++d) {
      if (static_cast<int>(d) != access.dim) {
        for (const AxisVar axis : leaves({access.dims[d]})) add(axis_names_.at(axis));
        continue;
      }
      if (access.outer.empty()) continue;
      if (shown(access.outer).size() != 1) {
        return unsupported("a slice through a dimension that is also viewed as several");
      }
      add(moved_index(access));
      for (const AxisVar axis : leaves({access.inner})) add(axis_names_.at(axis));
    }
    return text.empty() ? name : name + "[" + text + "]";
  }

  Status write_value(size_t v);
  Result<std::string> expression(const GraphNode& node, const Value& value,
                                 const std::vector<std::string>& operands);
  std::string select(const Condition& condition, const std::string& then,
                     const std::string& otherwise) const;
  Condition condition_of(const GraphNode& node, const Value& value,
                         const std::vector<std::string>& operands) const;

  const Graph& graph_;
  Inference in_;
  Coalesced runs_;
  std::vector<Written> written_;
  std::set<std::string> taken_ = {"inf", "size", "index", "value", "select", "ratio", "in", "let"};
  std::set<size_t> defined_;
  std::vector<std::string> input_names_, output_names_;
  std::map<AxisVar, std::string> axis_names_;
  std::vector<AxisVar> axis_order_;
  int next_axis_ = 0;
  std::string definitions_;
};

std::string Writer::select(const Condition& condition, const std::string& then,
                           const std::string& otherwise) const {
  switch (condition.kind) {
    case Condition::Kind::kRelation:
      return "select(" + condition.text + ", " + then + ", " + otherwise + ")";
    case Condition::Kind::kAnd:
      return select(condition.parts[0], select(condition.parts[1], then, otherwise), otherwise);
    case Condition::Kind::kOr:
      return select(condition.parts[0], then, select(condition.parts[1], then, otherwise));
    case Condition::Kind::kNot:
      return select(condition.parts[0], otherwise, then);
  }
  return {};
}

Condition Writer::condition_of(const GraphNode& node, const Value& value,
                               const std::vector<std::string>& operands) const {
  Condition result;
  if (node.op == "and" || node.op == "or" || node.op == "not") {
    result.kind = node.op == "and"  ? Condition::Kind::kAnd
                  : node.op == "or" ? Condition::Kind::kOr
                                    : Condition::Kind::kNot;
    for (const Access& access : value.operands) {
      result.parts.push_back(*written_[access.value].condition);
    }
    return result;
  }
  const std::string relation = node.op == "less"         ? " < "
                               : node.op == "less_equal" ? " <= "
                               : node.op == "equal"      ? " == "
                                                         : " != ";
  const auto& left = written_[value.operands[0].value].affine;
  const auto& right = written_[value.operands[1].value].affine;
  const bool own = !value.operands[0].renamed && !value.operands[1].renamed;
  result.text =
      left && right && own ? *left + relation + *right : operands[0] + relation + operands[1];
  return result;
}

Result<std::string> Writer::expression(const GraphNode& node, const Value& value,
                                       const std::vector<std::string>& operands) {
  const auto summed = [&](const char* kind, const std::string& inside) {
    const Dim axes = leaves({value.reduced});
    return axes.empty() ? inside : std::string(kind) + "[" + names(axes) + "](" + inside + ")";
  };
  const std::string& op = node.op;
  if (op == "contract") {
    std::string product;
    for (const std::string& operand : operands) product += (product.empty() ? "" : " * ") + operand;
    return value.reduced.empty() ? "(" + product + ")" : summed("sum", product);
  }
  if (op == "sum") return summed("sum", operands[0]);
  if (op == "reduce_max") return summed("max", operands[0]);
  if (op == "reshape" || op == "expand" || op == "permute" || op == "slice") return operands[0];
  if (op == "window") return windowed(value, operands[0], node.numbers[0]);
  if (op == "concat" && value.part >= 0) {
    std::string text = operands.back();
    for (size_t i = operands.size() - 1; i-- > 0;) {
      text = "select(" + index_text({value.part}) + " < " + std::to_string(i + 1) + ", " +
             operands[i] + ", " + text + ")";
    }
    return text;
  }
  if (op == "concat") {
    std::string text = operands.back();
    int64_t end = 0;
    std::vector<int64_t> ends;
    for (const Access& access : value.operands) {
      end += in_.values[access.value].extents[static_cast<size_t>(access.dim)];
      ends.push_back(end);
    }
    for (size_t i = operands.size() - 1; i-- > 0;) {
      text = "select(" + index_text(value.operands[i].along) + " < " + std::to_string(ends[i]) +
             ", " + operands[i] + ", " + text + ")";
    }
    return text;
  }
  const auto infix = [&](const char* symbol) {
    return "(" + operands[0] + " " + symbol + " " + operands[1] + ")";
  };
  if (op == "add") return infix("+");
  if (op == "sub") return infix("-");
  if (op == "mul") return infix("*");
  if (op == "div") return infix("/");
  if (op == "neg") return "(-" + operands[0] + ")";
  std::string text = op + "(";
  for (size_t i = 0; i < operands.size(); ++i) text += (i == 0 ? "" : ", ") + operands[i];
  for (const std::string& number : node.numbers) text += ", " + number;
  if (!node.text.empty()) text += ", " + node.text;
  return text + ")";
}

Status Writer::write_value(size_t v) {
  const Value& value = in_.values[v];
  const GraphNode& node = graph_.nodes[static_cast<size_t>(value.node)];
  Written& written = written_[v];
  std::vector<std::string> operands;
  const bool is_where = node.op == "where";
  for (size_t i = 0; i < value.operands.size(); ++i) {
    if (in_.values[value.operands[i].value].condition) {
      operands.emplace_back();
      continue;
    }
    // In a condition joined of several the values stand more than once.
    if (is_where && i > 0) defined(value.operands[i].value);
    Result<std::string> text = read(value.operands[i]);
    if (!text.ok()) return text.error();
    operands.push_back(std::move(*text));
  }
  if (node.op == "constant") {
    const std::string& number = node.numbers[0];
    const bool whole = number.find_first_not_of("-0123456789") == std::string::npos;
    if (whole) written.affine = number;
    written.text = number[0] == '-' ? "(" + number + ")" : number;
    defined_.insert(v);
    return {};
  }
  if (node.op == "iota") {
    written.affine = index_text(value.dims[static_cast<size_t>(node.integers[0])]);
    written.text = "index(" + *written.affine + ")";
    return {};
  }
  if (value.condition) {
    written.condition = condition_of(node, value, operands);
    return {};
  }
  if (is_where) {
    const auto& condition = written_[value.operands[0].value].condition;
    if (!condition) return bad_input("where asks a value that is no condition");
    written.text = select(*condition, operands[1], operands[2]);
  } else {
    Result<std::string> text = expression(node, value, operands);
    if (!text.ok()) return text.error();
    written.text = std::move(*text);
  }
  const bool own = std::none_of(value.operands.begin(), value.operands.end(),
                                [](const Access& access) { return access.renamed; });
  if (own && (node.op == "add" || node.op == "sub" || node.op == "mul")) {
    const auto &a = written_[value.operands[0].value].affine,
               &b = written_[value.operands[1].value].affine;
    const auto constant = [&](size_t i) {
      return in_.values[value.operands[i].value].dims.empty();
    };
    if (a && b && (node.op != "mul" || constant(0) || constant(1))) {
      const char* symbol = node.op == "add" ? " + " : node.op == "sub" ? " - " : " * ";
      written.affine = "((" + *a + ")" + symbol + "(" + *b + "))";
    }
  }
  if (own && (node.op == "reshape" || node.op == "expand") &&
      in_.values[value.operands[0].value].uses) {
    written.affine = written_[value.operands[0].value].affine;
  }
  if (value.uses > 1 || written.text.size() > kLongExpression) defined(v);
  return {};
}

}  // namespace

Result<std::string> program_text(const Graph& graph) {
  // Parts as axes where that works everywhere; else as ranges of one axis.
  Result<std::string> text = bad_input("no attempt");
  for (const Parts parts : {Parts::kAxes, Parts::kRanges}) {
    Result<Inference> inference = infer_axes(graph, parts);
    text = inference.ok() ? Writer(graph, std::move(*inference)).write()
                          : Result<std::string>(inference.error());
    if (text.ok() || text.error().code != ErrorCode::kUnsupported) break;
  }
  return text;
}

Result<Program> program_of(const Graph& graph) {
  const Result<std::string> text = program_text(graph);
  if (!text.ok()) return text.error();
  return parse_program(*text, graph.name);
}

Result<Graph> parse_graph(std::string_view bytes) {
  proto::TensorGraph message;
  if (!parse_message(bytes, &message)) return bad_input("the bytes are no message TensorGraph");
  Graph graph;
  graph.name = message.name();
  const auto tensor = [](const proto::TensorGraph::Tensor& from) -> Result<GraphTensor> {
    const std::optional<DType> dtype = parse_dtype(from.dtype());
    if (!dtype) return unsupported("tensor " + from.name() + " has the type " + from.dtype());
    GraphTensor to{from.name(), *dtype, {}, {}, from.offset(), from.alignment()};
    to.extents.assign(from.extents().begin(), from.extents().end());
    to.strides.assign(from.strides().begin(), from.strides().end());
    if (to.alignment == 0) to.alignment = 16;
    return to;
  };
  for (const auto& input : message.inputs()) {
    Result<GraphTensor> read = tensor(input);
    if (!read.ok()) return read.error();
    graph.inputs.push_back(std::move(*read));
  }
  for (const auto& from : message.nodes()) {
    GraphNode& node = graph.nodes.emplace_back();
    node.name = from.name();
    node.op = from.op();
    node.inputs.assign(from.inputs().begin(), from.inputs().end());
    node.integers.assign(from.integers().begin(), from.integers().end());
    for (const std::string& number : from.numbers()) {
      if (!Number::parse(number) && number != "inf" && number != "-inf") {
        return bad_input("node " + from.name() + " has the number '" + number + "'");
      }
      node.numbers.push_back(number);
    }
    if (node.op == "cast" && !parse_dtype(from.text()))
      return unsupported("a cast to " + from.text());
    node.text = from.text();
    node.label = from.label();
  }
  for (const auto& from : message.outputs()) {
    Result<GraphTensor> read = tensor(from.tensor());
    if (!read.ok()) return read.error();
    graph.outputs.push_back({from.value(), std::move(*read)});
  }
  return graph;
}

}  // namespace sundog::frontend
