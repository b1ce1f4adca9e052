#include "cli/json.h"

#include <gtest/gtest.h>

#include <limits>

namespace sundog::cli {
namespace {

TEST(Json, WritesNestedObjects) {
  JsonWriter json;
  json.begin_object();
  json.key("a").value(1);
  json.key("b").begin_array().value("x").value(true).null().end_array();
  json.key("c").begin_object().end_object();
  json.key("d").value(std::optional<double>());
  json.end_object();
  EXPECT_EQ(json.text(),
            "{\n  \"a\": 1,\n  \"b\": [\n    \"x\",\n    true,\n    null\n  ],\n  \"c\": {},\n"
            "  \"d\": null\n}");
}

TEST(Json, NumbersAreShortestAndNeverInfinite) {
  JsonWriter json;
  json.begin_array().value(0.1).value(1e-6).value(std::numeric_limits<double>::infinity());
  json.value(std::numeric_limits<double>::quiet_NaN()).end_array();
  EXPECT_EQ(json.text(), "[\n  0.1,\n  1e-06,\n  null,\n  null\n]");
}

TEST(Json, StringsAreAlwaysValid) {
  EXPECT_EQ(json_string("a\"\\\n\t\x01"), "\"a\\\"\\\\\\n\\t\\u0001\"");
  EXPECT_EQ(json_string("µ"), "\"µ\"");
  EXPECT_EQ(json_string("\xff\xfe"), "\"\\ufffd\\ufffd\"");
  EXPECT_EQ(json_string("\xc3"), "\"\\ufffd\"") << "cut in the middle";
  EXPECT_EQ(json_string("\xed\xa0\x80"), "\"\\ufffd\\ufffd\\ufffd\"") << "a surrogate";
  EXPECT_EQ(json_string("\xc0\x80"), "\"\\ufffd\\ufffd\"") << "an overlong zero";
}

}  // namespace
}  // namespace sundog::cli
