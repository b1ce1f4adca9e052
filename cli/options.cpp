#include "cli/options.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <limits>
#include <utility>

namespace sundog::cli {
namespace {

constexpr unsigned kSearching = kOptimize;
constexpr unsigned kReading = kOptimize | kVerify | kShow | kEmit | kRun | kExplain | kBench;
constexpr double kMaxSeconds = 30.0 * 86400;
constexpr double kMaxInteger = 9007199254740992.0;  // what a double holds exactly

constexpr OptionSpec kOptions[] = {
    {"define", 'D', OptionKind::kText, "NAME=VALUE", "", 0, 0, kReading, false,
     "set a parameter of the program; repeatable"},
    {"target", 0, OptionKind::kText, "NAME", "", 0, 0,
     kOptimize | kVerify | kEmit | kRun | kExplain | kShow | kBench, true,
     "device to compile for: h200, h100, a100 (default: the GPU present, else h200)"},
    {"budget", 0, OptionKind::kDuration, "TIME", "60s", 0.01, kMaxSeconds,
     kSearching | kExplain | kBench, true, "time for the search"},
    {"states", 0, OptionKind::kInteger, "N", "0", 0, kMaxInteger, kSearching | kExplain | kBench,
     true,
     "states that the search may visit, 0 for no limit; given alone, no clock stops the search"},
    {"top", 0, OptionKind::kInteger, "K", "8", 1, 256, kSearching | kBench, true,
     "candidates that go to verification, code generation and timing"},
    {"threads", 0, OptionKind::kInteger, "N", "0", 0, 1024, kSearching | kExplain | kBench, true,
     "threads of the search, 0 for one a core; they do not change what --states finds"},
    {"memory", 0, OptionKind::kBytes, "SIZE", "0", 0, 1e13, kSearching | kExplain, true,
     "about what the tables of the search may take, 0 for no limit"},
    {"space", 0, OptionKind::kText, "FILE", "", 0, 0, kSearching | kExplain, false,
     "what may be searched, as a text of `name: value`; sundog space prints the default"},
    {"trace", 0, OptionKind::kText, "FILE", "", 0, 0, kOptimize, false,
     "write there what the search decides and prunes; sundog trace reads it"},
    {"checkpoint", 0, OptionKind::kText, "FILE", "", 0, 0, kSearching, false,
     "keep the state of the search there, and go on from it if it exists"},
    {"checkpoint-every", 0, OptionKind::kDuration, "TIME", "5s", 0, kMaxSeconds, kSearching, true,
     "time between two checkpoints"},
    {"seed", 0, OptionKind::kInteger, "S", "1", 0, kMaxInteger,
     kOptimize | kVerify | kRun | kExplain | kBench, true, "seed of everything random"},
    {"term", 0, OptionKind::kText, "NAME", "", 0, 0, kExplain, false,
     "a term that some kernel computes"},
    {"stored", 0, OptionKind::kText, "NAME,...", "", 0, 0, kExplain, false,
     "terms that pass through memory between two kernels, and maybe others"},
    {"cut", 0, OptionKind::kText, "NAME,...", "", 0, 0, kExplain, false,
     "terms that pass through memory between kernels, and no others; none: one kernel"},
    {"events", 0, OptionKind::kFlag, "", "", 0, 0, kTrace, false,
     "every event, one a line, instead of a summary"},
    {"from", 0, OptionKind::kText, "FILE", "", 0, 0, kSearching, false,
     "start from a µGraph or an earlier result (FILE.mu, result.pb or its folder)"},
    {"out", 0, OptionKind::kText, "DIR", "", 0, 0, kSearching | kBench, false,
     "folder of what is found (default: NAME.sundog; of bench: bench); a result replaces only an "
     "empty folder or another result"},
    {"output", 'o', OptionKind::kText, "FILE", "", 0, 0, kEmit | kShow | kSpace | kCalibrate, false,
     "write there instead of to standard output"},
    {"program", 0, OptionKind::kText, "FILE.sd", "", 0, 0, kShow | kEmit | kRun, false,
     "program of a µGraph (default: NAME.sd or program.sd beside it)"},
    {"rounding", 0, OptionKind::kChoice, "wide|eager", "wide", 0, 0,
     kOptimize | kVerify | kExplain | kRun | kEmit | kBench, true,
     "wide: drop casts to narrower floats; eager: keep them (default: that of the result, or "
     "wide)"},
    {"error", 0, OptionKind::kError, "E", "2^-60", -4096, -1, kOptimize | kVerify, true,
     "probability with which a wrong candidate may pass the field test"},
    {"prove", 0, OptionKind::kFlag, "", "", 0, 0, kVerify, false,
     "attempt a proof for all sizes and tiles too"},
    {"prove-time", 0, OptionKind::kDuration, "TIME", "10s", 0, kMaxSeconds, kOptimize | kVerify,
     true, "time for a proof, then it is unknown; optimize attempts one unless this is 0"},
    {"on", 0, OptionKind::kChoice, "emulator|gpu", "", 0, 0, kRun, false,
     "where to run (default: the GPU if there is one, else the emulator)"},
    {"full", 0, OptionKind::kFlag, "", "", 0, 0, kRun, false,
     "run the emulator at full size, however long it takes"},
    {"gpu", 0, OptionKind::kInteger, "N", "0", 0, 64, kOptimize | kRun | kBench | kCalibrate, true,
     "number of the GPU to use"},
    {"no-time", 0, OptionKind::kFlag, "", "", 0, 0, kRun, false,
     "check on the GPU without timing: for runs under a sanitizer"},
    {"no-gpu", 0, OptionKind::kFlag, "", "", 0, 0, kOptimize | kBench, true,
     "do not time on a GPU"},
    {"no-check", 0, OptionKind::kFlag, "", "", 0, 0, kOptimize, true,
     "do not run the emitted kernel in the emulator"},
    {"text", 0, OptionKind::kFlag, "", "", 0, 0, kShow, false, "as text (the default)"},
    {"dot", 0, OptionKind::kFlag, "", "", 0, 0, kShow, false, "as a Graphviz graph"},
    {"proto", 0, OptionKind::kFlag, "", "", 0, 0, kShow, false,
     "as a protobuf message, in its text form on a terminal"},
    {"cost", 0, OptionKind::kFlag, "", "", 0, 0, kShow, false,
     "what the cost model says each kernel takes, and of what"},
    {"candidate", 0, OptionKind::kInteger, "N", "0", 0, 1 << 20, kShow, false,
     "which candidate of a result, in the order of its report, from 0; as a µGraph"},
    {"verify-time", 0, OptionKind::kDuration, "TIME", "60s", 0.01, kMaxSeconds, kOptimize | kVerify,
     true, "time to verify one candidate"},
    {"check-time", 0, OptionKind::kDuration, "TIME", "120s", 0.01, kMaxSeconds,
     kOptimize | kRun | kBench, true, "time to run one kernel in the emulator"},
    {"compile-time", 0, OptionKind::kDuration, "TIME", "120s", 0.01, kMaxSeconds,
     kOptimize | kRun | kBench | kCalibrate, true, "time to compile one kernel"},
    {"gpu-time", 0, OptionKind::kDuration, "TIME", "60s", 0.01, kMaxSeconds,
     kOptimize | kRun | kBench | kCalibrate, true, "time to run and time one candidate on the GPU"},
    {"results", 0, OptionKind::kText, "DIR", "", 0, 0, kBench, false,
     "where results of programs are kept and looked for, a folder a row (default: in --out)"},
    {"methods", 0, OptionKind::kText, "NAME,...",
     "sundog,triton,eager,sdpa,compile,compile_sdpa,autotune,autotune_sdpa,cublas", 0, 0, kBench,
     true, "what is measured"},
    {"python", 0, OptionKind::kText, "PROGRAM", "python3", 0, 0, kBench, true,
     "a Python that has PyTorch"},
    {"optimize-time", 0, OptionKind::kDuration, "TIME", "10m", 0.01, kMaxSeconds, kBench, true,
     "time to optimize one program, all in all"},
    {"row-time", 0, OptionKind::kDuration, "TIME", "3m", 0.01, kMaxSeconds, kBench, true,
     "time of a row after which no further baseline of it is begun"},
    {"evidence", 0, OptionKind::kFlag, "", "", 0, 0, kVerify, false,
     "check a result again from what it stored: files, verdict, text, kernels"},
    {"input-bytes", 0, OptionKind::kBytes, "SIZE", "64m", 1, 4e9, kReading | kTrace, true,
     "largest file that is read"},
    {"json", 0, OptionKind::kFlag, "", "", 0, 0,
     kOptimize | kVerify | kRun | kVersion | kExplain | kTrace | kBench | kCalibrate, false,
     "print one JSON object"},
    {"quiet", 'q', OptionKind::kFlag, "", "", 0, 0, kOptimize | kVerify | kRun | kExplain | kBench,
     true, "no progress, even on a terminal"},
    {"help", 'h', OptionKind::kFlag, "", "", 0, 0, ~0u, false, "this text"},
};

constexpr CommandSpec kCommands[] = {
    {kOptimize, "optimize", "FILE", "find the fastest program that computes the same", 1, 1},
    {kVerify, "verify", "PROGRAM CANDIDATE | --evidence DIR",
     "is a µGraph, or another program, the same program?", 1, 2},
    {kShow, "show", "FILE", "print a program, a µGraph or a result", 1, 1},
    {kEmit, "emit", "FILE.mu", "print the CUDA of a µGraph", 1, 1},
    {kRun, "run", "FILE.mu|DIR", "run a µGraph, compare it with its program, time it on a GPU", 1,
     1},
    {kBench, "bench", "DIR|FILE...",
     "measure programs, results or a list of them against PyTorch and cuBLAS", 1, 1 << 20},
    {kCalibrate, "calibrate", "", "measure the GPU present: a row of core/devices", 0, 0},
    {kExplain, "explain", "FILE", "why was a term, or a cut into kernels, not chosen?", 1, 1},
    {kTrace, "trace", "FILE", "print what a search did, from its trace", 1, 1},
    {kSpace, "space", "[FILE]", "print the search space, the default one or that of a file", 0, 1},
    {kHelp, "help", "[COMMAND]", "help on a command", 0, 1},
    {kVersion, "version", "", "version, and which compilers and GPUs are found", 0, 0},
};

struct Unit {
  std::string_view name;
  double factor;
};
constexpr Unit kTimes[] = {{"", 1}, {"s", 1}, {"ms", 1e-3}, {"m", 60}, {"min", 60}, {"h", 3600}};
constexpr Unit kSizes[] = {{"", 1}, {"k", 1024}, {"m", 1048576.0}, {"g", 1073741824.0}};

std::optional<double> plain_number(std::string_view text, std::string_view* rest) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || !std::isfinite(value)) return std::nullopt;
  *rest = text.substr(static_cast<size_t>(end - text.data()));
  return value;
}

std::optional<double> with_unit(std::string_view text, std::span<const Unit> units) {
  std::string_view rest;
  const std::optional<double> value = plain_number(text, &rest);
  if (!value) return std::nullopt;
  for (const Unit& unit : units) {
    if (rest == unit.name) return *value * unit.factor;
  }
  return std::nullopt;
}

std::optional<double> base_two_logarithm(std::string_view text) {
  std::string_view rest;
  if (text.starts_with("2^")) {
    const std::optional<double> value = plain_number(text.substr(2), &rest);
    return value && rest.empty() ? value : std::nullopt;
  }
  const std::optional<double> value = plain_number(text, &rest);
  if (!value || !rest.empty() || *value <= 0) return std::nullopt;
  return std::log2(*value);
}

std::string short_number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.16g", value);
  return text;
}

const OptionSpec* find_option(std::string_view name, const CommandSpec& command) {
  for (const OptionSpec& option : kOptions) {
    const bool named = option.name == name || (name.size() == 1 && option.letter == name[0]);
    if (named && (option.commands & command.bit) != 0) return &option;
  }
  return nullptr;
}

// A hint that leads from a misspelled word to the one that was meant, if there is one close by.
std::string nearest(std::string_view word, const std::vector<std::string_view>& known) {
  const auto distance = [](std::string_view a, std::string_view b) {
    std::vector<size_t> row(b.size() + 1);
    for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
    for (size_t i = 1; i <= a.size(); ++i) {
      size_t corner = std::exchange(row[0], i);
      for (size_t j = 1; j <= b.size(); ++j) {
        const size_t replaced = corner + (a[i - 1] != b[j - 1]);
        corner = row[j];
        row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
      }
    }
    return row[b.size()];
  };
  size_t best = 1 + word.size() / 3;
  std::string_view found;
  for (const std::string_view candidate : known) {
    if (const size_t d = distance(word, candidate); d <= best) {
      best = d - (d > 0);
      found = candidate;
    }
  }
  return found.empty() ? std::string() : "did you mean " + std::string(found) + "?";
}

Status check_value(const OptionSpec& option, std::string_view value, const std::string& origin) {
  const auto wrong = [&](const std::string& what) {
    return bad_input(origin + ": " + what, std::string(option.help));
  };
  switch (option.kind) {
    case OptionKind::kFlag:
      return {};
    case OptionKind::kText:
      return value.empty() ? wrong("the value is empty") : Status();
    case OptionKind::kChoice: {
      const std::string words = "|" + std::string(option.value) + "|";
      const bool known = !value.empty() && value.find('|') == std::string_view::npos &&
                         words.find("|" + std::string(value) + "|") != std::string::npos;
      return known ? Status()
                   : wrong("'" + std::string(value) + "' is not " + std::string(option.value));
    }
    case OptionKind::kInteger:
    case OptionKind::kDuration:
    case OptionKind::kBytes:
    case OptionKind::kError: {
      const Result<double> number = parse_option_number(option, value);
      return number.ok() ? Status() : wrong(number.error().message);
    }
  }
  return {};
}

Status add_define(Invocation& invocation, std::string_view text) {
  const size_t equals = text.find('=');
  int64_t value = 0;
  const auto is_integer = [&value](std::string_view digits) {
    const auto [end, error] = std::from_chars(digits.begin(), digits.end(), value);
    return error == std::errc() && end == digits.end();
  };
  if (equals == std::string_view::npos || equals == 0 || !is_integer(text.substr(equals + 1))) {
    return bad_input("-D " + std::string(text) + " is not NAME=INTEGER", "for example -D b=8");
  }
  invocation.defines[std::string(text.substr(0, equals))] = value;
  return {};
}

// Reads the option at arguments[i], and its value, which may be the next argument.
Status take_option(Invocation& invocation, std::span<const std::string> arguments, size_t& i,
                   const std::string& help) {
  const std::string& argument = arguments[i];
  const bool is_long = argument.starts_with("--");
  const size_t equals = is_long ? argument.find('=') : std::string::npos;
  const std::string key = is_long ? argument.substr(2, equals - 2) : argument.substr(1, 1);
  const OptionSpec* option =
      is_long && key.size() == 1 ? nullptr : find_option(key, *invocation.command);
  if (option == nullptr) {
    std::vector<std::string_view> known;
    for (const OptionSpec& each : kOptions) {
      if ((each.commands & invocation.command->bit) != 0) known.push_back(each.name);
    }
    const std::string close_by = nearest(key, known);
    return bad_input("sundog " + std::string(invocation.command->name) + " has no option " +
                         argument.substr(0, equals),
                     close_by.empty() ? help : close_by);
  }
  const std::string origin = "--" + std::string(option->name);
  std::string value;
  const bool attached = is_long ? equals != std::string::npos : argument.size() > 2;
  if (option->kind == OptionKind::kFlag) {
    if (attached) return bad_input(origin + " takes no value", help);
  } else if (attached) {
    value = argument.substr(is_long ? equals + 1 : 2);
  } else if (i + 1 < arguments.size()) {
    value = arguments[++i];
  } else {
    return bad_input(origin + " needs a value", std::string(option->help));
  }
  if (option->name == "define") return add_define(invocation, value);
  SUNDOG_RETURN_IF_ERROR(check_value(*option, value, origin));
  invocation.set(option->name, value);
  return {};
}

Status take_environment(
    Invocation& invocation,
    const std::function<std::optional<std::string>(const std::string&)>& environment) {
  for (const OptionSpec& option : kOptions) {
    if (!option.environment || (option.commands & invocation.command->bit) == 0) continue;
    if (invocation.given(option.name)) continue;
    const std::string variable = environment_name(option.name);
    const std::optional<std::string> value = environment(variable);
    if (!value || value->empty()) continue;
    if (option.kind == OptionKind::kFlag && *value == "0") continue;
    SUNDOG_RETURN_IF_ERROR(check_value(option, *value, variable));
    invocation.set(option.name, *value);
  }
  return {};
}

std::string option_line(const OptionSpec& option) {
  std::string left = "  ";
  if (option.letter != 0) {
    left += "-";
    left += option.letter;
    left += ", ";
  }
  left += "--" + std::string(option.name);
  if (option.kind != OptionKind::kFlag) left += " " + std::string(option.value);
  left.resize(std::max<size_t>(left.size() + 2, 28), ' ');
  left += option.help;
  if (!option.fallback.empty()) left += " (default: " + std::string(option.fallback) + ")";
  if (option.environment) left += " [" + environment_name(option.name) + "]";
  return left + "\n";
}

}  // namespace

std::span<const OptionSpec> option_table() { return kOptions; }
std::span<const CommandSpec> command_table() { return kCommands; }

const CommandSpec* find_command(std::string_view name) {
  for (const CommandSpec& command : kCommands) {
    if (command.name == name) return &command;
  }
  return nullptr;
}

std::string environment_name(std::string_view option) {
  std::string name = "SUNDOG_";
  for (const char c : option) {
    name += c == '-' ? '_' : static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
  }
  return name;
}

namespace {

// NaN: the text is none of the option's kind.
double number_in(const OptionSpec& option, std::string_view text) {
  const auto or_nan = [](const std::optional<double>& value) {
    return value ? *value : std::numeric_limits<double>::quiet_NaN();
  };
  switch (option.kind) {
    case OptionKind::kDuration:
      return or_nan(with_unit(text, kTimes));
    case OptionKind::kBytes:
      return or_nan(with_unit(text, kSizes));
    case OptionKind::kError:
      return or_nan(base_two_logarithm(text));
    case OptionKind::kInteger: {
      std::string_view rest;
      const double value = or_nan(plain_number(text, &rest));
      return rest.empty() && value == std::floor(value) ? value : or_nan(std::nullopt);
    }
    case OptionKind::kFlag:
    case OptionKind::kText:
    case OptionKind::kChoice:
      break;
  }
  return or_nan(std::nullopt);
}

}  // namespace

Result<double> parse_option_number(const OptionSpec& option, std::string_view text) {
  const double value = number_in(option, text);
  const std::string quoted = "'" + std::string(text) + "'";
  if (option.kind == OptionKind::kError &&
      !(value >= option.low && value <= option.high)) {  // or NaN, which 0 has for a logarithm
    std::string_view rest;
    const std::optional<double> plain = plain_number(text, &rest);
    const bool none = plain && *plain == 0 && rest.empty();
    return bad_input(
        quoted + " is not a probability from 2^" + short_number(option.low) + " to 2^" +
        short_number(option.high) + ", such as 2^-60 or 1e-18" +
        (none ? ": a test at random points has an error, a proof (--prove) has none" : ""));
  }
  if (std::isnan(value))
    return bad_input(quoted + " is not a value of " + std::string(option.value));
  if (value < option.low || value > option.high) {
    return bad_input(quoted + " is outside " + short_number(option.low) + " to " +
                     short_number(option.high));
  }
  return value;
}

const std::string* Invocation::find(std::string_view name) const {
  const auto found = values_.find(name);
  return found == values_.end() ? nullptr : &found->second;
}

std::string Invocation::text(std::string_view name) const {
  if (const std::string* value = find(name)) return *value;
  const OptionSpec* option = find_option(name, *command);
  SUNDOG_CHECK(option != nullptr);
  return std::string(option->fallback);
}

double Invocation::number(std::string_view name) const {
  const OptionSpec* option = find_option(name, *command);
  SUNDOG_CHECK(option != nullptr);
  const Result<double> value = parse_option_number(*option, text(name));
  SUNDOG_CHECK(value.ok());  // checked when it was read
  return *value;
}

Result<Invocation> parse_invocation(
    std::span<const std::string> arguments,
    const std::function<std::optional<std::string>(const std::string&)>& environment) {
  Invocation invocation;
  if (arguments.empty()) return bad_input("no command given", "sundog help lists them");
  std::string name = arguments[0];
  if (name == "--help" || name == "-h") name = "help";
  if (name == "--version") name = "version";
  invocation.command = find_command(name);
  if (invocation.command == nullptr) {
    std::vector<std::string_view> known;
    for (const CommandSpec& command : kCommands) known.push_back(command.name);
    std::string hint = nearest(name, known);
    return bad_input("there is no command '" + name + "'",
                     hint.empty() ? "sundog help lists them" : hint);
  }
  const std::string help = "sundog help " + name + " lists the options";
  bool only_operands = false;
  for (size_t i = 1; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (only_operands || argument.size() < 2 || argument[0] != '-') {
      invocation.operands.push_back(argument);
    } else if (argument == "--") {
      only_operands = true;
    } else {
      SUNDOG_RETURN_IF_ERROR(take_option(invocation, arguments, i, help));
    }
  }
  SUNDOG_RETURN_IF_ERROR(take_environment(invocation, environment));
  const auto count = static_cast<int>(invocation.operands.size());
  if (!invocation.flag("help") &&
      (count < invocation.command->min_operands || count > invocation.command->max_operands)) {
    return bad_input("sundog " + name + " takes " + std::string(invocation.command->operands) +
                         (count == 0 ? "" : ", not " + std::to_string(count) + " operands"),
                     help);
  }
  return invocation;
}

std::string help_text(const CommandSpec* command) {
  std::string text;
  if (command == nullptr) {
    text = "sundog: finds fast GPU programs for tensor programs, and shows that they are right\n\n";
    for (const CommandSpec& each : kCommands) {
      std::string left = "  sundog " + std::string(each.name) + " " + std::string(each.operands);
      left.resize(std::max<size_t>(left.size() + 2, 36), ' ');
      text += left + std::string(each.help) + "\n";
    }
    return text +
           "\nsundog help COMMAND lists its options.  Exit codes: 0 done or equivalent, 1 "
           "different or\n"
           "failed, 2 bad input, 3 unknown.\n";
  }
  text = "sundog " + std::string(command->name) + " " + std::string(command->operands) + "\n  " +
         std::string(command->help) + "\n\n";
  for (const OptionSpec& option : kOptions) {
    if ((option.commands & command->bit) != 0) text += option_line(option);
  }
  return text;
}

}  // namespace sundog::cli
