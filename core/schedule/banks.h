// Bank conflicts of a shared tile, before there is a kernel: shared memory has 32 banks of 4 bytes,
// and a turn serves each with one word.  A warp's access of up to 4 bytes a lane takes one turn, of
// 8 bytes one for each half of the warp, of 16 one for each quarter, and one more for each further
// word that a bank is asked for (codegen/emulator/banks.h counts the same while a kernel runs).
//
// Nobody can say once and for all how a tile should lie: an accumulator is written in pairs of
// neighbours, eight rows at a time, and read back along its rows or across them.  So the layout is
// chosen from how threads touch the tile, in a small family: rows padded by 16-byte words, and
// words exchanged by bits of the row's number.
#pragma once

#include <cstdint>
#include <vector>

#include "core/schedule/kernel_plan.h"

namespace sundog {

// Threads that touch a tile, each the elements that it has in this layout.
struct TileAccess {
  Layout layout;
  bool once = false;  // of threads with the same elements the first does (writers)
};

// The same elements of each thread, its registers renumbered so that those which are neighbours in
// the tile's rows are written together; `layout` itself where some are already, or none can be.
Layout write_order(const Layout& layout, const SharedTile& tile);

struct BankTurns {
  int64_t turns = 0;      // all, of the accesses looked at
  int64_t conflicts = 0;  // of them, those that another place of the elements could save
};

// Neighbours along the tile's rows that a thread of this layout touches at once: as many as lie in
// its registers side by side, in words of up to 16 bytes.
int64_t word_elements(const SharedTile& tile, const Layout& layout);

// Of the block's first warp; of its registers those are looked at that differ in one binary digit.
BankTurns bank_turns(const SharedTile& tile, const std::vector<TileAccess>& accesses);

// Gives `tile`, whose pitch is set and holds whole 16-byte words, the pitch and the swizzle of
// fewest turns; of equals the smaller one, and what it has if nothing is better.  Without `pad` the
// pitch stays as it is.
void spread_over_banks(SharedTile& tile, const std::vector<TileAccess>& accesses, bool pad);

}  // namespace sundog
