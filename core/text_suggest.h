// "did you mean": the known word that is nearest to a mistyped one.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sundog::text {

// The word at the least edit distance (insert, delete, replace or swap neighbours), if that is at
// most a third of the length of `word` (at least 1), first in the list on a tie.
std::optional<std::string> nearest(std::string_view word, const std::vector<std::string>& known);

// "did you mean 'x'?", or else "known here: a, b, c" (at most 12), or "".
std::string suggestion(std::string_view word, const std::vector<std::string>& known);

}  // namespace sundog::text
