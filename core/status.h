// Errors are values.  Everything that a user's input can cause is returned as a Status or a
// Result<T>; nothing in the library prints or exits.
//
//   Result<Program> p = parse_program(text, "rms_norm.sd", defines);
//   if (!p.ok()) return p.error();
//   use(*p);
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "core/check.h"

namespace sundog {

// A place in a text file.  Lines and columns count from 1; line 0 means "the file as a whole".
struct Position {
  std::string file;
  int line = 0;
  int column = 0;
  bool operator==(const Position&) const = default;
};

enum class ErrorCode {
  kBadInput,     // the user's program, µGraph, flag or file is wrong (exit code 2)
  kUnsupported,  // understood, but outside what Sundog does (exit code 2)
  kIo,           // a file or device could not be read, written or reached (exit code 2)
  kLimit,        // a time, memory or size limit was hit (exit code 3)
  kToolMissing,  // a compiler, NVRTC or driver was not found (exit code 2)
  kFailed,       // a compiler, kernel or child process failed (exit code 1)
};

struct Error {
  ErrorCode code = ErrorCode::kBadInput;
  std::string message;  // one sentence, no newline
  std::string hint;     // what to do about it; may be empty
  std::optional<Position> position;
};

// "file:line:column: error: message" and, where there is one, "\n  hint: ..." on a second line.
std::string to_string(const Error& error);

inline Error bad_input(std::string message, std::string hint = {},
                       std::optional<Position> position = {}) {
  return {ErrorCode::kBadInput, std::move(message), std::move(hint), std::move(position)};
}
inline Error unsupported(std::string message, std::string hint = {},
                         std::optional<Position> position = {}) {
  return {ErrorCode::kUnsupported, std::move(message), std::move(hint), std::move(position)};
}
inline Error io_error(std::string message, std::string hint = {}) {
  return {ErrorCode::kIo, std::move(message), std::move(hint), {}};
}
inline Error limit_error(std::string message, std::string hint = {}) {
  return {ErrorCode::kLimit, std::move(message), std::move(hint), {}};
}

// Either a T or an Error.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(value()); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }
  T& value() & {
    SUNDOG_CHECK(ok());
    return std::get<0>(state_);
  }
  const T& value() const& {
    SUNDOG_CHECK(ok());
    return std::get<0>(state_);
  }
  T&& value() && {
    SUNDOG_CHECK(ok());
    return std::move(std::get<0>(state_));
  }
  const Error& error() const {
    SUNDOG_CHECK(!ok());
    return std::get<1>(state_);
  }

 private:
  std::variant<T, Error> state_;
};

// Success, or an Error.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Error error) : error_(std::move(error)) {}
  bool ok() const { return !error_.has_value(); }
  explicit operator bool() const { return ok(); }
  const Error& error() const {
    SUNDOG_CHECK(!ok());
    return *error_;
  }

 private:
  std::optional<Error> error_;
};

}  // namespace sundog

// Returns the error of a Status or Result from the enclosing function.
#define SUNDOG_RETURN_IF_ERROR(expression)                                                       \
  do {                                                                                           \
    if (auto sundog_status_ = (expression); !sundog_status_.ok()) return sundog_status_.error(); \
  } while (false)
