#include "core/schedule/banks.h"

#include <algorithm>
#include <array>

#include "core/arithmetic.h"

namespace sundog {
namespace {

constexpr int64_t kBanks = 32, kBankBytes = 4, kWordBytes = 16;

// An element, as rows and columns of a tile.
struct Place {
  int64_t row = 0, column = 0;
};

// What a warp touches at once: the lanes that take part, in order.
struct WarpAccess {
  std::vector<std::pair<int, Place>> lanes;
  int64_t bytes = 4;  // of a lane
};

int64_t digit(const Mode& mode, int64_t holder) { return holder / mode.unit % mode.extent; }

// Where lane `lane` of the first warp has register `slot`; false if outside of the tile.
bool place_of(const SharedTile& tile, const Layout& layout, int64_t lane, int64_t slot, Place& at) {
  at = {};
  int64_t below = tile.rows();
  for (size_t i = 0; i < tile.axes.size(); ++i) {
    int64_t coordinate = 0;
    for (const Mode& m : layout.modes) {
      if (m.axis != tile.axes[i].axis || m.holder == Holder::kWarp) continue;
      coordinate += m.stride * digit(m, m.holder == Holder::kLane ? lane : slot);
    }
    if (coordinate >= tile.axes[i].extent) return false;
    if (i + 1 == tile.axes.size()) {
      at.column = coordinate;
    } else {
      below /= tile.axes[i].extent;
      at.row += coordinate * below;
    }
  }
  return true;
}

// The first run of neighbours, and those that differ from it in one binary digit of its number.
std::vector<int64_t> sample_slots(const Layout& layout, int64_t word) {
  const int64_t runs = std::max<int64_t>(slots(layout) / word, 1);
  std::vector<int64_t> result = {0};
  for (int64_t run = 1; run < runs; run *= 2) result.push_back(run * word);
  return result;
}

std::vector<WarpAccess> warp_accesses(const SharedTile& tile, const TileAccess& access) {
  const int64_t word = word_elements(tile, access.layout);
  const uint32_t bits = lane_bits(access.layout, axes_of(access.layout));
  std::vector<WarpAccess> result;
  for (int64_t slot : sample_slots(access.layout, word)) {
    WarpAccess& warp = result.emplace_back();
    warp.bytes = std::max(word * bytes(tile.dtype), kBankBytes);
    for (int lane = 0; lane < kLanes; ++lane) {
      Place at;
      const bool first = (static_cast<uint32_t>(lane) & ~bits) == 0;
      if (access.once && !first) continue;
      if (place_of(tile, access.layout, lane, slot, at)) warp.lanes.push_back({lane, at});
    }
  }
  return result;
}

int64_t byte_offset(const SharedTile& tile, Place at) {
  const int64_t size = bytes(tile.dtype);
  const int64_t panel = tile.panel > 0 ? at.column / tile.panel : 0;
  const int64_t row = panel * tile.rows() + at.row;
  const int64_t column = (at.column - panel * tile.panel) * size;
  const int64_t moved = row >> tile.swizzle_shift & tile.swizzle_mask;
  return row * tile.pitch * size + (column ^ moved * kWordBytes);
}

// The words that the banks are asked for in one turn.
class Turn {
 public:
  void ask(int64_t word) {
    const auto bank = static_cast<size_t>(word % kBanks);
    auto& words = words_[bank];
    for (int i = 0; i < asked_[bank]; ++i) {
      if (words[static_cast<size_t>(i)] == word) return;
    }
    words[static_cast<size_t>(asked_[bank]++)] = word;
    most_ = std::max(most_, asked_[bank]);
  }
  int most() const { return most_; }

 private:
  std::array<std::array<int64_t, kLanes>, kBanks> words_;  // the first asked_ of each are set
  std::array<int, kBanks> asked_ = {};
  int most_ = 0;
};

void count(const SharedTile& tile, const WarpAccess& access, BankTurns& counts) {
  const auto lanes = static_cast<int>(std::max<int64_t>(kLanes * kBankBytes / access.bytes, 1));
  for (size_t i = 0; i < access.lanes.size();) {
    const int part = access.lanes[i].first / lanes;
    Turn turn;
    for (; i < access.lanes.size() && access.lanes[i].first / lanes == part; ++i) {
      const int64_t first = byte_offset(tile, access.lanes[i].second) / kBankBytes;
      for (int64_t w = 0; w < access.bytes / kBankBytes; ++w) turn.ask(first + w);
    }
    counts.turns += turn.most();
    counts.conflicts += turn.most() - 1;
  }
}

BankTurns count_all(const SharedTile& tile, const std::vector<WarpAccess>& accesses) {
  BankTurns counts;
  for (const WarpAccess& access : accesses) count(tile, access, counts);
  return counts;
}

std::vector<WarpAccess> all_accesses(const SharedTile& tile,
                                     const std::vector<TileAccess>& accesses) {
  std::vector<WarpAccess> result;
  for (const TileAccess& access : accesses) {
    for (WarpAccess& warp : warp_accesses(tile, access)) result.push_back(std::move(warp));
  }
  return result;
}

}  // namespace

Layout write_order(const Layout& layout, const SharedTile& tile) {
  if (tile.axes.empty()) return layout;
  Mode run{tile.axes.back().axis, 1, 1, Holder::kReg, 1};
  if (const Mode own = vector_mode(layout); own.extent > 1 && own.axis == run.axis) return layout;
  std::vector<Mode> rest = layout.modes;
  const auto continues = [&](const Mode& m) {
    return m.holder == Holder::kReg && m.axis == run.axis && m.extent > 1 && m.stride == run.extent;
  };
  for (auto at = std::find_if(rest.begin(), rest.end(), continues); at != rest.end();
       at = std::find_if(rest.begin(), rest.end(), continues)) {
    run.extent *= at->extent;
    rest.erase(at);
  }
  if (run.extent == 1) return layout;
  Layout result = slice({rest}, axes_of(layout));
  for (Mode& m : result.modes) {
    if (m.holder == Holder::kReg) m.unit *= run.extent;
  }
  result.modes.push_back(run);
  return result;
}

int64_t word_elements(const SharedTile& tile, const Layout& layout) {
  const Mode run = vector_mode(layout);
  if (run.extent <= 1 || tile.axes.empty() || tile.axes.back().axis != run.axis) return 1;
  const auto fits = [&](int64_t width) {
    const bool apart = std::all_of(layout.modes.begin(), layout.modes.end(), [&](const Mode& m) {
      return m == run || m.axis != run.axis || m.stride % width == 0;
    });
    return apart && run.extent % width == 0 && tile.axes.back().extent % width == 0 &&
           (tile.axes.size() == 1 || tile.pitch % width == 0) &&
           (tile.copies == 1 || tile.elements() % width == 0);
  };
  int64_t width = 1;
  while (2 * width * bytes(tile.dtype) <= kWordBytes && fits(2 * width)) width *= 2;
  return width;
}

BankTurns bank_turns(const SharedTile& tile, const std::vector<TileAccess>& accesses) {
  return count_all(tile, all_accesses(tile, accesses));
}

void spread_over_banks(SharedTile& tile, const std::vector<TileAccess>& accesses, bool pad) {
  const int64_t in_word = kWordBytes / bytes(tile.dtype);
  if (tile.axes.size() < 2 || tile.rows() < 2 || tile.pitch % in_word != 0) return;
  const std::vector<WarpAccess> warps = all_accesses(tile, accesses);
  SharedTile best = tile;
  BankTurns least = count_all(tile, warps);
  const int64_t row = ceil_div(tile.axes.back().extent, in_word);
  const int64_t words = pad ? row : tile.pitch / in_word;
  for (int64_t more = 0; more < (pad ? kBanks * kBankBytes / kWordBytes : 1); ++more) {
    for (int mask : {0, 1, 3, 7}) {
      for (int shift = 0; shift < (mask == 0 ? 1 : 4) && least.conflicts > 0; ++shift) {
        if ((words + more) % (mask + 1) != 0) continue;
        SharedTile other = tile;
        other.pitch = (words + more) * in_word;
        other.swizzle_mask = mask;
        other.swizzle_shift = shift;
        const BankTurns turns = count_all(other, warps);
        if (turns.turns >= least.turns) continue;
        least = turns;
        best = std::move(other);
      }
    }
  }
  tile = std::move(best);
}

}  // namespace sundog
