// Who holds which element of a tile.
//
// A layout is a list of modes in mixed radix.  A mode says that one digit of a tile coordinate is
// held by the register index, the lane or the warp:
//
//   coordinate(axis) = sum over the modes of the axis of stride * digit
//   digit            = (index of the holder / unit) % extent
//
// where the index of the holder is the position in the thread's register array, the lane, or the
// warp of the block.  Lane digits are powers of two; warp and register digits need not be, so six
// n8 atoms (an axis of 48) are one register mode of extent 6.  The modes of an axis may cover more
// than its extent; coordinates beyond it are padding.  What no mode mentions is a replica: all
// lanes and warps that agree in the mentioned digits hold the same elements.
//
//   // the accumulator of mma.m16n8k16, 16 x 48
//   {m, 8, 1, lane, unit 4} {m, 2, 8, reg, unit 2} {n, 2, 1, reg, unit 1} {n, 4, 2, lane, unit 1}
//   {n, 6, 8, reg, unit 4}
#pragma once

#include <cstdint>
#include <vector>

#include "core/axis.h"

namespace sundog {

enum class Holder : uint8_t { kReg, kLane, kWarp };

struct Mode {
  AxisId axis = 0;
  int64_t extent = 1;
  int64_t stride = 1;  // of the coordinate
  Holder holder = Holder::kReg;
  int64_t unit = 1;  // of the holder's index
  bool operator==(const Mode&) const = default;
};

struct Layout {
  std::vector<Mode> modes;
  bool operator==(const Layout&) const = default;
};

inline constexpr int kLanes = 32;

// Registers of one thread: the product of the register extents.
int64_t slots(const Layout& layout);

AxisSet axes_of(const Layout& layout);

// One more than the greatest coordinate along `axis`; 1 if no mode mentions it.
int64_t covered(const Layout& layout, AxisId axis);

// The modes of the axes in `keep`; register units are made dense again, in the same order.
Layout slice(const Layout& layout, AxisSet keep);

// The modes of one axis by rising stride, neighbours that continue one another merged, extent 1
// left out, register units 0: equal lists mean that each thread holds the same coordinates.
std::vector<Mode> canonical(const Layout& layout, AxisId axis);

// True if each thread that evaluates `reader` at some element of `axes` holds it under `holder`.
bool agrees(const Layout& holder, const Layout& reader, AxisSet axes);

// Bits of the lane index that modes of `axes` use.
uint32_t lane_bits(const Layout& layout, AxisSet axes);

// The warp modes of `axes`, by rising unit.
std::vector<Mode> warp_modes(const Layout& layout, AxisSet axes);

// Product of the extents of the warp modes of `axes`.
int64_t warp_count(const Layout& layout, AxisSet axes);

// The register mode with stride 1 and unit 1 (a run of neighbours in one thread); extent 1 if none.
Mode vector_mode(const Layout& layout);

// An axis of a tile.
struct TileAxis {
  AxisId axis = 0;
  int64_t extent = 1;
};

// What a blocked layout is to look like.  Threads take neighbouring vectors of the innermost axis.
struct BlockedRequest {
  std::vector<TileAxis> axes;     // outer to inner; the last one is cut into vectors
  AxisSet reduced;                // axes that are about to be reduced
  int vector = 1;                 // elements of a vector
  int warps = 1;                  // warps of the block
  std::vector<Mode> fixed_warps;  // warp modes by hand: axis and extent are read
  int64_t run_lanes = 1;          // neighbours that share the innermost axis at least
};

// Spreads the axes over lanes, warps and registers.  Warps go to kept axes first, lanes to the
// innermost ones; as many threads share a reduced axis as the kept axes leave free, or as many as
// `run_lanes` asks for.
Layout blocked_layout(const BlockedRequest& request);

}  // namespace sundog
