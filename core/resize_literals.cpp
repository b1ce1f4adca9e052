#include "core/resize_literals.h"

#include <algorithm>
#include <cstdlib>

namespace sundog {

bool Literals::moves() const {
  return std::any_of(moved_.begin(), moved_.end(),
                     [](const auto& each) { return each.first != each.second; });
}

std::optional<int64_t> Literals::moved(int64_t constant) const {
  if (moved_.empty()) return constant;
  const int64_t size = std::abs(constant);
  const std::pair<int64_t, int64_t>* nearest = nullptr;
  for (const auto& each : moved_) {
    if (std::abs(each.first - size) > 1) continue;
    if (nearest == nullptr || each.first == size) nearest = &each;
  }
  if (nearest == nullptr) return std::nullopt;
  const int64_t now = nearest->second + (size - nearest->first);
  return constant < 0 ? -now : now;
}

std::string Literals::text() const {
  std::string text;
  for (const auto& [from, to] : moved_) {
    if (from == to) continue;
    text += (text.empty() ? "" : ", ") + std::to_string(from) + " as " + std::to_string(to);
  }
  return text;
}

bool compares_two_axes(const IndexExpr& e) {
  return e.axes.size() == 2 && e.sizes.empty() &&
         e.axes[0].coefficient * e.axes[1].coefficient == -1;
}

}  // namespace sundog
