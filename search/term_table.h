// The bank as placement sees it: what the outputs need, in topological order.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <vector>

#include "search/bank.h"
#include "search/machine.h"

namespace sundog::search {

inline constexpr int kMostRanks = 384;

// A set of ranks.
class RankSet {
 public:
  bool has(int i) const { return (words_[static_cast<size_t>(i) >> 6] >> (i & 63) & 1) != 0; }
  void insert(int i) { words_[static_cast<size_t>(i) >> 6] |= uint64_t{1} << (i & 63); }
  void erase(int i) { words_[static_cast<size_t>(i) >> 6] &= ~(uint64_t{1} << (i & 63)); }
  void erase(const RankSet& other) {
    for (size_t w = 0; w < words_.size(); ++w) words_[w] &= ~other.words_[w];
  }
  // The greatest member, -1 if there is none.
  int top() const {
    for (size_t w = words_.size(); w-- > 0;) {
      if (words_[w] != 0) return static_cast<int>(w * 64 + 63) - std::countl_zero(words_[w]);
    }
    return -1;
  }
  std::vector<int> members() const {
    std::vector<int> out;
    for (int i = 0; i < kMostRanks; ++i) {
      if (has(i)) out.push_back(i);
    }
    return out;
  }
  uint64_t hash() const {
    uint64_t h = 1;
    for (uint64_t w : words_) h = mix(h, w);
    return h;
  }
  bool operator==(const RankSet&) const = default;

 private:
  std::array<uint64_t, kMostRanks / 64> words_{};
};

// Least time of some work on each kind of unit of the whole device, us.
struct WorkTime {
  double tensor = 0, alu = 0, sfu = 0;
  WorkTime& operator+=(const WorkTime& o) {
    tensor += o.tensor;
    alu += o.alu;
    sfu += o.sfu;
    return *this;
  }
};

// A class with its nodes; operands are ranks.
struct RankedNode {
  Node node;
  std::vector<int> operands;
  WorkTime work;
  bool dropped = false;  // not to be used; kept, since structures name nodes by position
};
struct RankedTerm {
  ClassId id = kNoClass;
  AxisSet axes;
  LeafKind leaf = LeafKind::kNone;
  bool storable = false;
  bool inline_only = false;
  double bytes = 4;        // of one element, stored
  double total_bytes = 0;  // least that a kernel which reads or writes it moves
  std::vector<RankedNode> nodes;
};

struct TermTable {
  std::vector<RankedTerm> terms;  // operands before users
  std::vector<int> outputs;       // rank of each output of the program
  bool too_large = false;         // more terms than a RankSet holds

  int size() const { return static_cast<int>(terms.size()); }
};

// Only what the outputs reach, by nodes that close no cycle.  `store_anything`: every computed term
// over whole axes may be stored between kernels.
TermTable term_table(const Bank& bank, const std::vector<ClassId>& outputs, const Machine& machine,
                     bool store_anything = false);

// Drops nodes whose own work takes longer than `limit_us` on the whole device.  Gives the number
// dropped.
int drop_expensive(TermTable& table, double limit_us);

bool is_reduction(NodeKind kind);

}  // namespace sundog::search
