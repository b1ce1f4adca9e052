// Emits a kernel and runs it on the emulator, race checker on, against its program.
#pragma once

#include <string>

namespace sundog::codegen {

struct GenerateCase {
  std::string name;
  std::string program;  // text
  std::string graph;    // text
};

struct GenerateOutcome {
  bool passed = false;
  double max_rel_error = 0;
  std::string cuda;
  std::string failure;  // why not: an error, a problem the emulator saw, a wrong output
};

// For the device "h200".
GenerateOutcome run_case(const GenerateCase& c);

// EXPECTs that the case passes; the failure shows its texts.
void expect_right(const GenerateCase& c);

}  // namespace sundog::codegen
