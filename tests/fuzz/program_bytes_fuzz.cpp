// Any bytes as a stored program: parse_program_proto returns a program or an error, and what it
// accepts survives storing and reading.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/check.h"
#include "core/proto.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace sundog;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const Result<Program> program = parse_program_proto(bytes);
  if (!program.ok()) {
    SUNDOG_CHECK(!to_string(program.error()).empty());
    return 0;
  }
  const std::string stored = serialize(*program);
  const Result<Program> again = parse_program_proto(stored);
  SUNDOG_CHECK(again.ok());
  SUNDOG_CHECK(*again == *program);
  SUNDOG_CHECK(serialize(*again) == stored);
  return 0;
}
