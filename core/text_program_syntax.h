// The syntax of program text: what parse_program reads before names get their meaning.
// NOLINT(sundog-mirror): the insides of core/text.h, tested through it
#pragma once

#include <functional>
#include <optional>
#include <variant>
#include <vector>

#include "core/text_syntax.h"

namespace sundog::text {

struct ParameterSyntax {
  Ident name;
  std::optional<Expr> value;
};
struct OutputSyntax {
  TensorSyntax tensor;
  std::optional<Expr> value;
};
struct ProgramSyntax {
  Ident name;
  std::vector<ParameterSyntax> parameters;
  std::vector<SplitSyntax> splits;
  std::vector<TensorSyntax> inputs;
  std::vector<DefinitionSyntax> definitions;
  std::vector<OutputSyntax> outputs;
};

// Statements of one kind keep their order; order between kinds means nothing.
ProgramSyntax parse_program_syntax(Cursor& cursor);

// Calls f for each name that stands in the axis list of a reduction in `e`.
void for_each_reduced(const Expr& e, const std::function<void(const Ident&)>& f);

}  // namespace sundog::text
