// Child processes under a watchdog: whatever may hang, crash or eat memory (a compiler, a kernel
// that nobody has run before, the emulator) runs in one.
//
// A child leads its own process group, which is killed as a whole when the time is up, when the
// caller asks to stop, or when the child itself has ended; it also dies with its parent.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"

namespace sundog {

struct ProcessLimits {
  double seconds = 60;       // wall clock
  int64_t memory_bytes = 0;  // address space; 0: no limit (CUDA reserves far more than it uses)
  int64_t output_bytes = 64 << 20;  // of each stream kept; what exceeds it is read and dropped
  const std::atomic<bool>* stop = nullptr;  // kills the child once true
};

struct ProcessResult {
  enum class End { kExited, kSignaled, kTimedOut, kStopped };
  End end = End::kExited;
  int code = 0;          // exit code, or number of the signal
  std::string out, err;  // standard output and error; of a forked child, `out` is what it returned
  bool truncated = false;  // a stream exceeded output_bytes
  double seconds = 0;

  bool succeeded() const { return end == End::kExited && code == 0; }
};

// "exited with code 2", "was killed by signal 11 (Segmentation fault)", "exceeded 60 s", "was
// stopped".
std::string describe_end(const ProcessResult& result, const ProcessLimits& limits);

// What a program that failed lacked, to end a message: "memory" or "stack: ulimit -s is 256 kB"; by
// what it said, or because it crashed under a low limit (ulimit -v, -s), which most compilers do
// without a word.  Empty if that is not known.
std::string lacked(const ProcessResult& result);

// Whether what a program says is that a limit of the machine was met: open files, sizes, a full
// disk.
bool names_a_limit(std::string_view message);

// Runs argv[0] (found on PATH) with an empty standard input.  An Error only if it cannot be
// started.
Result<ProcessResult> run_process(const std::vector<std::string>& argv,
                                  const ProcessLimits& limits);

// Runs `body` in a forked copy of this process and gives back the string that it returns, which may
// hold any bytes.  A child that crashes, exits or exceeds a limit is an Error (kFailed or kLimit)
// whose message begins with `what`.  Only the calling thread exists in the child, so `body` must
// take no lock that another thread may hold; CUDA may be used if this process itself never has.
Result<std::string> run_in_child(const std::string& what, const std::function<std::string()>& body,
                                 const ProcessLimits& limits);

// Likewise for a body with several answers: each goes to `take`, in this process, as soon as the
// body has sent it, and with each the limit on time starts anew.  After an Error those that came
// before it still count.
using SendAnswer = std::function<void(std::string_view)>;
Status answers_of_child(const std::string& what, const std::function<void(const SendAnswer&)>& body,
                        const std::function<void(std::string)>& take, const ProcessLimits& limits);

}  // namespace sundog
