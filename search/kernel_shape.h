// Grid, loops and stages of a kernel, which follow from what it computes and how.
#pragma once

#include <cstdint>
#include <vector>

#include "search/term_table.h"

namespace sundog::search {

// A term in a kernel: computed by one of its nodes, or loaded.
struct BodyItem {
  int term = 0;   // rank
  int node = -1;  // -1: loaded from an input or an earlier kernel
  bool operator==(const BodyItem&) const = default;
};

// What a kernel computes: greatest rank first, so that users come before operands.
struct KernelBody {
  std::vector<BodyItem> items;
  std::vector<int> outputs;  // ranks that it stores
};

struct KernelShape {
  AxisSet grid_parts;     // part factors (axes of the bank) on the grid
  AxisSet parallel;       // reduced axes of the program that are not reduced here
  AxisSet looped;         // axes of the program that loop
  AxisSet loop_factors;   // axes of the bank that loop, but for those
  AxisSet inner_factors;  // whose loops stand inside other loops
  // For each item:
  std::vector<AxisSet> whole_parts;  // part factors that it is read with as a whole, being reduced
  std::vector<int> stage;            // loops that have to end before it is known
  std::vector<uint32_t> events;      // bit s: it is computed in the loops of stage s
  // Inner loops that have to end before it is computed, and before it is known, in the body of the
  // loop, or in the stretch outside of loops, where it is.
  std::vector<int> inner_at, inner_stage;
};

// Which loops may have a loop in them: those over reduced axes, or any.
enum class Nests : uint8_t { kNone, kReduced, kAny };

// One shape for each maximal choice of loops.  Those with nests come after those without, and more
// nests after fewer, so that a number means the same shape whatever is allowed.  None: the body
// uses a split as if there were none, which is a structure of another bank.
std::vector<KernelShape> kernel_shapes(const Bank& bank, const TermTable& table,
                                       const KernelBody& body, Nests nests = Nests::kAny);

}  // namespace sundog::search
