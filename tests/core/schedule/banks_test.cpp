#include "core/schedule/banks.h"

#include <gtest/gtest.h>

#include <set>

namespace sundog {
namespace {

constexpr AxisId kRow = 0, kColumn = 1;

SharedTile tile_of(int64_t rows, int64_t columns, DType dtype) {
  SharedTile tile;
  tile.axes = {{kRow, rows}, {kColumn, columns}};
  tile.pitch = columns;
  tile.dtype = dtype;
  return tile;
}

// The accumulator of m64n8k16: pairs of neighbours, four lanes a row, eight rows.
Layout accumulator(int64_t columns) {
  return {{{kRow, 8, 1, Holder::kLane, 4},
           {kRow, 2, 8, Holder::kReg, 2},
           {kColumn, 2, 1, Holder::kReg, 1},
           {kColumn, 4, 2, Holder::kLane, 1},
           {kColumn, columns / 8, 8, Holder::kReg, 4}}};
}

// Vectors of `width`, `lanes` of them a row.
Layout by_rows(int64_t width, int64_t lanes) {
  return {{{kColumn, width, 1, Holder::kReg, 1},
           {kColumn, lanes, width, Holder::kLane, 1},
           {kRow, kLanes / lanes, 1, Holder::kLane, lanes}}};
}

Layout by_columns() { return {{{kRow, kLanes, 1, Holder::kLane, 1}}}; }

// Every element of the tile has a place of its own within it.
void expect_places(const SharedTile& tile) {
  std::set<int64_t> places;
  for (int64_t row = 0; row < tile.rows(); ++row) {
    for (int64_t column = 0; column < tile.axes.back().extent; ++column) {
      const int64_t moved = row >> tile.swizzle_shift & tile.swizzle_mask;
      const int64_t at = row * tile.pitch + (column ^ moved * 16 / bytes(tile.dtype));
      EXPECT_LT(at, tile.elements());
      places.insert(at);
    }
  }
  EXPECT_EQ(static_cast<int64_t>(places.size()), tile.rows() * tile.axes.back().extent);
}

// Of two atoms whose columns alternate a lane has four neighbours, in registers 0, 4, 1 and 5.
TEST(Banks, NeighboursAreWrittenTogetherInWhateverRegistersTheyAre) {
  const Layout alternating{{{kRow, 8, 1, Holder::kLane, 4},
                            {kRow, 2, 8, Holder::kReg, 2},
                            {kColumn, 2, 2, Holder::kReg, 1},
                            {kColumn, 4, 4, Holder::kLane, 1},
                            {kColumn, 2, 1, Holder::kReg, 4}}};
  const SharedTile tile = tile_of(16, 16, DType::kF32);
  const Layout written = write_order(alternating, tile);
  EXPECT_TRUE(agrees(alternating, written, axes_of(alternating)));
  EXPECT_TRUE(agrees(written, alternating, axes_of(alternating)));
  EXPECT_EQ(slots(written), slots(alternating));
  EXPECT_EQ(vector_mode(written).extent, 4);
  EXPECT_EQ(word_elements(tile, alternating), 1);
  EXPECT_EQ(word_elements(tile, written), 4);
  // Where neighbours are together already, or a thread has none, nothing changes.
  EXPECT_EQ(write_order(accumulator(16), tile), accumulator(16));
  EXPECT_EQ(write_order(by_columns(), tile), by_columns());
}

TEST(Banks, RowsOfAllBanksMeetWhereColumnsAreRead) {
  const SharedTile tile = tile_of(32, 32, DType::kF32);
  EXPECT_EQ(bank_turns(tile, {{by_columns()}}).turns, 32);
  EXPECT_EQ(bank_turns(tile, {{by_columns()}}).conflicts, 31);
  SharedTile padded = tile;
  padded.pitch = 33;
  EXPECT_EQ(bank_turns(padded, {{by_columns()}}).conflicts, 0);
}

TEST(Banks, WideReadsTakeATurnForEachQuarterOfTheWarp) {
  const SharedTile tile = tile_of(4, 128, DType::kF16);
  const BankTurns turns = bank_turns(tile, {{by_rows(8, 8)}});
  EXPECT_EQ(turns.turns, 4);
  EXPECT_EQ(turns.conflicts, 0);
}

// Two lanes a row in a tile that is swizzled for products: rows 2 r and 2 r + 1 exchange their
// words.
TEST(Banks, TwoLanesOfARowMeetTheNextOnesInASwizzle) {
  SharedTile tile = tile_of(128, 64, DType::kF16);
  tile.swizzle_mask = 7;
  EXPECT_GT(bank_turns(tile, {{by_rows(8, 2), true}}).conflicts, 0);
  EXPECT_EQ(bank_turns(tile, {{by_rows(8, 8), true}}).conflicts, 0);
}

TEST(Banks, OfThreadsThatHoldTheSameOneWrites) {
  const Layout twice = {{{kColumn, 16, 1, Holder::kLane, 2}}};
  EXPECT_EQ(bank_turns(tile_of(2, 16, DType::kF32), {{twice, true}}).turns, 1);
}

TEST(Banks, RowsOfPanelsAreCountedThroughAllOfThem) {
  SharedTile tile = tile_of(2, 256, DType::kF16);
  tile.panel = tile.pitch = 64;
  const Layout rows = {{{kColumn, 8, 1, Holder::kReg, 1},
                        {kRow, 2, 1, Holder::kLane, 1},
                        {kColumn, 4, 64, Holder::kLane, 2}}};
  EXPECT_GT(bank_turns(tile, {{rows}}).conflicts, 0);
  tile.swizzle_mask = 7;
  EXPECT_EQ(bank_turns(tile, {{rows}}).conflicts, 0);
}

TEST(Banks, PairsThatAreReadInFoursLieWithoutConflicts) {
  SharedTile tile = tile_of(256, 32, DType::kF32);
  const std::vector<TileAccess> accesses = {{accumulator(32), true}, {by_rows(8, 4)}};
  EXPECT_GT(bank_turns(tile, accesses).conflicts, 0);
  spread_over_banks(tile, accesses, true);
  EXPECT_EQ(bank_turns(tile, accesses).conflicts, 0);
  EXPECT_LE(tile.pitch, 48);
  expect_places(tile);
}

TEST(Banks, WhatCopiesFillIsExchangedAndNotPadded) {
  SharedTile tile = tile_of(64, 64, DType::kF16);
  const std::vector<TileAccess> accesses = {{accumulator(64)}};
  EXPECT_GT(bank_turns(tile, accesses).conflicts, 0);
  spread_over_banks(tile, accesses, false);
  EXPECT_EQ(bank_turns(tile, accesses).conflicts, 0);
  EXPECT_EQ(tile.pitch, 64);
  expect_places(tile);
}

TEST(Banks, WhatHasNoConflictsStaysAsItIs) {
  SharedTile tile = tile_of(16, 32, DType::kF32);
  spread_over_banks(tile, {{by_rows(4, 8)}}, true);
  EXPECT_EQ(tile.pitch, 32);
  EXPECT_EQ(tile.swizzle_mask, 0);
}

// Whatever is touched how: never worse than before, and every element keeps a place of its own.
TEST(Banks, SpreadingNeverCostsTurns) {
  const std::vector<Layout> layouts = {accumulator(32), by_rows(1, 32), by_rows(2, 8),
                                       by_rows(4, 2),   by_rows(8, 4),  by_columns()};
  for (int64_t columns : {24, 32, 40, 64}) {
    for (DType dtype : {DType::kF16, DType::kF32}) {
      for (const Layout& writer : layouts) {
        for (const Layout& reader : layouts) {
          for (bool pad : {false, true}) {
            SharedTile tile = tile_of(32, columns, dtype);
            const std::vector<TileAccess> accesses = {{writer, true}, {reader}};
            const int64_t before = bank_turns(tile, accesses).turns;
            spread_over_banks(tile, accesses, pad);
            EXPECT_LE(bank_turns(tile, accesses).turns, before);
            expect_places(tile);
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace sundog
