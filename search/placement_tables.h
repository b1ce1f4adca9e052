// What placement remembers, of one bank: kernels priced before, and what makes others needless.
//
// Tasks of one round read the tables as they were when the round began and gather news of their
// own; the news are taken in afterwards, in the order of the tasks.  Prices are the exception: they
// follow from the kernel and from what was known when the round began, so that any task of the
// round may use what another has just worked out.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "search/kernel_shape.h"
#include "search/term_table.h"

namespace sundog::search {

// A map that several threads fill.  Entries stay where they are until clear().
template <class V>
class SharedMap {
 public:
  // Null if there is none.
  const V* find(uint64_t key) const {
    const Shard& shard = shards_[key % kShards];
    const std::lock_guard lock(shard.mutex);
    const auto it = shard.entries.find(key);
    return it == shard.entries.end() ? nullptr : &it->second;
  }
  // The entry that is there afterwards, and whether it is this one.
  std::pair<const V*, bool> insert(uint64_t key, V value) {
    Shard& shard = shards_[key % kShards];
    const std::lock_guard lock(shard.mutex);
    const auto [it, fresh] = shard.entries.try_emplace(key, std::move(value));
    if (fresh) size_.fetch_add(1, std::memory_order_relaxed);
    return {&it->second, fresh};
  }
  size_t size() const { return size_.load(std::memory_order_relaxed); }
  // Not while others use it:
  void clear() {
    for (Shard& shard : shards_) shard.entries.clear();
    size_ = 0;
  }
  template <class F>
  void for_each(F f) const {
    for (const Shard& shard : shards_) {
      for (const auto& [key, value] : shard.entries) f(key, value);
    }
  }

 private:
  static constexpr size_t kShards = 61;
  struct Shard {
    mutable std::mutex mutex;
    std::unordered_map<uint64_t, V> entries;
  };
  std::array<Shard, kShards> shards_;
  std::atomic<size_t> size_ = 0;
};

// Of one kernel, by choice of part counts.
struct Price {
  std::vector<float> us;                    // infinite: no size fits
  std::vector<std::vector<int64_t>> tiles;  // likewise
  uint64_t cut = 0;                         // how its axes are cut: kernels cut alike share it
  uint64_t rivals = 0;                      // shared by kernels that could stand in its place
  uint32_t round = 0;                       // that it was worked out in
  bool outclassed = false;                  // by a rival: its sizes were not looked for
  bool fits() const;
  size_t bytes() const;
};

// Tiles that were good for one kernel, with the choice of part counts and the time they go with.
struct GoodSizes {
  std::vector<int64_t> tiles;
  uint32_t choice = 0;
  float us = 0;
  bool operator==(const GoodSizes&) const = default;
};

// By Price::rivals the best known, by Price::cut any.
using GoodSizesByKey = std::map<uint64_t, GoodSizes>;

// Of making a set of terms with one kernel (search/completion.h).
struct LeastTime {
  float us = 0;
  uint32_t round = 0;    // that it was worked out in
  uint32_t kernels = 0;  // that were priced for it
  GoodSizesByKey sizes;  // found by that; of interest in that round
};

// A kernel that was seen, by what it takes.
struct Effort {
  WorkTime work;
  uint32_t items = 0;
  uint64_t owner = 0;  // the kernel itself
};

// What one task found out.
struct PlacementNews {
  std::unordered_map<uint64_t, std::vector<Effort>> efforts;  // of kernels that reduce alike
  std::unordered_map<uint64_t, std::vector<std::vector<float>>> reached;  // cost of what is done
  GoodSizesByKey good_sizes;
};

class PlacementTables {
 public:
  // Of earlier rounds: not changed while tasks run.
  const PlacementNews& known() const { return known_; }
  SharedMap<Price>& prices() { return prices_; }
  SharedMap<std::vector<KernelShape>>& shapes() { return shapes_; }
  SharedMap<LeastTime>& completions() { return completions_; }
  uint32_t round() const { return round_; }

  void take(const PlacementNews& news);
  void end_round() { ++round_; }
  // Roughly; shapes, which anyone can work out again, left out.
  size_t bytes() const;
  void clear();

 private:
  friend class TableStore;
  PlacementNews known_;
  SharedMap<Price> prices_;
  SharedMap<std::vector<KernelShape>> shapes_;
  SharedMap<LeastTime> completions_;
  uint32_t round_ = 0;
};

// Notes sizes where none as good are known.
void keep_better(uint64_t key, const GoodSizes& good, GoodSizesByKey& sizes);
// Whether one kernel does no more of anything than another.
bool no_more(const Effort& a, const Effort& b);
// Whether costs are lower for every choice of part counts.
bool cheaper(const std::vector<float>& a, const std::vector<float>& b);
inline constexpr size_t kMostReached = 16;  // remembered costs of one set of pending terms

}  // namespace sundog::search
