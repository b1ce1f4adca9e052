// What is checked of one access to memory.  Every load and store of a kernel that was compiled for
// checking comes here (hooks.h), and so do the runtime's own accesses on behalf of a thread.
#ifndef SUNDOG_EMULATOR_CHECKS_H
#define SUNDOG_EMULATOR_CHECKS_H

#include "memory.h"

namespace sd::emulator {

extern const bool kChecked;  // the kernel was compiled with hooks

inline Actor own_actor(const Worker& worker) {
  const int thread = worker.fiber->thread;
  return static_cast<Actor>((thread >> 5) << 6 | (thread & 31));
}

inline Actor warp_actor(const Worker& worker) {
  return static_cast<Actor>((worker.fiber->thread >> 5) << 6 | kAllLanes);
}

inline const char* name_actor(Actor actor, char (&text)[40]) {
  if ((actor & 63) < 32) {
    std::snprintf(text, sizeof text, "thread %d", (actor >> 6) * 32 + (actor & 63));
  } else {
    std::snprintf(text, sizeof text, "warp %d", actor >> 6);
  }
  return text;
}

inline bool near_arena(const Worker& worker, const void* address) {
  const auto offset = static_cast<const unsigned char*>(address) - worker.arena;
  return offset >= -static_cast<int64_t>(kGuardBytes) &&
         offset < static_cast<int64_t>(worker.arena_bytes + kGuardBytes);
}

[[gnu::cold, gnu::noinline]] inline void report_conflict(Conflict conflict, uint64_t offset,
                                                         int bytes, Actor me, Actor other,
                                                         const void* pc) {
  char a[40], b[40];
  name_actor(me, a);
  name_actor(other, b);
  const auto at = static_cast<unsigned long long>(offset);
  switch (conflict) {
    case Conflict::kNone:
      return;
    case Conflict::kWriteWrite:
      return report(
          "shared race", pc,
          "%s writes %d bytes at shared offset %llu that %s wrote, with no barrier between", a,
          bytes, at, b);
    case Conflict::kReadAfterWrite:
      return report(
          "shared race", pc,
          "%s reads %d bytes at shared offset %llu that %s wrote, with no barrier between", a,
          bytes, at, b);
    case Conflict::kWriteAfterRead:
      return report(
          "shared race", pc,
          "%s writes %d bytes at shared offset %llu that %s read, with no barrier between", a,
          bytes, at, b);
    case Conflict::kInFlight:
      return report("copy in flight", pc,
                    "%s touches %d bytes at shared offset %llu while a cp_async of %s is under way",
                    a, bytes, at, b);
    case Conflict::kUninitialised:
      return report("uninitialised read", pc,
                    "%s reads %d bytes at shared offset %llu that nobody wrote", a, bytes, at);
    case Conflict::kUnfenced:
      return report("missing fence", pc,
                    "an operation of %s reads %d bytes at shared offset %llu past the threads; %s "
                    "wrote them and no fence_async_proxy of it followed",
                    a, bytes, at, b);
    case Conflict::kWriteUnderRemoteRead:
      return report("shared race", pc,
                    "%s writes %d bytes at shared offset %llu that another block of the cluster "
                    "read, with no cluster_sync between",
                    a, bytes, at);
  }
}

// What the load and store units do; copies that land and products of warp groups go past them.  A
// vector counts once, as it is on a GPU, however the compiler of the host takes it to pieces.
inline void note_banks(Worker& worker, uint64_t offset, int bytes, Shadow::Kind kind,
                       const void* pc) {
  const bool counted = kind == Shadow::Kind::kRead || kind == Shadow::Kind::kWrite ||
                       kind == Shadow::Kind::kCopyStart;
  if (!counted || worker.schedule_number != 0 || worker.fiber == nullptr) return;
  const unsigned char* address = worker.arena + offset;
  if (worker.whole_of == worker.fiber && address >= worker.whole &&
      address + bytes <= worker.whole + worker.whole_bytes) {
    return;
  }
  const int thread = worker.fiber->thread;
  worker.traces[thread >> 5].add(thread & 31, pc, offset, bytes);
}

// An access of a vector: its parts come to check_shared one by one.
inline void note_whole(Worker& worker, const void* address, int bytes, const void* pc) {
  const auto* at = static_cast<const unsigned char*>(address);
  worker.whole_of = nullptr;
  if (at < worker.arena || at + bytes > worker.arena + worker.arena_bytes) return;
  note_banks(worker, static_cast<uint64_t>(at - worker.arena), bytes, Shadow::Kind::kRead, pc);
  worker.whole = at;
  worker.whole_bytes = bytes;
  worker.whole_of = worker.fiber;
}

// An access to the arena by `me`; ends the block if it lies outside.
inline void check_shared(Worker& worker, const void* address, int bytes, Shadow::Kind kind,
                         Actor me, const void* pc) {
  const auto offset =
      static_cast<uint64_t>(static_cast<const unsigned char*>(address) - worker.arena);
  if (offset >= worker.arena_bytes || worker.arena_bytes - offset < static_cast<uint64_t>(bytes)) {
    report("out of bounds", pc, "%d bytes at shared offset %lld, where the block has %llu bytes",
           bytes, static_cast<long long>(offset),
           static_cast<unsigned long long>(worker.arena_bytes));
    abandon_block();
  }
  if (!kChecked) return;
  ++worker.shared_accesses;
  note_banks(worker, offset, bytes, kind, pc);
  Actor other = kNobody;
  const Conflict conflict = worker.shadow.access(offset, bytes, kind, me, other);
  if (conflict != Conflict::kNone) report_conflict(conflict, offset, bytes, me, other, pc);
}

[[noreturn, gnu::cold, gnu::noinline]] inline void report_wild(Worker& worker, const void* address,
                                                               uint64_t bytes, bool write,
                                                               const void* pc) {
  const Buffer* buffer = worker.memory->find(address, worker.last_buffer);
  const char* verb = write ? "writes" : "reads";
  const auto count = static_cast<unsigned long long>(bytes);
  if (buffer) {
    const long long offset = static_cast<const unsigned char*>(address) - buffer->data;
    report("out of bounds", pc, "%s %llu bytes at offset %lld of buffer %d, which has %llu bytes",
           verb, count, offset, static_cast<int>(buffer - worker.memory->buffers.data()),
           static_cast<unsigned long long>(buffer->bytes));
  } else {
    report("out of bounds", pc, "%s %llu bytes at %p, which is in no buffer", verb, count, address);
  }
  abandon_block();
}

// A write, while an earlier kernel may still read or write there.
inline void check_waited(Worker& worker, const void* pc) {
  if (worker.fiber->waited) return;
  report("global race", pc, "writes to global memory before grid_wait, beside earlier kernels");
}

[[gnu::cold, gnu::noinline]] inline void report_race(Worker& worker, const Buffer& buffer,
                                                     uint64_t offset, uint64_t bytes, bool write,
                                                     uint64_t race, const void* pc) {
  char other[40], block[48];
  if (Stamp::block(race) < worker.first_block) {
    std::snprintf(block, sizeof block, "an earlier kernel");
  } else {
    std::snprintf(block, sizeof block, "block %llu",
                  static_cast<unsigned long long>(Stamp::block(race) - worker.first_block));
  }
  report("global race", pc,
         "%s %llu bytes at offset %llu of buffer %d that %s of %s wrote, with nothing that orders "
         "them",
         write ? "writes" : "reads", static_cast<unsigned long long>(bytes),
         static_cast<unsigned long long>(offset),
         static_cast<int>(&buffer - worker.memory->buffers.data()),
         name_actor(Stamp::actor(race), other), block);
}

// An access to a buffer by the running thread; ends the block if there is none.
inline void check_global(Worker& worker, const void* address, uint64_t bytes, bool write,
                         const void* pc) {
  Buffer* buffer = worker.memory->find(address, worker.last_buffer);
  const auto offset =
      buffer ? static_cast<uint64_t>(static_cast<const unsigned char*>(address) - buffer->data) : 0;
  if (!buffer || offset >= buffer->bytes || buffer->bytes - offset < bytes) {
    report_wild(worker, address, bytes, write, pc);
  }
  if (write && !buffer->writable) {
    report("write to input", pc,
           "writes %llu bytes at offset %llu of buffer %d, which is read-only",
           static_cast<unsigned long long>(bytes), static_cast<unsigned long long>(offset),
           static_cast<int>(buffer - worker.memory->buffers.data()));
    abandon_block();
  }
  if (write) {
    worker.fiber->fenced = false;
    check_waited(worker, pc);
  }
  if (!buffer->writers) return;
  const uint64_t race =
      worker.memory->access(*buffer, address, bytes, write, worker, own_actor(worker));
  if (race) report_race(worker, *buffer, offset, bytes, write, race, pc);
}

inline void check_aligned(const void* address, int bytes, const char* what, const void* pc) {
  if (reinterpret_cast<uintptr_t>(address) % static_cast<uintptr_t>(bytes) == 0) return;
  const Worker& worker = *current_worker;
  if (near_arena(worker, address)) {
    report("misaligned", pc, "%s of %d bytes at shared offset %lld", what, bytes,
           static_cast<long long>(static_cast<const unsigned char*>(address) - worker.arena));
  } else {
    report("misaligned", pc, "%s of %d bytes at %p", what, bytes, address);
  }
  abandon_block();
}

}  // namespace sd::emulator

#endif  // SUNDOG_EMULATOR_CHECKS_H
