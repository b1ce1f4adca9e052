// Bank conflicts of shared memory, as a GPU counts them: shared memory has 32 banks of 4 bytes, and
// one turn serves each bank with one word.  A warp's access of up to 4 bytes a lane takes one turn,
// of 8 bytes one for each half of the warp, of 16 one for each quarter; and one more for each
// further word that a bank is asked for.
//
// Threads run one after another here, so what a warp does at once is put together afterwards: the
// n-th execution of a place in the code by each lane.
#ifndef SUNDOG_EMULATOR_BANKS_H
#define SUNDOG_EMULATOR_BANKS_H

#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

namespace sd::emulator {

struct BankCounts {
  uint64_t turns = 0;      // all that it takes
  uint64_t conflicts = 0;  // of them, those that other places would save
};

// Of the lanes of one warp.
class BankTrace {
 public:
  void add(int lane, const void* pc, uint64_t offset, int bytes) {
    const auto turn = executed_[lane][pc]++;
    seen_.push_back({pc, turn, lane, bytes, offset});
  }

  // Where all lanes have come to one place: what they did until then is complete.
  void meet(BankCounts& counts) {
    if (seen_.size() >= kEnough) finish(counts);
  }

  void finish(BankCounts& counts) {
    std::sort(seen_.begin(), seen_.end(), [](const Access& a, const Access& b) {
      if (a.pc != b.pc) return a.pc < b.pc;
      return a.turn != b.turn ? a.turn < b.turn : a.lane < b.lane;
    });
    for (std::size_t i = 0; i < seen_.size();) {
      std::size_t end = i;
      while (end < seen_.size() && seen_[end].pc == seen_[i].pc &&
             seen_[end].turn == seen_[i].turn) {
        ++end;
      }
      count(i, end, counts);
      i = end;
    }
    seen_.clear();
    for (auto& lane : executed_) lane.clear();
  }

 private:
  static constexpr std::size_t kEnough = 4096;
  struct Access {
    const void* pc;
    uint64_t turn;
    int lane, bytes;
    uint64_t offset;
  };

  // One instruction of the warp, its lanes in order.
  void count(std::size_t begin, std::size_t end, BankCounts& counts) {
    int widest = 4;
    for (std::size_t i = begin; i < end; ++i) widest = std::max(widest, seen_[i].bytes);
    const int lanes = widest <= 4 ? 32 : widest <= 8 ? 16 : 8;  // of one turn
    while (begin < end) {
      const int part = seen_[begin].lane / lanes;
      std::size_t stop = begin;
      while (stop < end && seen_[stop].lane / lanes == part) ++stop;
      const uint64_t turns = turns_of(begin, stop);
      counts.turns += turns;
      counts.conflicts += turns - 1;
      begin = stop;
    }
  }

  // The most words that one bank is asked for.
  uint64_t turns_of(std::size_t begin, std::size_t end) {
    words_.clear();
    for (std::size_t i = begin; i < end; ++i) {
      const uint64_t last =
          seen_[i].offset + static_cast<uint64_t>(std::max(seen_[i].bytes, 1)) - 1;
      for (uint64_t word = seen_[i].offset / 4; word <= last / 4; ++word) words_.push_back(word);
    }
    std::sort(words_.begin(), words_.end());
    words_.erase(std::unique(words_.begin(), words_.end()), words_.end());
    uint64_t asked[32] = {};
    for (const uint64_t word : words_) ++asked[word % 32];
    return *std::max_element(asked, asked + 32);
  }

  std::vector<Access> seen_;
  std::map<const void*, uint64_t> executed_[32];  // by lane
  std::vector<uint64_t> words_;
};

}  // namespace sd::emulator

#endif  // SUNDOG_EMULATOR_BANKS_H
