// Several are kept, not one: numerics may refuse the best, and what the model takes for equally
// fast the clock may not.  Variations of one structure would fill any list, so they compete among
// themselves: those that agree in kernels, loops and parts are of one kind.
#include "search/incumbents.h"

#include <algorithm>
#include <cmath>

namespace sundog::search {
namespace {

bool before(const Incumbents::Entry& a, const Incumbents::Entry& b) {
  return a.structure.us != b.structure.us ? a.structure.us < b.structure.us
                                          : a.structure.key < b.structure.key;
}

}  // namespace

bool Incumbents::offer(int bank, const Structure& s) {
  const bool best = s.us < best_us_;
  best_us_ = std::min(best_us_, s.us);
  auto& list = by_kind_[s.kind];
  // Of one kind and equally fast: the same kernels, reached by another order of decisions.
  for (Entry& e : list) {
    if (std::abs(e.structure.us - s.us) > 1e-6 * s.us) continue;
    if (s.key < e.structure.key && e.bank == bank) e.structure = s;
    return best;
  }
  if (static_cast<int>(list.size()) >= kept_per_kind_ && s.us >= list.back().structure.us)
    return best;
  list.push_back({bank, s});
  std::sort(list.begin(), list.end(), before);
  if (static_cast<int>(list.size()) > kept_per_kind_) list.pop_back();
  return best;
}

bool Incumbents::offer_all(const Incumbents& other) {
  bool best = false;
  for (const Entry& e : other.sorted()) best = offer(e.bank, e.structure) || best;
  return best;
}

std::vector<Incumbents::Entry> Incumbents::sorted() const {
  std::vector<Entry> all;
  for (const auto& [kind, list] : by_kind_) all.insert(all.end(), list.begin(), list.end());
  std::stable_sort(all.begin(), all.end(), before);
  return all;
}

}  // namespace sundog::search
