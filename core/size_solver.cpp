#include "core/size_solver.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>

#include "core/arithmetic.h"
#include "core/check.h"

namespace sundog {
namespace {

// Values of one unknown that are tried before it is left, and values in all before the search is.
constexpr int kMostTries = 64;
constexpr int kMostNodes = 20000;
constexpr int64_t kInfinite = std::numeric_limits<int64_t>::max() / 4;

int64_t clamped(int64_t x) { return std::clamp(x, -kInfinite, kInfinite); }

int64_t times(int64_t a, int64_t b) {
  int64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product)) return (a < 0) == (b < 0) ? kInfinite : -kInfinite;
  return clamped(product);
}

int64_t plus(int64_t a, int64_t b) { return clamped(a + b); }

struct Bounds {
  int64_t low = 0, high = 0;
  bool fixed() const { return low == high; }
  bool empty() const { return low > high; }
};

SizeForm collected(int64_t constant, const std::vector<SizeForm::Item>& items) {
  std::map<std::vector<uint32_t>, int64_t> by_unknowns;
  for (const SizeForm::Item& item : items) by_unknowns[item.unknowns] += item.coefficient;
  SizeForm form{constant, {}};
  for (const auto& [unknowns, coefficient] : by_unknowns) {
    if (coefficient != 0) form.items.push_back({coefficient, unknowns});
  }
  return form;
}

class Solver {
 public:
  Solver(const std::vector<SizeUnknown>& unknowns, const std::vector<SizeRelation>& relations,
         const std::set<int64_t>& taken)
      : unknowns_(unknowns), relations_(relations), taken_(taken), order_(unknowns.size()) {
    std::iota(order_.begin(), order_.end(), uint32_t{0});
    std::stable_sort(order_.begin(), order_.end(), [&](uint32_t a, uint32_t b) {
      return unknowns[a].original < unknowns[b].original;
    });
  }

  std::optional<std::vector<int64_t>> run() {
    std::vector<Bounds> bounds;
    for (const SizeUnknown& u : unknowns_) {
      SUNDOG_CHECK(!u.values.empty());
      bounds.push_back({u.values.front(), u.values.back()});
    }
    if (!search(bounds)) return std::nullopt;
    return found_;
  }

 private:
  bool search(std::vector<Bounds> bounds) {
    if (!propagate(bounds)) return false;
    const auto open =
        std::find_if(order_.begin(), order_.end(), [&](uint32_t u) { return !bounds[u].fixed(); });
    if (open == order_.end()) {
      for (const Bounds& b : bounds) found_.push_back(b.low);
      return true;
    }
    const std::vector<int64_t>& values = unknowns_[*open].values;
    const auto from = std::lower_bound(values.begin(), values.end(), bounds[*open].low);
    const auto to = std::upper_bound(values.begin(), values.end(), bounds[*open].high);
    for (const bool preferred : {true, false}) {
      int tries = 0;
      for (auto at = from; at != to && tries < kMostTries; ++at) {
        if (prefers(*open, *at, bounds) != preferred) continue;
        if (++nodes_ > kMostNodes) return false;
        ++tries;
        std::vector<Bounds> next = bounds;
        next[*open] = {*at, *at};
        if (search(std::move(next))) return true;
      }
    }
    return false;
  }

  bool prefers(uint32_t unknown, int64_t value, const std::vector<Bounds>& bounds) const {
    const SizeUnknown& u = unknowns_[unknown];
    if ((u.original - value) % u.step != 0) return false;
    if (!u.distinct) return true;
    if (taken_.contains(value)) return false;
    for (uint32_t other = 0; other < bounds.size(); ++other) {
      if (other == unknown || !unknowns_[other].distinct || !bounds[other].fixed()) continue;
      if (bounds[other].low == value) return false;
    }
    return true;
  }

  // Narrows bounds by all relations until nothing changes; false if one cannot hold.
  bool propagate(std::vector<Bounds>& bounds) const {
    for (bool changed = true; changed;) {
      changed = false;
      for (const SizeRelation& relation : relations_) {
        if (!narrow(relation, bounds, &changed)) return false;
      }
    }
    return true;
  }

  static Bounds of(const SizeForm::Item& item, const std::vector<Bounds>& bounds) {
    int64_t low = std::abs(item.coefficient), high = low;
    for (const uint32_t u : item.unknowns) {
      low = times(low, bounds[u].low);
      high = times(high, bounds[u].high);
    }
    return item.coefficient > 0 ? Bounds{low, high} : Bounds{-high, -low};
  }

  bool narrow(const SizeRelation& relation, std::vector<Bounds>& bounds, bool* changed) const {
    Bounds all{relation.form.constant, relation.form.constant};
    for (const SizeForm::Item& item : relation.form.items) {
      const Bounds each = of(item, bounds);
      all = {plus(all.low, each.low), plus(all.high, each.high)};
    }
    if (all.low > relation.high || all.high < relation.low) return false;
    if (all.low == -kInfinite || all.high == kInfinite) return true;
    for (const SizeForm::Item& item : relation.form.items) {
      const Bounds each = of(item, bounds);
      // What is left for this item once the others have taken the least, or the most.
      const Bounds left{relation.low - plus(all.high, -each.high),
                        relation.high - plus(all.low, -each.low)};
      if (!narrow(item, left, bounds, changed)) return false;
    }
    return true;
  }

  // low <= item <= high says something of its one unknown that is not known.
  bool narrow(const SizeForm::Item& item, const Bounds& left, std::vector<Bounds>& bounds,
              bool* changed) const {
    int64_t scale = item.coefficient;
    const uint32_t* open = nullptr;
    for (const uint32_t& u : item.unknowns) {
      if (bounds[u].fixed()) {
        scale = times(scale, bounds[u].low);
      } else if (open != nullptr) {
        return true;
      } else {
        open = &u;
      }
    }
    if (open == nullptr || scale == 0) return true;
    const int64_t size = std::abs(scale);
    const Bounds wanted = scale > 0 ? left : Bounds{-left.high, -left.low};
    const std::vector<int64_t>& values = unknowns_[*open].values;
    Bounds& now = bounds[*open];
    const int64_t low = std::max(now.low, -floor_div(-wanted.low, size));
    const int64_t high = std::min(now.high, floor_div(wanted.high, size));
    if (low <= now.low && high >= now.high) return true;
    const auto first = std::lower_bound(values.begin(), values.end(), low);
    const auto past = std::upper_bound(values.begin(), values.end(), high);
    if (first >= past) return false;
    now = {*first, *(past - 1)};
    *changed = true;
    return true;
  }

  const std::vector<SizeUnknown>& unknowns_;
  const std::vector<SizeRelation>& relations_;
  const std::set<int64_t>& taken_;
  std::vector<uint32_t> order_;
  std::vector<int64_t> found_;
  int nodes_ = 0;
};

}  // namespace

int64_t SizeForm::at(const std::vector<int64_t>& sizes) const {
  int64_t total = constant;
  for (const Item& item : items) {
    int64_t product = item.coefficient;
    for (const uint32_t u : item.unknowns) product *= sizes[u];
    total += product;
  }
  return total;
}

SizeForm operator+(const SizeForm& a, const SizeForm& b) {
  std::vector<SizeForm::Item> items = a.items;
  items.insert(items.end(), b.items.begin(), b.items.end());
  return collected(a.constant + b.constant, items);
}

SizeForm operator*(const SizeForm& a, int64_t factor) { return a * SizeForm::of_constant(factor); }

SizeForm operator-(const SizeForm& a, const SizeForm& b) { return a + b * -1; }

SizeForm operator*(const SizeForm& a, const SizeForm& b) {
  std::vector<SizeForm::Item> items;
  for (const SizeForm::Item& x : a.items) {
    items.push_back({x.coefficient * b.constant, x.unknowns});
    for (const SizeForm::Item& y : b.items) {
      SizeForm::Item both{x.coefficient * y.coefficient, x.unknowns};
      both.unknowns.insert(both.unknowns.end(), y.unknowns.begin(), y.unknowns.end());
      std::sort(both.unknowns.begin(), both.unknowns.end());
      items.push_back(std::move(both));
    }
  }
  for (const SizeForm::Item& y : b.items) {
    items.push_back({y.coefficient * a.constant, y.unknowns});
  }
  return collected(a.constant * b.constant, items);
}

std::optional<std::vector<int64_t>> solve(const std::vector<SizeUnknown>& unknowns,
                                          const std::vector<SizeRelation>& relations,
                                          const std::set<int64_t>& taken) {
  return Solver(unknowns, relations, taken).run();
}

}  // namespace sundog
