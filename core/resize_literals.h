// Literals of index conditions and of shifted reads at other sizes.
//
// `k > q - 1024` has a literal that no size goes into.  It may stay (then the axes that it is
// compared with keep their extents), or it is taken as one more size of the program, which moves
// with the extents (core/size_relations.h).  NOLINT(sundog-mirror): tested with core/resize.h
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/axis.h"

namespace sundog {

// What a literal does to the axes beside it when extents change.
enum class LiteralPolicy : uint8_t {
  kPin,     // it keeps its value, and they their extents
  kFollow,  // in an index: the dimension and the axis that runs along it change together
  // In an index that runs along one axis, and in a condition, it moves with the extents.
  kScale,
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

// Whether a condition is on the difference of two axes.
bool compares_two_axes(const IndexExpr& e);

}  // namespace sundog
