// The state of the emulated machine: a Worker runs one block at a time, all threads of it as
// fibers. The workers of a cluster belong to one OS thread, which runs one until it waits and then
// another. Nothing is shared between those of different clusters but the buffers, their shadow and
// the problems.
#ifndef SUNDOG_EMULATOR_MACHINE_H
#define SUNDOG_EMULATOR_MACHINE_H

#include <cstdint>
#include <map>
#include <vector>

#include "banks.h"
#include "fiber.h"
#include "protocol.h"
#include "shadow.h"
#include "sundog_emulator.h"

namespace sd::emulator {

// The order of threads and the moment at which asynchronous copies land.
enum class Schedule {
  kInOrderEager,  // lowest lane and warp first; copies land when they start
  kReverseLate,   // highest first; copies land when they are waited for
  kRandom,        // both drawn, copy by copy
};

enum class State : uint8_t {
  kRunnable,
  kCollective,
  kBarrier,
  kMbarrier,
  kGridWait,
  kCluster,
  kDone
};

struct Copy {
  unsigned char* dst;
  const unsigned char* src;  // nullptr: zeros
  int bytes;
  bool landed;
  uint64_t group;
};

struct Fiber {
  Context context;
  State state;
  bool fenced;  // no store to global memory since the last fence_device
  bool waited;  // for the kernels before
  bool any;     // what sync_threads_any gave
  int thread;
  int barrier;              // where it waits, if state is kBarrier
  uint64_t mbarrier;        // where it waits, if state is kMbarrier: offset in the arena
  int parity;               // and for the phase of which parity
  void* pc;                 // of the call in which it waits
  uint64_t groups;          // of copies, committed
  std::size_t copies_done;  // of copies, from the front
  std::vector<Copy> copies;
};

// A warp's share of a product of warp groups that was started.
struct GroupProduct {
  float (*d[32])[4];
  uint32_t a[32][4];
  bool from_registers, across_a, across_b, add, committed, done;
  uint64_t a_tile, b_tile;
  int columns;
  Operand operand;
  void* pc;
};

// What the lanes of a warp hand to a collective; it lies on their stacks until all have come.
struct Warp {
  uint32_t runnable;  // lanes
  int arrived;
  int operation;
  int line;
  void* in[32];
};

struct Barrier {
  int arrived;
  int count;
  int line;            // of the first arrival at sync_threads
  bool any;            // of the predicates
  uint32_t waiting;    // warps
  uint32_t clock[32];  // what barrier_arrive has released
};

// A barrier in shared memory that counts arrivals and bytes.
struct Mbarrier {
  int count, pending;  // arrivals of a phase, and still to come in this one
  int64_t bytes;       // still to come
  uint64_t phase;
  uint32_t clock[32];    // what was released to this phase
  uint32_t done[2][32];  // and to the last complete ones, by parity
};

struct PendingBulk {
  BulkCopy copy;
  uint64_t barrier;  // offset in the arena
  bool landed;
  void* pc;
};

class Problems;
class Memory;
struct Worker;

// Blocks that run at once and have a barrier in common.
struct Cluster {
  std::vector<Worker*> blocks;  // by rank
  int arrived = 0;
  int line = 0;        // of the first arrival
  uint32_t phase = 1;  // grows at each barrier
};

struct Worker {
  // The block.
  const Kernel* kernel = nullptr;
  void* const* arguments = nullptr;
  Index grid{}, block{}, index{};
  uint64_t block_number = 0;  // counted through kernels that may overlap
  uint64_t first_block = 0;   // of this kernel
  bool dependent = false;     // kernels before may still run
  bool early = false;         // they do: threads stop at grid_wait
  int threads = 0, warps = 0, live = 0;
  Cluster* cluster = nullptr;
  uint32_t end_phase = 0;   // of the cluster, when the last thread ended
  uint32_t read_phase = 0;  // when another block last read its shared memory; 0: never
  const void* read_pc = nullptr;
  std::vector<Fiber> fibers;
  Warp warp[32];
  std::vector<GroupProduct> products[32];  // by warp: not yet waited for
  std::map<uint64_t, Mbarrier> mbarriers;  // by offset in the arena
  std::vector<PendingBulk> bulk;
  Barrier barriers[16];
  int lines[32];  // of the barrier that the lanes of a warp are arriving at; 0: none
  Stacks stacks;
  Context main;
  Fiber* fiber = nullptr;  // the one that runs; nullptr: the scheduler
  bool abandoned = false;

  // The order.
  Schedule schedule = Schedule::kInOrderEager;
  uint64_t random = 0;
  uint32_t runnable_warps = 0;

  // Shared memory.
  unsigned char* arena = nullptr;
  uint64_t arena_bytes = 0;
  Shadow shadow;

  // The rest of the machine.
  int launch = 0, schedule_number = 0;
  Memory* memory = nullptr;
  Problems* problems = nullptr;
  int last_buffer = 0;

  uint64_t barriers_met = 0, collectives_met = 0, shared_accesses = 0;
  BankTrace traces[32];  // by warp; of the first schedule
  BankCounts banks;
  // What load_shared or store_shared was last told to access as a whole, and by whom.
  const unsigned char* whole = nullptr;
  int whole_bytes = 0;
  const Fiber* whole_of = nullptr;

  int warp_of(const Fiber& f) const { return f.thread >> 5; }
};

inline int live_threads(const Cluster& cluster) {
  int live = 0;
  for (const Worker* block : cluster.blocks) live += block->live;
  return live;
}

constinit inline thread_local Worker* current_worker = nullptr;

// The next of a well-mixed sequence (SplitMix64, Steele, Lea and Flood 2014).
inline uint64_t next_random(uint64_t& state) {
  uint64_t z = state += 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

}  // namespace sd::emulator

#endif  // SUNDOG_EMULATOR_MACHINE_H
