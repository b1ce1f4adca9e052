// Small questions about the syntax of emitted text, for the parts of verify/kernel_walk.h.
#pragma once

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "verify/emitted_syntax.h"

namespace sundog::verify {

inline bool same(const Expression& a, const Expression& b) {
  return a.kind == b.kind && a.text == b.text && a.arguments == b.arguments &&
         a.parts.size() == b.parts.size() &&
         std::equal(a.parts.begin(), a.parts.end(), b.parts.begin(), same);
}

inline bool is_name(const Expression& e, const std::string& name) {
  return e.kind == Expression::kName && e.text == name;
}

inline bool is_binary(const Expression& e, const char* op) {
  return e.kind == Expression::kBinary && e.text == op;
}

inline std::optional<int64_t> literal(const Expression& e) {
  int64_t value = 0;
  if (e.kind != Expression::kNumber) return {};
  const char* end = e.text.data() + e.text.size();
  const auto [at, error] = std::from_chars(e.text.data(), end, value);
  return error == std::errc() && at == end ? std::optional(value) : std::nullopt;
}

// All integers of a text, in order.
inline std::vector<int64_t> integers_of(std::string_view text) {
  std::vector<int64_t> result;
  for (const char* at = text.data(); at != text.data() + text.size();) {
    int64_t value = 0;
    const auto [end, error] = std::from_chars(at, text.data() + text.size(), value);
    const bool number = error == std::errc();
    if (number) result.push_back(value);
    at = number ? end : at + 1;
  }
  return result;
}

}  // namespace sundog::verify
