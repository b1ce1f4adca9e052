// The program that a compiled module is: it maps the file that the caller wrote (protocol.h),
// places the buffers, runs every launch under every schedule, and writes what it found.  It has no
// other input or output.  Whatever a kernel does to it, the caller survives.
//
// This file and all that it includes form one object, compiled once for a machine and linked to the
// instrumented kernels of each module.
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <new>
#include <thread>
#include <vector>

#include "hooks.h"

namespace sd::emulator {

extern const Kernel kKernels[];
extern const int kKernelCount;

namespace {

// What lies in the file.
struct Request {
  unsigned char* base = nullptr;
  int file = -1;
  FileHeader* header = nullptr;
  FileLaunch* launches = nullptr;  // with answers
  const FileBuffer* buffers = nullptr;
  const int* arguments = nullptr;
};

Request request;

[[noreturn]] void give_up(const char* kind, const char* text) {
  Answer& answer = request.header->answer;
  if (answer.problem_count < kMaxProblems) {
    FileProblem& problem = answer.problems[answer.problem_count++];
    std::snprintf(problem.kind, sizeof problem.kind, "%s", kind);
    std::snprintf(problem.text, sizeof problem.text, "%s", text);
    problem.launch = answer.launch;
    problem.schedule = answer.schedule;
    problem.thread = -1;
    problem.count = 1;
  }
  _exit(2);
}

// --- a kernel that faults ---

void on_fault(int signal, siginfo_t* info, void*) {
  Worker* worker = current_worker;
  if (!worker || !worker->fiber) give_up("crash", "a fault outside of any kernel");
  const char* name = signal == SIGFPE    ? "divides an integer by zero"
                     : signal == SIGILL  ? "runs into an impossible place"
                     : signal == SIGSEGV ? "reads or writes memory that is not there"
                                         : "faults";
  const Fiber& fiber = *worker->fiber;
  const char* stack = worker->stacks.top(fiber.thread);
  const auto depth = stack - static_cast<const char*>(info->si_addr);
  if (signal == SIGSEGV && depth > 0 &&
      depth <= static_cast<std::ptrdiff_t>(Stacks::kStackBytes + Stacks::kGuard)) {
    report("crash", nullptr, "the local variables of a thread need more than %d bytes",
           static_cast<int>(Stacks::kStackBytes));
  } else {
    const Buffer* buffer = worker->memory->find(info->si_addr, worker->last_buffer);
    if (signal == SIGSEGV && buffer) {
      report("out of bounds", nullptr, "touches offset %lld of buffer %d, which has %llu bytes%s",
             static_cast<long long>(static_cast<unsigned char*>(info->si_addr) - buffer->data),
             static_cast<int>(buffer - worker->memory->buffers.data()),
             static_cast<unsigned long long>(buffer->bytes),
             buffer->writable ? "" : " and is read-only");
    } else {
      report("crash", nullptr, "%s (address %p)", name, info->si_addr);
    }
  }
  _exit(3);
}

void catch_faults() {
  struct sigaction action {};
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESETHAND;
  for (int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL}) sigaction(signal, &action, nullptr);
}

// Faults are handled on a stack of their own, since the fault may be that the stack is used up.
struct FaultStack {
  FaultStack() : memory(64 << 10) {
    stack_t stack{};
    stack.ss_sp = memory.data();
    stack.ss_size = memory.size();
    sigaltstack(&stack, nullptr);
  }
  std::vector<char> memory;
};

// --- buffers ---

uint64_t round_up(uint64_t bytes, uint64_t unit) { return (bytes + unit - 1) / unit * unit; }

// Reserves a place for the buffer between guards.
void place_buffer(const FileBuffer& from, Buffer& buffer) {
  const uint64_t pages = round_up(from.misalignment + from.bytes, kPage);
  buffer.mapped = pages + 2 * kGuardBytes;
  void* memory =
      mmap(nullptr, buffer.mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) give_up("out of memory", "no room for the buffers");
  buffer.mapping = static_cast<unsigned char*>(memory);
  buffer.data = buffer.mapping + kGuardBytes + from.misalignment;
  buffer.bytes = from.bytes;
  buffer.writable = from.writable != 0;
  buffer.contents = from.contents;
  buffer.results = from.results;
  if (kChecked && buffer.writable && buffer.bytes > 0) {
    void* stamps = mmap(nullptr, buffer.bytes * 8, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (stamps == MAP_FAILED) give_up("out of memory", "no room to check the buffers");
    buffer.writers = static_cast<std::atomic<uint64_t>*>(stamps);
  }
}

// Gives the buffer the contents of the file: the file's own pages, copied when written to.
void fill_buffer(const Buffer& buffer) {
  if (buffer.bytes == 0) return;
  const uint64_t misalignment = buffer.contents % kPage;
  const uint64_t pages = round_up(misalignment + buffer.bytes, kPage);
  void* memory = mmap(buffer.data - misalignment, pages,
                      buffer.writable ? PROT_READ | PROT_WRITE : PROT_READ, MAP_PRIVATE | MAP_FIXED,
                      request.file, static_cast<off_t>(buffer.contents - misalignment));
  if (memory == MAP_FAILED) give_up("out of memory", "no room for the buffers");
}

// The first schedule's results are the answer; later ones must agree with it bit by bit.
void take_results(Memory& memory, int schedule) {
  for (std::size_t i = 0; i < memory.buffers.size(); ++i) {
    const Buffer& buffer = memory.buffers[i];
    if (!buffer.writable || buffer.bytes == 0) continue;
    unsigned char* results = request.base + buffer.results;
    if (schedule == 0) {
      std::memcpy(results, buffer.data, buffer.bytes);
      continue;
    }
    if (memory.float_atomics || std::memcmp(results, buffer.data, buffer.bytes) == 0) continue;
    uint64_t first = 0;
    while (results[first] == buffer.data[first]) ++first;
    Answer& answer = request.header->answer;
    if (answer.problem_count == kMaxProblems) continue;
    FileProblem& problem = answer.problems[answer.problem_count++];
    std::snprintf(problem.kind, sizeof problem.kind, "schedule dependence");
    std::snprintf(problem.text, sizeof problem.text,
                  "buffer %d differs from what the first schedule gave, first at offset %llu",
                  static_cast<int>(i), static_cast<unsigned long long>(first));
    problem.launch = -1;
    problem.schedule = schedule;
    problem.thread = -1;
    problem.count = 1;
  }
}

// --- launches ---

const Kernel& find_kernel(const FileLaunch& launch) {
  for (int i = 0; i < kKernelCount; ++i) {
    if (kKernels[i].unit == launch.unit && std::strcmp(kKernels[i].name, launch.kernel) == 0) {
      return kKernels[i];
    }
  }
  give_up("bad launch", "the module has no such kernel");
}

struct Totals {
  std::atomic<uint64_t> next{0}, barriers{0}, collectives{0}, shared_accesses{0};
  std::atomic<uint64_t> bank_turns{0}, bank_conflicts{0};
};

struct LaunchState;

// The workers of one cluster: of one block each.
struct ClusterRun {
  explicit ClusterRun(LaunchState& launch);
  ~ClusterRun();
  ClusterRun(const ClusterRun&) = delete;
  ClusterRun& operator=(const ClusterRun&) = delete;

  LaunchState& state;
  std::vector<std::unique_ptr<Worker>> workers;
  Cluster cluster;
  uint64_t number = 0;  // of the cluster in the launch
};

struct LaunchState {
  const FileLaunch& launch;
  const Kernel& kernel;
  int launch_number, schedule_number;
  Memory& memory;
  Problems& problems;
  std::vector<void*> arguments;
  uint64_t first_block = 0;                        // counted through launches that may overlap
  std::vector<std::unique_ptr<ClusterRun>> early;  // that started before their turn
  std::vector<uint64_t> done_early;                // and their numbers, once they are done
  Totals totals;

  uint64_t blocks() const { return uint64_t{launch.grid[0]} * launch.grid[1] * launch.grid[2]; }
  uint64_t clusters() const { return blocks() / launch.cluster; }
};

// Prepares a worker for the launch.
void set_up(Worker& worker, LaunchState& state) {
  const FileLaunch& launch = state.launch;
  worker.kernel = &state.kernel;
  worker.arguments = state.arguments.data();
  worker.grid = {launch.grid[0], launch.grid[1], launch.grid[2]};
  worker.block = {launch.block[0], launch.block[1], launch.block[2]};
  worker.threads = static_cast<int>(launch.block[0] * launch.block[1] * launch.block[2]);
  worker.warps = (worker.threads + 31) / 32;
  worker.fibers.resize(static_cast<std::size_t>(worker.warps) * 32);
  for (std::size_t i = 0; i < worker.fibers.size(); ++i) {
    worker.fibers[i].thread = static_cast<int>(i);
    worker.fibers[i].state = State::kDone;
  }
  worker.launch = state.launch_number;
  worker.first_block = state.first_block;
  worker.dependent = launch.dependent != 0;
  worker.schedule_number = state.schedule_number;
  worker.schedule = state.schedule_number == 0   ? Schedule::kInOrderEager
                    : state.schedule_number == 1 ? Schedule::kReverseLate
                                                 : Schedule::kRandom;
  worker.memory = &state.memory;
  worker.problems = &state.problems;
  worker.arena_bytes = launch.shared_bytes;
  const uint64_t pages = round_up(launch.shared_bytes, kPage);
  void* memory = mmap(nullptr, pages + 2 * kGuardBytes, PROT_NONE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED || !worker.stacks.reserve(worker.threads)) {
    give_up("out of memory", "no room for the threads of a block");
  }
  worker.arena = static_cast<unsigned char*>(memory) + kGuardBytes;
  if (pages > 0) mprotect(worker.arena, pages, PROT_READ | PROT_WRITE);
}

void give_back(Worker& worker, LaunchState& state) {
  state.totals.barriers += worker.barriers_met;
  state.totals.collectives += worker.collectives_met;
  state.totals.shared_accesses += worker.shared_accesses;
  state.totals.bank_turns += worker.banks.turns;
  state.totals.bank_conflicts += worker.banks.conflicts;
  munmap(worker.arena - kGuardBytes, round_up(worker.arena_bytes, kPage) + 2 * kGuardBytes);
}

// Makes block `number` of the launch the next of the worker.
void take_block(Worker& worker, const LaunchState& state, uint64_t number) {
  const auto& grid = state.launch.grid;
  worker.block_number = state.first_block + number;
  worker.index = {static_cast<uint32_t>(number % grid[0]),
                  static_cast<uint32_t>(number / grid[0] % grid[1]),
                  static_cast<uint32_t>(number / (uint64_t{grid[0]} * grid[1]))};
  worker.random = request.header->seed * 0x9e3779b97f4a7c15u + number * 64 +
                  static_cast<uint64_t>(state.schedule_number);
}

ClusterRun::ClusterRun(LaunchState& launch) : state(launch) {
  for (uint32_t rank = 0; rank < state.launch.cluster; ++rank) {
    workers.push_back(std::make_unique<Worker>());
    set_up(*workers.back(), state);
    workers.back()->cluster = &cluster;
    cluster.blocks.push_back(workers.back().get());
  }
}

ClusterRun::~ClusterRun() {
  for (const auto& worker : workers) give_back(*worker, state);
}

// Makes cluster `number` of the launch the next of the workers: neighbours along x.
void take_cluster(ClusterRun& run, uint64_t number) {
  run.number = number;
  for (std::size_t rank = 0; rank < run.workers.size(); ++rank) {
    take_block(*run.workers[rank], run.state, number * run.workers.size() + rank);
  }
}

void work(LaunchState& state) {
  FaultStack faults;
  ClusterRun run(state);
  const uint64_t clusters = state.clusters();
  for (;;) {
    const uint64_t taken = state.totals.next.fetch_add(1, std::memory_order_relaxed);
    if (taken >= clusters) break;
    // They may come in any order, too.
    const bool in_order = run.workers[0]->schedule == Schedule::kInOrderEager;
    const uint64_t number = in_order ? taken : clusters - 1 - taken;
    const auto& ran = state.done_early;
    if (std::find(ran.begin(), ran.end(), number) != ran.end()) continue;
    take_cluster(run, number);
    start_cluster(run.cluster, kChecked);
    end_cluster(run.cluster);
  }
}

// --- launches that may overlap
//
// A dependent launch may start before those before it are done, or long after, so both are tried.
// In all schedules but the first some of its blocks start before the launches in front of it do and
// stop where their threads wait; they go on when the others are done.  On a device as many blocks
// start as there is room; what the threads of one block do meanwhile does not depend on the others.

constexpr uint64_t kEarlyBlocks = 3;
// Threads of all blocks that have started early, unless one launch has more: each has a stack with
// a guard, and a process is given some 65,000 mappings.
constexpr uint64_t kMostEarlyThreads = 12288;

uint64_t early_clusters(const LaunchState& state) {
  return std::min(state.clusters(), state.launch.cluster > 1 ? 1 : kEarlyBlocks);
}

uint64_t early_threads(const LaunchState& state) {
  const auto& block = state.launch.block;
  return early_clusters(state) * state.launch.cluster * block[0] * block[1] * block[2];
}

void start_early(LaunchState& state) {
  FaultStack faults;
  uint64_t random = request.header->seed * 0x2545f4914f6cdd1du +
                    static_cast<uint64_t>(state.schedule_number * 64 + state.launch_number);
  const uint64_t clusters = state.clusters(), wanted = early_clusters(state);
  for (uint64_t i = 0; i < wanted; ++i) {
    // Drawn from the i-th part of them, so that none comes twice.
    const uint64_t begin = clusters * i / wanted, end = clusters * (i + 1) / wanted;
    auto run = std::make_unique<ClusterRun>(state);
    take_cluster(*run, begin + next_random(random) % (end - begin));
    for (const auto& worker : run->workers) worker->early = true;
    start_cluster(run->cluster, kChecked);
    state.early.push_back(std::move(run));
  }
}

void finish_early(LaunchState& state) {
  FaultStack faults;
  for (const auto& run : state.early) {
    resume_cluster(run->cluster);
    end_cluster(run->cluster);
    state.done_early.push_back(run->number);
  }
  state.early.clear();
}

void run_launch(LaunchState& state) {
  Answer& answer = request.header->answer;
  answer.launch = state.launch_number;
  finish_early(state);
  // The stacks of a cluster's blocks are as many pieces of memory, of which a process has only so
  // many.
  const uint64_t wanted = static_cast<uint64_t>(request.header->threads) / state.launch.cluster;
  const auto threads = static_cast<int>(std::min(std::max<uint64_t>(wanted, 1), state.clusters()));
  std::vector<std::thread> helpers;
  for (int i = 1; i < threads; ++i) helpers.emplace_back(work, std::ref(state));
  work(state);
  for (std::thread& helper : helpers) helper.join();
  if (state.schedule_number == 0) {
    answer.barriers += state.totals.barriers;
    answer.collectives += state.totals.collectives;
    answer.shared_accesses += state.totals.shared_accesses;
    FileLaunch& launch = request.launches[state.launch_number];
    launch.bank_turns = state.totals.bank_turns;
    launch.bank_conflicts = state.totals.bank_conflicts;
  }
}

void prepare(LaunchState& state) {
  const FileLaunch& launch = state.launch;
  if (state.kernel.parameters != launch.argument_count || launch.argument_count > 64) {
    give_up("bad launch", "the kernel has another number of parameters");
  }
  for (int i = 0; i < launch.argument_count; ++i) {
    const int index = request.arguments[launch.first_argument + static_cast<uint64_t>(i)];
    state.arguments.push_back(state.memory.buffers[static_cast<std::size_t>(index)].data);
  }
}

// A launch and the dependent ones behind it; gives the number of the next.
int run_chain(int first, int schedule, Memory& memory, Problems& problems) {
  const auto count = static_cast<int>(request.header->launch_count);
  std::vector<std::unique_ptr<LaunchState>> chain;
  uint64_t blocks = 0;
  for (int n = first; n < count && (n == first || request.launches[n].dependent != 0); ++n) {
    const FileLaunch& launch = request.launches[n];
    request.header->answer.launch = n;
    chain.emplace_back(new LaunchState{
        launch, find_kernel(launch), n, schedule, memory, problems, {}, blocks, {}, {}, {}});
    prepare(*chain.back());
    blocks += chain.back()->blocks();
    if (blocks >= kMostBlocks) give_up("bad launch", "more blocks than the emulator counts");
  }
  memory.start_launch();
  std::size_t started = 1;
  uint64_t threads = 0;  // of early blocks
  for (std::size_t i = 0; i < chain.size(); ++i) {
    for (; schedule > 0 && started < chain.size(); ++started) {
      const uint64_t more = early_threads(*chain[started]);
      if (started > i + 1 && threads + more > kMostEarlyThreads) break;
      start_early(*chain[started]);
      threads += more;
    }
    if (schedule > 0 && i > 0) threads -= early_threads(*chain[i]);
    run_launch(*chain[i]);
  }
  return first + static_cast<int>(chain.size());
}

bool open_request(const char* path) {
  const int file = open(path, O_RDWR | O_CLOEXEC);
  if (file < 0) return false;
  struct stat status {};
  if (fstat(file, &status) != 0) return false;
  const auto bytes = static_cast<std::size_t>(status.st_size);
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (memory == MAP_FAILED) return false;
  request.base = static_cast<unsigned char*>(memory);
  request.file = file;
  request.header = static_cast<FileHeader*>(memory);
  request.launches = reinterpret_cast<FileLaunch*>(request.base + request.header->launches);
  request.buffers = reinterpret_cast<FileBuffer*>(request.base + request.header->buffers);
  request.arguments = reinterpret_cast<int*>(request.base + request.header->arguments);
  return request.header->bytes == bytes;
}

void run_all() {
  FileHeader& header = *request.header;
  Answer& answer = header.answer;
  residue_field = header.field;
  catch_faults();
  Memory memory;
  memory.buffers = std::vector<Buffer>(header.buffer_count);
  for (std::size_t i = 0; i < header.buffer_count; ++i) {
    place_buffer(request.buffers[i], memory.buffers[i]);
  }
  memory.index();
  Problems problems(&answer);
  const auto start = std::chrono::steady_clock::now();
  for (int schedule = 0; schedule < header.schedules; ++schedule) {
    answer.schedule = schedule;
    for (const Buffer& buffer : memory.buffers) fill_buffer(buffer);
    for (int i = 0; i < static_cast<int>(header.launch_count);) {
      i = run_chain(i, schedule, memory, problems);
    }
    answer.launch = -1;
    take_results(memory, schedule);
    if (answer.problem_count == kMaxProblems) break;
  }
  answer.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  answer.open_comparisons = open_comparisons;
  answer.finished = 1;
}

}  // namespace
}  // namespace sd::emulator

// The argument is the path of the file.
int main(int count, char** arguments) {
  if (count != 2 || !sd::emulator::open_request(arguments[1])) return 4;
  try {
    sd::emulator::run_all();
  } catch (const std::bad_alloc&) {
    sd::emulator::give_up("out of memory", "the emulator ran out of memory");
  }
  return 0;
}
