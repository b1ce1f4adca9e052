// Is an emitted kernel safe for every block, thread and iteration?  Asked of Z3 about the text that
// was emitted.
//
//   bounds  each access to global memory stays inside its tensor, each to shared memory inside the
//           tile that its pointer names
//   races   no two threads touch the same bytes of shared memory between two barriers, one of them
//           writing; no copy under way (cp.async) is read or overwritten before it has been waited
//           for; no two threads of the grid store to the same element of a tensor; nothing that
//           another block of a cluster reads is written between two barriers of the cluster, nor
//           does a block end in front of the barrier behind such a read
//
// Grid, thread and loop indices are symbols; sizes are the numbers of the text.  Where the syntax
// or the solver gives up the answer is unknown, never safe.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"

namespace sundog::verify {

struct EmittedKernel {
  std::string name;
  int64_t blocks = 0;
  int threads = 0;
  int64_t shared_bytes = 0;
  // That each parameter points to, or is a tensor map of, in order.
  std::vector<int64_t> elements;
  int64_t cluster = 1;  // blocks of a cluster
};

struct SafetyOptions {
  double seconds = 60;  // of the processor, for all questions
  double query_s = 5;   // for one
};

struct Safety {
  int bounds = 0, races = 0;           // questions asked
  std::vector<std::string> faults;     // shown to be possible: what, and for which values
  std::vector<std::string> undecided;  // why
  double seconds = 0;
  bool safe() const { return faults.empty() && undecided.empty() && bounds > 0; }
};

// require: one entry for each kernel of the text, in order.
Safety check_safety(std::string_view cuda, std::span<const EmittedKernel> kernels,
                    const SafetyOptions& options = {});

// One line: "safe: 34 bounds and 57 races shown" or what is not.
std::string to_string(const Safety& safety);

}  // namespace sundog::verify
