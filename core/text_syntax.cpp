#include "core/text_syntax.h"

#include <algorithm>

#include "core/number.h"
#include "core/text_limits.h"
#include "core/text_suggest.h"

// A recursive descent parser.  After the first error every function returns at once with whatever
// it has: callers need not ask, but loops must (`while (!cursor.failed() && ...)`).

namespace sundog::text {
namespace {

void too_deep(Cursor& cursor, Place at) {
  cursor.diagnostics().fail(
      at, "the expression is nested deeper than " + std::to_string(kMaxDepth) + " levels",
      "give parts of it names of their own");
}

void too_long(Cursor& cursor, Place at) {
  cursor.diagnostics().fail(
      at, "the expression is a chain of more than " + std::to_string(kMaxTermDepth) + " operators",
      "parentheses around halves of it make it half as long");
}

bool is_relation(const Token& token) {
  static constexpr std::string_view kRelations[] = {"<", "<=", ">", ">=", "==", "!="};
  return token.kind == Token::Kind::kSymbol &&
         std::find(std::begin(kRelations), std::end(kRelations), token.text) !=
             std::end(kRelations);
}

// What other languages put behind an expression that is no argument.
void refuse_other_operators(Cursor& cursor) {
  if (cursor.failed()) return;
  if (is_relation(cursor.peek())) cursor.fail_here(kNoValue, kWhereConditionsStand);
  if (cursor.at("@")) {
    cursor.fail_here("there is no operator '@'", "a matrix product is a sum: sum[k](x * w)");
  }
}

class ExpressionParser {
 public:
  explicit ExpressionParser(Cursor& cursor) : cursor_(cursor) {}

  Expr sum() {
    Expr left = product();
    while (!cursor_.failed() && (cursor_.at("+") || cursor_.at("-"))) {
      left = binary(std::move(left), &ExpressionParser::product);
    }
    return left;
  }

 private:
  Expr product() {
    Expr left = unary();
    while (!cursor_.failed() && (cursor_.at("*") || cursor_.at("/"))) {
      left = binary(std::move(left), &ExpressionParser::unary);
    }
    return left;
  }

  Expr unary() {
    if (!cursor_.at("-")) return power();
    Expr result;
    result.kind = Expr::Kind::kNegate;
    result.at = cursor_.take().at;
    const Cursor::Nesting nesting(cursor_);
    if (!nesting.fits()) return result;
    result.args.push_back(unary());
    return closed(std::move(result));
  }

  Expr power() {
    Expr base = primary();
    if (cursor_.failed() || !cursor_.at("^")) return base;
    const Cursor::Nesting nesting(cursor_);
    return nesting.fits() ? binary(std::move(base), &ExpressionParser::unary) : base;
  }

  Expr binary(Expr left, Expr (ExpressionParser::*operand)()) {
    Expr result;
    result.kind = Expr::Kind::kBinary;
    const Token token = cursor_.take();
    result.at = token.at;
    result.text = token.text;
    result.args.push_back(std::move(left));
    result.args.push_back((this->*operand)());
    return closed(std::move(result));
  }

  Expr primary() {
    const Token& token = cursor_.peek();
    if (token.kind == Token::Kind::kNumber || cursor_.at("inf")) {
      Expr result;
      result.at = token.at;
      result.text = cursor_.take().text;
      return result;
    }
    if (cursor_.accept("(")) {
      const Cursor::Nesting nesting(cursor_);
      if (!nesting.fits()) return {};
      Expr inner = sum();
      refuse_other_operators(cursor_);
      inner.parenthesised = true;
      cursor_.expect(")", "to close the parenthesis");
      return inner;
    }
    if (token.kind == Token::Kind::kName || cursor_.at("@")) return name();
    cursor_.fail_here("expected an expression, found " + describe(token));
    return {};
  }

  Expr name() {
    Expr result;
    result.kind = Expr::Kind::kName;
    result.at = cursor_.place();
    result.device = cursor_.accept("@");
    result.text = cursor_.name("after '@'").text;
    const Cursor::Nesting nesting(cursor_);
    if (!nesting.fits()) return result;
    if (cursor_.at("[")) {
      result.has_index = true;
      result.index = parse_list(cursor_, "[", "]");
    }
    if (cursor_.at("(")) {
      result.has_args = true;
      result.args = parse_list(cursor_, "(", ")");
    }
    return closed(std::move(result));
  }

  Expr closed(Expr e) {
    for (const auto* list : {&e.index, &e.args}) {
      for (const Expr& child : *list) e.depth = std::max(e.depth, child.depth + 1);
    }
    if (e.depth > kMaxTermDepth) too_long(cursor_, e.at);
    return e;
  }

  Cursor& cursor_;
};

}  // namespace

bool Cursor::Nesting::fits() const {
  if (cursor_.nesting_ > kMaxDepth) too_deep(cursor_, cursor_.place());
  return !cursor_.failed();
}

bool Cursor::at(std::string_view word, size_t ahead) const {
  const Token& token = peek(ahead);
  return (token.kind == Token::Kind::kSymbol || token.kind == Token::Kind::kName) &&
         token.text == word;
}

Token Cursor::take() {
  const Token token = peek();
  if (!at_end()) ++at_;
  return token;
}

bool Cursor::accept(std::string_view word) {
  if (failed() || !at(word)) return false;
  ++at_;
  return true;
}

bool Cursor::expect(std::string_view word, std::string_view what) {
  if (accept(word)) return true;
  fail_here("expected '" + std::string(word) + "' " + std::string(what) + ", found " +
            describe(peek()));
  return false;
}

Ident Cursor::name(std::string_view what) {
  const Token token = peek();
  if (failed()) return {{}, token.at};
  if (token.kind != Token::Kind::kName) {
    const bool extent = token.kind == Token::Kind::kNumber && what == "of an axis";
    fail_here(
        "expected a name " + std::string(what) + ", found " + describe(token),
        extent ? "extents have names, given at the program's: (k = " + std::string(token.text) + ")"
               : "");
    return {{}, token.at};
  }
  if (token.text == "inf") fail_here("'inf' is a number, not a name");
  ++at_;
  return {std::string(token.text), token.at};
}

std::vector<Ident> Cursor::names(std::string_view what) {
  std::vector<Ident> result;
  if (failed() || at(")") || at("]")) return result;
  do {
    result.push_back(name(what));
  } while (accept(","));
  return result;
}

int64_t Cursor::integer(std::string_view what) {
  const Token token = peek();
  const auto number = token.kind == Token::Kind::kNumber ? Number::parse(token.text) : std::nullopt;
  if (failed()) return 0;
  if (!number || !number->is_integer() || number->exponent() != 0) {
    fail_here("expected an integer " + std::string(what) + ", found " + describe(token));
    return 0;
  }
  ++at_;
  return number->numerator();
}

void Cursor::fail_here(std::string message, std::string hint) {
  diagnostics_.fail(place(), std::move(message), std::move(hint));
}

std::set<std::string> Cursor::names_since(size_t mark) const {
  std::set<std::string> result;
  for (size_t i = mark; i < at_; ++i) {
    if (tokens_[i].kind == Token::Kind::kName) result.emplace(tokens_[i].text);
  }
  return result;
}

Expr parse_expression(Cursor& cursor) {
  Expr result = ExpressionParser(cursor).sum();
  refuse_other_operators(cursor);
  return result;
}

Expr parse_argument(Cursor& cursor) {
  Expr left = ExpressionParser(cursor).sum();
  if (cursor.failed() || !is_relation(cursor.peek())) {
    refuse_other_operators(cursor);
    return left;
  }
  Expr result;
  result.kind = Expr::Kind::kCompare;
  const Token token = cursor.take();
  result.at = token.at;
  result.text = token.text;
  result.args.push_back(std::move(left));
  result.args.push_back(parse_expression(cursor));
  result.depth = 1 + std::max(result.args[0].depth, result.args[1].depth);
  return result;
}

std::vector<Expr> parse_list(Cursor& cursor, std::string_view open, std::string_view close) {
  std::vector<Expr> result;
  const Place start = cursor.place();
  if (!cursor.expect(open, "here") || cursor.accept(close)) return result;
  do {
    result.push_back(parse_argument(cursor));
  } while (cursor.accept(","));
  if (!cursor.failed() && cursor.at_end()) {
    cursor.diagnostics().fail(start, "'" + std::string(open) + "' is never closed");
  }
  cursor.expect(close, "or ','");
  return result;
}

SplitSyntax parse_split(Cursor& cursor) {
  SplitSyntax result;
  result.axis = cursor.name("of the axis to split");
  cursor.expect("=", "after the axis");
  do {
    FactorSyntax factor;
    factor.name = cursor.name("of a factor");
    if (cursor.accept("(")) {
      factor.extent = parse_expression(cursor);
      cursor.expect(")", "after the extent");
    }
    result.factors.push_back(std::move(factor));
  } while (cursor.accept("*"));
  return result;
}

DType parse_dtype_name(Cursor& cursor) {
  const Ident ident = cursor.name("of a type");
  if (cursor.failed()) return DType::kF32;
  if (const auto dtype = parse_dtype(ident.text)) return *dtype;
  std::vector<std::string> known;
  for (DType dtype : kAllDTypes) known.emplace_back(name(dtype));
  cursor.diagnostics().fail(ident.at, "unknown type '" + ident.text + "'",
                            suggestion(ident.text, known));
  return DType::kF32;
}

TensorSyntax parse_tensor(Cursor& cursor, bool with_range) {
  TensorSyntax result;
  result.name = cursor.name("of a tensor");
  cursor.expect(":", "before the type");
  result.dtype = parse_dtype_name(cursor);
  if (cursor.expect("[", "and the axes after the type")) {
    result.dims = cursor.names("of an axis");
    cursor.expect("]", "or ',' after an axis");
  }
  while (!cursor.failed()) {
    if (cursor.at("stride") && cursor.at("(", 1)) {
      cursor.take();
      result.stride = parse_list(cursor, "(", ")");
    } else if (cursor.at("offset") && !cursor.at("[", 1) && !cursor.at("=", 1)) {
      cursor.take();
      result.offset = parse_expression(cursor);
    } else if (cursor.at("align") && !cursor.at("[", 1) && !cursor.at("=", 1)) {
      cursor.take();
      result.align = parse_expression(cursor);
    } else if (with_range && cursor.at("in") && cursor.at("[", 1)) {
      cursor.take();
      cursor.expect("[", "after 'in'");
      result.low = parse_expression(cursor);
      cursor.expect(",", "between the bounds");
      result.high = parse_expression(cursor);
      cursor.expect("]", "after the bounds");
    } else {
      break;
    }
  }
  return result;
}

DefinitionSyntax parse_definition(Cursor& cursor) {
  DefinitionSyntax result;
  if (cursor.at("let") && cursor.peek(1).kind == Token::Kind::kName) {
    cursor.take();
    result.let = true;
  }
  result.name = cursor.name("at the start of a statement");
  if (cursor.accept("[")) {
    result.axes = cursor.names("of an axis");
    cursor.expect("]", "or ',' after an axis");
  }
  cursor.expect("=", "after the name of a definition");
  result.value = parse_expression(cursor);
  return result;
}

}  // namespace sundog::text
