#include "core/text_program_syntax.h"

namespace sundog::text {
namespace {

void parse_header(Cursor& cursor, ProgramSyntax& program) {
  if (cursor.at("ugraph")) {
    return cursor.fail_here("this is a µGraph, not a program",
                            "a program starts with: program NAME(");
  }
  if (!cursor.expect("program", "at the start")) return;
  program.name = cursor.name("of the program");
  if (!cursor.expect("(", "after the name of the program")) return;
  if (!cursor.accept(")")) {
    do {
      ParameterSyntax parameter;
      parameter.name = cursor.name("of a parameter");
      if (cursor.accept("=")) parameter.value = parse_expression(cursor);
      program.parameters.push_back(std::move(parameter));
    } while (cursor.accept(","));
    cursor.expect(")", "or ',' after a parameter");
  }
}

void parse_statement(Cursor& cursor, ProgramSyntax& program) {
  const bool named = cursor.peek(1).kind == Token::Kind::kName;
  if (cursor.accept(";")) return;
  if (cursor.at("split") && named) {
    cursor.take();
    program.splits.push_back(parse_split(cursor));
  } else if (cursor.at("input") && named) {
    cursor.take();
    program.inputs.push_back(parse_tensor(cursor, true));
  } else if (cursor.at("output") && named) {
    cursor.take();
    OutputSyntax output;
    output.tensor = parse_tensor(cursor, false);
    if (cursor.at("in") && cursor.at("[", 1)) {
      cursor.fail_here("only inputs declare a range", "remove it");
    }
    if (cursor.accept("=")) output.value = parse_expression(cursor);
    program.outputs.push_back(std::move(output));
  } else if (cursor.peek().kind == Token::Kind::kName) {
    program.definitions.push_back(parse_definition(cursor));
  } else {
    cursor.fail_here("expected input, output, split or a definition, found " +
                     describe(cursor.peek()));
  }
}

}  // namespace

void for_each_reduced(const Expr& e, const std::function<void(const Ident&)>& f) {
  if (e.kind == Expr::Kind::kName && e.has_index && e.has_args) {
    for (const Expr& axis : e.index) {
      if (axis.is_plain_name()) f({axis.text, axis.at});
    }
  }
  for (const auto* list : {&e.index, &e.args}) {
    for (const Expr& child : *list) for_each_reduced(child, f);
  }
}

ProgramSyntax parse_program_syntax(Cursor& cursor) {
  ProgramSyntax program;
  parse_header(cursor, program);
  const Place open = cursor.place();
  cursor.expect("{", "before the statements of the program");
  while (!cursor.failed() && !cursor.at("}")) {
    if (cursor.at_end()) cursor.diagnostics().fail(open, "'{' is never closed");
    parse_statement(cursor, program);
  }
  cursor.expect("}", "at the end of the program");
  if (!cursor.failed() && !cursor.at_end()) {
    cursor.fail_here("expected the end of the file after '}', found " + describe(cursor.peek()),
                     "a file holds one program");
  }
  return program;
}

}  // namespace sundog::text
