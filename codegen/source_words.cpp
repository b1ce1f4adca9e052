#include "codegen/source_words.h"

#include <cctype>

namespace sundog::codegen {

std::optional<std::string_view> SourceWords::next() {
  skip();
  if (at_ >= text_.size()) return std::nullopt;
  const size_t start = at_++;
  if (is_word_character(text_[start])) {
    while (at_ < text_.size() && is_word_character(text_[at_])) ++at_;
  }
  return text_.substr(start, at_ - start);
}

void SourceWords::skip_to(std::string_view end) {
  const size_t found = text_.find(end, at_);
  at_ = found == std::string_view::npos ? text_.size() : found + end.size();
}

void SourceWords::skip_literal(char quote) {
  for (++at_; at_ < text_.size() && text_[at_] != quote; ++at_) {
    if (text_[at_] == '\\') ++at_;
  }
  if (at_ < text_.size()) ++at_;
}

void SourceWords::skip() {
  while (at_ < text_.size()) {
    if (std::isspace(static_cast<unsigned char>(text_[at_]))) {
      ++at_;
    } else if (starts("//")) {
      skip_to("\n");
    } else if (starts("/*")) {
      skip_to("*/");
    } else if (text_[at_] == '"' ||
               (text_[at_] == '\'' && (at_ == 0 || !is_word_character(text_[at_ - 1])))) {
      skip_literal(text_[at_]);
    } else {
      return;
    }
  }
}

}  // namespace sundog::codegen
