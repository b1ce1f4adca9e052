#include "core/schedule/access.h"

#include <gtest/gtest.h>

#include <functional>
#include <random>

namespace sundog {
namespace {

using Values = std::vector<int64_t>;

// A kernel whose factors split two axes of a µGraph, and one tensor that it reads.
struct Case {
  MuGraph graph;
  Kernel kernel;
  std::vector<IndexExpr> index;

  const TensorDecl& decl() const { return graph.tensors[0].decl; }
  int64_t value(size_t dim, const Values& at) const {
    return evaluate(index[dim], at, axis_extents(graph));
  }
  int64_t offset(const Values& at) const {
    int64_t result = decl().offset;
    for (size_t d = 0; d < index.size(); ++d) result += value(d, at) * decl().strides[d];
    return result;
  }
};

class Cases {
 public:
  explicit Cases(uint32_t seed) : random_(seed) {}

  int64_t below(int64_t n) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(n)); }
  int64_t pick(const Values& from) { return from[static_cast<size_t>(below(std::ssize(from)))]; }

  // Outer, middle and inner factor of axis 0, outer and inner of axis 1; splits may be ragged.
  Case next() {
    Case c;
    const auto split = [&](AxisId axis, const char* name, int factors) {
      int64_t stride = 1;
      std::vector<Factor> inner_first;
      for (int i = 0; i < factors; ++i) {
        const int64_t extent = i == 0 ? pick({2, 3, 4, 8, 16}) : 2 + below(3);
        inner_first.push_back({name + std::to_string(i), axis, extent, stride});
        stride *= extent;
      }
      c.kernel.factors.insert(c.kernel.factors.end(), inner_first.rbegin(), inner_first.rend());
      c.graph.axes.push_back({name, stride - below(2) * below(stride), kNone, 0});
    };
    split(0, "a", 3);
    split(1, "b", 2);
    TensorDecl decl;
    decl.dtype = below(2) == 0 ? DType::kF16 : DType::kF32;
    decl.alignment = static_cast<int>(pick({4, 8, 16, 16}));
    decl.offset = pick({0, 0, 3, 8});
    for (AxisId a = 0; a < 2; ++a) {
      IndexExpr e = axis_index(c.kernel, a);
      e.constant = pick({0, 0, 0, 8, 4, -1, -8});
      if (below(4) == 0) e = e + IndexExpr{0, {}, {{1 - a, pick({1, -1})}}};
      c.index.push_back(e);
      decl.extents.push_back(c.graph.axes[a].extent);
    }
    decl.strides = below(2) == 0 ? Values{pick({0, 8, 16, 24, 30, 64}), 1}
                                 : Values{1, pick({1, 2, 8, 32, 48, 60})};
    c.graph.tensors = {{decl, TensorRole::kInput}};
    return c;
  }

  // A test with step 1 along `axis` and any along the others.
  Bound bound_along(AxisId axis) {
    Bound b{{pick({0, 0, -8, 4, 1}), Values(5)}, pick({8, 16, 24, 20, 9}), true, below(2) == 0};
    for (int64_t& c : b.value.coefficients) c = pick({0, 0, 8, 16, -8, 4, 1});
    b.value.coefficients[axis] = 1;
    return b;
  }

 private:
  std::mt19937_64 random_;
};

// Calls `visit` at every value of the factors.
void for_all(const Kernel& kernel, const std::function<void(const Values&)>& visit) {
  Values at(kernel.factors.size(), 0);
  while (true) {
    visit(at);
    size_t f = 0;
    while (f < at.size() && ++at[f] == kernel.factors[f].extent) at[f++] = 0;
    if (f == at.size()) return;
  }
}

int64_t value_of(const Affine& a, const Values& at) {
  int64_t result = a.constant;
  for (size_t f = 0; f < at.size(); ++f) result += a.coefficients[f] * at[f];
  return result;
}

TEST(Access, OffsetsAreThoseOfTheIndices) {
  Cases cases(11);
  for (int round = 0; round < 60; ++round) {
    const Case c = cases.next();
    const Affine offset = element_offset(c.graph, c.kernel, 0, c.index);
    for_all(c.kernel, [&](const Values& at) {
      ASSERT_EQ(value_of(offset, at), c.offset(at));
      for (size_t d = 0; d < 2; ++d) {
        ASSERT_EQ(value_of(affine(c.graph, c.kernel, c.index[d]), at), c.value(d, at));
      }
    });
  }
}

TEST(Access, RowMajorStridesAreFilledIn) {
  Cases cases(12);
  Case c = cases.next();
  TensorDecl& decl = c.graph.tensors[0].decl;
  decl.strides.clear();
  const Affine implied = element_offset(c.graph, c.kernel, 0, c.index);
  decl.strides = {decl.extents[1], 1};
  EXPECT_EQ(implied, element_offset(c.graph, c.kernel, 0, c.index));
}

// A test stands exactly where some value of the bound factors lies beyond the axis.
TEST(Access, PresenceIsTestedWhereASplitIsRagged) {
  Cases cases(13);
  int tested = 0, certain = 0;
  for (int round = 0; round < 100; ++round) {
    const Case c = cases.next();
    const AxisSet factors(static_cast<uint64_t>(cases.below(32)));
    for (AxisId axis = 0; axis < 2; ++axis) {
      const auto index = [&](const Values& at) {
        int64_t sum = 0;
        for (AxisId f : factors) {
          if (c.kernel.factors[f].axis == axis) sum += at[f] * c.kernel.factors[f].stride;
        }
        return sum;
      };
      bool beyond = false;
      for_all(c.kernel,
              [&](const Values& at) { beyond |= index(at) >= c.graph.axes[axis].extent; });
      const auto bounds = presence_bounds(c.graph, c.kernel, AxisSet::of(axis), factors);
      ASSERT_EQ(bounds.size(), beyond ? 1u : 0u) << round;
      ++(beyond ? tested : certain);
      if (!beyond) continue;
      EXPECT_FALSE(bounds[0].below);
      EXPECT_TRUE(bounds[0].above);
      EXPECT_EQ(bounds[0].extent, c.graph.axes[axis].extent);
      for_all(c.kernel,
              [&](const Values& at) { ASSERT_EQ(value_of(bounds[0].value, at), index(at)); });
    }
  }
  EXPECT_GT(tested, 20);
  EXPECT_GT(certain, 20);
}

TEST(Access, PresenceOfSeveralAxes) {
  Cases cases(14);
  Case c = cases.next();
  const AxisSet both(3), all(31);
  for (AxisId a : both) c.graph.axes[a].extent = 1;
  EXPECT_EQ(presence_bounds(c.graph, c.kernel, both, all).size(), 2u);
  EXPECT_EQ(presence_bounds(c.graph, c.kernel, AxisSet::of(1), all).size(), 1u);
  EXPECT_TRUE(presence_bounds(c.graph, c.kernel, AxisSet(), all).empty());
  EXPECT_TRUE(presence_bounds(c.graph, c.kernel, both, AxisSet()).empty());
}

// The bounds pass an access exactly where it is inside of the tensor, and name no certain side.
TEST(Access, TensorBoundsSeparateInsideFromOutside) {
  Cases cases(15);
  int inside_count = 0, outside_count = 0;
  for (int round = 0; round < 60; ++round) {
    const Case c = cases.next();
    const auto bounds = tensor_bounds(c.graph, c.kernel, 0, c.index);
    std::vector<bool> below(bounds.size()), above(bounds.size());
    for_all(c.kernel, [&](const Values& at) {
      bool inside = true, passed = true;
      for (size_t d = 0; d < 2; ++d) {
        inside &= 0 <= c.value(d, at) && c.value(d, at) < c.decl().extents[d];
      }
      for (size_t b = 0; b < bounds.size(); ++b) {
        const int64_t value = value_of(bounds[b].value, at);
        if (value < 0) below[b] = true;
        if (value >= bounds[b].extent) above[b] = true;
        passed &=
            !(bounds[b].below && value < 0) && !(bounds[b].above && value >= bounds[b].extent);
      }
      ++(inside ? inside_count : outside_count);
      ASSERT_EQ(inside, passed) << round;
    });
    for (size_t b = 0; b < bounds.size(); ++b) {
      EXPECT_EQ(bounds[b].below, below[b]);
      EXPECT_EQ(bounds[b].above, above[b]);
    }
  }
  EXPECT_GT(inside_count, 1000);
  EXPECT_GT(outside_count, 1000);
}

// Whether all vectors of `width` along `axis` are contiguous, aligned, and inside or outside as a
// whole, found by visiting them.
bool vectors_allowed(const Case& c, const std::vector<Bound>& bounds, AxisId axis, int width) {
  if (c.kernel.factors[axis].extent % width != 0) return false;
  if (c.decl().alignment % (width * bytes(c.decl().dtype)) != 0) return false;
  bool allowed = true;
  for_all(c.kernel, [&](const Values& at) {
    if (!allowed || at[axis] % width != 0) return;
    allowed = c.offset(at) % width == 0;  // from the pointer, which is what is aligned
    for (int i = 1; i < width; ++i) {
      Values next = at;
      next[axis] += i;
      allowed &= c.offset(next) == c.offset(at) + i;
      for (const Bound& b : bounds) {
        const int64_t first = value_of(b.value, at), later = value_of(b.value, next);
        if (b.below) allowed &= (first < 0) == (later < 0);
        if (b.above) allowed &= (first >= b.extent) == (later >= b.extent);
      }
    }
  });
  return allowed;
}

TEST(Access, VectorsAreTheWidestThatEveryElementAllows) {
  Cases cases(16);
  int widths[9] = {};
  for (int round = 0; round < 1500; ++round) {
    const Case c = cases.next();
    for (AxisId axis = 0; axis < 5; ++axis) {
      const int most = 1 << cases.below(4);
      const int width = vector_width(c.graph, c.kernel, 0, c.index, {}, axis, most);
      ASSERT_LE(width, most);
      ++widths[width];
      int widest = 1;
      for (int w = 2; w <= most && vectors_allowed(c, {}, axis, w); w *= 2) widest = w;
      ASSERT_EQ(width, widest) << round << " " << axis;
    }
  }
  for (int w : {1, 2, 4, 8}) EXPECT_GT(widths[w], 10) << w;
}

// With bounds a vector may be narrower than the values at hand need, never wider.
TEST(Access, VectorsDoNotStraddleABound) {
  Cases cases(17);
  int bounded = 0, narrowed = 0;
  for (int round = 0; round < 1500; ++round) {
    const Case c = cases.next();
    auto fixed = tensor_bounds(c.graph, c.kernel, 0, c.index);
    const auto presence = presence_bounds(c.graph, c.kernel, AxisSet(3), AxisSet(31));
    fixed.insert(fixed.end(), presence.begin(), presence.end());
    for (AxisId axis = 0; axis < 5; ++axis) {
      auto bounds = fixed;
      if (cases.below(2) == 0) bounds = {cases.bound_along(axis)};
      const int width = vector_width(c.graph, c.kernel, 0, c.index, bounds, axis, 8);
      const int unbound = vector_width(c.graph, c.kernel, 0, c.index, {}, axis, 8);
      ASSERT_LE(width, unbound);
      ASSERT_TRUE(width == 1 || vectors_allowed(c, bounds, axis, width)) << round << " " << axis;
      if (width < unbound) ++narrowed;
      if (width > 1 && !bounds.empty()) ++bounded;
    }
  }
  EXPECT_GT(bounded, 10);
  EXPECT_GT(narrowed, 10);
}

// A condition that is said to be the same along runs is so at every element.
TEST(Access, ConditionsThatRunsDoNotChange) {
  Cases cases(19);
  int same = 0, changing = 0, along = 0;
  for (int round = 0; round < 1500; ++round) {
    const Case c = cases.next();
    const int64_t bound = cases.pick({0, 4, 8, 9, 16, 24});
    const bool less = cases.below(2) == 0;
    const IndexExpr& index = c.index[static_cast<size_t>(cases.below(2))];
    const IndexExpr bounded = IndexExpr::of_constant(bound);
    const IndexCondition condition{less ? index - bounded : bounded - index,
                                   cases.below(2) == 0 ? Relation::kLess : Relation::kLessEqual};
    const Affine value = affine(c.graph, c.kernel, condition.expr);
    for (AxisId axis = 0; axis < 5; ++axis) {
      const int width = 2 << static_cast<int>(cases.below(3));
      if (c.kernel.factors[axis].extent % width != 0) continue;
      bool allowed = true;
      for_all(c.kernel, [&](const Values& at) {
        Values first = at;
        first[axis] -= at[axis] % width;
        allowed &= holds(condition.relation, value_of(value, at), int64_t{0}) ==
                   holds(condition.relation, value_of(value, first), int64_t{0});
      });
      const bool found = same_along(c.graph, c.kernel, condition, axis, width);
      ASSERT_TRUE(allowed || !found) << round << " " << axis;
      ++(found ? same : changing);
      if (found && value.coefficients[axis] != 0) ++along;
    }
  }
  EXPECT_GT(same, 100);
  EXPECT_GT(changing, 100);
  EXPECT_GT(along, 10);
}

// Runs whose first element passes the bounds are neighbours in memory, and begin at an element of
// the tensor.
TEST(Access, WindowsBeginInsideOfTheTensor) {
  Cases cases(19);
  int found = 0, refused = 0;
  for (int round = 0; round < 800; ++round) {
    Case c = cases.next();
    const auto bounds = tensor_bounds(c.graph, c.kernel, 0, c.index);
    for (AxisId axis = 0; axis < 5; ++axis) {
      const int width = window_width(c.graph, c.kernel, 0, c.index, bounds, axis, 8);
      if (width == 1) {
        ++refused;
        continue;
      }
      ++found;
      ASSERT_EQ(c.decl().alignment % 16, 0);
      ASSERT_EQ(width, std::min(8, 16 / bytes(c.decl().dtype)));
      for_all(c.kernel, [&](const Values& at) {
        if (at[axis] % width != 0) return;
        for (const Bound& b : bounds) {
          const int64_t value = value_of(b.value, at);
          if ((b.below && value < 0) || (b.above && value >= b.extent)) return;
        }
        ASSERT_GE(c.offset(at), 0);
        ASSERT_LT(c.offset(at), span_elements(c.decl()));
        Values next = at;
        ++next[axis];
        ASSERT_EQ(c.offset(next), c.offset(at) + 1);
      });
    }
    c.graph.tensors[0].role = TensorRole::kIntermediate;
    ASSERT_EQ(window_width(c.graph, c.kernel, 0, c.index, {}, 0, 8), 1);
  }
  EXPECT_GT(found, 100);
  EXPECT_GT(refused, 100);
}

TEST(Access, ContiguousFactorIsTheLongestOfThoseWithStepOne) {
  Cases cases(18);
  int none = 0;
  for (int round = 0; round < 300; ++round) {
    const Case c = cases.next();
    const AxisSet tile(static_cast<uint64_t>(cases.below(32)));
    int64_t longest = 0;
    for (AxisId f : tile) {
      Values step(c.kernel.factors.size(), 0);
      const int64_t origin = c.offset(step);
      step[f] = 1;
      if (c.offset(step) - origin == 1) {
        longest = std::max(longest, c.kernel.factors[f].extent);
      }
    }
    const AxisId found = contiguous_factor(c.graph, c.kernel, 0, c.index, tile);
    if (longest == 0) {
      ++none;
      EXPECT_EQ(found, kNone);
      continue;
    }
    ASSERT_NE(found, kNone);
    EXPECT_TRUE(tile.has(found));
    Values step(c.kernel.factors.size(), 0);
    const int64_t origin = c.offset(step);
    step[found] = 1;
    EXPECT_EQ(c.offset(step) - origin, 1);
    EXPECT_EQ(c.kernel.factors[found].extent, longest);
  }
  EXPECT_GT(none, 10);
}

}  // namespace
}  // namespace sundog
