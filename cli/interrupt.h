// Ctrl-C.  The first SIGINT, SIGTERM or SIGHUP asks the work to end with the best found so far; a
// second one ends the tool at once, with nothing half-written.
#pragma once

#include <atomic>

namespace sundog::cli {

// Takes the signals over; also makes a closed pipe and the limit on file sizes errors of the write
// instead of deaths.  Called once by main.
void handle_signals();

// True once the user wants the work to end.
const std::atomic<bool>& interrupted();

}  // namespace sundog::cli
