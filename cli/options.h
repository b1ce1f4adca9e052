// Every option and limit of the tool in one table: name, value, default, range, environment
// variable and help.  The parser, `--help` and the checks of ranges all read it.
//
// An option is written `--name value` or `--name=value`.  What the command line does not give is
// taken from the environment (SUNDOG_NAME), else it is the default.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"

namespace sundog::cli {

enum class OptionKind {
  kFlag,  // no value
  kText,
  kChoice,  // one of the words in `value`, separated by |
  kInteger,
  kDuration,  // "90", "90s", "1.5m", "200ms", "1h": seconds
  kBytes,     // "4096", "512k", "64m", "2g"
  kError,     // a probability of being wrong: "1e-18" or "2^-60", kept as its base-2 logarithm
};

// A set of commands.
enum CommandBit : unsigned {
  kOptimize = 1,
  kVerify = 2,
  kShow = 4,
  kEmit = 8,
  kRun = 16,
  kHelp = 32,
  kVersion = 64,
  kSpace = 128,
  kExplain = 256,
  kTrace = 512,
  kBench = 1024,
  kCalibrate = 2048,
};

struct OptionSpec {
  std::string_view name;  // without the dashes
  char letter;            // of the short form; 0: none
  OptionKind kind;
  std::string_view value;     // how help names the value
  std::string_view fallback;  // default, as it would be written; empty: none
  double low, high;           // range of a number (of seconds, of bytes, of the logarithm)
  unsigned commands;          // CommandBits that take it
  bool environment;           // SUNDOG_NAME gives it too
  std::string_view help;
};

struct CommandSpec {
  CommandBit bit;
  std::string_view name, operands, help;
  int min_operands, max_operands;
};

std::span<const OptionSpec> option_table();
std::span<const CommandSpec> command_table();
const CommandSpec* find_command(std::string_view name);

// What a command line asks for.  Asking for an option that the command does not have is a bug of
// ours.
class Invocation {
 public:
  const CommandSpec* command = nullptr;
  std::vector<std::string> operands;
  std::map<std::string, int64_t> defines;  // of -D name=value

  bool flag(std::string_view name) const { return find(name) != nullptr; }
  bool given(std::string_view name) const { return find(name) != nullptr; }
  std::string text(std::string_view name) const;  // empty if it has neither value nor default
  int64_t integer(std::string_view name) const { return static_cast<int64_t>(number(name)); }
  double seconds(std::string_view name) const { return number(name); }
  int64_t bytes(std::string_view name) const { return integer(name); }
  double error_log2(std::string_view name) const { return number(name); }

  void set(std::string_view name, std::string value) {
    values_[std::string(name)] = std::move(value);
  }

 private:
  const std::string* find(std::string_view name) const;
  double number(std::string_view name) const;
  std::map<std::string, std::string, std::less<>> values_;
};

// Arguments without the program's name.  `environment` gives a variable's value or nothing.  The
// error's hint names the help to read.
Result<Invocation> parse_invocation(
    std::span<const std::string> arguments,
    const std::function<std::optional<std::string>(const std::string&)>& environment);

// The value of a number-like option, or what is wrong with it.
Result<double> parse_option_number(const OptionSpec& option, std::string_view text);

// "SUNDOG_VERIFY_TIME" for "verify-time".
std::string environment_name(std::string_view option);

// The help of one command, or of the tool where it is null.
std::string help_text(const CommandSpec* command);

}  // namespace sundog::cli
