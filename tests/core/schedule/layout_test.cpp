#include "core/schedule/layout.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace sundog
