// Products of warp groups.  A warp's 16 rows of the result depend on its own registers and on
// shared memory alone, so each warp of the four does its share by itself.
//
// When a product happens is not fixed: it is carried out when it starts (eager schedules), when it
// is waited for (late ones), or either; a result that is read too early, and an operand that is
// overwritten too early, then show.  The operands are read past the threads: bytes that a thread
// wrote count as there only behind fence_async_proxy.
#ifndef SUNDOG_EMULATOR_WARPGROUP_H
#define SUNDOG_EMULATOR_WARPGROUP_H

#include "matrices.h"

namespace sd::emulator {

void fence_async_proxy() {
  if (!kChecked) return;
  Worker& worker = *current_worker;
  worker.shadow.fence(own_actor(worker));
}

// --- operands in shared memory ---

struct TileAddress {
  uint32_t start, groups, across;  // bytes: in the arena, of eight rows, to the next row end
  int row;                         // bytes of a row

  explicit TileAddress(uint64_t bits)
      : start(static_cast<uint32_t>(bits & 0x3fff) * 16),
        groups(static_cast<uint32_t>(bits >> 32 & 0x3fff) * 16),
        across(static_cast<uint32_t>(bits >> 16 & 0x3fff) * 16),
        row(bits >> 62 == 1   ? 128
            : bits >> 62 == 2 ? 64
                              : 32) {}

  // Offset of the byte `column` of row `r`.
  uint32_t at(int r, int column) const {
    const int begin = static_cast<int>(start) % row + column;
    uint32_t offset = start - start % static_cast<uint32_t>(row);
    offset += static_cast<uint32_t>(r / 8) * groups + static_cast<uint32_t>(r % 8 * row);
    offset += static_cast<uint32_t>(begin / row) * across + static_cast<uint32_t>(begin % row);
    const uint32_t mask = static_cast<uint32_t>(row) / 16 - 1;
    return offset ^ (offset >> 7 & mask) << 4;
  }
};

// What the elements of operands are computed with: floats, or residues.
template <Operand kOperand>
using Element = std::conditional_t<is_residue(kOperand), Code, float>;

template <Operand kOperand>
inline Element<kOperand> widen_one(uint16_t half) {
  if constexpr (kOperand == Operand::kF16) return f16_to_float({half});
  if constexpr (kOperand == Operand::kBf16) return bf16_to_float({half});
  if constexpr (is_residue(kOperand)) return load_residue<kOperand>(half);
}

// Rows [first, first + count) of a matrix count x 16, as numbers by rows or (across) from a tile
// whose rows are steps of K.
template <Operand kOperand>
inline void fetch(Worker& worker, uint64_t bits, bool across, int first, int count,
                  Element<kOperand> (*to)[16], void* pc) {
  const TileAddress tile(bits);
  alignas(16) uint16_t word[8];
  const auto read = [&](int r, int column) {
    const unsigned char* from = worker.arena + tile.at(r, column);
    check_shared(worker, from, 16, Shadow::Kind::kAsyncRead, warp_actor(worker), pc);
    std::memcpy(word, from, 16);
  };
  if (!across) {
    for (int r = 0; r < count; ++r) {
      for (int half = 0; half < 2; ++half) {
        read(first + r, half * 16);
        for (int i = 0; i < 8; ++i) to[r][half * 8 + i] = widen_one<kOperand>(word[i]);
      }
    }
    return;
  }
  for (int k = 0; k < 16; ++k) {
    for (int r = 0; r < count; r += 8) {
      read(k, (first + r) * 2);
      for (int i = 0; i < 8; ++i) to[r + i][k] = widen_one<kOperand>(word[i]);
    }
  }
}

// --- products ---

inline void multiply_into(float* d, bool add, const float* a, const float* b) {
  float sum = add ? *d : 0.0f;
  for (int k = 0; k < 16; ++k) sum += a[k] * b[k];
  *d = sum;
}
inline void multiply_into(float* d, bool add, const Code* a, const Code* b) {
  store_register(d, residue_field.dot(add ? load_register(d) : 0, a, b, 16));
}

template <Operand kOperand>
inline void multiply_warpgroup(Worker& worker, const GroupProduct& p, int warp) {
  Element<kOperand> a[16][16], b[128][16];
  if (p.from_registers) {
    for (int lane = 0; lane < 32; ++lane) {
      for (int q = 0; q < 4; ++q) {
        auto* at = &a[lane / 4 + (q & 1) * 8][lane % 4 * 2 + (q >> 1) * 8];
        for (int i = 0; i < 2; ++i) {
          at[i] = widen_one<kOperand>(static_cast<uint16_t>(p.a[lane][q] >> (16 * i)));
        }
      }
    }
  } else {
    fetch<kOperand>(worker, p.a_tile, p.across_a, warp % 4 * 16, 16, a, p.pc);
  }
  fetch<kOperand>(worker, p.b_tile, p.across_b, 0, p.columns, b, p.pc);
  for (int lane = 0; lane < 32; ++lane) {
    for (int j = 0; j < p.columns / 8; ++j) {
      for (int q = 0; q < 4; ++q) {
        const int row = lane / 4 + q / 2 * 8, column = j * 8 + lane % 4 * 2 + q % 2;
        multiply_into(&p.d[lane][j][q], p.add, a[row], b[column]);
      }
    }
  }
}

inline void carry_out(Worker& worker, GroupProduct& p, int warp) {
  switch (p.operand) {
    case Operand::kF16:
      multiply_warpgroup<Operand::kF16>(worker, p, warp);
      break;
    case Operand::kBf16:
      multiply_warpgroup<Operand::kBf16>(worker, p, warp);
      break;
    case Operand::kResidueF16:
      multiply_warpgroup<Operand::kResidueF16>(worker, p, warp);
      break;
    case Operand::kResidueBf16:
      multiply_warpgroup<Operand::kResidueBf16>(worker, p, warp);
      break;
    case Operand::kTf32:
    case Operand::kResidueWord:
      break;  // there are none of words
  }
  p.done = true;
}

struct GroupOperands {
  float (*d)[4];
  const uint32_t* a;
};

void warpgroup_mma(float (*d)[4], const uint32_t* a, uint64_t a_tile, uint64_t b_tile, int columns,
                   bool across_a, bool across_b, bool add, Operand operand, int line) {
  GroupOperands mine{d, a};
  void* pc = SUNDOG_CALLER;
  meet(kGroupMma, line, mine, pc, [=](GroupOperands* const* all) {
    Worker& worker = *current_worker;
    const int warp = worker.warp_of(*worker.fiber);
    GroupProduct p{};
    for (int lane = 0; lane < 32; ++lane) {
      p.d[lane] = all[lane]->d;
      if (a != nullptr) std::memcpy(p.a[lane], all[lane]->a, sizeof p.a[lane]);
    }
    p.from_registers = a != nullptr;
    p.a_tile = a_tile;
    p.b_tile = b_tile;
    p.columns = columns;
    p.across_a = across_a;
    p.across_b = across_b;
    p.add = add;
    p.operand = operand;
    p.pc = pc;
    std::vector<GroupProduct>& list = worker.products[warp];
    bool early = worker.schedule == Schedule::kInOrderEager;
    if (worker.schedule == Schedule::kRandom) early = next_random(worker.random) >> 63;
    // They are carried out in order.
    if (early && (list.empty() || list.back().done)) carry_out(worker, p, warp);
    list.push_back(p);
  });
}

void warpgroup_fence(int line) {
  char nothing = 0;
  meet(kGroupFence, line, nothing, SUNDOG_CALLER, [](char* const*) {});
}

void warpgroup_commit(int line) {
  char nothing = 0;
  meet(kGroupCommit, line, nothing, SUNDOG_CALLER, [](char* const*) {
    Worker& worker = *current_worker;
    for (GroupProduct& p : worker.products[worker.warp_of(*worker.fiber)]) p.committed = true;
  });
}

void warpgroup_wait(int line) {
  char nothing = 0;
  void* pc = SUNDOG_CALLER;
  meet(kGroupWait, line, nothing, pc, [pc](char* const*) {
    Worker& worker = *current_worker;
    const int warp = worker.warp_of(*worker.fiber);
    for (GroupProduct& p : worker.products[warp]) {
      if (!p.committed) {
        report("uncommitted product", pc, "waits for a product whose group was never closed");
      }
      if (!p.done) carry_out(worker, p, warp);
    }
    worker.products[warp].clear();
  });
}

}  // namespace sd::emulator

#endif  // SUNDOG_EMULATOR_WARPGROUP_H
