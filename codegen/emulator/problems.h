// What the emulator found.  A problem is one kind at one place of the source; that it happens in a
// thousand blocks is a count.  Reported where it happens, in the order of discovery by the workers,
// and put in a canonical order by the caller.
#ifndef SUNDOG_EMULATOR_PROBLEMS_H
#define SUNDOG_EMULATOR_PROBLEMS_H

#include <cstdarg>
#include <cstdio>
#include <mutex>

#include "machine.h"

extern "C" char __executable_start;

namespace sd::emulator {

class Problems {
 public:
  explicit Problems(Answer* answer) : answer_(answer) {}

  // Notes a problem of the current block; `pc` is the call in the kernel at which it shows.
  void add(const Worker& worker, const char* kind, int thread, const void* pc, const char* text) {
    const uint64_t place =
        pc ? static_cast<uint64_t>(static_cast<const char*>(pc) - &__executable_start) : 0;
    std::lock_guard<std::mutex> lock(mutex_);
    const uint32_t block[3] = {worker.index.x, worker.index.y, worker.index.z};
    for (int i = 0; i < answer_->problem_count; ++i) {
      FileProblem& known = answer_->problems[i];
      if (known.launch != worker.launch || known.pc != place || std::strcmp(known.kind, kind)) {
        continue;
      }
      ++known.count;
      // Of several blocks the first one tells the story, whichever worker came first.
      if (known.schedule == worker.schedule_number && later(known.block, block)) {
        fill(known, block, thread, text);
      }
      return;
    }
    if (answer_->problem_count == kMaxProblems) return;
    FileProblem& problem = answer_->problems[answer_->problem_count];
    std::snprintf(problem.kind, sizeof problem.kind, "%s", kind);
    problem.launch = worker.launch;
    problem.schedule = worker.schedule_number;
    problem.pc = place;
    problem.count = 1;
    fill(problem, block, thread, text);
    ++answer_->problem_count;
  }

 private:
  static bool later(const uint32_t* a, const uint32_t* b) {
    for (int i = 2; i >= 0; --i) {
      if (a[i] != b[i]) return a[i] > b[i];
    }
    return false;
  }
  static void fill(FileProblem& problem, const uint32_t* block, int thread, const char* text) {
    std::snprintf(problem.text, sizeof problem.text, "%s", text);
    for (int i = 0; i < 3; ++i) problem.block[i] = block[i];
    problem.thread = thread;
  }

  Answer* answer_;
  std::mutex mutex_;
};

// Notes a problem of the running thread, with a text made as by printf.
[[gnu::format(printf, 3, 4)]] inline void report(const char* kind, const void* pc,
                                                 const char* format, ...) {
  char text[sizeof(FileProblem::text)];
  va_list list;
  va_start(list, format);
  std::vsnprintf(text, sizeof text, format, list);
  va_end(list);
  const Worker& worker = *current_worker;
  worker.problems->add(worker, kind, worker.fiber ? worker.fiber->thread : -1, pc, text);
}

// Ends the running block: what it would do next makes no sense.
[[noreturn]] inline void abandon_block() {
  Worker& worker = *current_worker;
  worker.abandoned = true;
  Context& from = worker.fiber->context;
  worker.fiber = nullptr;
  switch_context(from, worker.main);
  __builtin_unreachable();
}

}  // namespace sd::emulator

#endif  // SUNDOG_EMULATOR_PROBLEMS_H
