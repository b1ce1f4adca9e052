#include "core/text_lexer.h"

#include <array>

#include "core/text.h"

namespace sundog::text {
namespace {

// Longer names and larger files are binary data or an attack, not programs.
constexpr size_t kMaxName = 200;
constexpr size_t kMaxText = size_t{16} << 20;

constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }
constexpr bool starts_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
constexpr bool continues_name(char c) { return starts_name(c) || is_digit(c) || c == '\''; }

// Length of the name at the start of `text`; 0 if there is none.  A dot joins two parts only if the
// second is not empty.
size_t name_length(std::string_view text) {
  if (text.empty() || !starts_name(text[0])) return 0;
  size_t at = 1;
  while (at < text.size()) {
    if (continues_name(text[at])) {
      ++at;
    } else if (text[at] == '.' && at + 1 < text.size() && continues_name(text[at + 1]) &&
               text[at + 1] != '\'') {
      at += 2;
    } else {
      break;
    }
  }
  return at;
}

size_t number_length(std::string_view text) {
  size_t at = 0;
  const auto digits = [&] {
    while (at < text.size() && is_digit(text[at])) ++at;
  };
  digits();
  if (at < text.size() && text[at] == '.') {
    ++at;
    digits();
  }
  if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
    size_t after = at + 1;
    if (after < text.size() && (text[after] == '+' || text[after] == '-')) ++after;
    if (after < text.size() && is_digit(text[after])) {
      at = after;
      digits();
    }
  }
  return at;
}

size_t symbol_length(std::string_view text) {
  static constexpr std::array<std::string_view, 5> kPairs = {"<=", ">=", "==", "!=", "->"};
  for (std::string_view pair : kPairs) {
    if (text.substr(0, 2) == pair) return 2;
  }
  return std::string_view("(){}[],:;=+-*/^<>@").find(text[0]) == std::string_view::npos ? 0 : 1;
}

// What to write in place of a character of other languages.
std::string instead_of(char c) {
  switch (c) {
    case '&':
      return "conditions are nested: select(a, select(b, x, y), y) is x where both hold";
    case '|':
      return "conditions are nested: select(a, x, select(b, x, y)) is x where one holds";
    case '?':
      return "write select(condition, a, b)";
    case '!':
      return "write the opposite relation, or swap the values of the select";
    case '%':
      return "indices are affine; split an axis for its remainder: split n = n.o * n.i(4)";
    default:  // NOLINT(sundog-default): characters are open-ended
      return {};
  }
}

class Lexer {
 public:
  Lexer(std::string_view text, Diagnostics& diagnostics) : text_(text), diagnostics_(diagnostics) {}

  std::vector<Token> run() {
    if (text_.size() > kMaxText) {
      diagnostics_.fail({}, "the file is larger than 16 MiB", "is this a program text?");
    }
    while (!diagnostics_.failed() && skip_space()) next();
    tokens_.push_back({Token::Kind::kEnd, "end of file", place()});
    return std::move(tokens_);
  }

 private:
  Place place() const { return {line_, static_cast<int>(at_ - line_start_) + 1}; }

  // Moves to the next token; false at the end.
  bool skip_space() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '\n') {
        ++line_;
        line_start_ = at_ + 1;
        ++at_;
      } else if (c == ' ' || c == '\t' || c == '\r') {
        ++at_;
      } else if (c == '#') {
        while (at_ < text_.size() && text_[at_] != '\n') ++at_;
      } else {
        return true;
      }
    }
    return false;
  }

  void take(Token::Kind kind, size_t length) {
    tokens_.push_back({kind, text_.substr(at_, length), place()});
    at_ += length;
  }

  void next() {
    const std::string_view rest = text_.substr(at_);
    if (const size_t length = name_length(rest); length > 0) {
      if (length > kMaxName) {
        return diagnostics_.fail(place(), "a name of " + std::to_string(length) + " characters",
                                 "names have at most " + std::to_string(kMaxName));
      }
      return take(Token::Kind::kName, length);
    }
    if (is_digit(rest[0]) || (rest[0] == '.' && rest.size() > 1 && is_digit(rest[1]))) {
      const size_t length = number_length(rest);
      if (length < rest.size() && continues_name(rest[length])) {
        return diagnostics_.fail(
            place(), "'" + excerpt(rest.substr(0, length + 1)) + "' is neither a number nor a name",
            "names do not start with a digit; write products with '*'");
      }
      return take(Token::Kind::kNumber, length);
    }
    if (const size_t length = symbol_length(rest); length > 0) {
      return take(Token::Kind::kSymbol, length);
    }
    const auto byte = static_cast<unsigned char>(rest[0]);
    if (byte < 0x20 || byte == 0x7f) {
      return diagnostics_.fail(place(), "a control character; this is not a text file");
    }
    if (byte >= 0x80) {
      return diagnostics_.fail(place(), "a character outside ASCII, which only comments may hold");
    }
    diagnostics_.fail(place(), "unexpected character '" + std::string(1, rest[0]) + "'",
                      instead_of(rest[0]));
  }

  std::string_view text_;
  Diagnostics& diagnostics_;
  std::vector<Token> tokens_;
  size_t at_ = 0, line_start_ = 0;
  int line_ = 1;
};

}  // namespace

void Diagnostics::fail(Place at, std::string message, std::string hint, ErrorCode code) {
  if (failed()) return;
  error_ = Error{code, std::move(message), std::move(hint), position(at)};
}

void Diagnostics::fail(Error error) {
  if (failed()) return;
  if (!error.position) error.position = position({});
  error_ = std::move(error);
}

void Diagnostics::warn(Place at, std::string message, std::string hint) {
  warnings_.push_back(
      Error{ErrorCode::kBadInput, std::move(message), std::move(hint), position(at)});
}

std::vector<Token> lex(std::string_view text, Diagnostics& diagnostics) {
  return Lexer(text, diagnostics).run();
}

std::string excerpt(std::string_view text, size_t limit) {
  std::string result;
  for (char c : text.substr(0, limit)) {
    const auto byte = static_cast<unsigned char>(c);
    result += byte < 0x20 || byte >= 0x7f ? '?' : c;
  }
  if (text.size() > limit) result += "...";
  return result;
}

std::string describe(const Token& token) {
  switch (token.kind) {
    case Token::Kind::kName:
      return "the name '" + excerpt(token.text) + "'";
    case Token::Kind::kNumber:
      return "the number " + excerpt(token.text);
    case Token::Kind::kSymbol:
      return "'" + std::string(token.text) + "'";
    case Token::Kind::kEnd:
      return "the end of the file";
  }
  return {};
}

}  // namespace sundog::text

namespace sundog {

bool is_name(std::string_view name) {
  return !name.empty() && name.size() <= text::kMaxName && text::name_length(name) == name.size() &&
         name != "inf";
}

}  // namespace sundog
