// What the sizes of programs say about each other, and smaller sizes that say the same.
//
// `select(k < 4095, past[k], fresh[k - 4095])` is defined, and reads all of both, since past has
// 4095 elements, fresh has 1 and k 4096: three extents and a literal, of which none can change by
// itself.  Here each is an unknown (core/size_solver.h), and the relations between them are read
// off the program.  Index expressions are piecewise linear, so that all that happens along an axis
// happens at a few *breakpoints*: its ends, and where the truth of a condition changes.
//
//  - Of a condition on two axes (`k <= q + 240`) the values at the four corners of their ranges
//  keep
//    their signs: it holds never, sometimes or always as before, and ends that it aligns stay
//    aligned.
//  - Breakpoints along one axis keep their order.
//  - A read (`fresh[k - 4095]`) is as far on which side of either end of the dimension, at every
//    breakpoint of the axis that it runs along: under each guard it stays in bounds, and reads all
//    or a part of the dimension as before.
//  - Literals keep their order, and the differences of close ones: 1023 and 1024 are one threshold
//    in two spellings.
//
// To keep means: what is -1, 0 or 1 stays what it is, all else keeps its sign and stays beyond 1.
// This is the order type of the sizes.  It makes no two programs equal that are not; it chooses a
// member of the two families (of the programs over all sizes and literals) at which the same things
// happen, so that a difference is likely to show there and the program is defined.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "core/program.h"
#include "core/resize_literals.h"
#include "core/size_solver.h"

namespace sundog {

// A read of a dimension (declared as `decl`) that shifts or reverses an axis, or runs past the
// dimension's end, such that relations say all about it: the dimension and the axis may change
// independently then.
bool reads_piece(const IndexExpr& decl, const IndexExpr& read, const std::vector<int64_t>& extents);

// A program, and the extent of each of its axes over the unknowns.
struct RelatedProgram {
  const Program& program;
  std::vector<SizeForm> extents;
};

class SizeSystem {
 public:
  // `extents`: of the unknowns, as they are.
  SizeSystem(const std::vector<int64_t>& extents, std::span<const RelatedProgram> programs);

  // Whether a relation mentions it.
  bool concerns(uint32_t unknown) const;
  // It may have these extents, ascending, or its own.  Each unknown starts with its own alone.
  void allow(uint32_t unknown, std::vector<int64_t> extents);

  struct Choice {
    std::vector<int64_t> extents;  // of the unknowns
    Literals literals;
  };
  // The smallest, with extents that are not `taken` if possible, and all congruent to what they
  // were modulo `step` if possible.  Nothing if that are the original ones, or none was found.
  std::optional<Choice> choose(const std::set<int64_t>& taken, int64_t step = 1) const;
  // Whether these extents are as the relations want them, with the literals of a choice.
  bool allows(const std::vector<int64_t>& extents, const Literals& literals) const;

 private:
  size_t extents_ = 0;  // the first unknowns; literals come behind them
  std::vector<int64_t> literals_;
  std::vector<SizeUnknown> unknowns_;
  std::vector<SizeRelation> relations_;
};

}  // namespace sundog
