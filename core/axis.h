// Named axes, and integer index expressions over them.
//
// A graph (a program, or one kernel of a µGraph) owns a table of at most 64 axes; an AxisId is a
// position in that table and an AxisSet a bit set over it.  In a program the axes are those of the
// text (an axis that the text splits is replaced by its factors); in a kernel they are its factors.
#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <vector>

#include "core/check.h"

namespace sundog {

using AxisId = uint32_t;
inline constexpr int kMaxAxes = 64;

class AxisSet {
 public:
  constexpr AxisSet() = default;
  constexpr explicit AxisSet(uint64_t bits) : bits_(bits) {}
  static constexpr AxisSet of(AxisId axis) { return AxisSet(uint64_t{1} << axis); }
  static AxisSet of(const std::vector<AxisId>& axes) {
    AxisSet set;
    for (const AxisId axis : axes) set.insert(axis);
    return set;
  }

  constexpr uint64_t bits() const { return bits_; }
  constexpr bool empty() const { return bits_ == 0; }
  constexpr int size() const { return std::popcount(bits_); }
  constexpr bool has(AxisId axis) const { return (bits_ >> axis & 1) != 0; }
  constexpr bool contains(AxisSet other) const { return (other.bits_ & ~bits_) == 0; }
  constexpr void insert(AxisId axis) { bits_ |= uint64_t{1} << axis; }
  constexpr void erase(AxisId axis) { bits_ &= ~(uint64_t{1} << axis); }

  friend constexpr AxisSet operator|(AxisSet a, AxisSet b) { return AxisSet(a.bits_ | b.bits_); }
  friend constexpr AxisSet operator&(AxisSet a, AxisSet b) { return AxisSet(a.bits_ & b.bits_); }
  friend constexpr AxisSet operator-(AxisSet a, AxisSet b) { return AxisSet(a.bits_ & ~b.bits_); }
  constexpr AxisSet& operator|=(AxisSet b) { return *this = *this | b; }
  constexpr bool operator==(const AxisSet&) const = default;

  // Members in increasing order: for (AxisId a : set) ...
  class Iterator {
   public:
    constexpr explicit Iterator(uint64_t bits) : bits_(bits) {}
    constexpr AxisId operator*() const { return static_cast<AxisId>(std::countr_zero(bits_)); }
    constexpr Iterator& operator++() {
      bits_ &= bits_ - 1;
      return *this;
    }
    constexpr bool operator!=(const Iterator& other) const { return bits_ != other.bits_; }

   private:
    uint64_t bits_;
  };
  constexpr Iterator begin() const { return Iterator(bits_); }
  constexpr Iterator end() const { return Iterator(0); }

 private:
  uint64_t bits_ = 0;
};

struct Axis {
  std::string name;    // "h", or "q.o" for a factor
  int64_t extent = 0;  // number of index values; 0 is allowed (empty)
  bool operator==(const Axis&) const = default;
};

// constant + sum of coefficient * axis + sum of coefficient * size(axis).  Sizes are kept apart
// from the constant so that `size(n) - 1 - i` survives a change of extents; a bare constant does
// not, and pins the axis (core/resize.h).
struct IndexExpr {
  struct Item {
    AxisId axis;
    int64_t coefficient;  // never 0
    bool operator==(const Item&) const = default;
  };
  int64_t constant = 0;
  std::vector<Item> axes;   // sorted by axis, without repeats
  std::vector<Item> sizes;  // likewise; in a kernel `axis` is an axis of the µGraph, not a factor

  static IndexExpr of(AxisId axis) { return {0, {{axis, 1}}, {}}; }
  static IndexExpr of_constant(int64_t value) { return {value, {}, {}}; }
  bool is_axis(AxisId* axis = nullptr) const;  // exactly one axis, coefficient 1, nothing else
  AxisSet axis_set() const;
  bool operator==(const IndexExpr&) const = default;
};

IndexExpr operator+(const IndexExpr& a, const IndexExpr& b);
IndexExpr operator-(const IndexExpr& a, const IndexExpr& b);
IndexExpr operator*(const IndexExpr& a, int64_t factor);

// Replaces each axis a by replacement[a] (sizes stay).
IndexExpr substitute(const IndexExpr& e, const std::vector<IndexExpr>& replacement);

// The value at `index` (one entry an axis of the graph), with `size_of` (one entry an axis of the
// table that `sizes` refers to).
int64_t evaluate(const IndexExpr& e, const std::vector<int64_t>& index,
                 const std::vector<int64_t>& size_of);

// `expr relation 0`.
enum class Relation : uint8_t { kLess, kLessEqual, kEqual, kNotEqual };

// `left relation right`.
template <class T>
constexpr bool holds(Relation relation, const T& left, const T& right) {
  switch (relation) {
    case Relation::kLess:
      return left < right;
    case Relation::kLessEqual:
      return left <= right;
    case Relation::kEqual:
      return left == right;
    case Relation::kNotEqual:
      return left != right;
  }
  SUNDOG_CHECK(false);
}

struct IndexCondition {
  IndexExpr expr;
  Relation relation = Relation::kLess;
  bool operator==(const IndexCondition&) const = default;
};
bool holds(const IndexCondition& c, const std::vector<int64_t>& index,
           const std::vector<int64_t>& size_of);

}  // namespace sundog
