// How a forked child hands its answer back: numbers and strings one after another in one string.
// Both ends are the same executable, so that a layout needs no version and no byte order.
//
//   Packer p;  p.put(int64_t{7});  p.put("text");     Unpacker u(p.bytes());
//   int64_t n = u.number<int64_t>();  std::string s = u.text();  bool whole = u.finished();
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "core/status.h"

namespace sundog {

class Packer {
 public:
  template <class T>
  requires std::is_arithmetic_v<T>
  void put(T value) { bytes_.append(reinterpret_cast<const char*>(&value), sizeof value); }
  void put(std::string_view text) {
    put(static_cast<uint64_t>(text.size()));
    bytes_.append(text);
  }
  void put(const Error& error) {  // its position stays behind
    put(static_cast<int>(error.code));
    put(error.message);
    put(error.hint);
  }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

// Reading past the end gives zeros and empty strings, and finished() is false from then on.
class Unpacker {
 public:
  explicit Unpacker(std::string_view bytes) : rest_(bytes) {}

  template <class T>
  requires std::is_arithmetic_v<T> T number() {
    T value{};
    if (rest_.size() < sizeof value) {
      fail();
      return value;
    }
    std::memcpy(&value, rest_.data(), sizeof value);
    rest_.remove_prefix(sizeof value);
    return value;
  }
  std::string text() {
    const uint64_t size = number<uint64_t>();
    if (size > rest_.size()) {
      fail();
      return {};
    }
    std::string result(rest_.substr(0, size));
    rest_.remove_prefix(size);
    return result;
  }
  Error error() {
    const auto code = static_cast<ErrorCode>(number<int>());
    std::string message = text();
    return {code, std::move(message), text(), {}};
  }
  bool finished() const { return !failed_ && rest_.empty(); }
  bool failed() const { return failed_; }

 private:
  void fail() {
    failed_ = true;
    rest_ = {};
  }
  std::string_view rest_;
  bool failed_ = false;
};

}  // namespace sundog
