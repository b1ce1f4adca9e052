#include "cli/bench_list.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <sstream>

#include "cli/files.h"
#include "cli/kernel_run.h"
#include "cli/result_folder.h"

namespace sundog::cli {
namespace {

namespace fs = std::filesystem;

bool is_result(const std::string& path) {
  return is_folder(path) && exists(path + "/" + std::string(kResultFile));
}

// "b=8" of the command line; where a line of a list sets the same parameter, the line wins.
std::vector<std::string> given_defines(const Invocation& invocation) {
  std::vector<std::string> defines;
  for (const auto& [name, value] : invocation.defines) {
    defines.push_back(name + "=" + std::to_string(value));
  }
  return defines;
}

std::string program_name(const std::string& path, const std::vector<std::string>& defines) {
  std::string name = fs::path(path).stem().string();
  for (const std::string& define : defines) name += "_" + define;
  return identifier(name);
}

Status add_list(const std::string& path, const std::string& text, const Invocation& invocation,
                std::vector<BenchEntry>& entries) {
  std::istringstream lines(text);
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    std::istringstream words(line.substr(0, line.find('#')));
    BenchEntry entry;
    std::string program, define;
    if (!(words >> entry.name)) continue;
    const std::string place = path + ":" + std::to_string(number) + ": ";
    if (!(words >> program)) {
      return bad_input(place + "a name without a program",
                       "a line is NAME PROGRAM [NAME=VALUE ...]");
    }
    if (entry.name != identifier(entry.name)) {
      return bad_input(place + "'" + entry.name + "' is not a name of letters, digits and _");
    }
    entry.path = beside(path, program + ".sd");
    if (!exists(entry.path)) return bad_input(place + "there is no " + entry.path);
    entry.defines = given_defines(invocation);
    while (words >> define) entry.defines.push_back(define);
    entries.push_back(std::move(entry));
  }
  return {};
}

void add_program(const std::string& path, const Invocation& invocation,
                 std::vector<BenchEntry>& entries) {
  const std::vector<std::string> defines = given_defines(invocation);
  entries.push_back({program_name(path, defines), path, false, defines});
}

void add_result(const std::string& path, std::vector<BenchEntry>& entries) {
  entries.push_back({identifier(file_name(path)), path, true, {}});
}

Status add_folder(const std::string& path, const Invocation& invocation,
                  std::vector<BenchEntry>& entries) {
  std::error_code error;
  std::vector<std::string> inside;
  for (const fs::directory_entry& each : fs::directory_iterator(path, error)) {
    inside.push_back(each.path().string());
  }
  if (error) return io_error(path + " cannot be read: " + error.message());
  std::sort(inside.begin(), inside.end());
  const size_t before = entries.size();
  for (const std::string& each : inside) {
    if (is_result(each)) add_result(each, entries);
    if (each.ends_with(".sd")) add_program(each, invocation, entries);
  }
  if (entries.size() == before) {
    return bad_input(path + " holds neither programs (.sd) nor results");
  }
  return {};
}

Status add_operand(const std::string& operand, const Invocation& invocation,
                   std::vector<BenchEntry>& entries) {
  if (is_result(operand)) {
    add_result(operand, entries);
    return {};
  }
  if (is_folder(operand)) return add_folder(operand, invocation, entries);
  const Result<std::string> text = read_file(operand, invocation.bytes("input-bytes"));
  if (!text.ok()) return text.error();
  switch (kind_of(*text, operand)) {
    case FileKind::kProgram:
      add_program(operand, invocation, entries);
      return {};
    case FileKind::kText:
      return add_list(operand, *text, invocation, entries);
    case FileKind::kMuGraph:
    case FileKind::kBinary:
      if (operand.ends_with(".onnx")) {
        add_program(operand, invocation, entries);
        return {};
      }
      break;
  }
  return bad_input(operand + " is neither a program, a result nor a list of programs",
                   "a list has lines NAME PROGRAM [NAME=VALUE ...]");
}

}  // namespace

Result<std::vector<BenchEntry>> bench_entries(const Invocation& invocation) {
  std::vector<BenchEntry> entries;
  for (const std::string& operand : invocation.operands) {
    SUNDOG_RETURN_IF_ERROR(add_operand(operand, invocation, entries));
  }
  std::set<std::string> names;
  for (const BenchEntry& entry : entries) {
    if (!names.insert(entry.name).second) {
      return bad_input("two rows have the name " + entry.name);
    }
  }
  if (entries.empty()) return bad_input("there is nothing to measure");
  return entries;
}

}  // namespace sundog::cli
