// Tokens of program and µGraph text, and the place where the first error of a reader is kept.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"

namespace sundog::text {

struct Place {
  int line = 0, column = 0;
};

// The first error ends a reading: later ones are not kept, as they tend to follow from it.
class Diagnostics {
 public:
  explicit Diagnostics(std::string_view file) : file_(file) {}
  bool failed() const { return error_.has_value(); }
  const Error& error() const { return *error_; }
  void fail(Place at, std::string message, std::string hint = {},
            ErrorCode code = ErrorCode::kBadInput);
  void fail(Error error);  // without a place: the file's
  void warn(Place at, std::string message, std::string hint = {});
  std::vector<Error>& warnings() { return warnings_; }
  Position position(Place at) const { return {file_, at.line, at.column}; }

 private:
  std::string file_;
  std::optional<Error> error_;
  std::vector<Error> warnings_;
};

struct Token {
  enum class Kind { kName, kNumber, kSymbol, kEnd };
  Kind kind = Kind::kEnd;
  std::string_view text;  // of the file; "end of file" for kEnd
  Place at;
};

// The tokens of a text, ending in kEnd.  `text` must outlive them.
std::vector<Token> lex(std::string_view text, Diagnostics& diagnostics);

// "'+'", "name 'x'", "the end of the file": a token in a message.
std::string describe(const Token& token);

// Up to `limit` bytes of `text`, unprintable ones as '?', for messages.
std::string excerpt(std::string_view text, size_t limit = 40);

}  // namespace sundog::text
