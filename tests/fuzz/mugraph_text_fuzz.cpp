// µGraph text of any bytes.  An input is a program followed by a µGraph, which begins at the first
// line that starts with "ugraph": parse_mugraph returns a µGraph or an error, and what it accepts
// survives printing and reading.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/check.h"
#include "core/text.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace sundog;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const size_t start = text.find("\nugraph");
  if (start == text.npos) return 0;
  const Result<Program> program = parse_program(text.substr(0, start + 1), "fuzz.sd");
  if (!program.ok()) return 0;
  const Result<MuGraph> graph = parse_mugraph(text.substr(start + 1), "fuzz.mu", *program);
  if (!graph.ok()) {
    SUNDOG_CHECK(!to_string(graph.error()).empty());
    return 0;
  }
  const std::string printed = print(*graph, *program);
  const Result<MuGraph> again = parse_mugraph(printed, "printed.mu", *program);
  SUNDOG_CHECK(again.ok());
  SUNDOG_CHECK(*again == renumbered(*graph));
  SUNDOG_CHECK(print(*again, *program) == printed);
  return 0;
}
