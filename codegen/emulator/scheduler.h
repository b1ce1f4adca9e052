// Which thread of the block runs next.  A thread runs until it waits; then the next runnable lane
// of its warp goes on, and when the warp has none another warp.  Threads switch to one another
// directly; the scheduler proper (the main context of the worker) runs only at the start and at the
// end, or when nobody can run: that is a deadlock.
#ifndef SUNDOG_EMULATOR_SCHEDULER_H
#define SUNDOG_EMULATOR_SCHEDULER_H

#include <algorithm>
#include <cstring>

#include "problems.h"

namespace sd::emulator {

// One of the set bits of `mask`, which is not 0: the next after `current` in the order of the
// schedule.
inline int choose(Worker& worker, uint32_t mask, int current) {
  switch (worker.schedule) {
    case Schedule::kInOrderEager: {
      const uint32_t above = mask & static_cast<uint32_t>(~uint64_t{0} << (current + 1));
      return __builtin_ctz(above ? above : mask);
    }
    case Schedule::kReverseLate: {
      const uint32_t below =
          mask & static_cast<uint32_t>((uint64_t{1} << std::max(current, 0)) - 1);
      return 31 - __builtin_clz(below ? below : mask);
    }
    case Schedule::kRandom: {
      int skip = static_cast<int>(next_random(worker.random) >> 33) % __builtin_popcount(mask);
      for (; skip > 0; --skip) mask &= mask - 1;
      return __builtin_ctz(mask);
    }
  }
  return 0;
}

inline void set_runnable(Worker& worker, Fiber& fiber) {
  fiber.state = State::kRunnable;
  worker.warp[fiber.thread >> 5].runnable |= 1u << (fiber.thread & 31);
  worker.runnable_warps |= 1u << (fiber.thread >> 5);
}

inline void set_waiting(Worker& worker, Fiber& fiber, State state) {
  fiber.state = state;
  uint32_t& lanes = worker.warp[fiber.thread >> 5].runnable;
  lanes &= ~(1u << (fiber.thread & 31));
  if (lanes == 0) worker.runnable_warps &= ~(1u << (fiber.thread >> 5));
}

bool land_pending(Worker& worker);

// Goes on with another thread, of another warp if `leave_warp`; returns when this one is chosen
// again.
inline void switch_away(Worker& worker, bool leave_warp) {
  Fiber& self = *worker.fiber;
  int warp = self.thread >> 5;
  while (worker.runnable_warps == 0 && land_pending(worker)) {
  }
  if (worker.runnable_warps == 0) {
    worker.fiber = nullptr;
    switch_context(self.context, worker.main);
    return;
  }
  const bool moves = leave_warp || worker.warp[warp].runnable == 0;
  if (moves) warp = choose(worker, worker.runnable_warps, warp);
  const int current = warp == self.thread >> 5                    ? self.thread & 31
                      : worker.schedule == Schedule::kReverseLate ? 32
                                                                  : -1;
  const int lane = choose(worker, worker.warp[warp].runnable, current);
  Fiber& next = worker.fibers[static_cast<std::size_t>(warp * 32 + lane)];
  if (&next == &self) return;
  worker.fiber = &next;
  switch_context(self.context, next.context);
}

// The running thread waits.
inline void wait(Worker& worker, State state, void* pc) {
  worker.fiber->pc = pc;
  set_waiting(worker, *worker.fiber, state);
  switch_away(worker, false);
}

// Called where threads have met: under random order sometimes another warp goes first.
inline void maybe_preempt(Worker& worker) {
  if (worker.schedule == Schedule::kRandom && next_random(worker.random) % 8 == 0) {
    switch_away(worker, true);
  }
}

void release_block_barrier_if_complete(Worker& worker);
void release_cluster_if_complete(Cluster& cluster);

// Where every thread begins and ends.
inline void thread_main() {
  Worker& worker = *current_worker;
  void* arguments[64];  // on the stack of the thread, where its loads are nobody's business
  std::memcpy(arguments, worker.arguments,
              sizeof(void*) * static_cast<std::size_t>(worker.kernel->parameters));
  worker.kernel->call(arguments);
  if (!worker.fiber->waited) {
    report("missing wait", nullptr,
           "a thread of a dependent kernel ends without grid_wait: the kernel behind it may start "
           "before those before it are done");
  }
  --worker.live;
  set_waiting(worker, *worker.fiber, State::kDone);
  if (worker.live == 0) worker.end_phase = worker.cluster->phase;
  release_block_barrier_if_complete(worker);
  release_cluster_if_complete(*worker.cluster);
  switch_away(worker, false);
  __builtin_trap();
}

// Says which threads wait for what.
inline void report_deadlock(Worker& worker) {
  int in_collective = 0, in_barrier = 0, done = worker.threads - worker.live;
  Fiber* first = nullptr;
  for (Fiber& fiber : worker.fibers) {
    if (fiber.thread >= worker.threads || fiber.state == State::kDone) continue;
    in_collective += fiber.state == State::kCollective;
    in_barrier += fiber.state == State::kBarrier || fiber.state == State::kMbarrier ||
                  fiber.state == State::kCluster;
    if (!first) first = &fiber;
  }
  worker.fiber = first;
  const char* where = first->state == State::kCollective ? "a warp operation"
                      : first->state == State::kMbarrier ? "mbarrier_wait"
                      : first->state == State::kCluster  ? "cluster_sync"
                      : first->barrier == 0              ? "sync_threads"
                                                         : "a named barrier";
  report("deadlock", first->pc,
         "this thread waits in %s that not all come to; of %d threads %d wait in warp operations, "
         "%d at barriers, %d have returned",
         where, worker.threads, in_collective, in_barrier, done);
  worker.fiber = nullptr;
}

// Runs the threads of the block until none can go on.
inline void run_threads(Worker& worker) {
  const int end = worker.schedule == Schedule::kReverseLate ? 32 : -1;
  const int warp = choose(worker, worker.runnable_warps, end);
  const int lane = choose(worker, worker.warp[warp].runnable, end);
  worker.fiber = &worker.fibers[static_cast<std::size_t>(warp * 32 + lane)];
  switch_context(worker.main, worker.fiber->context);
}

// Makes the threads of the block `worker.index` ready to start.
inline void start_block(Worker& worker, bool checked) {
  worker.live = worker.threads;
  worker.end_phase = worker.read_phase = 0;
  worker.runnable_warps = 0;
  worker.abandoned = false;
  std::memset(worker.barriers, 0, sizeof worker.barriers);
  std::memset(worker.lines, 0, sizeof worker.lines);
  for (int w = 0; w < worker.warps; ++w) {
    worker.warp[w].arrived = worker.warp[w].runnable = 0;
    worker.products[w].clear();
  }
  worker.mbarriers.clear();
  worker.bulk.clear();
  std::memset(worker.arena, 0xff, worker.arena_bytes);  // NaN in every float type
  if (checked) worker.shadow.reset(worker.arena_bytes, worker.warps);
  for (int i = 0; i < worker.threads; ++i) {
    Fiber& fiber = worker.fibers[static_cast<std::size_t>(i)];
    fiber.fenced = false;
    fiber.waited = !worker.dependent;
    fiber.groups = 0;
    fiber.copies_done = 0;
    fiber.copies.clear();
    start_context(fiber.context, worker.stacks.top(i), Stacks::kStackBytes - 4096, thread_main);
    set_runnable(worker, fiber);
  }
}

// Runs the blocks of a cluster, one until it waits and then the next, until none can go on: from
// their start to their end, or, if they are early ones, until they wait for the kernels before.
inline void run_cluster(Cluster& cluster) {
  const auto count = static_cast<int>(cluster.blocks.size());
  for (bool any = true; any;) {
    any = false;
    for (int i = 0; i < count; ++i) {
      const bool reverse = cluster.blocks[0]->schedule == Schedule::kReverseLate;
      Worker& worker = *cluster.blocks[static_cast<std::size_t>(reverse ? count - 1 - i : i)];
      if (worker.abandoned || worker.runnable_warps == 0) continue;
      current_worker = &worker;
      run_threads(worker);
      any = true;
    }
  }
  current_worker = nullptr;
}

inline void start_cluster(Cluster& cluster, bool checked) {
  cluster.arrived = 0;
  cluster.phase = 1;
  for (Worker* worker : cluster.blocks) start_block(*worker, checked);
  run_cluster(cluster);
}

// Goes on where early blocks stopped: the kernels before are done.
inline void resume_cluster(Cluster& cluster) {
  for (Worker* worker : cluster.blocks) {
    worker->early = false;
    for (Fiber& fiber : worker->fibers) {
      if (fiber.thread >= worker->threads || fiber.state != State::kGridWait) continue;
      set_runnable(*worker, fiber);
    }
  }
  run_cluster(cluster);
}

// What is wrong with the end of a block; `left`: others of its cluster were abandoned.
inline void end_block(Worker& worker, bool left) {
  for (int w = 0; w < worker.warps; ++w) worker.traces[w].finish(worker.banks);
  if (!left && worker.live > 0) report_deadlock(worker);
  if (worker.live == 0 && worker.read_phase >= worker.end_phase) {
    report("early exit", worker.read_pc,
           "another block of the cluster reads the shared memory of this one, which may have ended "
           "by then: no cluster_sync behind the read");
  }
  for (const PendingBulk& pending : worker.bulk) {
    if (worker.abandoned || worker.live > 0 || pending.landed) continue;
    worker.fiber = &worker.fibers[0];
    report("copy in flight", pending.pc, "the block ends while this bulk copy is under way");
    break;
  }
  worker.fiber = nullptr;
}

inline void end_cluster(Cluster& cluster) {
  const bool left = std::any_of(cluster.blocks.begin(), cluster.blocks.end(),
                                [](const Worker* worker) { return worker->abandoned; });
  for (Worker* worker : cluster.blocks) {
    current_worker = worker;
    end_block(*worker, left);
  }
  current_worker = nullptr;
}

}  // namespace sd::emulator

#endif  // SUNDOG_EMULATOR_SCHEDULER_H
