#include "cli/console.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace sundog::cli {

int write_to(int fd, std::string_view data) {
  while (!data.empty()) {
    const ssize_t size = write(fd, data.data(), data.size());
    if (size >= 0) {
      data.remove_prefix(static_cast<size_t>(size));
    } else if (errno != EINTR) {
      return errno;
    }
  }
  return 0;
}

Status write_output(std::string_view text) {
  const int failure = write_to(STDOUT_FILENO, text);
  if (failure == 0) return {};
  return io_error(std::string("cannot write to standard output: ") + std::strerror(failure));
}

// Where standard error itself fails there is nobody left to tell.
void note(std::string_view line) { write_to(STDERR_FILENO, std::string(line) + "\n"); }

void print_error(const Error& error) {
  const std::string text = to_string(error);
  note(error.position ? text : "sundog: " + text);
}

int exit_code(const Error& error) {
  switch (error.code) {
    case ErrorCode::kBadInput:
    case ErrorCode::kUnsupported:
    case ErrorCode::kIo:
    case ErrorCode::kToolMissing:
      return 2;
    case ErrorCode::kLimit:
      return 3;
    case ErrorCode::kFailed:
      return 1;
  }
  return 2;
}

ProgressLine::ProgressLine(bool quiet) : enabled_(!quiet && isatty(STDERR_FILENO) == 1) {}

void ProgressLine::show(std::string_view text) {
  if (!enabled_) return;
  winsize size{};
  const size_t columns =
      ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1 ? size.ws_col - 1u : 79u;
  write_to(STDERR_FILENO, "\r" + std::string(text.substr(0, columns)) + "\x1b[K");
  shown_ = true;
}

void ProgressLine::clear() {
  if (shown_) write_to(STDERR_FILENO, "\r\x1b[K");
  shown_ = false;
}

}  // namespace sundog::cli
