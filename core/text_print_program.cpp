#include "core/text.h"
#include "core/text_print.h"
#include "core/text_print_decl.h"
#include "core/text_syntax.h"
#include "core/text_terms.h"

namespace sundog {
namespace text {
namespace {

Names program_names(const Program& program) {
  Names names;
  names.axis = [&program](AxisId axis) {
    return axis < program.axes.size() ? program.axes[axis].name : "?";
  };
  names.sized = names.axis;
  names.tensor = [&program](uint32_t tensor) { return program.inputs[tensor].name; };
  names.default_index = [&program](uint32_t tensor) { return program.inputs[tensor].dims; };
  names.computation = [](uint32_t c) { return "?" + std::to_string(c); };
  names.is_index_name = [&program](std::string_view name) {
    for (const Parameter& p : program.parameters) {
      if (p.name == name) return true;
    }
    for (const ProgramSplit& split : program.splits) {
      if (split.axis == name) return true;
    }
    return find_axis(program, name).has_value();
  };
  for (const Parameter& p : program.parameters) names.taken.insert(p.name);
  for (const Axis& axis : program.axes) names.taken.insert(axis.name);
  for (const TensorDecl& input : program.inputs) names.taken.insert(input.name);
  for (const Definition& definition : program.definitions) names.taken.insert(definition.name);
  for (const Output& output : program.outputs) names.taken.insert(output.tensor.name);
  return names;
}

// Whether the expression still gives the value: a program at other extents keeps its expressions.
bool expression_holds(const Program& program, size_t parameter) {
  const Parameter& p = program.parameters[parameter];
  if (p.expression.empty()) return false;
  Diagnostics scratch("");
  Cursor cursor(p.expression, scratch);
  const Expr e = parse_expression(cursor);
  if (scratch.failed() || !cursor.at_end()) return false;
  const auto value = integer_value(
      e,
      [&](const Ident& ident) -> std::optional<int64_t> {
        for (size_t i = 0; i < parameter; ++i) {
          if (program.parameters[i].name == ident.text) return program.parameters[i].value;
        }
        return std::nullopt;
      },
      scratch);
  return value == p.value;
}

std::string header(const Program& program) {
  std::vector<std::string> parameters;
  for (size_t i = 0; i < program.parameters.size(); ++i) {
    const Parameter& p = program.parameters[i];
    parameters.push_back(p.name + " = " +
                         (expression_holds(program, i) ? p.expression : std::to_string(p.value)));
  }
  // Axes that no parameter declares: of programs that were not read from text.
  for (const Axis& axis : program.axes) {
    bool declared = false;
    for (const Parameter& p : program.parameters) declared |= p.name == axis.name;
    for (const ProgramSplit& split : program.splits) {
      for (AxisId factor : split.factors) declared |= program.axes[factor].name == axis.name;
    }
    if (!declared) parameters.push_back(axis.name + " = " + std::to_string(axis.extent));
  }
  return "program " + program.name + "(" + join(parameters) + ") {\n";
}

std::string axes_text(const Program& program, const std::vector<AxisId>& axes) {
  std::vector<std::string> names;
  for (AxisId axis : axes) names.push_back(program.axes[axis].name);
  return "[" + join(names) + "]";
}

// Dimensions as written; without names (a program made by code) the one axis of each.
std::vector<std::string> dim_names(const Program& program, const TensorDecl& tensor) {
  if (tensor.dim_names.size() == tensor.dims.size()) return tensor.dim_names;
  const Names names = program_names(program);
  std::vector<std::string> result;
  for (const IndexExpr& dim : tensor.dims) result.push_back(index_text(dim, names));
  return result;
}

}  // namespace
}  // namespace text

std::string print(const Program& program) {
  std::string result = text::header(program);
  for (const ProgramSplit& split : program.splits) {
    std::vector<std::pair<std::string, int64_t>> factors;
    for (AxisId axis : split.factors) {
      factors.emplace_back(program.axes[axis].name, program.axes[axis].extent);
    }
    result += "  " + text::split_text(split.axis, split.extent, factors) + "\n";
  }
  for (const TensorDecl& input : program.inputs) {
    result += "  input " + text::tensor_text(input, text::dim_names(program, input)) + "\n";
  }
  text::TermPrinter printer(program.terms, text::program_names(program));
  for (const Definition& definition : program.definitions) {
    for (const std::string& line : printer.lets(definition.value)) result += "  " + line + "\n";
    // A second name for the same term: `b = a`.
    result += "  " + definition.name + text::axes_text(program, definition.axes) + " = " +
              printer.text(definition.value) + "\n";
    printer.give_name(definition.value, definition.name);
  }
  for (const Output& output : program.outputs) {
    bool named = false;
    for (const Definition& definition : program.definitions) {
      named |= definition.name == output.tensor.name && definition.value == output.value;
    }
    std::string value;
    if (!named) {
      for (const std::string& line : printer.lets(output.value)) result += "  " + line + "\n";
      value = " = " + printer.text(output.value);
    }
    result += "  output " +
              text::tensor_text(output.tensor, text::dim_names(program, output.tensor)) + value +
              "\n";
  }
  return result + "}\n";
}

std::string print_term(const Program& program, TermId term) {
  text::TermPrinter printer(program.terms, text::program_names(program));
  for (const Definition& definition : program.definitions) {
    printer.give_name(definition.value, definition.name);
  }
  return printer.short_text(term, 400, true);
}

std::string print_index(const Program& program, const IndexExpr& index) {
  return text::index_text(index, text::program_names(program));
}

}  // namespace sundog
