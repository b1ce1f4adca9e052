// Standard output and error of the tool.  Results go to standard output, everything else to
// standard error, and progress only to a terminal.
#pragma once

#include <string>
#include <string_view>

#include "core/status.h"

namespace sundog::cli {

// Writes all of text to standard output; a full disk or a closed pipe is an Error.
Status write_output(std::string_view text);

// Writes all of data; 0, or the errno of what went wrong.
int write_to(int fd, std::string_view data);

// A line for the user, on standard error.
void note(std::string_view line);

// "file:1:2: error: ..." with its hint, on standard error.
void print_error(const Error& error);

// The exit code that belongs to an error: 1 for kFailed, 3 for kLimit, else 2.
int exit_code(const Error& error);

// One line on a terminal that is written over and over; silent where standard error is none.
class ProgressLine {
 public:
  explicit ProgressLine(bool quiet);
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  ~ProgressLine() { clear(); }
  void show(std::string_view text);
  void clear();
  bool enabled() const { return enabled_; }

 private:
  bool enabled_ = false;
  bool shown_ = false;
};

}  // namespace sundog::cli
