// A small JSON writer: what `--json` prints.
//
//   JsonWriter json;
//   json.begin_object();
//   json.key("states").value(int64_t{12});
//   json.end_object();
//   std::string text = json.text();
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace sundog::cli {

class JsonWriter {
 public:
  JsonWriter& begin_object() { return open('{'); }
  JsonWriter& end_object() { return close('}'); }
  JsonWriter& begin_array() { return open('['); }
  JsonWriter& end_array() { return close(']'); }
  JsonWriter& key(std::string_view name);

  JsonWriter& value(std::string_view text);
  JsonWriter& value(const char* text) { return value(std::string_view(text)); }
  JsonWriter& value(int64_t number) { return raw(std::to_string(number)); }
  JsonWriter& value(int number) { return value(int64_t{number}); }
  JsonWriter& value(bool truth) { return raw(truth ? "true" : "false"); }
  JsonWriter& value(double number);  // null where it is not finite: JSON has no such number
  JsonWriter& null() { return raw("null"); }
  template <class T>
  JsonWriter& value(const std::optional<T>& maybe) {
    return maybe ? value(*maybe) : null();
  }

  // What was written so far.
  const std::string& text() const { return text_; }

 private:
  JsonWriter& raw(std::string_view token);
  JsonWriter& open(char bracket);
  JsonWriter& close(char bracket);
  void separate();

  std::string text_;
  int depth_ = 0;
  bool fresh_ = true;  // nothing stands in the innermost bracket yet
  bool after_key_ = false;
};

// `text` as a JSON string with its quotes; bytes that are not UTF-8 become U+FFFD.
std::string json_string(std::string_view text);

}  // namespace sundog::cli
