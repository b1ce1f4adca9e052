// Lists in text: join({"b", "h"}) is "b, h".
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace sundog {

inline std::string join(const std::vector<std::string>& parts, std::string_view between = ", ") {
  std::string text;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) text += between;
    text += parts[i];
  }
  return text;
}

}  // namespace sundog
