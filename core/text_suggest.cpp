#include "core/text_suggest.h"

#include <algorithm>
#include <cctype>

namespace sundog::text {
namespace {

char lower(char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); }

// Optimal string alignment distance (Damerau 1964, Wagner and Fischer 1974), letter case at no
// cost.
size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<size_t>> d(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) d[i][0] = i;
  for (size_t j = 0; j <= b.size(); ++j) d[0][j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    for (size_t j = 1; j <= b.size(); ++j) {
      const bool same = lower(a[i - 1]) == lower(b[j - 1]);
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (same ? 0 : 1)});
      if (i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) &&
          lower(a[i - 2]) == lower(b[j - 1])) {
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
      }
    }
  }
  return d[a.size()][b.size()];
}

}  // namespace

std::optional<std::string> nearest(std::string_view word, const std::vector<std::string>& known) {
  const size_t limit = std::max<size_t>(1, word.size() / 3);
  std::optional<std::string> best;
  size_t best_distance = limit + 1;
  for (const std::string& candidate : known) {
    if (candidate.size() > word.size() + limit || word.size() > candidate.size() + limit) continue;
    const size_t d = distance(word, candidate);
    // A word of one letter is near to every other one; only its other case is a guess.
    if (d >= best_distance || (word.size() == 1 && d > 0)) continue;
    best = candidate;
    best_distance = d;
  }
  return best;
}

std::string suggestion(std::string_view word, const std::vector<std::string>& known) {
  if (const auto guess = nearest(word, known)) return "did you mean '" + *guess + "'?";
  if (known.empty()) return {};
  std::string list = "known here: ";
  constexpr size_t kMost = 12;
  for (size_t i = 0; i < known.size() && i < kMost; ++i) list += (i > 0 ? ", " : "") + known[i];
  return known.size() > kMost ? list + ", ..." : list;
}

}  // namespace sundog::text
