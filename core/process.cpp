#include "core/process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <exception>

namespace sundog {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

std::string error_text(int number) { return std::strerror(number); }

// A pipe whose ends are closed with it.
struct Pipe {
  int read_end = -1, write_end = -1;
  Pipe() = default;
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  ~Pipe() {
    close_read();
    close_write();
  }
  bool open() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return false;
    read_end = ends[0];
    write_end = ends[1];
    return true;
  }
  void close_read() {
    if (read_end >= 0) close(read_end);
    read_end = -1;
  }
  void close_write() {
    if (write_end >= 0) close(write_end);
    write_end = -1;
  }
};

// Writes all of data; false on an error, of which errno tells.
bool write_all(int fd, const char* data, size_t size) {
  while (size > 0) {
    const ssize_t written = write(fd, data, size);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    data += written;
    size -= static_cast<size_t>(written);
  }
  return true;
}

// The shadow of AddressSanitizer is terabytes of address space: no process with it lives under a
// limit.
#ifdef __SANITIZE_ADDRESS__
constexpr bool kLimitsMemory = false;
#else
constexpr bool kLimitsMemory = true;
#endif

// What a child does first.  Only async-signal-safe calls: another thread may hold any lock.
void become_child(pid_t parent, int64_t memory_bytes) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(127);
  for (const int number : {SIGINT, SIGTERM, SIGXFSZ, SIGPIPE}) signal(number, SIG_DFL);
  if (kLimitsMemory && memory_bytes > 0) {
    const rlimit limit{static_cast<rlim_t>(memory_bytes), static_cast<rlim_t>(memory_bytes)};
    setrlimit(RLIMIT_AS, &limit);
  }
  const rlimit no_core{0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
}

// Reads what is there.  Closes the pipe at its end.
void drain(Pipe& pipe, std::string& text, const ProcessLimits& limits, bool& truncated) {
  std::array<char, 65536> buffer;
  while (pipe.read_end >= 0) {
    const ssize_t size = read(pipe.read_end, buffer.data(), buffer.size());
    if (size < 0 && errno == EINTR) continue;
    if (size < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
    if (size <= 0) {
      pipe.close_read();
      return;
    }
    const size_t room = static_cast<size_t>(
        std::max<int64_t>(0, limits.output_bytes - static_cast<int64_t>(text.size())));
    const size_t kept = std::min(room, static_cast<size_t>(size));
    text.append(buffer.data(), kept);
    truncated |= kept < static_cast<size_t>(size);
  }
}

// Waits for the child, collecting its streams, until it ends or a limit is hit.  `watch` sees its
// output as it grows and may take of it; where it says true, the limit on time starts anew.
ProcessResult supervise(pid_t child, Pipe& out, Pipe& err, const ProcessLimits& limits,
                        const std::function<bool(std::string& out)>& watch = {}) {
  const auto start = Clock::now();
  auto awaited = start;
  ProcessResult result;
  for (Pipe* pipe : {&out, &err}) {
    if (pipe->read_end >= 0) fcntl(pipe->read_end, F_SETFL, O_NONBLOCK);
  }
  bool killed = false;
  int status = 0;
  while (true) {
    const pid_t ended = waitpid(child, &status, WNOHANG);
    if (ended == child || (ended < 0 && errno != EINTR)) break;
    const bool stopped = limits.stop != nullptr && limits.stop->load();
    if (!killed && (stopped || seconds_since(awaited) > limits.seconds)) {
      result.end = stopped ? ProcessResult::End::kStopped : ProcessResult::End::kTimedOut;
      kill(-child, SIGKILL);
      kill(child, SIGKILL);  // should it have died before it led a group
      killed = true;
    }
    std::array<pollfd, 2> waits{pollfd{out.read_end, POLLIN, 0}, pollfd{err.read_end, POLLIN, 0}};
    poll(waits.data(), waits.size(), 5);
    if (out.read_end < 0 && err.read_end < 0) usleep(1000);
    drain(out, result.out, limits, result.truncated);
    drain(err, result.err, limits, result.truncated);
    if (watch && watch(result.out)) awaited = Clock::now();
  }
  kill(-child, SIGKILL);  // what it may have started and left behind
  drain(out, result.out, limits, result.truncated);
  drain(err, result.err, limits, result.truncated);
  if (watch) watch(result.out);
  result.seconds = seconds_since(start);
  if (!killed) {
    result.end = WIFSIGNALED(status) ? ProcessResult::End::kSignaled : ProcessResult::End::kExited;
  }
  result.code = WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
  return result;
}

std::string short_number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g", value);
  return text;
}

}  // namespace

std::string describe_end(const ProcessResult& result, const ProcessLimits& limits) {
  switch (result.end) {
    case ProcessResult::End::kExited:
      return "exited with code " + std::to_string(result.code);
    case ProcessResult::End::kSignaled:
      return "was killed by signal " + std::to_string(result.code) + " (" + strsignal(result.code) +
             ")";
    case ProcessResult::End::kTimedOut:
      return "exceeded " + short_number(limits.seconds) + " s";
    case ProcessResult::End::kStopped:
      return "was stopped";
  }
  return {};
}

namespace {

constexpr rlim_t kEnoughStack = rlim_t{2} << 20;  // bytes; more than any compiler was seen to need

bool says(const ProcessResult& result, std::initializer_list<const char*> words) {
  return std::any_of(words.begin(), words.end(), [&](const char* word) {
    return result.err.find(word) != std::string::npos || result.out.find(word) != std::string::npos;
  });
}

}  // namespace

std::string lacked(const ProcessResult& result) {
  if (result.succeeded() || result.end == ProcessResult::End::kTimedOut ||
      result.end == ProcessResult::End::kStopped) {
    return {};
  }
  if (says(result, {"out of memory", "Cannot allocate memory", "virtual memory exhausted",
                    "std::bad_alloc", "failed to map segment", "PCH allocation failure"})) {
    return "memory";
  }
  // A driver of compilers passes the signal of one on as a code, as shells do, or in words.
  const bool crashed = result.end == ProcessResult::End::kSignaled || result.code > 128 ||
                       says(result, {"Segmentation fault"});
  rlimit limit{};
  if (crashed && getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
    return "memory";
  }
  if (crashed && getrlimit(RLIMIT_STACK, &limit) == 0 && limit.rlim_cur < kEnoughStack) {
    return "stack: ulimit -s is " + std::to_string(limit.rlim_cur / 1024) + " kB";
  }
  return {};
}

bool names_a_limit(std::string_view message) {
  for (const char* words : {"Too many open files", "File size limit exceeded", "File too large",
                            "No space left on device", "Disk quota exceeded"}) {
    if (message.find(words) != std::string_view::npos) return true;
  }
  return false;
}

Result<ProcessResult> run_process(const std::vector<std::string>& argv,
                                  const ProcessLimits& limits) {
  SUNDOG_CHECK(!argv.empty());
  Pipe out, err, failure;  // failure: errno of exec, where it fails
  if (!out.open() || !err.open() || !failure.open()) {
    return io_error("cannot make a pipe: " + error_text(errno));
  }
  std::vector<char*> arguments;
  for (const std::string& argument : argv) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child < 0) return io_error("cannot start a process: " + error_text(errno));
  if (child == 0) {
    become_child(parent, limits.memory_bytes);
    const int null = open("/dev/null", O_RDONLY);
    dup2(null, STDIN_FILENO);
    dup2(out.write_end, STDOUT_FILENO);
    dup2(err.write_end, STDERR_FILENO);
    execvp(arguments[0], arguments.data());
    const int number = errno;
    write_all(failure.write_end, reinterpret_cast<const char*>(&number), sizeof number);
    _exit(127);
  }
  out.close_write();
  err.close_write();
  failure.close_write();
  int number = 0;
  ssize_t size;
  do {
    size = read(failure.read_end, &number, sizeof number);
  } while (size < 0 && errno == EINTR);
  ProcessResult result = supervise(child, out, err, limits);
  if (size == static_cast<ssize_t>(sizeof number)) {
    const ErrorCode code = number == ENOENT ? ErrorCode::kToolMissing : ErrorCode::kIo;
    return Error{code, "cannot run " + argv[0] + ": " + error_text(number), {}, {}};
  }
  return result;
}

namespace {

// Behind the last answer, in place of a size.
constexpr uint64_t kNoMore = ~uint64_t{0};

// Takes whole answers from a stream of them, each behind its size.
class Answers {
 public:
  explicit Answers(const std::function<void(std::string)>& take) : take_(take) {}

  bool operator()(std::string& stream) {
    bool any = false;
    size_t at = 0;
    for (uint64_t size = 0; stream.size() - at >= sizeof size; at += sizeof size + size) {
      std::memcpy(&size, stream.data() + at, sizeof size);
      finished_ |= size == kNoMore;
      if (finished_ || stream.size() - at - sizeof size < size) break;
      take_(stream.substr(at + sizeof size, size));
      any = true;
    }
    stream.erase(0, at);
    return any;
  }

  bool finished() const { return finished_; }

 private:
  const std::function<void(std::string)>& take_;
  bool finished_ = false;
};

[[noreturn]] void answer_and_exit(int to, const std::function<void(const SendAnswer&)>& body) {
  bool sent = true;
  const auto send_size = [&](uint64_t size) {
    sent = sent && write_all(to, reinterpret_cast<const char*>(&size), sizeof size);
  };
  try {
    body([&](std::string_view answer) {
      send_size(answer.size());
      sent = sent && write_all(to, answer.data(), answer.size());
    });
    send_size(kNoMore);
  } catch (const std::exception& exception) {
    write_all(STDERR_FILENO, exception.what(), std::strlen(exception.what()));
    sent = false;
  }
  _exit(sent ? 0 : 1);  // no destructors: they belong to the parent
}

}  // namespace

Status answers_of_child(const std::string& what, const std::function<void(const SendAnswer&)>& body,
                        const std::function<void(std::string)>& take, const ProcessLimits& limits) {
  Pipe out, err;
  if (!out.open() || !err.open()) return io_error("cannot make a pipe: " + error_text(errno));
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child < 0) return io_error("cannot start a process: " + error_text(errno));
  if (child == 0) {
    become_child(parent, limits.memory_bytes);
    dup2(err.write_end, STDOUT_FILENO);  // whatever a library prints goes with its errors
    dup2(err.write_end, STDERR_FILENO);
    answer_and_exit(out.write_end, body);
  }
  out.close_write();
  err.close_write();
  Answers answers(take);
  const ProcessResult result = supervise(child, out, err, limits, std::ref(answers));
  if (result.succeeded() && !result.truncated && answers.finished()) return {};
  const bool limit = result.end == ProcessResult::End::kTimedOut || result.truncated;
  std::string message = what + " " + describe_end(result, limits);
  const std::string first_line = result.err.substr(0, std::min<size_t>(result.err.find('\n'), 300));
  if (!first_line.empty()) message += ": " + first_line;
  return Error{limit ? ErrorCode::kLimit : ErrorCode::kFailed, std::move(message), {}, {}};
}

Result<std::string> run_in_child(const std::string& what, const std::function<std::string()>& body,
                                 const ProcessLimits& limits) {
  std::string answer;
  const Status status = answers_of_child(
      what, [&](const SendAnswer& send) { send(body()); },
      [&](std::string sent) { answer = std::move(sent); }, limits);
  if (!status.ok()) return status.error();
  return answer;
}

}  // namespace sundog
