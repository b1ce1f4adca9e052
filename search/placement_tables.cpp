// The order in which news are taken in decides between equals: the first stays, the others are
// left out.  Two kernels that are no worse than each other must not both be known, or each would be
// needless because of the other.
#include "search/placement_tables.h"

#include <algorithm>
#include <cmath>

namespace sundog::search {

bool Price::fits() const {
  return std::any_of(us.begin(), us.end(), [](float u) { return std::isfinite(u); });
}

size_t Price::bytes() const {
  size_t n = sizeof(Price) + 48 + us.size() * sizeof(float);
  for (const auto& t : tiles) n += sizeof t + 16 + t.size() * sizeof(int64_t);
  return n;
}

void keep_better(uint64_t key, const GoodSizes& good, GoodSizesByKey& sizes) {
  const auto [it, fresh] = sizes.try_emplace(key, good);
  if (!fresh && good.us < it->second.us) it->second = good;
}

bool no_more(const Effort& a, const Effort& b) {
  return a.items <= b.items && a.work.tensor <= b.work.tensor && a.work.alu <= b.work.alu &&
         a.work.sfu <= b.work.sfu;
}

bool cheaper(const std::vector<float>& a, const std::vector<float>& b) {
  for (size_t i = 0; i < a.size(); ++i) {
    if (!(a[i] < b[i] * 0.9999F)) return false;
  }
  return true;
}

void PlacementTables::take(const PlacementNews& news) {
  for (const auto& [key, efforts] : news.efforts) {
    auto& known = known_.efforts[key];
    for (const Effort& e : efforts) {
      const auto needless = [&](const Effort& k) { return no_more(k, e); };
      if (std::none_of(known.begin(), known.end(), needless)) known.push_back(e);
    }
  }
  for (const auto& [key, costs] : news.reached) {
    auto& known = known_.reached[key];
    for (const auto& us : costs) {
      const auto needless = [&](const auto& k) { return k == us || cheaper(k, us); };
      if (known.size() < kMostReached && std::none_of(known.begin(), known.end(), needless)) {
        known.push_back(us);
      }
    }
  }
  for (const auto& [key, good] : news.good_sizes) keep_better(key, good, known_.good_sizes);
}

size_t PlacementTables::bytes() const {
  size_t n = 0;
  completions_.for_each([&](uint64_t, const LeastTime& t) {
    n += 48 + sizeof(LeastTime) + t.sizes.size() * (80 + sizeof(GoodSizes));
  });
  prices_.for_each([&](uint64_t, const Price& p) { n += p.bytes(); });
  for (const auto& [key, list] : known_.efforts) n += 80 + list.size() * sizeof(Effort);
  for (const auto& [key, list] : known_.reached) {
    n += 80;
    for (const auto& us : list) n += 40 + us.size() * sizeof(float);
  }
  return n;
}

void PlacementTables::clear() {
  known_ = {};
  prices_.clear();
  shapes_.clear();
  completions_.clear();
}

}  // namespace sundog::search
