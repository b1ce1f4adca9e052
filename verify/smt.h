// Questions to Z3, asked in a child process with hard limits on time and memory.
//
// A question is a text in SMT-LIB: declarations and assertions whose conjunction is the *negation*
// of what is to be shown, so that "unsatisfiable" means shown.  Only linear and polynomial integer
// or real arithmetic is ever asked; exponentials never are.
#pragma once

#include <string>
#include <vector>

#include "core/status.h"

namespace sundog::verify {

struct SmtLimits {
  double query_s = 2;   // of the processor, for one question
  double total_s = 20;  // of the processor, for all; ten times that by the clock
  int64_t memory_bytes = int64_t{4} << 30;  // of the child's address space
};

struct SmtAnswer {
  enum Kind : uint8_t { kShown, kRefuted, kUnknown };
  Kind kind = kUnknown;
  std::string detail;  // values that refute, or why unknown
};

// One answer a question.  A child that crashes or exceeds a limit leaves the rest unknown.
std::vector<SmtAnswer> ask(const std::vector<std::string>& questions, const SmtLimits& limits = {});

}  // namespace sundog::verify
