#include "core/schedule/layout.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <map>
#include <random>
#include <set>

namespace sundog {
namespace {

constexpr AxisId kM = 0, kN = 1;

// The accumulator of m16n8k16, 16 x 48.
Layout accumulator() {
  return {{{kN, 2, 1, Holder::kReg, 1},
           {kN, 4, 2, Holder::kLane, 1},
           {kM, 8, 1, Holder::kLane, 4},
           {kM, 2, 8, Holder::kReg, 2},
           {kN, 6, 8, Holder::kReg, 4}}};
}

int64_t coordinate(const Layout& layout, AxisId axis, int64_t reg, int64_t lane, int64_t warp) {
  int64_t result = 0;
  for (const Mode& m : layout.modes) {
    if (m.axis != axis) continue;
    const int64_t index = m.holder == Holder::kReg ? reg : m.holder == Holder::kLane ? lane : warp;
    result += index / m.unit % m.extent * m.stride;
  }
  return result;
}

TEST(Layout, AccumulatorCoversItsTileOnce) {
  const Layout layout = accumulator();
  EXPECT_EQ(slots(layout), 24);
  EXPECT_EQ(covered(layout, kM), 16);
  EXPECT_EQ(covered(layout, kN), 48);
  std::set<std::pair<int64_t, int64_t>> seen;
  for (int reg = 0; reg < 24; ++reg) {
    for (int lane = 0; lane < kLanes; ++lane) {
      EXPECT_TRUE(
          seen.insert({coordinate(layout, kM, reg, lane, 0), coordinate(layout, kN, reg, lane, 0)})
              .second);
    }
  }
  EXPECT_EQ(seen.size(), 16u * 48u);
}

TEST(Layout, SliceKeepsPlacesAndPacksRegisters) {
  const Layout rows = slice(accumulator(), AxisSet::of(kM));
  EXPECT_EQ(slots(rows), 2);
  EXPECT_EQ(lane_bits(rows, AxisSet::of(kM)), 28u);
  EXPECT_EQ(covered(rows, kN), 1);
  EXPECT_TRUE(agrees(rows, accumulator(), AxisSet::of(kM)));
}

// Two register modes that continue one another are the same as one: the accumulator of one product
// is the fragment of the next.
TEST(Layout, AgreementSeesThroughSplitModes) {
  const Layout fragment{{{kN, 2, 1, Holder::kReg, 1},
                         {kN, 4, 2, Holder::kLane, 1},
                         {kN, 2, 8, Holder::kReg, 4},
                         {kN, 3, 16, Holder::kReg, 8}}};
  EXPECT_TRUE(agrees(accumulator(), fragment, AxisSet::of(kN)));
  Layout shorter = fragment;
  shorter.modes.back().extent = 2;
  EXPECT_FALSE(agrees(accumulator(), shorter, AxisSet::of(kN)));
  EXPECT_FALSE(agrees(accumulator(), fragment, AxisSet::of(kM)));
}

TEST(Layout, VectorModeIsARunOfNeighbours) {
  EXPECT_EQ(vector_mode(accumulator()).axis, kN);
  EXPECT_EQ(vector_mode(accumulator()).extent, 2);
  EXPECT_EQ(vector_mode(slice(accumulator(), AxisSet::of(kM))).extent, 1);
}

TEST(Layout, RowsOfAMatrixGoToWarpsAndColumnsToLanes) {
  const Layout layout = blocked_layout({{{kM, 8}, {kN, 256}}, AxisSet::of(kN), 8, 8, {}});
  EXPECT_EQ(warp_count(layout, AxisSet::of(kM)), 8);
  EXPECT_EQ(warp_count(layout, AxisSet::of(kN)), 1);
  EXPECT_EQ(lane_bits(layout, AxisSet::of(kN)), 31u);
  EXPECT_EQ(slots(layout), 8);
}

// Rows that a thread each would hold are shared, where that is asked for.
TEST(Layout, NeighboursShareARowThatIsReduced) {
  BlockedRequest request{{{kM, 128}, {kN, 64}}, AxisSet::of(kN), 8, 4, {}};
  EXPECT_EQ(lane_bits(blocked_layout(request), AxisSet::of(kN)), 0u);
  request.run_lanes = 8;
  const Layout layout = blocked_layout(request);
  EXPECT_EQ(lane_bits(layout, AxisSet::of(kN)), 7u);
  EXPECT_EQ(slots(layout), 64);
  EXPECT_EQ(slots(slice(layout, AxisSet::of(kM))), 8);
}

TEST(Layout, WarpsByHandAreContiguousParts) {
  const Layout layout =
      blocked_layout({{{kM, 64}}, AxisSet(), 1, 4, {{kM, 4, 1, Holder::kWarp, 1}}});
  const auto warps = warp_modes(layout, AxisSet::of(kM));
  ASSERT_EQ(warps.size(), 1u);
  EXPECT_EQ(warps[0].stride, 16);
}

// Any request: every element of the tile is held, by threads that differ only as replicas, and lane
// digits are powers of two.
TEST(Layout, BlockedLayoutsCoverEveryElement) {
  std::mt19937 random(5);
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<uint32_t>(n)); };
  for (int round = 0; round < 300; ++round) {
    BlockedRequest request;
    request.warps = 1 + below(8);
    request.vector = 1 << below(4);
    const int64_t m = 1 + below(20), n = 1 + below(70);
    request.axes = {{kM, m}, {kN, n}};
    if (below(2) == 0) request.reduced.insert(kN);
    if (below(3) == 0) request.reduced.insert(kM);
    const Layout layout = blocked_layout(request);
    for (const Mode& mode : layout.modes) {
      if (mode.holder != Holder::kLane) continue;
      EXPECT_EQ(mode.extent & (mode.extent - 1), 0);
      EXPECT_EQ(mode.unit & (mode.unit - 1), 0);
    }
    std::set<std::pair<int64_t, int64_t>> held;
    for (int64_t reg = 0; reg < slots(layout); ++reg) {
      for (int lane = 0; lane < kLanes; ++lane) {
        for (int warp = 0; warp < request.warps; ++warp) {
          held.insert(
              {coordinate(layout, kM, reg, lane, warp), coordinate(layout, kN, reg, lane, warp)});
        }
      }
    }
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        ASSERT_TRUE(held.contains({i, j})) << round << ": " << i << ", " << j;
      }
    }
  }
}

using Element = std::vector<int64_t>;  // a coordinate along each of the axes

Element element(const Layout& layout, const std::vector<AxisId>& axes, int64_t reg, int64_t lane,
                int64_t warp) {
  Element result;
  for (AxisId a : axes) result.push_back(coordinate(layout, a, reg, lane, warp));
  return result;
}

// What a thread holds along some axes.
std::set<Element> held_by(const Layout& layout, const std::vector<AxisId>& axes, int64_t lane,
                          int64_t warp) {
  std::set<Element> held;
  for (int64_t reg = 0; reg < slots(layout); ++reg) {
    held.insert(element(layout, axes, reg, lane, warp));
  }
  return held;
}

// A tile of up to three axes with random extents, reduced axes and, now and then, warps by hand.
BlockedRequest random_request(std::mt19937& random) {
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<uint32_t>(n)); };
  BlockedRequest request;
  request.warps = 1 + below(8);
  request.vector = 1 << below(4);
  request.run_lanes = 1 << below(6);
  const int axes = 1 + below(3);
  for (AxisId a = 0; a < static_cast<AxisId>(axes); ++a) {
    request.axes.push_back({a, 1 + below(a + 1 == static_cast<AxisId>(axes) ? 90 : 12)});
    if (below(3) == 0) request.reduced.insert(a);
  }
  if (below(3) == 0) {
    std::vector<int> divisors;
    for (int d = 1; d <= request.warps; ++d) {
      if (request.warps % d == 0) divisors.push_back(d);
    }
    const int count = divisors[static_cast<size_t>(below(static_cast<int>(divisors.size())))];
    request.fixed_warps = {{static_cast<AxisId>(below(axes)), count, 1, Holder::kWarp, 1}};
  }
  return request;
}

// An element that is held at all is held once by each thread of one set of replicas: the threads
// that agree in all digits, which hold the same elements in the same registers.
TEST(Layout, HoldersOfABlockedElementAreReplicas) {
  std::mt19937 random(6);
  int replicated = 0;
  for (int round = 0; round < 200; ++round) {
    const BlockedRequest request = random_request(random);
    const Layout layout = blocked_layout(request);
    std::vector<AxisId> axes;
    AxisSet all;
    int64_t elements = 1, wanted = 1;
    for (const TileAxis& t : request.axes) {
      axes.push_back(t.axis);
      all.insert(t.axis);
      ASSERT_GE(covered(layout, t.axis), t.extent);
      elements *= covered(layout, t.axis);
      wanted *= t.extent;
    }
    const uint32_t lanes = lane_bits(layout, all);
    const auto warps = warp_modes(layout, all);
    std::map<Element, std::set<std::pair<int64_t, int64_t>>> holders;
    for (int lane = 0; lane < kLanes; ++lane) {
      for (int warp = 0; warp < request.warps; ++warp) {
        int64_t first_warp = 0;  // the replica with the smallest indices
        for (const Mode& m : warps) first_warp += warp / m.unit % m.extent * m.unit;
        for (int64_t reg = 0; reg < slots(layout); ++reg) {
          const Element held = element(layout, axes, reg, lane, warp);
          ASSERT_EQ(held, element(layout, axes, reg, lane & lanes, first_warp));
          ASSERT_TRUE(holders[held].insert({lane, warp}).second) << "twice in one thread";
        }
      }
    }
    ASSERT_EQ(static_cast<int64_t>(holders.size()), elements) << round;
    const int64_t replicas =
        (kLanes >> std::popcount(lanes)) * (request.warps / warp_count(layout, all));
    if (replicas > 1) ++replicated;
    int64_t inside = 0;
    for (const auto& [held, threads] : holders) {
      ASSERT_EQ(static_cast<int64_t>(threads.size()), replicas) << round;
      bool in_tile = true;
      for (size_t i = 0; i < axes.size(); ++i) in_tile &= held[i] < request.axes[i].extent;
      inside += in_tile ? 1 : 0;
    }
    ASSERT_EQ(inside, wanted) << round;
  }
  EXPECT_GT(replicated, 20);
}

TEST(Layout, CoveredIsTheGreatestCoordinateHeld) {
  std::mt19937 random(7);
  for (int round = 0; round < 100; ++round) {
    const BlockedRequest request = random_request(random);
    const Layout layout = blocked_layout(request);
    for (AxisId a = 0; a < 3; ++a) {
      int64_t greatest = 0;
      for (int lane = 0; lane < kLanes; ++lane) {
        for (int warp = 0; warp < request.warps; ++warp) {
          greatest = std::max(greatest, held_by(layout, {a}, lane, warp).rbegin()->front());
        }
      }
      EXPECT_EQ(covered(layout, a), greatest + 1);
    }
  }
}

TEST(Layout, LaneBitsAreThoseThatMoveACoordinate) {
  std::mt19937 random(8);
  for (int round = 0; round < 100; ++round) {
    const Layout layout = blocked_layout(random_request(random));
    for (AxisId a = 0; a < 3; ++a) {
      uint32_t moving = 0;
      for (int lane = 0; lane < kLanes; ++lane) {
        for (int bit = 1; bit < kLanes; bit *= 2) {
          if (coordinate(layout, a, 0, lane, 0) != coordinate(layout, a, 0, lane ^ bit, 0)) {
            moving |= static_cast<uint32_t>(bit);
          }
        }
      }
      EXPECT_EQ(lane_bits(layout, AxisSet::of(a)), moving);
    }
  }
}

// A slice is the projection of what each thread holds, each element in one register.
TEST(Layout, SlicesAreProjections) {
  std::mt19937 random(9);
  for (int round = 0; round < 150; ++round) {
    const BlockedRequest request = random_request(random);
    const Layout whole = blocked_layout(request);
    std::vector<AxisId> axes;
    AxisSet keep;
    for (const TileAxis& t : request.axes) {
      if (random() % 2 == 0) continue;
      axes.push_back(t.axis);
      keep.insert(t.axis);
    }
    const Layout part = slice(whole, keep);
    EXPECT_TRUE(keep.contains(axes_of(part)));
    EXPECT_TRUE(agrees(part, whole, keep));
    for (int lane = 0; lane < kLanes; ++lane) {
      for (int warp = 0; warp < request.warps; ++warp) {
        const auto held = held_by(part, axes, lane, warp);
        ASSERT_EQ(held, held_by(whole, axes, lane, warp)) << round;
        ASSERT_EQ(static_cast<int64_t>(held.size()), slots(part)) << round;
      }
    }
  }
}

// The layout with some modes written as two and all in another order: the same holders.
Layout rewritten(const Layout& layout, std::mt19937& random) {
  Layout result;
  for (const Mode& m : layout.modes) {
    Mode low = m, high = m;
    low.extent = m.extent % 2 == 0 && random() % 2 == 0 ? m.extent / 2 : m.extent;
    high.extent = m.extent / low.extent;
    high.stride *= low.extent;
    high.unit *= low.extent;
    result.modes.push_back(low);
    if (high.extent > 1 || random() % 4 == 0) result.modes.push_back(high);
  }
  std::shuffle(result.modes.begin(), result.modes.end(), random);
  return result;
}

TEST(Layout, CanonicalModesDoNotDependOnTheWriting) {
  std::mt19937 random(10);
  for (int round = 0; round < 200; ++round) {
    const Layout layout = blocked_layout(random_request(random));
    const Layout other = rewritten(layout, random);
    for (AxisId a = 0; a < 3; ++a) {
      ASSERT_EQ(canonical(layout, a), canonical(other, a));
      int64_t below = 1;  // rising strides
      for (const Mode& m : canonical(layout, a)) {
        EXPECT_GT(m.extent, 1);
        EXPECT_GE(m.stride, below);
        below = m.stride;
      }
    }
    EXPECT_TRUE(agrees(layout, other, AxisSet(7)));
  }
}

// Layouts that agree hold the same in each thread; those that do not are told apart.
TEST(Layout, AgreementMeansTheSameElementsInEachThread) {
  std::mt19937 random(11);
  int same = 0, different = 0;
  for (int round = 0; round < 600; ++round) {
    BlockedRequest request = random_request(random);
    const Layout a = blocked_layout(request);
    request.vector = 1 << random() % 4;
    if (random() % 2 == 0) request.reduced = AxisSet(random() % 8);
    const Layout b = rewritten(blocked_layout(request), random);
    for (AxisId axis = 0; axis < 3; ++axis) {
      bool equal = true;
      for (int lane = 0; lane < kLanes; ++lane) {
        for (int warp = 0; warp < request.warps; ++warp) {
          equal &= held_by(a, {axis}, lane, warp) == held_by(b, {axis}, lane, warp);
        }
      }
      ASSERT_EQ(agrees(a, b, AxisSet::of(axis)), equal) << round << ", axis " << axis;
      if (axis < request.axes.size()) ++(equal ? same : different);
    }
  }
  EXPECT_GT(same, 50);
  EXPECT_GT(different, 50);
}

// Some digits of one axis, not all, each with any holder and with units in any order.
Layout scattered(std::mt19937& random) {
  std::vector<Mode> modes;
  for (int64_t stride = 1; stride <= 8; stride *= 2) {
    if (random() % 4 != 0) {
      modes.push_back({kN, 2, stride, static_cast<Holder>(random() % 3), 1});
    }
  }
  std::shuffle(modes.begin(), modes.end(), random);
  std::map<Holder, int64_t> next;
  for (Mode& m : modes) {
    int64_t& unit = next.try_emplace(m.holder, 1).first->second;
    m.unit = unit;
    unit *= 2;
  }
  return {modes};
}

TEST(Layout, AgreementOfScatteredDigits) {
  std::mt19937 random(12);
  int same = 0, different = 0;
  for (int round = 0; round < 60000; ++round) {
    const Layout a = scattered(random), b = scattered(random);
    bool equal = true;
    for (int lane = 0; lane < 16 && equal; ++lane) {
      for (int warp = 0; warp < 16 && equal; ++warp) {
        equal = held_by(a, {kN}, lane, warp) == held_by(b, {kN}, lane, warp);
      }
    }
    ASSERT_EQ(agrees(a, b, AxisSet::of(kN)), equal) << round;
    ++(equal ? same : different);
  }
  EXPECT_GT(same, 50);
  EXPECT_GT(different, 50);
}

}  // namespace
}  // namespace sundog
