// The sub-commands, one file each.  Each returns the exit code: 0 done or equivalent, 1 different
// or failed, 2 bad input, 3 unknown.
#pragma once

#include "cli/options.h"

namespace sundog::cli {

int optimize(const Invocation& invocation);
int verify(const Invocation& invocation);
int verify_evidence(const Invocation& invocation);  // verify --evidence DIR
int show(const Invocation& invocation);
int emit(const Invocation& invocation);
int run(const Invocation& invocation);
int bench(const Invocation& invocation);
int calibrate(const Invocation& invocation);
int explain(const Invocation& invocation);
int trace(const Invocation& invocation);
int space(const Invocation& invocation);
int help(const Invocation& invocation);
int version(const Invocation& invocation);

// Prints the error and gives the exit code that belongs to it.
int fail(const Error& error);

}  // namespace sundog::cli
