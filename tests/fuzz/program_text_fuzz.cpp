// Program text of any bytes: parse_program returns a program or an error with a position, and what
// it accepts survives printing and reading.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/check.h"
#include "core/text.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace sundog;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  std::vector<Error> warnings;
  const Result<Program> program = parse_program(text, "fuzz.sd", {}, &warnings);
  if (!program.ok()) {
    SUNDOG_CHECK(!to_string(program.error()).empty());
    return 0;
  }
  const std::string printed = print(*program);
  const Result<Program> again = parse_program(printed, "printed.sd");
  SUNDOG_CHECK(again.ok());
  SUNDOG_CHECK(*again == renumbered(*program));
  SUNDOG_CHECK(print(*again) == printed);
  return 0;
}
