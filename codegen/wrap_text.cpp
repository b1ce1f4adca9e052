#include "codegen/wrap_text.h"

#include <algorithm>
#include <limits>

namespace sundog::codegen {
namespace {

// Where a line of code has a comment behind it; npos: nowhere.
size_t comment_at(std::string_view line) {
  bool quoted = false;
  for (size_t i = 0; i + 1 < line.size(); ++i) {
    if (line[i] == '\\') {
      ++i;
    } else if (line[i] == '"') {
      quoted = !quoted;
    } else if (!quoted && line[i] == '/' && line[i + 1] == '/') {
      return i;
    }
  }
  return std::string_view::npos;
}

size_t width(std::string_view line) {  // characters, not bytes
  return static_cast<size_t>(std::count_if(line.begin(), line.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  }));
}

// `prefix` stands before each line, as "  // ".
void wrap_comment(std::string_view prefix, std::string_view words, size_t columns,
                  std::string& out) {
  // What the first line is indented by, the others are by four more.
  const size_t indent = std::min(words.find_first_not_of(' '), words.size());
  std::string line = std::string(prefix) + std::string(words.substr(0, indent));
  const std::string next = line + "    ";
  words.remove_prefix(indent);
  bool empty = true;
  while (!words.empty()) {
    const size_t end = std::min(words.find(' '), words.size());
    const std::string_view word = words.substr(0, end);
    if (!empty && width(line) + 1 + width(word) > columns) {
      out += line + "\n";
      line = next;
      empty = true;
    }
    line += (empty ? "" : " ") + std::string(word);
    empty = false;
    words.remove_prefix(std::min(end + 1, words.size()));
  }
  out += line + "\n";
}

// The space at which to break: of those within the columns the outermost, of these the last; where
// there is none, the first behind.
size_t break_at(std::string_view line, size_t indent, size_t columns) {
  size_t best = std::string_view::npos;
  int depth = 0, best_depth = std::numeric_limits<int>::max();
  bool quoted = false;
  for (size_t i = indent; i < line.size(); ++i) {
    const char c = line[i];
    if (c == '\\') ++i;
    if (c == '"') quoted = !quoted;
    if (quoted) continue;
    const char before = i > indent ? line[i - 1] : ' ';
    // Of template arguments: a comparison has spaces around it.
    depth += c == '(' || c == '[' || c == '{' || (c == '<' && before != ' ');
    depth -= c == ')' || c == ']' || c == '}' || (c == '>' && before != ' ' && before != '-');
    if (c != ' ' || i == indent) continue;
    // Behind commas, else in front of operators.
    const bool comma = before == ',' || before == ';';
    const bool operation =
        before == '=' || (i + 1 < line.size() &&
                          std::string_view("+-*?:&|").find(line[i + 1]) != std::string_view::npos);
    const int cost = 4 * depth + (comma ? 0 : operation ? 1 : 3);
    if (i > columns) {
      if (best == std::string_view::npos) best = i;
      break;
    }
    // Not so far out that next to nothing is left on the line.
    const bool far = i >= indent + (columns - std::min(indent, columns)) / 3;
    if (far && cost <= best_depth) {
      best = i;
      best_depth = cost;
    }
  }
  return best;
}

void wrap_code(std::string_view line, size_t columns, std::string& out) {
  const size_t indent = std::min(line.find_first_not_of(' '), line.size());
  if (const size_t comment = comment_at(line); comment != std::string_view::npos) {
    const std::string lead(indent, ' ');
    const bool alone = comment == indent;
    std::string_view words = line.substr(comment + 2);
    const bool spaced = words.starts_with(' ');
    wrap_comment(lead + (spaced ? "// " : "//"), words.substr(spaced ? 1 : 0), columns, out);
    if (alone) return;
    line = line.substr(0, comment);
    line = line.substr(0, line.find_last_not_of(' ') + 1);
  }
  std::string rest(line);
  size_t lead = indent;
  bool first = true;
  while (width(rest) > columns) {
    const size_t at = break_at(rest, lead, columns);
    if (at == std::string::npos) break;
    out += rest.substr(0, at) + "\n";
    if (first) lead += 4;
    first = false;
    rest = std::string(lead, ' ') + rest.substr(at + 1);
  }
  out += rest + "\n";
}

}  // namespace

std::string wrapped(std::string_view text, size_t columns) {
  std::string out;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    const size_t first = line.find_first_not_of(' ');
    const bool fixed = first != std::string_view::npos && line[first] == '#';
    if (width(line) <= columns || fixed) {
      out += line;
      if (end != std::string_view::npos) out += "\n";
    } else {
      wrap_code(line, columns, out);
    }
  }
  return out;
}

}  // namespace sundog::codegen
