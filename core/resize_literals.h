// Literals of index conditions at other sizes.
//
// `k > q - 1024` has a literal that no size goes into.  It may stay (then the axes that it is
// compared with keep their extents), or it is taken as one more size of the program, which moves
// with the extents.  A choice of new values keeps what the conditions say: each holds always, never
// or sometimes where it did, literals keep their order, and those that are close (1023 and 1024)
// their differences.  NOLINT(sundog-mirror): tested with core/resize.h
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/program.h"

namespace sundog {

// Whether a literal keeps its value, and with it the axes, or moves with them.
enum class LiteralPolicy : uint8_t { kPin, kScale };

class Literals {
 public:
  Literals() = default;  // each keeps its value
  // Old and new magnitudes, sorted.
  explicit Literals(std::vector<std::pair<int64_t, int64_t>> moved) : moved_(std::move(moved)) {}

  bool empty() const { return moved_.empty(); }
  // The value that stands for a constant; nothing if it is none of the literals and no neighbour of
  // one (`< 1024` is `<= 1023`).  Without literals each constant stands for itself.
  std::optional<int64_t> moved(int64_t constant) const;
  // "1024 as 3, 64 as 2"; empty if none moves.
  std::string text() const;

 private:
  std::vector<std::pair<int64_t, int64_t>> moved_;
};

// Magnitudes above 1 of the constants of index conditions whose other parts follow the extents,
// sorted.
std::vector<int64_t> scalable_literals(const Program& program);

// Axes that stand in a condition with such a literal.
AxisSet axes_of_literals(const Program& program);

// New values for the literals of all programs, which have the new extents beside them (one entry an
// axis).  `step`: first try values that are congruent to the old ones modulo it.  Nothing if no
// small values keep what the conditions say.
struct ResizedProgram {
  const Program& program;
  std::vector<int64_t> new_extents;
};
std::optional<Literals> fit_literals(std::span<const ResizedProgram> programs, int64_t step = 1);

}  // namespace sundog
