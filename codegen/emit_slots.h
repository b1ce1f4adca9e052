// The elements of one thread under a layout, as text: loops over the register digits, coordinates
// as linear sums of loop variables and what lane and warp contribute, and register indices.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "codegen/cuda_text.h"
#include "core/mugraph.h"
#include "core/schedule/kernel_plan.h"

namespace sundog::codegen {

// Tile factor to coordinate.
using Coordinates = std::map<AxisId, Linear>;

struct RegisterLoop {
  Mode mode;
  std::string var;
};

class Slots {
 public:
  // Declares what lanes and warps contribute (const int ...) in the open block of `out`.
  Slots(Writer& out, const Kernel& kernel, const Layout& layout);

  const Layout& layout() const { return layout_; }
  const Coordinates& coordinates() const { return coordinates_; }
  const std::vector<RegisterLoop>& loops() const { return loops_; }
  int vector() const { return static_cast<int>(vector_.extent); }
  AxisId vector_axis() const { return vector_.extent > 1 ? vector_.axis : kNone; }

  // The register index under `holder` of the current element; `fixed` vars by mode as in loops().
  Linear index_in(const Layout& holder) const;

  // Tests for coordinates that may lie beyond `extents` (layouts are padded).
  std::vector<std::string> edge_tests(const std::function<int64_t(AxisId)>& extent,
                                      AxisSet axes) const;

  // Loops over all digits but the vector's, with `prepare` in the innermost; then one over the
  // vector with `body`; then `after`.  Axes in `rolled` get plain loops, outermost.
  void for_each(Writer& out, AxisSet rolled, const std::function<void()>& prepare,
                const std::function<void()>& body,
                const std::function<void()>& after = nullptr) const;
  // Loops over all digits but the vector's.
  void for_each_run(Writer& out, const std::function<void()>& body) const;

 private:
  Layout layout_;
  Mode vector_;
  std::vector<RegisterLoop> loops_;  // outer to inner; the vector's last, with variable "v"
  Coordinates coordinates_;
  int warps_;
};

// Index in registers under `holder`, given digits (variables or numbers) of register modes.
Linear register_index(const Layout& holder, const std::vector<RegisterLoop>& digits);

// Lane or warp digit of a mode: "lane / 4 % 8".
std::string digit_text(const Mode& mode, int warps);

// Tests that hold in one of the threads that hold the same elements; empty if there is just one.
// `modes` are those that tell threads apart.
std::vector<std::string> primary_tests(const std::vector<Mode>& modes, int warps);

}  // namespace sundog::codegen
