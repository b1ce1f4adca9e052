// Ctrl-C.  SIGINT, SIGTERM or SIGHUP ends the tool at once, with nothing half-written; where there
// is a best found so far (finish_when_interrupted), the first one asks the work to end with that.
#pragma once

#include <atomic>

namespace sundog::cli {

// Takes the signals over; also makes a closed pipe and the limit on file sizes errors of the write
// instead of deaths.  Called once by main.
void handle_signals();

// Called by commands that have an answer at any time.
void finish_when_interrupted();

// True once the user wants the work to end.
const std::atomic<bool>& interrupted();

}  // namespace sundog::cli
