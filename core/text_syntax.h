// The syntax tree of program text, and the cursor and expression parser that both kinds of text
// file share.  Trees know nothing of what names mean: text_terms.h gives them meaning.
// NOLINT(sundog-mirror): the insides of core/text.h, tested through it
#pragma once

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "core/dtype.h"
#include "core/text_lexer.h"

namespace sundog::text {

struct Ident {
  std::string text;
  Place at;
};

// What is said of a condition in the place of a value.
inline constexpr char kNoValue[] = "a condition is no value";
inline constexpr char kWhereConditionsStand[] =
    "conditions stand in select(condition, a, b) only: select(x > 0, 1, 0)";

// One expression.  Integer, index and value expressions are written alike.
struct Expr {
  enum class Kind {
    kNumber,   // text
    kName,     // text, index in brackets, args in parentheses, each if present
    kNegate,   // args[0]
    kBinary,   // args[0] text args[1]; text is + - * / ^
    kCompare,  // args[0] text args[1]; text is a relation
  };
  Kind kind = Kind::kNumber;
  Place at;
  std::string text;
  bool device = false;         // written @name
  bool parenthesised = false;  // written (expression)
  bool has_index = false, has_args = false;
  std::vector<Expr> index, args;
  int depth = 1;

  bool is_plain_name() const { return kind == Kind::kName && !has_index && !has_args && !device; }
};

// Parentheses, calls and signs may be nested up to this many levels.  A chain of operators is
// nothing nested, but a tree that later passes walk: see kMaxTermDepth.
inline constexpr int kMaxDepth = 400;

class Cursor {
 public:
  Cursor(std::string_view text, Diagnostics& diagnostics)
      : diagnostics_(diagnostics), tokens_(lex(text, diagnostics)) {}

  Cursor(std::string&&, Diagnostics&) = delete;  // tokens are views of the text

  Diagnostics& diagnostics() { return diagnostics_; }
  bool failed() const { return diagnostics_.failed(); }

  const Token& peek(size_t ahead = 0) const {
    return tokens_[std::min(at_ + ahead, tokens_.size() - 1)];
  }
  Place place() const { return peek().at; }
  bool at_end() const { return peek().kind == Token::Kind::kEnd; }
  bool at(std::string_view word, size_t ahead = 0) const;  // a symbol or a name
  Token take();
  bool accept(std::string_view word);
  // Fails unless the next token is `word`; `what` says after or in what it is expected.
  bool expect(std::string_view word, std::string_view what);
  Ident name(std::string_view what);
  std::vector<Ident> names(std::string_view what);  // NAME {, NAME} or nothing, up to ')' or ']'
  int64_t integer(std::string_view what);
  void fail_here(std::string message, std::string hint = {});

  // All names between an earlier position and here.
  size_t mark() const { return at_; }
  std::set<std::string> names_since(size_t mark) const;

  // Counts a level of nesting for as long as it lives; false when there are too many.
  class Nesting {
   public:
    explicit Nesting(Cursor& cursor) : cursor_(cursor) { ++cursor_.nesting_; }
    ~Nesting() { --cursor_.nesting_; }
    Nesting(const Nesting&) = delete;
    Nesting& operator=(const Nesting&) = delete;
    bool fits() const;

   private:
    Cursor& cursor_;
  };

 private:
  Diagnostics& diagnostics_;
  std::vector<Token> tokens_;
  size_t at_ = 0;
  int nesting_ = 0;
};

Expr parse_expression(Cursor& cursor);
// expr, or expr RELATION expr.
Expr parse_argument(Cursor& cursor);
// "(" or "[" is the next token: the list to its partner.
std::vector<Expr> parse_list(Cursor& cursor, std::string_view open, std::string_view close);

struct FactorSyntax {
  Ident name;
  std::optional<Expr> extent;
};
struct SplitSyntax {
  Ident axis;
  std::vector<FactorSyntax> factors;
};
struct TensorSyntax {
  Ident name;
  DType dtype = DType::kF16;
  std::vector<Ident> dims;
  std::optional<std::vector<Expr>> stride;
  std::optional<Expr> offset, align, low, high;
};
struct DefinitionSyntax {
  Ident name;
  std::vector<Ident> axes;
  Expr value;
  bool let = false;
};

SplitSyntax parse_split(Cursor& cursor);  // after "split"
DType parse_dtype_name(Cursor& cursor);
TensorSyntax parse_tensor(Cursor& cursor, bool with_range);  // NAME ":" type attributes
DefinitionSyntax parse_definition(Cursor& cursor);           // [ "let" ] NAME ...

}  // namespace sundog::text
