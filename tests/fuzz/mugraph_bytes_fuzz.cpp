// Any bytes as a stored µGraph.  An input is the size of a stored program (two bytes, the lower
// first), that program, and the µGraph: parse_mugraph_proto returns a µGraph or an error, and what
// it accepts survives storing and reading.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/check.h"
#include "core/proto.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace sundog;
  if (size < 2) return 0;
  const size_t program_size = data[0] + 256u * data[1];
  const std::string_view bytes(reinterpret_cast<const char*>(data + 2), size - 2);
  if (program_size > bytes.size()) return 0;
  const Result<Program> program = parse_program_proto(bytes.substr(0, program_size));
  if (!program.ok()) return 0;
  const Result<MuGraph> graph = parse_mugraph_proto(bytes.substr(program_size), *program);
  if (!graph.ok()) {
    SUNDOG_CHECK(!to_string(graph.error()).empty());
    return 0;
  }
  const std::string stored = serialize(*graph);
  const Result<MuGraph> again = parse_mugraph_proto(stored, *program);
  SUNDOG_CHECK(again.ok());
  SUNDOG_CHECK(*again == *graph);
  SUNDOG_CHECK(serialize(*again) == stored);
  return 0;
}
