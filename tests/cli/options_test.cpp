#include "cli/options.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

namespace sundog::cli {
namespace {

using Environment = std::map<std::string, std::string>;

Result<Invocation> parse(std::vector<std::string> arguments, const Environment& environment = {}) {
  return parse_invocation(arguments, [&](const std::string& name) -> std::optional<std::string> {
    const auto found = environment.find(name);
    if (found == environment.end()) return std::nullopt;
    return found->second;
  });
}

// The message and hint of what must be refused.
std::string refused(std::vector<std::string> arguments, const Environment& environment = {}) {
  const Result<Invocation> result = parse(std::move(arguments), environment);
  if (result.ok()) return "accepted";
  EXPECT_EQ(result.error().code, ErrorCode::kBadInput);
  return result.error().message + " / " + result.error().hint;
}

TEST(Options, ReadsValuesInAllTheirForms) {
  const auto a = parse({"optimize", "x.sd", "--budget", "1.5m", "-D", "b=8", "-Dh=-3", "--json",
                        "--top=3", "--error=1e-18"});
  ASSERT_TRUE(a.ok()) << to_string(a.error());
  EXPECT_EQ(a->operands, std::vector<std::string>{"x.sd"});
  EXPECT_EQ(a->seconds("budget"), 90);
  EXPECT_EQ(a->defines.at("b"), 8);
  EXPECT_EQ(a->defines.at("h"), -3);
  EXPECT_TRUE(a->flag("json"));
  EXPECT_FALSE(a->flag("no-gpu"));
  EXPECT_EQ(a->integer("top"), 3);
  EXPECT_NEAR(a->error_log2("error"), std::log2(1e-18), 1e-9);
  EXPECT_EQ(a->integer("threads"), 0) << "the default";
  EXPECT_EQ(parse({"optimize", "--budget=200ms", "x"})->seconds("budget"), 0.2);
  EXPECT_EQ(parse({"verify", "--input-bytes", "2k", "a", "b"})->bytes("input-bytes"), 2048);
}

TEST(Options, TakesOperandsThatLookLikeOptionsAfterTwoDashes) {
  const auto a = parse({"show", "--", "--text"});
  ASSERT_TRUE(a.ok());
  EXPECT_EQ(a->operands, std::vector<std::string>{"--text"});
  EXPECT_FALSE(a->flag("text"));
}

TEST(Options, RefusesWhatItDoesNotKnow) {
  EXPECT_NE(refused({}).find("no command"), std::string::npos);
  EXPECT_NE(refused({"optimise", "x"}).find("did you mean optimize?"), std::string::npos);
  EXPECT_NE(refused({"optimize", "x", "--buget", "3"}).find("did you mean budget?"),
            std::string::npos);
  EXPECT_NE(refused({"verify", "a", "b", "--on", "gpu"}).find("no option --on"), std::string::npos);
  EXPECT_NE(refused({"optimize", "x", "--D", "b=1"}).find("no option"), std::string::npos);
  EXPECT_NE(refused({"optimize"}).find("takes FILE"), std::string::npos);
  EXPECT_NE(refused({"verify"}).find("takes PROGRAM CANDIDATE"), std::string::npos);
}

TEST(Options, RefusesValuesOutOfRange) {
  for (const char* value : {"0", "-3", "abc", "3x", "1e99", "nan", "inf", ""}) {
    EXPECT_NE(refused({"optimize", "x", "--budget", value}), "accepted") << value;
    EXPECT_NE(refused({"optimize", "x", "--top", value}), "accepted") << value;
  }
  EXPECT_NE(refused({"optimize", "x", "--top", "2.5"}), "accepted");
  EXPECT_NE(refused({"optimize", "x", "--error", "2"}), "accepted") << "no probability";
  EXPECT_NE(refused({"optimize", "x", "--json=1"}).find("takes no value"), std::string::npos);
  EXPECT_NE(refused({"optimize", "x", "--budget"}).find("needs a value"), std::string::npos);
  EXPECT_NE(refused({"run", "x", "--on", "cpu"}).find("emulator|gpu"), std::string::npos);
  EXPECT_NE(refused({"run", "x", "--on", "emulator|gpu"}), "accepted");
  for (const char* define : {"b", "=3", "b=", "b=3.5", "b=x", "b=99999999999999999999"}) {
    EXPECT_NE(refused({"optimize", "x", "-D", define}).find("NAME=INTEGER"), std::string::npos)
        << define;
  }
}

TEST(Options, TakesLimitsFromTheEnvironmentUnlessGiven) {
  const Environment environment = {{"SUNDOG_BUDGET", "5s"}, {"SUNDOG_NO_GPU", "1"}};
  EXPECT_EQ(parse({"optimize", "x"}, environment)->seconds("budget"), 5);
  EXPECT_TRUE(parse({"optimize", "x"}, environment)->flag("no-gpu"));
  EXPECT_EQ(parse({"optimize", "x", "--budget=7"}, environment)->seconds("budget"), 7);
  EXPECT_FALSE(parse({"optimize", "x"}, {{"SUNDOG_NO_GPU", "0"}})->flag("no-gpu"));
  EXPECT_NE(refused({"optimize", "x"}, {{"SUNDOG_TOP", "many"}}).find("SUNDOG_TOP"),
            std::string::npos);
}

TEST(Options, HelpNamesEveryOptionOfACommandAndNoOther) {
  for (const CommandSpec& command : command_table()) {
    const std::string help = help_text(&command);
    for (const OptionSpec& option : option_table()) {
      const bool named = help.find("--" + std::string(option.name) + " ") != std::string::npos;
      EXPECT_EQ(named, (option.commands & command.bit) != 0) << command.name << " " << option.name;
    }
    EXPECT_NE(help_text(nullptr).find("sundog " + std::string(command.name)), std::string::npos);
  }
}

TEST(Options, TableIsConsistent) {
  std::set<std::string_view> names;
  for (const OptionSpec& option : option_table()) {
    EXPECT_TRUE(names.insert(option.name).second) << option.name << " stands twice";
    EXPECT_FALSE(option.help.empty());
    const bool number = option.kind == OptionKind::kInteger ||
                        option.kind == OptionKind::kDuration || option.kind == OptionKind::kBytes ||
                        option.kind == OptionKind::kError;
    if (number) {
      EXPECT_TRUE(parse_option_number(option, option.fallback).ok()) << option.name;
    }
  }
}

}  // namespace
}  // namespace sundog::cli
