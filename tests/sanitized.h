// What a test does less of under the sanitizers, which make it five to ten times slower: of many
// cases that go through the same code in the same way a part, since it is not their answers that
// the sanitizers are for.  The release pass has them all.
#pragma once

#include <cstddef>
#include <iterator>
#include <type_traits>
#include <vector>

namespace sundog {

#ifdef __SANITIZE_ADDRESS__
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

// The cases of a test; under the sanitizers every third, from the first on.
template <class List>
auto third_if_sanitized(const List& cases) {
  std::vector<std::remove_cvref_t<decltype(*std::begin(cases))>> taken;
  size_t i = 0;
  for (const auto& each : cases) {
    if (!kSanitized || i++ % 3 == 0) taken.push_back(each);
  }
  return taken;
}

}  // namespace sundog
