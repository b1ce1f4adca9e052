// CHECK guards Sundog's own invariants and stays on in Release builds: a failing CHECK is a bug in
// Sundog, never a user's mistake.  Bad input is an Error value instead (core/status.h).
#pragma once

#include <cstdio>
#include <cstdlib>

namespace sundog {

[[noreturn]] inline void check_failed(const char* file, int line, const char* condition) {
  std::fprintf(stderr, "sundog: internal error at %s:%d: %s\nPlease report this with the input.\n",
               file, line, condition);
  std::abort();
}

}  // namespace sundog

#define SUNDOG_CHECK(condition)                                               \
  do {                                                                        \
    if (!(condition)) ::sundog::check_failed(__FILE__, __LINE__, #condition); \
  } while (false)
