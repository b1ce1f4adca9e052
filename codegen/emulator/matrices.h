// ldmatrix, movmatrix and mma.  Sums of an mma are formed in f32, element by element in ascending
// k, starting from the accumulator; products are exact.  Hardware adds in groups and truncates,
// which no document fixes: results agree to rounding, not in bits.
#ifndef SUNDOG_EMULATOR_MATRICES_H
#define SUNDOG_EMULATOR_MATRICES_H

#include "operations.h"
#ifdef __F16C__
#include <immintrin.h>
#endif

namespace sd::emulator {

void ldmatrix(uint32_t* dst, const void* row, int matrices, bool transposed, int line) {
  struct Operands {
    uint32_t* dst;
    const void* row;
    int matrices;
    bool transposed;
  } mine{dst, row, matrices, transposed};
  Worker& worker = *current_worker;
  if ((worker.fiber->thread & 31) < matrices * 8) {
    check_aligned(row, 16, "an ldmatrix row", SUNDOG_CALLER);
    check_shared(worker, row, 16, Shadow::Kind::kRead, warp_actor(worker), SUNDOG_CALLER);
  }
  meet(kLdmatrix, line, mine, SUNDOG_CALLER, [](Operands* const* all) {
    for (int m = 0; m < all[0]->matrices; ++m) {
      uint16_t element[8][8];
      for (int r = 0; r < 8; ++r) std::memcpy(element[r], all[m * 8 + r]->row, 16);
      for (int lane = 0; lane < 32; ++lane) {
        const int r = lane / 4, c = lane % 4 * 2;
        const uint32_t low = all[0]->transposed ? element[c][r] : element[r][c];
        const uint32_t high = all[0]->transposed ? element[c + 1][r] : element[r][c + 1];
        all[lane]->dst[m] = low | high << 16;
      }
    }
  });
}

uint32_t movmatrix(uint32_t src, int line) {
  struct Operands {
    uint32_t value, result;
  } mine{src, 0};
  meet(kMovmatrix, line, mine, SUNDOG_CALLER, [](Operands* const* all) {
    const auto element = [all](int r, int c) {
      return all[r * 4 + c / 2]->value >> (c % 2 * 16) & 0xffffu;
    };
    for (int lane = 0; lane < 32; ++lane) {
      const int r = lane / 4, c = lane % 4 * 2;
      all[lane]->result = element(c, r) | element(c + 1, r) << 16;
    }
  });
  return mine.result;
}

struct MmaOperands {
  float* d;
  const uint32_t* a;
  uint32_t b[2];
};

// Eight floats at once; the compiler makes of it what the machine has.
using Row [[gnu::vector_size(32)]] = float;

// The operands of an mma in rows, as they are stored and as floats.
struct MmaTile {
  alignas(32) uint16_t a[16][16], b[16][8];
  Row wide_a[16][2], wide_b[16];
};

template <Operand kOperand>
inline void widen(Row& wide, const uint16_t* half) {
#ifdef __F16C__
  if constexpr (kOperand == Operand::kF16) {
    wide = _mm256_cvtph_ps(_mm_load_si128(reinterpret_cast<const __m128i*>(half)));
    return;
  }
#endif
  for (int i = 0; i < 8; ++i) {
    wide[i] = kOperand == Operand::kF16 ? f16_to_float({half[i]}) : bf16_to_float({half[i]});
  }
}

// Puts the registers of all lanes in place.
template <Operand kOperand>
inline void gather(MmaOperands* const* all, MmaTile& tile) {
  for (int lane = 0; lane < 32; ++lane) {
    const int g = lane / 4, t = lane % 4;
    const MmaOperands& mine = *all[lane];
    if constexpr (kOperand == Operand::kTf32) {
      for (int q = 0; q < 4; ++q) {
        tile.wide_a[g + (q & 1) * 8][0][t + (q >> 1) * 4] = bits_float(mine.a[q] & 0xffffe000u);
      }
      for (int q = 0; q < 2; ++q) tile.wide_b[t + q * 4][g] = bits_float(mine.b[q] & 0xffffe000u);
    } else {
      for (int q = 0; q < 4; ++q) {
        std::memcpy(&tile.a[g + (q & 1) * 8][2 * t + (q >> 1) * 8], &mine.a[q], 4);
      }
      for (int q = 0; q < 2; ++q) {
        tile.b[2 * t + q * 8][g] = static_cast<uint16_t>(mine.b[q]);
        tile.b[2 * t + q * 8 + 1][g] = static_cast<uint16_t>(mine.b[q] >> 16);
      }
    }
  }
  if constexpr (kOperand != Operand::kTf32) {
    for (int i = 0; i < 16; ++i) {
      widen<kOperand>(tile.wide_a[i][0], tile.a[i]);
      widen<kOperand>(tile.wide_a[i][1], tile.a[i] + 8);
      widen<kOperand>(tile.wide_b[i], tile.b[i]);
    }
  }
}

template <Operand kOperand>
inline void multiply(MmaOperands* const* all) {
  constexpr int kDepth = kOperand == Operand::kTf32 ? 8 : 16;
  MmaTile tile;
  gather<kOperand>(all, tile);
  for (int i = 0; i < 16; ++i) {
    float* d[4];
    Row sum;
    for (int t = 0; t < 4; ++t) {
      d[t] = all[i % 8 * 4 + t]->d + i / 8 * 2;
      sum[2 * t] = d[t][0];
      sum[2 * t + 1] = d[t][1];
    }
    for (int k = 0; k < kDepth; ++k) sum += tile.wide_a[i][k / 8][k % 8] * tile.wide_b[k];
    for (int t = 0; t < 4; ++t) {
      d[t][0] = sum[2 * t];
      d[t][1] = sum[2 * t + 1];
    }
  }
}

// --- products of residues ---

constexpr bool is_residue(Operand operand) { return operand >= Operand::kResidueF16; }

// The number in a half word (f16, bf16) or a word.
template <Operand kOperand>
inline Code load_residue(uint32_t bits) {
  constexpr CodeStorage kStorage = kOperand == Operand::kResidueF16    ? CodeStorage::kF16
                                   : kOperand == Operand::kResidueBf16 ? CodeStorage::kBf16
                                                                       : CodeStorage::kWord;
  return residue_field.load(kStorage, bits);
}

// Registers that hold a residue are typed as floats, and are no numbers: only bits are moved.
inline Code load_register(const float* d) {
  Code x;
  std::memcpy(&x, d, sizeof x);
  return x;
}
inline void store_register(float* d, Code x) { std::memcpy(d, &x, sizeof x); }

template <Operand kOperand>
inline void multiply_residues(MmaOperands* const* all) {
  constexpr bool kWords = kOperand == Operand::kResidueWord;
  constexpr int kDepth = kWords ? 8 : 16, kPerWord = kWords ? 1 : 2;
  Code a[16][kDepth], b[8][kDepth];  // of b, by columns
  for (int lane = 0; lane < 32; ++lane) {
    const int g = lane / 4, t = lane % 4 * kPerWord;
    for (int i = 0; i < kPerWord; ++i) {
      for (int q = 0; q < 4; ++q) {
        const uint32_t bits = all[lane]->a[q] >> (16 * i);
        a[g + (q & 1) * 8][t + i + (q >> 1) * kDepth / 2] = load_residue<kOperand>(bits);
      }
      for (int q = 0; q < 2; ++q) {
        const uint32_t bits = all[lane]->b[q] >> (16 * i);
        b[g][t + i + q * kDepth / 2] = load_residue<kOperand>(bits);
      }
    }
  }
  for (int lane = 0; lane < 32; ++lane) {
    for (int q = 0; q < 4; ++q) {
      float* d = all[lane]->d + q;
      const int row = lane / 4 + q / 2 * 8, column = lane % 4 * 2 + q % 2;
      store_register(d, residue_field.dot(load_register(d), a[row], b[column], kDepth));
    }
  }
}

void mma(float* d, const uint32_t* a, uint32_t b0, uint32_t b1, Operand operand, int line) {
  MmaOperands mine{d, a, {b0, b1}};
  meet(kMma, line, mine, SUNDOG_CALLER, [operand](MmaOperands* const* all) {
    switch (operand) {
      case Operand::kF16:
        return multiply<Operand::kF16>(all);
      case Operand::kBf16:
        return multiply<Operand::kBf16>(all);
      case Operand::kTf32:
        return multiply<Operand::kTf32>(all);
      case Operand::kResidueF16:
        return multiply_residues<Operand::kResidueF16>(all);
      case Operand::kResidueBf16:
        return multiply_residues<Operand::kResidueBf16>(all);
      case Operand::kResidueWord:
        return multiply_residues<Operand::kResidueWord>(all);
    }
  });
}

}  // namespace sd::emulator

#endif  // SUNDOG_EMULATOR_MATRICES_H
