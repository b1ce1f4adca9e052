#include "cli/interrupt.h"

#include <signal.h>
#include <unistd.h>

#include <string_view>

namespace sundog::cli {
namespace {

std::atomic<bool> g_interrupted = false, g_finishes = false;
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler may set it");

void say(std::string_view text) {
  // A message lost to a closed terminal changes nothing.
  if (write(STDERR_FILENO, text.data(), text.size()) < 0) return;
}

void on_signal(int number) {
  if (g_interrupted.exchange(true) || !g_finishes) {
    say("\nsundog: stopped; nothing was written\n");
    _exit(128 + number);
  }
  say("\nsundog: ending with the best found so far; once more to stop at once\n");
}

}  // namespace

void handle_signals() {
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    // nohup stays in force.  SIGINT is taken all the same: scripts start what they put into the
    // background with it ignored, and whoever sends it by hand means it.
    struct sigaction before {};
    sigaction(number, nullptr, &before);
    if (number != SIGHUP || before.sa_handler != SIG_IGN) sigaction(number, &action, nullptr);
  }
  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN);
}

void finish_when_interrupted() { g_finishes = true; }

const std::atomic<bool>& interrupted() { return g_interrupted; }

}  // namespace sundog::cli
