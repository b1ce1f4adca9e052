// Global memory: the buffers of the caller, placed between guards, and who wrote which byte of a
// writable one.  Reads of bytes that another block wrote in the same launch, and writes to them,
// are races unless the two blocks are ordered by an atomic operation: the writer's, behind a fence,
// on an address on which the other did one later, with a fence behind it.  What kernels before
// wrote is ordered, for a thread of a kernel that may overlap them once it has waited.
#ifndef SUNDOG_EMULATOR_MEMORY_H
#define SUNDOG_EMULATOR_MEMORY_H

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "problems.h"

namespace sd::emulator {

struct Buffer {
  unsigned char* data = nullptr;
  uint64_t bytes = 0;
  bool writable = false;
  uint64_t contents = 0, results = 0;  // in the file
  unsigned char* mapping = nullptr;    // with guards
  uint64_t mapped = 0;
  std::atomic<uint64_t>* writers = nullptr;  // a stamp a byte; nullptr when unchecked
};

inline constexpr uint64_t kMostBlocks = (uint64_t{1} << 26) - 1;  // of launches that may overlap

// Who wrote a byte: block + 1, actor and epoch in one word, so that workers exchange it atomically.
struct Stamp {
  static constexpr int kEpochBits = 27, kActorBits = 11;
  static uint64_t make(uint64_t block, Actor actor, uint32_t epoch) {
    const uint64_t last = (1u << kEpochBits) - 1;
    return (block + 1) << (kEpochBits + kActorBits) | static_cast<uint64_t>(actor) << kEpochBits |
           std::min<uint64_t>(epoch, last);
  }
  static uint64_t block(uint64_t stamp) { return (stamp >> (kEpochBits + kActorBits)) - 1; }
  static Actor actor(uint64_t stamp) {
    return static_cast<Actor>(stamp >> kEpochBits & ((1u << kActorBits) - 1));
  }
  static uint32_t epoch(uint64_t stamp) {
    return static_cast<uint32_t>(stamp & ((1u << kEpochBits) - 1));
  }
};

class Memory {
 public:
  std::vector<Buffer> buffers;  // in the order of the caller
  // Floats were added atomically: results may depend on the order.
  std::atomic<bool> float_atomics{false};

  // To be called when all buffers lie at their addresses.
  void index() {
    by_address_.clear();
    for (Buffer& buffer : buffers) by_address_.push_back(&buffer);
    std::sort(by_address_.begin(), by_address_.end(),
              [](const Buffer* a, const Buffer* b) { return a->data < b->data; });
  }

  // The buffer whose bytes or guards hold the address, or nullptr.
  Buffer* find(const void* address, int& last) {
    const auto* p = static_cast<const unsigned char*>(address);
    if (static_cast<std::size_t>(last) < buffers.size() && holds(buffers[last], p)) {
      return &buffers[last];
    }
    auto next =
        std::upper_bound(by_address_.begin(), by_address_.end(), p,
                         [](const unsigned char* a, const Buffer* b) { return a < b->mapping; });
    if (next == by_address_.begin() || !holds(**std::prev(next), p)) return nullptr;
    last = static_cast<int>(*std::prev(next) - buffers.data());
    return *std::prev(next);
  }

  // Forgets who wrote: a launch that is no dependent one is ordered behind all before.
  void start_launch() {
    for (Buffer& buffer : buffers) {
      if (buffer.writers) madvise(buffer.writers, buffer.bytes * 8, MADV_DONTNEED);
    }
    released_.clear();
    acquired_.clear();
  }

  // An atomic by the running thread: what was released here is seen by the thread once it fences,
  // and if it stands behind a fence what the thread has seen is released.
  template <class Exchange>
  auto synchronise(const void* address, Worker& worker, Actor me, const Exchange& exchange) {
    std::lock_guard<std::mutex> lock(mutex_);
    std::vector<Release>& list = released_[address];
    std::vector<Known>& known = acquired_[worker.block_number];
    for (const Release& release : list) {
      if (release.block != worker.block_number) known.push_back({release, me, kNotFenced});
    }
    if (worker.fiber->fenced) {
      const int warp = worker.warp_of(*worker.fiber);
      worker.shadow.advance(warp);  // what follows is not released
      Release release{worker.block_number, {}};
      std::copy_n(worker.shadow.clock(warp), worker.warps, release.clock.begin());
      list.push_back(release);
    }
    return exchange();
  }

  // A fence by the running thread: it sees what its atomics met.
  void fence(Worker& worker, Actor me) {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto known = acquired_.find(worker.block_number);
    if (known == acquired_.end()) return;
    for (Known& k : known->second) {
      if (k.actor == me && k.epoch == kNotFenced) k.epoch = worker.shadow.clock(me >> 6)[me >> 6];
    }
  }

  // Notes a plain access of [address, address + bytes), all inside `buffer`.  Returns a stamp with
  // which it races, or 0.
  uint64_t access(Buffer& buffer, const void* address, uint64_t bytes, bool write, Worker& worker,
                  Actor me) {
    const uint64_t first =
        static_cast<uint64_t>(static_cast<const unsigned char*>(address) - buffer.data);
    const uint64_t mine =
        Stamp::make(worker.block_number, me, worker.shadow.clock(me >> 6)[me >> 6]);
    uint64_t race = 0;
    for (uint64_t i = first; i < first + bytes; ++i) {
      std::atomic<uint64_t>& cell = buffer.writers[i];
      const uint64_t before = write ? cell.exchange(mine, std::memory_order_relaxed)
                                    : cell.load(std::memory_order_relaxed);
      if (before && before != mine && !race && !ordered(before, worker, me)) race = before;
    }
    return race;
  }

 private:
  struct Release {
    uint64_t block;
    std::array<uint32_t, 32> clock;
  };
  // What a thread has seen of another block, and when.
  struct Known {
    Release release;
    Actor actor;
    uint32_t epoch;
  };
  static constexpr uint32_t kNotFenced = ~0u;

  static bool holds(const Buffer& buffer, const unsigned char* p) {
    return static_cast<uint64_t>(p - buffer.mapping) < buffer.mapped;
  }

  bool ordered(uint64_t stamp, const Worker& worker, Actor me) {
    const uint64_t block = Stamp::block(stamp);
    const Actor actor = Stamp::actor(stamp);
    if (block == worker.block_number) {
      return worker.shadow.ordered(actor, Stamp::epoch(stamp), me);
    }
    if (block < worker.first_block) return worker.fiber->waited;
    std::lock_guard<std::mutex> lock(mutex_);
    const auto known = acquired_.find(worker.block_number);
    if (known == acquired_.end()) return false;
    return std::any_of(known->second.begin(), known->second.end(), [&](const Known& k) {
      return k.release.block == block && Stamp::epoch(stamp) < k.release.clock[actor >> 6] &&
             k.epoch != kNotFenced && worker.shadow.ordered(k.actor, k.epoch, me);
    });
  }

  std::vector<Buffer*> by_address_;
  std::mutex mutex_;
  std::unordered_map<const void*, std::vector<Release>> released_;
  std::unordered_map<uint64_t, std::vector<Known>> acquired_;  // by block
};

}  // namespace sd::emulator

#endif  // SUNDOG_EMULATOR_MEMORY_H
