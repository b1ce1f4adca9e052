// c[M, N] = a[M, K] * b[K, N], f16 to f32: a tile of 64 x 64 a block, two stages of cp.async,
// ldmatrix and mma.  Right as it stands; BUG plants one mistake, the sort that emitters make.
#include "primitives.cuh"

#ifndef BUG
#define BUG 0
#endif
#define BUG_NO_BARRIER_AFTER_WAIT 1
#define BUG_NO_BARRIER_BEFORE_REUSE 2
#define BUG_NO_WAIT 3
#define BUG_WAIT_TOO_LATE_GROUP 4
#define BUG_COLUMN_OFF_BY_ONE 5
#define BUG_LDMATRIX_ROW 6
#define BUG_NO_LOAD_PREDICATE 7
#define BUG_NO_STORE_PREDICATE 8
#define BUG_WRITES_INPUT 9
#define BUG_BLOCKS_OVERLAP 10
#define BUG_DIVERGENT_BARRIER 11
#define BUG_UNINITIALISED_TAIL 12
#define BUG_ARENA_OVERFLOW 13
#define BUG_MISALIGNED_COPY 14
#define BUG_NO_COMMIT 15
#define BUG_EXTRA_BARRIER_IN_ONE_WARP 16
#define BUG_LDMATRIX_ROW_INSIDE_TILE 17

#ifndef M
#define M 100
#define N 128
#define K 96
#endif

constexpr int kTileM = 64, kTileN = 64, kTileK = 32;
constexpr int kStrideA = kTileK + 8, kStrideB = kTileN + 8;  // padded: rows fall into other banks
constexpr int kStageBytes = 2 * (kTileM * kStrideA + kTileK * kStrideB);

__device__ void load_stage(sd::f16* tile_a, sd::f16* tile_b, const __half* a, const __half* b,
                           int row, int column, int k) {
  for (int i = threadIdx.x; i < kTileM * kTileK / 8; i += 128) {
    const int r = i / (kTileK / 8), c = i % (kTileK / 8) * 8;
#if BUG == BUG_UNINITIALISED_TAIL
    if (row + r >= M) continue;
#endif
#if BUG == BUG_NO_LOAD_PREDICATE
    const bool inside = true;
#else
    const bool inside = row + r < M;
#endif
    const int from = BUG == BUG_MISALIGNED_COPY ? c + 1 : c;
    sd::cp_async<16>(tile_a + r * kStrideA + c, a + (row + r) * K + k + from, inside);
  }
  for (int i = threadIdx.x; i < kTileK * kTileN / 8; i += 128) {
    const int r = i / (kTileN / 8), c = i % (kTileN / 8) * 8;
    sd::cp_async<16>(tile_b + r * kStrideB + c, b + (k + r) * N + column + c);
  }
  if (BUG != BUG_NO_COMMIT) sd::cp_async_commit();
}

__device__ void multiply_stage(float (&sum)[2][4][4], const sd::f16* tile_a, const sd::f16* tile_b,
                               int row, int column) {
  const int lane = threadIdx.x % 32;
  for (int k = 0; k < kTileK; k += 16) {
    uint32_t fa[2][4], fb[2][4];
    for (int i = 0; i < 2; ++i) {
      int r = row + i * 16 + lane % 16;
      if (BUG == BUG_LDMATRIX_ROW) r += kTileM;
      if (BUG == BUG_LDMATRIX_ROW_INSIDE_TILE) r = row + i * 16 + (lane + 1) % 16;
      sd::ldmatrix_x4(fa[i], tile_a + r * kStrideA + k + lane / 16 * 8);
    }
    for (int j = 0; j < 2; ++j) {
      sd::ldmatrix_x4_trans(fb[j],
                            tile_b + (k + lane % 16) * kStrideB + column + j * 16 + lane / 16 * 8);
    }
    for (int i = 0; i < 2; ++i) {
      for (int j = 0; j < 4; ++j) {
        sd::mma_m16n8k16<sd::f16>(sum[i][j], fa[i], fb[j / 2][j % 2 * 2], fb[j / 2][j % 2 * 2 + 1]);
      }
    }
  }
}

extern "C" __global__ void __launch_bounds__(128)
    gemm(const __half* __restrict__ a, const __half* __restrict__ b, float* __restrict__ c) {
  unsigned char* arena = sd::shared_arena();
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int row = blockIdx.y * kTileM, column = blockIdx.x * kTileN;
  const int warp_row = warp / 2 * 32, warp_column = warp % 2 * 32;
  const auto tile_a = [=](int stage) {
    const int shift = BUG == BUG_ARENA_OVERFLOW ? 32 : 0;
    return reinterpret_cast<sd::f16*>(arena + stage * kStageBytes + shift);
  };
  const auto tile_b = [=](int stage) { return tile_a(stage) + kTileM * kStrideA; };

  float sum[2][4][4] = {};
  load_stage(tile_a(0), tile_b(0), a, b, row, column, 0);
  for (int k = 0, stage = 0; k < K; k += kTileK, stage ^= 1) {
    if (k + kTileK < K) {
      load_stage(tile_a(stage ^ 1), tile_b(stage ^ 1), a, b, row, column, k + kTileK);
      if (BUG != BUG_NO_WAIT) sd::cp_async_wait<BUG == BUG_WAIT_TOO_LATE_GROUP ? 2 : 1>();
    } else {
      sd::cp_async_wait<0>();
    }
#if BUG == BUG_DIVERGENT_BARRIER
    if (lane < 16) {
      sd::sync_threads();
    } else {
      sd::sync_threads();
    }
#elif BUG != BUG_NO_BARRIER_AFTER_WAIT
    sd::sync_threads();
#endif
#if BUG == BUG_EXTRA_BARRIER_IN_ONE_WARP
    if (warp == 3 && k == 0) sd::sync_threads();
#endif
    multiply_stage(sum, tile_a(stage), tile_b(stage), warp_row, warp_column);
#if BUG != BUG_NO_BARRIER_BEFORE_REUSE
    sd::sync_threads();
#endif
  }

  for (int i = 0; i < 2; ++i) {
    for (int j = 0; j < 4; ++j) {
      for (int half = 0; half < 2; ++half) {
        const int r = row + warp_row + i * 16 + lane / 4 + half * 8;
        int out = column + warp_column + j * 8 + lane % 4 * 2;
#if BUG == BUG_COLUMN_OFF_BY_ONE
        out += 1;
#endif
#if BUG == BUG_BLOCKS_OVERLAP
        out = out % kTileN;
#endif
#if BUG != BUG_NO_STORE_PREDICATE
        if (r >= M) continue;
#endif
        c[r * N + out] = sum[i][j][half * 2];
        c[r * N + out + 1] = sum[i][j][half * 2 + 1];
      }
    }
  }
#if BUG == BUG_WRITES_INPUT
  if (threadIdx.x == 5) const_cast<__half*>(a)[row * K] = sd::from_float<sd::f16>(0.0f);
#endif
}
