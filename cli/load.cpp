#include "cli/load.h"

#include <algorithm>
#include <cctype>
#include <filesystem>

#include "cli/console.h"
#include "cli/files.h"
#include "cli/result_folder.h"
#include "core/proto.h"
#include "core/text.h"
#include "frontend/onnx.h"

namespace sundog::cli {
namespace {

Result<std::string> read(const std::string& path, const Invocation& invocation) {
  return read_file(path, invocation.bytes("input-bytes"));
}

// An error in bytes, whose reader does not know where they came from.
Error in_file(Error error, const std::string& path) {
  if (!error.position) error.position = Position{path, 0, 0};
  return error;
}

// A model as a program; an error in the text that it becomes names the model, not a text that the
// user never saw.
Result<Program> program_of_model(const std::string& bytes, const std::string& path,
                                 const std::map<std::string, int64_t>& defines) {
  const Result<frontend::Graph> graph =
      frontend::graph_of_onnx(bytes, defines, std::filesystem::path(path).parent_path().string());
  if (!graph.ok()) return in_file(graph.error(), path);
  Result<Program> program = frontend::program_of(*graph);
  if (program.ok()) return program;
  Error error = program.error();
  error.position.reset();
  return in_file(std::move(error), path);
}

Error wrong_kind(const std::string& path, const std::string& wanted, FileKind kind) {
  switch (kind) {
    case FileKind::kProgram:
      return bad_input(path + " is a program, not " + wanted);
    case FileKind::kMuGraph:
      return bad_input(path + " is a µGraph, not " + wanted);
    case FileKind::kBinary:
      return bad_input(path + " is binary, not " + wanted);
    case FileKind::kText:
      return bad_input(path + " is not " + wanted, "it begins with neither 'program' nor 'ugraph'");
  }
  return bad_input(path + " is not " + wanted);
}

Result<Program> parse_with_warnings(const std::string& text, const std::string& path,
                                    const std::map<std::string, int64_t>& defines) {
  std::vector<Error> warnings;
  Result<Program> program = parse_program(text, path, defines, &warnings);
  for (const Error& warning : warnings) {
    std::string line = to_string(warning);
    if (const size_t at = line.find("error: "); at != std::string::npos) {
      line.replace(at, 7, "warning: ");
    }
    note(line);
  }
  return program;
}

// The name behind `of` in `ugraph X of NAME`.
std::string program_name(std::string_view text) {
  std::vector<std::string> words;
  bool comment = false, fresh = true;
  for (const char c : text) {
    if (c == '#') comment = true;
    if (c == '\n') comment = false;
    const bool part = !comment && (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' ||
                                   c == '.' || c == '\'');
    if (!part) {
      fresh = true;
      if (c == '{') break;
      continue;
    }
    if (fresh) words.emplace_back();
    fresh = false;
    words.back() += c;
  }
  if (words.size() < 4 || words[0] != "ugraph" || words[2] != "of") return {};
  return words[3];
}

// The program of a µGraph text.
Result<Program> find_program(const std::string& path, const std::string& text,
                             const Invocation& invocation) {
  if (const std::string given = invocation.text("program"); !given.empty()) {
    return load_program(given, invocation);
  }
  if (const auto reference = program_reference(text)) {
    const bool absolute = !reference->path.empty() && reference->path[0] == '/';
    const std::string file = absolute ? reference->path : beside(path, reference->path);
    return load_program(file, with_reference(path, invocation));
  }
  const std::string name = program_name(text);
  std::vector<std::string> tried;
  for (const std::string& file :
       {beside(path, name + ".sd"), beside(path, std::string(kProgramFile))}) {
    if (file == ".sd" || file.ends_with("/.sd")) continue;
    if (exists(file)) return load_program(file, invocation);
    tried.push_back(file);
  }
  std::string places;
  for (const std::string& file : tried) places += (places.empty() ? "" : " nor ") + file;
  return bad_input("the program of " + path + " was not found: there is neither " + places,
                   "--program names it");
}

}  // namespace

Result<Program> load_program(const std::string& path, const Invocation& invocation) {
  if (is_folder(path)) {
    const std::string inside = path + "/" + std::string(kProgramFile);
    if (!exists(inside)) return io_error(path + " is a folder without a program", "name a file");
    return load_program(inside, invocation);
  }
  const Result<std::string> text = read(path, invocation);
  if (!text.ok()) return text.error();
  const FileKind kind = kind_of(*text, path);
  if (kind == FileKind::kBinary && path.ends_with(".pb")) {
    if (Result<StoredResult> result = parse_result(*text, path); result.ok()) {
      return std::move(result->program);
    }
    Result<Program> program = parse_program_proto(*text);
    return program.ok() ? program : in_file(program.error(), path);
  }
  if (kind == FileKind::kBinary && path.ends_with(".onnx")) {
    return program_of_model(*text, path, invocation.defines);
  }
  if (kind == FileKind::kBinary || kind == FileKind::kMuGraph) {
    return wrong_kind(path, "a program", kind);
  }
  return parse_with_warnings(*text, path, invocation.defines);
}

Result<LoadedGraph> load_mugraph_of(const std::string& path, const Program& program,
                                    const Invocation& invocation) {
  const std::string file = is_folder(path) ? path + "/" + std::string(kMuGraphFile) : path;
  const Result<std::string> text = read(file, invocation);
  if (!text.ok()) return text.error();
  const FileKind kind = kind_of(*text, file);
  const bool stored = kind == FileKind::kBinary && file.ends_with(".pb");
  if (!stored && (kind == FileKind::kBinary || kind == FileKind::kProgram)) {
    return wrong_kind(file, "a µGraph", kind);
  }
  Result<MuGraph> graph =
      stored ? parse_mugraph_proto(*text, program) : parse_mugraph(*text, file, program);
  if (!graph.ok()) return in_file(graph.error(), file);
  return LoadedGraph{std::move(*graph), stored ? std::nullopt : rounding_reference(*text)};
}

Result<Candidate> load_mugraph(const std::string& path, const Invocation& invocation) {
  const std::string file = is_folder(path) ? path + "/" + std::string(kMuGraphFile) : path;
  const Result<std::string> text = read(file, invocation);
  if (!text.ok()) return text.error();
  const FileKind kind = kind_of(*text, file);
  if (kind != FileKind::kMuGraph) return wrong_kind(file, "a µGraph", kind);
  Result<Program> program = find_program(file, *text, invocation);
  if (!program.ok()) return program.error();
  Result<MuGraph> graph = parse_mugraph(*text, file, *program);
  if (!graph.ok()) return graph.error();
  return Candidate{std::move(*program), std::move(*graph), rounding_reference(*text)};
}

Invocation with_reference(const std::string& path, const Invocation& invocation) {
  Invocation result = invocation;
  const Result<std::string> text = read(path, invocation);
  if (!text.ok()) return result;  // whoever reads it next says what is wrong
  if (const auto reference = program_reference(*text)) {
    for (const auto& [name, value] : reference->defines) result.defines.emplace(name, value);
  }
  return result;
}

Rounding rounding_of(const Invocation& invocation, std::optional<Rounding> recorded) {
  if (!invocation.given("rounding") && recorded) return *recorded;
  return invocation.text("rounding") == "eager" ? Rounding::kEager : Rounding::kWide;
}

Result<StoredResult> load_result(const std::string& path, const Invocation& invocation) {
  std::string file = path;
  if (is_folder(path)) {
    file = path + "/" + std::string(kResultFile);
    if (!exists(file)) {
      return io_error(path + " holds no result (" + std::string(kResultFile) + " is missing)");
    }
  }
  const Result<std::string> bytes = read(file, invocation);
  if (!bytes.ok()) return bytes.error();
  return parse_result(*bytes, file);
}

Result<StoredResult> load_result_as_made(const std::string& path, const Invocation& invocation) {
  Result<StoredResult> result = load_result(path, invocation);
  if (!result.ok()) return result;
  if (invocation.given("program")) {
    return bad_input(path + " is a result, which has its program in it", "leave out --program");
  }
  for (const auto& [name, value] : invocation.defines) {
    const auto is_it = [&, &wanted = name](const Parameter& p) { return p.name == wanted; };
    const std::vector<Parameter>& parameters = result->program.parameters;
    const auto parameter = std::find_if(parameters.begin(), parameters.end(), is_it);
    if (parameter == parameters.end()) {
      return bad_input("the program of " + path + " has no parameter '" + name +
                       "', which -D sets");
    }
    if (parameter->value == value) continue;
    const std::string wanted = name + "=" + std::to_string(value);
    return bad_input(path + " is a result for " + name + "=" + std::to_string(parameter->value) +
                         ", not " + wanted,
                     "sundog optimize PROGRAM -D " + wanted + " --from " + path + " makes one");
  }
  return result;
}

Result<Loadable> kind_of_path(const std::string& path, const Invocation& invocation) {
  if (is_folder(path)) return Loadable::kResult;
  const Result<std::string> bytes = read(path, invocation);
  if (!bytes.ok()) return bytes.error();
  const FileKind kind = kind_of(*bytes, path);
  switch (kind) {
    case FileKind::kProgram:
      return Loadable::kProgram;
    case FileKind::kMuGraph:
      return Loadable::kMuGraph;
    case FileKind::kBinary:
      if (path.ends_with(".pb")) return Loadable::kResult;
      if (path.ends_with(".onnx")) return Loadable::kProgram;
      break;
    case FileKind::kText:
      break;
  }
  return wrong_kind(path, "a program, a µGraph or a result", kind);
}

}  // namespace sundog::cli
