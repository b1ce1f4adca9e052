// What the opaque handles of sundog.h hold, and how a C++ call becomes a C one.
#pragma once

#include <atomic>
#include <exception>
#include <optional>
#include <string>
#include <variant>

#include "cli/result.h"
#include "codegen/emulator.h"
#include "codegen/loaded_plan.h"
#include "core/device.h"
#include "core/program.h"
#include "core/status.h"
#include "python/abi/sundog.h"

struct sundog_error {
  sundog_code code = SUNDOG_INTERNAL;
  std::string message, hint, file;
  int line = 0, column = 0;
};

struct sundog_bytes {
  std::string text;
};

struct sundog_program {
  sundog::Program program;
};

struct sundog_stop {
  std::atomic<bool> set = false;
};

struct sundog_result {
  sundog::cli::StoredResult stored;
};

struct sundog_kernel {
  sundog::codegen::LaunchPlan plan;
  std::variant<sundog::codegen::LoadedPlan, sundog::codegen::EmulatorModule> code;
  double emulator_s = 0;  // limit of one run there
};

namespace sundog::abi {

sundog_code report(const Error& error, sundog_error** out);
sundog_code report_exception(const std::exception& exception, sundog_error** out);

// Runs `body`, which returns a Status, and turns whatever happens into a code.
template <class Body>
sundog_code guarded(sundog_error** error, Body&& body) {
  try {
    const Status status = body();
    return status.ok() ? SUNDOG_OK : report(status.error(), error);
  } catch (const std::exception& exception) {
    return report_exception(exception, error);
  }
}

// Hands out what a Result holds.
template <class Handle, class Made>
Status give(Result<Made> made, Handle** out) {
  if (!made.ok()) return made.error();
  *out = new Handle{std::move(*made)};
  return {};
}

inline Status null_argument(const char* name) {
  return bad_input(std::string("the argument ") + name + " is NULL");
}

// What was chosen, what it is worth and why it is right, in words.
std::string explanation(const cli::StoredResult& result);

}  // namespace sundog::abi
