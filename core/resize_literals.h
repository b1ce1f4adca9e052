// Literals of index conditions at other sizes.
//
// `k > q - 1024` has a literal that no size goes into.  It may stay (then the axes that it is
// compared with keep their extents), or it is taken as one more size of the program, which moves
// with the extents.  A choice of new values keeps what the conditions say: each holds always, never
// or sometimes where it did, literals keep their order, those that are close (1023 and 1024) their
// differences, and one that aligns the ends of two axes (44 in `k <= q + 44`, where k is 77 and q
// is 33) keeps doing so if it can.  NOLINT(sundog-mirror): tested with core/resize.h
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/program.h"

namespace sundog {

// What a literal does to the axes beside it when extents change.
enum class LiteralPolicy : uint8_t {
  kPin,     // it keeps its value, and they their extents
  kFollow,  // in an index: the dimension and the axis that runs along it change together
  kScale,   // so there, and in a condition it moves with them
  // As kFollow, and axes whose size is a value keep it: some literal may stand for it.
  kKeepSizes,
};

class Literals {
 public:
  Literals() = default;  // each keeps its value
  // Old and new magnitudes, sorted.
  explicit Literals(std::vector<std::pair<int64_t, int64_t>> moved) : moved_(std::move(moved)) {}

  bool empty() const { return moved_.empty(); }
  bool moves() const;  // whether one has another value
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

// Whether a condition is on the difference of two axes.
bool compares_two_axes(const IndexExpr& e);

// By how much axes that are compared in conditions must differ for fit_literals to keep their ends
// aligned as they are; 1 if no literal aligns any.
int64_t room_between_compared(const Program& program);

// New values for the literals of all programs, which have the new extents beside them (one entry an
// axis), the old ones if these say the same there.  `step`: first try values that are congruent to
// the old ones modulo it.  Nothing if no small values keep what the conditions say.
struct ResizedProgram {
  const Program& program;
  std::vector<int64_t> new_extents;
};
std::optional<Literals> fit_literals(std::span<const ResizedProgram> programs, int64_t step = 1);

}  // namespace sundog
