// The operations of a kernel that are more than a load, a store or arithmetic.
//
// A warp collective is a meeting: each lane leaves a pointer to its operands, which lie on its
// stack, and waits; the last to come does the work for all 32, writing through those pointers.
#ifndef SUNDOG_EMULATOR_OPERATIONS_H
#define SUNDOG_EMULATOR_OPERATIONS_H

#include "checks.h"
#include "residue_run.h"
#include "scheduler.h"

#define SUNDOG_CALLER __builtin_return_address(0)

namespace sd::emulator {

Index thread_index() {
  const Worker& worker = *current_worker;
  const auto t = static_cast<uint32_t>(worker.fiber->thread);
  const Index& dim = worker.block;
  return {t % dim.x, t / dim.x % dim.y, t / (dim.x * dim.y)};
}
Index block_index() { return current_worker->index; }
Index block_dim() { return current_worker->block; }
Index grid_dim() { return current_worker->grid; }
unsigned char* arena() { return current_worker->arena; }
uint32_t own_lane() { return static_cast<uint32_t>(current_worker->fiber->thread & 31); }

void check_address(const void* address, int bytes, Space space, bool write) {
  check_aligned(address, bytes, write ? "a store" : "a load", SUNDOG_CALLER);
  if ((space == Space::kShared) == near_arena(*current_worker, address)) {
    if (kChecked && space == Space::kShared)
      note_whole(*current_worker, address, bytes, SUNDOG_CALLER);
    return;
  }
  report("wrong space", SUNDOG_CALLER, "%s %s memory with an address of %s memory",
         write ? "writes" : "reads", space == Space::kShared ? "shared" : "global",
         space == Space::kShared ? "global" : "shared");
  abandon_block();
}

// --- meetings of a warp ---

enum Operation {
  kShuffle = 1,
  kBallot,
  kSyncWarp,
  kLdmatrix,
  kMovmatrix,
  kMma,
  kGroupFence,
  kGroupMma,
  kGroupCommit,
  kGroupWait
};

inline const char* name_operation(int operation) {
  switch (operation) {
    case kShuffle:
      return "a shuffle";
    case kBallot:
      return "a vote";
    case kSyncWarp:
      return "sync_warp";
    case kLdmatrix:
      return "ldmatrix";
    case kMovmatrix:
      return "movmatrix";
    case kMma:
      return "mma";
    case kGroupFence:
      return "warpgroup_fence";
    case kGroupMma:
      return "warpgroup_mma";
    case kGroupCommit:
      return "warpgroup_commit";
    case kGroupWait:
      return "warpgroup_wait";
  }
  return "";
}

// Hands in `operands` and returns when all lanes have; the last one calls work(operands of all
// lanes).
template <class T, class Work>
inline void meet(int operation, int line, T& operands, void* pc, const Work& work) {
  Worker& worker = *current_worker;
  Fiber& fiber = *worker.fiber;
  Warp& warp = worker.warp[fiber.thread >> 5];
  if (warp.arrived == 0) {
    warp.operation = operation;
    warp.line = line;
  } else if (warp.operation != operation || warp.line != line) {
    report("divergence", pc,
           "the lanes of a warp meet in different operations: %s here, %s on line %d",
           name_operation(operation), name_operation(warp.operation), warp.line);
    abandon_block();
  }
  warp.in[fiber.thread & 31] = &operands;
  if (++warp.arrived < 32) {
    wait(worker, State::kCollective, pc);
    return;
  }
  warp.arrived = 0;
  ++worker.collectives_met;
  worker.traces[fiber.thread >> 5].meet(worker.banks);
  work(reinterpret_cast<T* const*>(warp.in));
  const int first = fiber.thread & ~31;
  for (int i = 0; i < 32; ++i)
    worker.fibers[static_cast<std::size_t>(first + i)].state = State::kRunnable;
  warp.runnable = 0xffffffffu;
  worker.runnable_warps |= 1u << (fiber.thread >> 5);
  maybe_preempt(worker);
}

uint32_t shuffle(uint32_t value, int source_lane, int line) {
  struct Operands {
    uint32_t value, result;
    int source;
  } mine{value, 0, source_lane & 31};
  meet(kShuffle, line, mine, SUNDOG_CALLER, [](Operands* const* all) {
    for (int i = 0; i < 32; ++i) all[i]->result = all[all[i]->source]->value;
  });
  return mine.result;
}

uint32_t ballot(bool predicate, int line) {
  struct Operands {
    uint32_t predicate, result;
  } mine{predicate, 0};
  meet(kBallot, line, mine, SUNDOG_CALLER, [](Operands* const* all) {
    uint32_t bits = 0;
    for (int i = 0; i < 32; ++i) bits |= all[i]->predicate << i;
    for (int i = 0; i < 32; ++i) all[i]->result = bits;
  });
  return mine.result;
}

void sync_warp(int line) {
  char nothing = 0;
  meet(kSyncWarp, line, nothing, SUNDOG_CALLER, [](char* const*) {
    Worker& worker = *current_worker;
    worker.shadow.advance(worker.warp_of(*worker.fiber));
  });
}

// --- barriers ---

// Lets the waiting threads of a barrier go.
inline void release_barrier(Worker& worker, int id) {
  Barrier& barrier = worker.barriers[id];
  ++worker.barriers_met;
  for (int w = 0; id == 0 && w < worker.warps; ++w) worker.traces[w].meet(worker.banks);
  worker.shadow.join(barrier.waiting, barrier.waiting, barrier.clock);
  for (Fiber& fiber : worker.fibers) {
    if (fiber.thread < worker.threads && fiber.state == State::kBarrier && fiber.barrier == id) {
      fiber.any = barrier.any;
      set_runnable(worker, fiber);
    }
  }
  barrier = Barrier{};
}

inline void release_block_barrier_if_complete(Worker& worker) {
  const int arrived = worker.barriers[0].arrived;
  if (arrived > 0 && arrived == worker.live) release_barrier(worker, 0);
}

// bar.sync is aligned: the lanes of a warp come to one barrier in one place of the source.
inline void check_convergent(Worker& worker, int line, void* pc) {
  const int warp = worker.fiber->thread >> 5;
  for (int i = 0; i < 32; ++i) {
    const int thread = warp * 32 + i;
    if (thread >= worker.threads) break;
    const Fiber& other = worker.fibers[static_cast<std::size_t>(thread)];
    const bool waits = other.state == State::kBarrier || other.state == State::kCluster;
    if (waits && worker.lines[warp] != line) {
      report("divergence", pc,
             "the lanes of a warp come to different barriers: here and on line %d",
             worker.lines[warp]);
      abandon_block();
    }
  }
  worker.lines[warp] = line;
}

inline bool meet_block(bool predicate, int line, void* pc) {
  Worker& worker = *current_worker;
  check_convergent(worker, line, pc);
  Barrier& barrier = worker.barriers[0];
  Fiber& fiber = *worker.fiber;
  fiber.fenced = false;  // a fence covers what was ordered before it
  fiber.barrier = 0;
  if (barrier.arrived == 0) barrier.line = line;
  if (barrier.line != line) {
    report("divergence", pc,
           "the warps of a block come to different sync_threads: here and on line %d",
           barrier.line);
    abandon_block();
  }
  barrier.waiting |= 1u << (fiber.thread >> 5);
  barrier.any |= predicate;
  if (++barrier.arrived < worker.live) {
    wait(worker, State::kBarrier, pc);
    return fiber.any;
  }
  fiber.any = barrier.any;
  release_barrier(worker, 0);
  maybe_preempt(worker);
  return fiber.any;
}

void sync_threads(int line) { meet_block(false, line, SUNDOG_CALLER); }
bool sync_threads_any(bool predicate, int line) {
  return meet_block(predicate, line, SUNDOG_CALLER);
}

// --- clusters ---

inline void release_cluster(Cluster& cluster) {
  cluster.arrived = 0;
  ++cluster.phase;
  for (Worker* block : cluster.blocks) {
    ++block->barriers_met;
    for (int w = 0; w < block->warps; ++w) block->traces[w].meet(block->banks);
    if (kChecked) block->shadow.cluster_barrier();
    for (Fiber& fiber : block->fibers) {
      if (fiber.thread < block->threads && fiber.state == State::kCluster) {
        set_runnable(*block, fiber);
      }
    }
  }
}

// Threads that have returned are not waited for.
inline void release_cluster_if_complete(Cluster& cluster) {
  if (cluster.arrived > 0 && cluster.arrived == live_threads(cluster)) release_cluster(cluster);
}

void cluster_sync(int line) {
  Worker& worker = *current_worker;
  check_convergent(worker, line, SUNDOG_CALLER);
  Cluster& cluster = *worker.cluster;
  worker.fiber->fenced = false;
  if (cluster.arrived == 0) cluster.line = line;
  if (cluster.line != line) {
    report("divergence", SUNDOG_CALLER,
           "the threads of a cluster come to different cluster_sync: here and on line %d",
           cluster.line);
    abandon_block();
  }
  if (++cluster.arrived < live_threads(cluster)) {
    return wait(worker, State::kCluster, SUNDOG_CALLER);
  }
  release_cluster(cluster);
  maybe_preempt(worker);
}

void cluster_load(void* dst, const void* src, int bytes, int rank) {
  Worker& worker = *current_worker;
  check_aligned(src, bytes, "a load", SUNDOG_CALLER);
  const auto& blocks = worker.cluster->blocks;
  if (rank < 0 || static_cast<std::size_t>(rank) >= blocks.size()) {
    report("out of bounds", SUNDOG_CALLER, "reads of block %d of a cluster of %d", rank,
           static_cast<int>(blocks.size()));
    abandon_block();
  }
  Worker& owner = *blocks[static_cast<std::size_t>(rank)];
  // Also that it is inside of the arena, which is as large in every block.
  const auto offset = static_cast<const unsigned char*>(src) - worker.arena;
  if (&owner == &worker || offset < 0 ||
      static_cast<uint64_t>(offset) + static_cast<uint64_t>(bytes) > worker.arena_bytes) {
    check_shared(worker, src, bytes, Shadow::Kind::kRead, own_actor(worker), SUNDOG_CALLER);
  } else if (kChecked) {
    owner.read_phase = worker.cluster->phase;
    owner.read_pc = SUNDOG_CALLER;
    Actor other = kNobody;
    const Conflict conflict = owner.shadow.remote_read(static_cast<uint64_t>(offset), bytes, other);
    if (conflict == Conflict::kUninitialised) {
      report("uninitialised read", SUNDOG_CALLER,
             "reads %d bytes at shared offset %lld of block %d of the cluster that nobody wrote",
             bytes, static_cast<long long>(offset), rank);
    } else if (conflict != Conflict::kNone) {
      report(conflict == Conflict::kInFlight ? "copy in flight" : "shared race", SUNDOG_CALLER,
             "reads %d bytes at shared offset %lld of block %d of the cluster, written with no "
             "cluster_sync between",
             bytes, static_cast<long long>(offset), rank);
    }
  }
  std::memcpy(dst, owner.arena + offset, static_cast<std::size_t>(bytes));
}

// Counts an arrival at a named barrier; false if it is not complete.
inline bool arrive(Worker& worker, int id, int count, void* pc) {
  Barrier& barrier = worker.barriers[id & 15];
  if (id < 1 || id > 15 || count % 32 != 0 || count <= 0 ||
      (barrier.arrived > 0 && barrier.count != count)) {
    report("bad barrier", pc, "barrier %d for %d threads, where it already waits for %d", id, count,
           barrier.arrived > 0 ? barrier.count : 0);
    abandon_block();
  }
  barrier.count = count;
  return ++barrier.arrived == count;
}

void barrier_sync(int id, int count, int line) {
  Worker& worker = *current_worker;
  check_convergent(worker, line, SUNDOG_CALLER);
  const bool complete = arrive(worker, id, count, SUNDOG_CALLER);
  Fiber& fiber = *worker.fiber;
  fiber.fenced = false;
  fiber.barrier = id;
  worker.barriers[id].waiting |= 1u << (fiber.thread >> 5);
  if (!complete) return wait(worker, State::kBarrier, SUNDOG_CALLER);
  release_barrier(worker, id);
  maybe_preempt(worker);
}

void barrier_arrive(int id, int count, int line) {
  Worker& worker = *current_worker;
  check_convergent(worker, line, SUNDOG_CALLER);
  const bool complete = arrive(worker, id, count, SUNDOG_CALLER);
  const int warp = worker.fiber->thread >> 5;
  worker.shadow.advance(warp);  // what this warp does from now on is not released
  uint32_t* released = worker.barriers[id].clock;
  for (int w = 0; w < worker.warps; ++w) {
    released[w] = std::max(released[w], worker.shadow.clock(warp)[w]);
  }
  if (complete) release_barrier(worker, id);
}

void fence_device() {
  Worker& worker = *current_worker;
  worker.fiber->fenced = true;
  if (kChecked) worker.memory->fence(worker, own_actor(worker));
}

// The kernels before are done when a block that did not start early comes here.
void grid_wait() {
  Worker& worker = *current_worker;
  if (worker.early) wait(worker, State::kGridWait, SUNDOG_CALLER);
  worker.fiber->waited = true;
}

// --- asynchronous copies ---

inline void land(Copy& copy) {
  if (copy.src) {
    std::memcpy(copy.dst, copy.src, static_cast<std::size_t>(copy.bytes));
  } else {
    std::memset(copy.dst, 0, static_cast<std::size_t>(copy.bytes));
  }
  copy.landed = true;
}

void copy_start(void* dst, const void* src, int bytes, bool predicate) {
  Worker& worker = *current_worker;
  check_aligned(dst, bytes, "a cp_async destination", SUNDOG_CALLER);
  check_shared(worker, dst, bytes, Shadow::Kind::kCopyStart, own_actor(worker), SUNDOG_CALLER);
  if (predicate) {
    check_aligned(src, bytes, "a cp_async source", SUNDOG_CALLER);
    if (kChecked) {
      if (near_arena(worker, src)) check_address(src, bytes, Space::kGlobal, false);
      check_global(worker, src, static_cast<uint64_t>(bytes), false, SUNDOG_CALLER);
    }
  }
  Fiber& fiber = *worker.fiber;
  const auto* from = predicate ? static_cast<const unsigned char*>(src) : nullptr;
  fiber.copies.push_back({static_cast<unsigned char*>(dst), from, bytes, false, fiber.groups});
  bool early = worker.schedule == Schedule::kInOrderEager;
  if (worker.schedule == Schedule::kRandom) early = next_random(worker.random) >> 63;
  if (early) land(fiber.copies.back());
}

void copy_commit() { ++current_worker->fiber->groups; }

void copy_wait(int groups) {
  Worker& worker = *current_worker;
  Fiber& fiber = *worker.fiber;
  while (fiber.copies_done < fiber.copies.size()) {
    Copy& copy = fiber.copies[fiber.copies_done];
    if (copy.group + static_cast<uint64_t>(groups) >= fiber.groups) break;
    if (!copy.landed) land(copy);
    check_shared(worker, copy.dst, copy.bytes, Shadow::Kind::kCopyLand, own_actor(worker),
                 SUNDOG_CALLER);
    ++fiber.copies_done;
  }
  if (fiber.copies_done == fiber.copies.size()) {
    fiber.copies.clear();
    fiber.copies_done = 0;
  } else if (fiber.copies_done > 1024) {
    fiber.copies.erase(fiber.copies.begin(),
                       fiber.copies.begin() + static_cast<std::ptrdiff_t>(fiber.copies_done));
    fiber.copies_done = 0;
  }
}

// --- atomics ---

// Replaces *address by update(*address) and returns what was there.
template <class T, class Update>
inline T atomic_update(T* address, void* pc, const Update& update) {
  static_assert(sizeof(T) == 4, "atomics have four bytes");
  Worker& worker = *current_worker;
  check_aligned(address, 4, "an atomic", pc);
  const auto exchange = [&] {
    uint32_t* word = reinterpret_cast<uint32_t*>(address);
    uint32_t before = __atomic_load_n(word, __ATOMIC_SEQ_CST), after;
    T old;
    do {
      std::memcpy(&old, &before, 4);
      const T updated = update(old);
      std::memcpy(&after, &updated, 4);
    } while (!__atomic_compare_exchange_n(word, &before, after, false, __ATOMIC_SEQ_CST,
                                          __ATOMIC_SEQ_CST));
    return old;
  };
  if (!kChecked) return exchange();
  if (near_arena(worker, address)) {
    check_shared(worker, address, 4, Shadow::Kind::kWrite, own_actor(worker), pc);
    return exchange();
  }
  Buffer* buffer = worker.memory->find(address, worker.last_buffer);
  const auto offset = buffer ? reinterpret_cast<unsigned char*>(address) - buffer->data : -1;
  if (!buffer || offset < 0 || static_cast<uint64_t>(offset) + 4 > buffer->bytes ||
      !buffer->writable) {
    check_global(worker, address, 4, true, pc);
  }
  check_waited(worker, pc);
  return worker.memory->synchronise(address, worker, own_actor(worker), exchange);
}

float atomic_add(float* address, float value) {
  current_worker->memory->float_atomics.store(true, std::memory_order_relaxed);
  return atomic_update(address, SUNDOG_CALLER, [value](float old) { return old + value; });
}
Code atomic_add_residue(Code* address, Code value) {
  return atomic_update(address, SUNDOG_CALLER,
                       [value](Code old) { return residue_add(old, value); });
}
uint32_t atomic_add(uint32_t* address, uint32_t value) {
  return atomic_update(address, SUNDOG_CALLER, [value](uint32_t old) { return old + value; });
}
uint32_t atomic_increment(uint32_t* address, uint32_t limit) {
  return atomic_update(address, SUNDOG_CALLER,
                       [limit](uint32_t old) { return old < limit ? old + 1 : 0; });
}

}  // namespace sd::emulator

#endif  // SUNDOG_EMULATOR_OPERATIONS_H
