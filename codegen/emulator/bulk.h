// Barriers that count arrivals and bytes (mbarrier), and bulk tensor copies.
//
// A copy lands when it is started (eager schedules), or as late as it can: when somebody waits for
// its barrier, or when nothing else in the block can go on.  What it writes is ordered before
// whoever waited for the phase in which its bytes were counted; what it overwrites must have been
// released to the thread that starts it.
#ifndef SUNDOG_EMULATOR_BULK_H
#define SUNDOG_EMULATOR_BULK_H

#include "warpgroup.h"

namespace sd::emulator {

// --- barriers ---

inline void wake_phase(Worker& worker, uint64_t offset, Mbarrier& barrier) {
  for (Fiber& fiber : worker.fibers) {
    const bool waits = fiber.thread < worker.threads && fiber.state == State::kMbarrier &&
                       fiber.mbarrier == offset;
    if (waits && fiber.parity != static_cast<int>(barrier.phase & 1)) set_runnable(worker, fiber);
  }
}

// Begins the next phase if everything of this one has come.
inline void complete_phase(Worker& worker, uint64_t offset, Mbarrier& barrier) {
  if (barrier.pending > 0 || barrier.bytes != 0) return;
  std::copy_n(barrier.clock, 32, barrier.done[barrier.phase & 1]);
  std::fill_n(barrier.clock, 32, 0u);
  ++barrier.phase;
  barrier.pending = barrier.count;
  wake_phase(worker, offset, barrier);
}

inline Mbarrier& find_mbarrier(Worker& worker, const void* address, void* pc) {
  check_aligned(address, 8, "a barrier", pc);
  check_shared(worker, address, 8, Shadow::Kind::kRead, own_actor(worker), pc);
  const auto offset =
      static_cast<uint64_t>(static_cast<const unsigned char*>(address) - worker.arena);
  const auto found = worker.mbarriers.find(offset);
  if (found == worker.mbarriers.end()) {
    report("bad barrier", pc, "the barrier at shared offset %llu was never initialised",
           static_cast<unsigned long long>(offset));
    abandon_block();
  }
  return found->second;
}

inline uint64_t offset_of(const Worker& worker, const void* address) {
  return static_cast<uint64_t>(static_cast<const unsigned char*>(address) - worker.arena);
}

// What the running thread's warp has done is seen by those who wait for the phase.
inline void release_to(Worker& worker, Mbarrier& barrier) {
  const int warp = worker.warp_of(*worker.fiber);
  worker.shadow.advance(warp);
  for (int w = 0; w < worker.warps; ++w) {
    barrier.clock[w] = std::max(barrier.clock[w], worker.shadow.clock(warp)[w]);
  }
}

void mbarrier_init(uint64_t* address, int count) {
  Worker& worker = *current_worker;
  check_aligned(address, 8, "a barrier", SUNDOG_CALLER);
  check_shared(worker, address, 8, Shadow::Kind::kWrite, own_actor(worker), SUNDOG_CALLER);
  Mbarrier barrier{};
  barrier.count = barrier.pending = count;
  worker.mbarriers[offset_of(worker, address)] = barrier;
}

inline void arrive_at(Worker& worker, uint64_t* address, int bytes, void* pc) {
  Mbarrier& barrier = find_mbarrier(worker, address, pc);
  release_to(worker, barrier);
  barrier.bytes += bytes;
  if (--barrier.pending < 0) {
    report("bad barrier", pc, "more arrivals in one phase than the %d it was made for",
           barrier.count);
    abandon_block();
  }
  complete_phase(worker, offset_of(worker, address), barrier);
}

void mbarrier_arrive(uint64_t* address) { arrive_at(*current_worker, address, 0, SUNDOG_CALLER); }
void mbarrier_expect(uint64_t* address, int bytes) {
  arrive_at(*current_worker, address, bytes, SUNDOG_CALLER);
}

// --- copies ---

// Bytes of the box; its elements in order of their place in shared memory.
inline uint64_t box_bytes(const BulkCopy& copy) {
  uint64_t bytes = static_cast<uint64_t>(copy.element);
  for (int d = 0; d < copy.rank; ++d) bytes *= static_cast<uint64_t>(copy.boxes[d]);
  return bytes;
}

// Calls visit(offset in the box, source or nullptr) for each row of the box.
template <class Visit>
inline void for_each_row(const BulkCopy& copy, const Visit& visit) {
  int64_t rows = 1;
  for (int d = 1; d < copy.rank; ++d) rows *= copy.boxes[d];
  for (int64_t row = 0; row < rows; ++row) {
    int64_t rest = row, from = 0;
    bool inside = true;
    for (int d = 1; d < copy.rank; ++d) {
      const int64_t at = copy.at[d] + rest % copy.boxes[d];
      rest /= copy.boxes[d];
      inside &= at >= 0 && at < copy.extents[d];
      from += at * copy.strides[d];
    }
    visit(static_cast<uint64_t>(row * copy.boxes[0] * copy.element),
          inside ? copy.tensor + from : nullptr);
  }
}

inline void land(Worker& worker, PendingBulk& pending) {
  const BulkCopy& copy = pending.copy;
  const auto start = static_cast<uint64_t>(copy.dst - worker.arena);
  const uint64_t mask = copy.swizzle == 0 ? 0 : static_cast<uint64_t>(copy.swizzle) / 16 - 1;
  for_each_row(copy, [&](uint64_t offset, const unsigned char* row) {
    for (int64_t i = 0; i < copy.boxes[0]; ++i) {
      const int64_t at = copy.at[0] + i;
      uint64_t to = start + offset + static_cast<uint64_t>(i * copy.element);
      to ^= (to >> 7 & mask) << 4;
      const bool inside = row != nullptr && at >= 0 && at < copy.extents[0];
      if (inside) {
        std::memcpy(worker.arena + to, row + at * copy.element,
                    static_cast<std::size_t>(copy.element));
      } else {
        std::memset(worker.arena + to, 0, static_cast<std::size_t>(copy.element));
      }
    }
  });
  pending.landed = true;
  const uint64_t bytes = box_bytes(copy);
  if (kChecked) {
    Actor other = kNobody;
    worker.shadow.access(start, static_cast<int>(bytes), Shadow::Kind::kBulkLand, 0, other);
  }
  Mbarrier& barrier = worker.mbarriers[pending.barrier];
  barrier.bytes -= static_cast<int64_t>(bytes);
  if (barrier.bytes < 0) {
    report("bad barrier", pending.pc, "%lld bytes came that nobody expected in this phase",
           static_cast<long long>(-barrier.bytes));
    barrier.bytes = 0;
  }
  complete_phase(worker, pending.barrier, barrier);
}

// Lands one copy that is still under way; false if there is none.
bool land_pending(Worker& worker) {
  for (PendingBulk& pending : worker.bulk) {
    if (pending.landed) continue;
    land(worker, pending);
    return true;
  }
  return false;
}

void mbarrier_wait(uint64_t* address, int parity) {
  Worker& worker = *current_worker;
  Mbarrier& barrier = find_mbarrier(worker, address, SUNDOG_CALLER);
  const uint64_t offset = offset_of(worker, address);
  const auto waiting = [&] { return static_cast<int>(barrier.phase & 1) == parity; };
  while (waiting()) {
    bool landed = false;
    for (PendingBulk& pending : worker.bulk) {
      if (pending.landed || pending.barrier != offset) continue;
      land(worker, pending);
      landed = true;
      break;
    }
    if (landed) continue;
    worker.fiber->mbarrier = offset;
    worker.fiber->parity = parity;
    wait(worker, State::kMbarrier, SUNDOG_CALLER);
  }
  const int warp = worker.warp_of(*worker.fiber);
  for (int w = 0; w < worker.warps; ++w) {
    uint32_t& seen = worker.shadow.clock(warp)[w];
    if (w != warp) seen = std::max(seen, barrier.done[parity & 1][w]);
  }
}

void bulk_copy(const BulkCopy& copy, uint64_t* address) {
  Worker& worker = *current_worker;
  void* pc = SUNDOG_CALLER;
  // A swizzle is one of addresses: its pattern goes by eight rows, wherever a copy begins.
  check_aligned(copy.dst, 128, "a bulk copy's target", pc);
  Mbarrier& barrier = find_mbarrier(worker, address, pc);
  const uint64_t bytes = box_bytes(copy);
  check_shared(worker, copy.dst, static_cast<int>(bytes), Shadow::Kind::kBulkStart,
               own_actor(worker), pc);
  if (kChecked) {
    for_each_row(copy, [&](uint64_t, const unsigned char* row) {
      const int64_t first = std::max<int64_t>(copy.at[0], 0);
      const int64_t last = std::min<int64_t>(copy.at[0] + copy.boxes[0], copy.extents[0]);
      if (row == nullptr || first >= last) return;
      check_global(worker, row + first * copy.element,
                   static_cast<uint64_t>((last - first) * copy.element), false, pc);
    });
  }
  release_to(worker, barrier);
  PendingBulk pending{copy, offset_of(worker, address), false, pc};
  worker.bulk.push_back(pending);
  bool early = worker.schedule == Schedule::kInOrderEager;
  if (worker.schedule == Schedule::kRandom) early = next_random(worker.random) >> 63;
  if (early) land(worker, worker.bulk.back());
  if (worker.bulk.size() > 256) {
    std::erase_if(worker.bulk, [](const PendingBulk& p) { return p.landed; });
  }
}

}  // namespace sd::emulator

#endif  // SUNDOG_EMULATOR_BULK_H
