// The words of C++ text, without those of comments, strings and characters: enough to find names.
#pragma once

#include <optional>
#include <string_view>

#include "core/characters.h"

namespace sundog::codegen {

// A cursor over words and punctuation.
class SourceWords {
 public:
  explicit SourceWords(std::string_view text) : text_(text) {}

  // The next word, or a single other character; nothing at the end.
  std::optional<std::string_view> next();

 private:
  bool starts(std::string_view prefix) const { return text_.substr(at_).starts_with(prefix); }
  void skip_to(std::string_view end);
  void skip_literal(char quote);
  void skip();

  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace sundog::codegen
