// Small values for a system of relations between sizes.
//
// Extents and literals of a program say something about each other: the pieces of a concatenation
// sum to the whole, a rotated half is half, a window is shorter than what it runs along.  Each such
// fact bounds a polynomial in the sizes, mostly a difference of two of them.  The sizes that the
// program has satisfy all; `solve` finds the smallest that do, by propagation of bounds and
// backtracking (Mackworth 1977; with bounds for domains, as constraint solvers keep them).
// core/size_relations.h finds the facts.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <vector>

namespace sundog {

// constant + sum of coefficient * product of unknowns, which are positions in a list of sizes.
struct SizeForm {
  struct Item {
    int64_t coefficient = 0;         // never 0
    std::vector<uint32_t> unknowns;  // sorted, never empty
    bool operator==(const Item&) const = default;
  };
  int64_t constant = 0;
  std::vector<Item> items;  // sorted by unknowns, each list once

  static SizeForm of_constant(int64_t value) { return {value, {}}; }
  static SizeForm of(uint32_t unknown) { return {0, {{1, {unknown}}}}; }
  int64_t at(const std::vector<int64_t>& sizes) const;
  bool operator==(const SizeForm&) const = default;
};
SizeForm operator+(const SizeForm& a, const SizeForm& b);
SizeForm operator*(const SizeForm& a, const SizeForm& b);
SizeForm operator*(const SizeForm& a, int64_t factor);
SizeForm operator-(const SizeForm& a, const SizeForm& b);

// low <= form <= high.
struct SizeRelation {
  SizeForm form;
  int64_t low = 0, high = 0;
  bool operator==(const SizeRelation&) const = default;
};

struct SizeUnknown {
  int64_t original = 0;         // satisfies all relations
  std::vector<int64_t> values;  // that it may take, ascending, none negative; with the original one
  bool distinct = false;        // if possible another value than other distinct ones
  int64_t step = 1;             // if possible congruent to the original value modulo this
};

// One value for each unknown: of those with the least original values the least that leaves the
// others any, and so on.  `taken`: values that distinct unknowns avoid if they can.  Nothing where
// the search was given up; the original values are a solution, and may be the one that is found.
std::optional<std::vector<int64_t>> solve(const std::vector<SizeUnknown>& unknowns,
                                          const std::vector<SizeRelation>& relations,
                                          const std::set<int64_t>& taken = {});

}  // namespace sundog
