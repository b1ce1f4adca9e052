// Enough of a JSON reader to look into what the tool prints.  A text that is no JSON fails the
// test.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace sundog::cli {

struct JsonValue {
  enum Kind { kMissing, kNull, kBool, kNumber, kString, kArray, kObject };
  Kind kind = kMissing;
  bool truth = false;
  double number = 0;
  std::string text;
  std::vector<JsonValue> items;
  std::map<std::string, JsonValue> fields;

  const JsonValue& operator[](const std::string& key) const {
    static const JsonValue missing;
    const auto found = fields.find(key);
    if (found == fields.end()) ADD_FAILURE() << "no field " << key;
    return found == fields.end() ? missing : found->second;
  }
};

class JsonReader {
 public:
  explicit JsonReader(std::string_view text) : rest_(text) {}

  JsonValue whole() {
    JsonValue value = next();
    space();
    if (!rest_.empty()) fail("text behind the value");
    return value;
  }

 private:
  void fail(const std::string& what) {
    if (!failed_) ADD_FAILURE() << "no JSON: " << what << " before: " << rest_.substr(0, 40);
    failed_ = true;
    rest_ = {};
  }
  void space() {
    while (!rest_.empty() && (rest_[0] == ' ' || rest_[0] == '\n')) rest_.remove_prefix(1);
  }
  bool take(std::string_view token) {
    space();
    if (!rest_.starts_with(token)) return false;
    rest_.remove_prefix(token.size());
    return true;
  }
  std::string string() {
    std::string text;
    while (!rest_.empty() && rest_[0] != '"') {
      if (rest_[0] == '\\' && rest_.size() > 1) rest_.remove_prefix(1);
      text += rest_[0];
      rest_.remove_prefix(1);
    }
    if (!take("\"")) fail("a string without an end");
    return text;
  }
  JsonValue next() {
    JsonValue value;
    if (take("{")) {
      value.kind = JsonValue::kObject;
      while (!failed_ && !take("}")) {
        if (!value.fields.empty() && !take(",")) fail("no comma");
        if (!take("\"")) fail("no key");
        const std::string key = string();
        if (!take(":")) fail("no colon");
        value.fields[key] = next();
      }
    } else if (take("[")) {
      value.kind = JsonValue::kArray;
      while (!failed_ && !take("]")) {
        if (!value.items.empty() && !take(",")) fail("no comma");
        value.items.push_back(next());
      }
    } else if (take("\"")) {
      value.kind = JsonValue::kString;
      value.text = string();
    } else if (take("null")) {
      value.kind = JsonValue::kNull;
    } else if (take("true") || take("false")) {
      value.kind = JsonValue::kBool;
      value.truth = *(rest_.data() - 2) == 'u';
    } else {
      value.kind = JsonValue::kNumber;
      const std::string digits(rest_.substr(0, rest_.find_first_not_of("+-.0123456789eE")));
      if (digits.empty()) fail("no value");
      value.number = std::strtod(digits.c_str(), nullptr);
      rest_.remove_prefix(digits.size() < rest_.size() ? digits.size() : rest_.size());
    }
    return value;
  }

  std::string_view rest_;
  bool failed_ = false;
};

inline JsonValue parse_json(std::string_view text) { return JsonReader(text).whole(); }

}  // namespace sundog::cli
