// One small kernel for each group of primitives, for any device: the tests know what each must
// give.
#include "primitives.cuh"

// Every code of the 16-bit types, and of the 8-bit types in the low half: its value.
extern "C" __global__ void __launch_bounds__(256)
    widen(float* __restrict__ f16, float* __restrict__ bf16, float* __restrict__ e4m3,
          float* __restrict__ e5m2, float* __restrict__ i8) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  f16[i] = sd::to_float(sd::bits_f16(static_cast<uint16_t>(i)));
  bf16[i] = sd::to_float(sd::bits_bf16(static_cast<uint16_t>(i)));
  if (i >= 256) return;
  e4m3[i] = sd::to_float(sd::f8e4m3{static_cast<uint8_t>(i)});
  e5m2[i] = sd::to_float(sd::f8e5m2{static_cast<uint8_t>(i)});
  i8[i] = sd::to_float(static_cast<int8_t>(i));
}

// Pairs of bytes to words of f16 and bf16, one result after the other; from the arena and as
// values.
template <class Narrow>
__device__ void widen_pair(uint32_t* out, int i, unsigned char* arena) {
  const int tid = static_cast<int>(threadIdx.x);
  const uint16_t bits = static_cast<uint16_t>(i);
  Narrow* const pairs = reinterpret_cast<Narrow*>(arena);
  sd::Vec<Narrow, 2> pair;
  memcpy(&pair, &bits, 2);
  sd::store_shared(pairs + 2 * tid, pair);
  out[i] = sd::widened_pair<sd::f16>(pairs + 2 * tid);
  out[65536 + i] = sd::widened<sd::bf16>(pair[0], pair[1]);
  // The pair stands in the second column, the same turned around in the first.
  const uint32_t columns = (i >> 8) | (i & 255) << 8 | (i & 255) << 16 | (i >> 8) << 24;
  sd::widened_columns<sd::f16, Narrow>(out[131072 + i], out[196608 + i], columns);
}
extern "C" __global__ void __launch_bounds__(256)
    widen_pairs(uint32_t* __restrict__ e4m3, uint32_t* __restrict__ e5m2,
                uint32_t* __restrict__ i8) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  unsigned char* const arena = sd::shared_arena();
  widen_pair<sd::f8e4m3>(e4m3, i, arena);
  widen_pair<sd::f8e5m2>(e5m2, i, arena + 512);
  widen_pair<int8_t>(i8, i, arena + 1024);
}

// Floats to every narrower type.
extern "C" __global__ void __launch_bounds__(256)
    narrow(const float* __restrict__ x, sd::f16* __restrict__ f16, sd::bf16* __restrict__ bf16,
           sd::f8e4m3* __restrict__ e4m3, sd::f8e5m2* __restrict__ e5m2, int8_t* __restrict__ i8,
           uint32_t* __restrict__ pair_f16, uint32_t* __restrict__ pair_bf16,
           uint32_t* __restrict__ tf32) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  f16[i] = sd::from_float<sd::f16>(x[i]);
  bf16[i] = sd::from_float<sd::bf16>(x[i]);
  e4m3[i] = sd::from_float<sd::f8e4m3>(x[i]);
  e5m2[i] = sd::from_float<sd::f8e5m2>(x[i]);
  i8[i] = sd::from_float<int8_t>(x[i]);
  pair_f16[i] = sd::pack<sd::f16>(x[i], x[i ^ 1]);
  pair_bf16[i] = sd::pack<sd::bf16>(x[i], x[i ^ 1]);
  tf32[i] = sd::float_to_tf32(x[i]);
}

// out[f * 256 + i] = function f of x[i], y[i].
extern "C" __global__ void __launch_bounds__(256)
    arithmetic(const float* __restrict__ x, const float* __restrict__ y, float* __restrict__ out) {
  const int i = threadIdx.x;
  const float a = x[i], b = y[i];
  const float results[] = {sd::exp(a),      sd::exp2(a),        sd::log(a),
                           sd::tanh(a),     sd::erf(a),         sd::rsqrt(a),
                           sd::sqrt(a),     sd::div(a, b),      sd::fma(a, b, a),
                           sd::exp_fast(a), sd::max(a, b),      sd::min(a, b),
                           sd::sin(a),      sd::cos(a),         sd::max_number(a, b),
                           sd::abs(a),      sd::div_fast(a, b), sd::reciprocal_fast(a)};
  for (int f = 0; f < 18; ++f) out[f * 256 + i] = results[f];
}

// One warp: sums, maxima, shuffles and votes; 10 words a lane.
extern "C" __global__ void __launch_bounds__(32)
    lanes(const float* __restrict__ x, uint32_t* __restrict__ out) {
  const int lane = threadIdx.x;
  const float value = x[lane];
  uint32_t* mine = out + lane * 10;
  mine[0] = sd::float_bits(sd::lane_sum<31>(value));
  mine[1] = sd::float_bits(sd::lane_sum<3>(value));
  mine[2] = sd::float_bits(sd::lane_sum<28>(value));
  mine[3] = sd::float_bits(sd::lane_max<31>(value));
  mine[4] = sd::float_bits(sd::lane_min<12>(value));
  mine[5] = sd::float_bits(sd::shfl_idx(value, lane * 7 + 3));
  mine[6] = sd::ballot(value > 0);
  mine[7] = sd::vote_any(lane == 40);
  mine[8] = sd::vote_all(lane < 32);
  mine[9] = sd::movmatrix_trans(static_cast<uint32_t>(lane * 2 | (lane * 2 + 1) << 16));
}

// One warp reads a tile of 32 rows of 8 halves, whose elements are their own numbers, in every way.
extern "C" __global__ void __launch_bounds__(32) matrices(uint32_t* __restrict__ out) {
  unsigned char* arena = sd::shared_arena();
  const int lane = threadIdx.x;
  for (int c = 0; c < 4; ++c) {
    const uint32_t low = static_cast<uint32_t>(lane * 8 + c * 2);
    sd::store_shared(arena + lane * 16 + c * 4, low | (low + 1) << 16);
  }
  sd::sync_warp();
  const void* row = arena + lane * 16;
  uint32_t one[1], two[2], four[4];
  uint32_t* mine = out + lane * 14;
  sd::ldmatrix_x1(one, row);
  mine[0] = one[0];
  sd::ldmatrix_x2(two, row);
  for (int i = 0; i < 2; ++i) mine[1 + i] = two[i];
  sd::ldmatrix_x4(four, row);
  for (int i = 0; i < 4; ++i) mine[3 + i] = four[i];
  sd::ldmatrix_x1_trans(one, row);
  mine[7] = one[0];
  sd::ldmatrix_x2_trans(two, row);
  for (int i = 0; i < 2; ++i) mine[8 + i] = two[i];
  sd::ldmatrix_x4_trans(four, row);
  for (int i = 0; i < 4; ++i) mine[10 + i] = four[i];
}

// One warp, operands straight from memory: d[16, 8] += a[16, depth] b[depth, 8], a and b given as
// floats, in f16, bf16 and (depth 8) tf32; d is three results after one another.
extern "C" __global__ void __launch_bounds__(32)
    multiply(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ d) {
  const int g = threadIdx.x / 4, t = threadIdx.x % 4;
  for (int kind = 0; kind < 3; ++kind) {
    float sum[4];
    for (int q = 0; q < 4; ++q) {
      sum[q] = d[kind * 128 + (g + q / 2 * 8) * 8 + 2 * t + q % 2];
    }
    uint32_t fa[4], fb[2];
    for (int q = 0; q < 4; ++q) {
      const float* at = a + (g + q % 2 * 8) * 16 + 2 * t + q / 2 * 8;
      if (kind == 0) fa[q] = sd::pack<sd::f16>(at[0], at[1]);
      if (kind == 1) fa[q] = sd::pack<sd::bf16>(at[0], at[1]);
      if (kind == 2) fa[q] = sd::float_to_tf32(a[(g + q % 2 * 8) * 16 + t + q / 2 * 4]);
    }
    for (int q = 0; q < 2; ++q) {
      const float* at = b + (2 * t + q * 8) * 8 + g;
      if (kind == 0) fb[q] = sd::pack<sd::f16>(at[0], at[8]);
      if (kind == 1) fb[q] = sd::pack<sd::bf16>(at[0], at[8]);
      if (kind == 2) fb[q] = sd::float_to_tf32(b[(t + q * 4) * 8 + g]);
    }
    if (kind == 0) sd::mma_m16n8k16<sd::f16>(sum, fa, fb[0], fb[1]);
    if (kind == 1) sd::mma_m16n8k16<sd::bf16>(sum, fa, fb[0], fb[1]);
    if (kind == 2) sd::mma_m16n8k8_tf32(sum, fa, fb[0], fb[1]);
    for (int q = 0; q < 4; ++q) {
      d[kind * 128 + (g + q / 2 * 8) * 8 + 2 * t + q % 2] = sum[q];
    }
  }
}

// Copies 32 bytes a thread through every load, store and copy there is.
extern "C" __global__ void __launch_bounds__(64)
    moves(const unsigned char* __restrict__ from, unsigned char* __restrict__ to) {
  const int i = threadIdx.x;
  unsigned char* mine = sd::shared_arena() + i * 32;
  sd::cp_async<4>(mine, from + i * 32);
  sd::cp_async<4>(mine + 4, from + i * 32 + 4, i % 2 == 0);
  sd::cp_async_commit();
  sd::cp_async<8>(mine + 8, from + i * 32 + 8, i % 3 == 0);
  sd::cp_async_commit();
  sd::cp_async<16>(mine + 16, from + i * 32 + 16, i % 5 == 0);
  sd::cp_async_commit();
  sd::cp_async_wait<2>();
  sd::Vec<uint16_t, 4> eight;
  sd::load_shared(eight, mine);
  sd::store_global(to + i * 96, eight);
  sd::cp_async_wait<0>();
  sd::Vec<float, 2> second;
  sd::load_shared(second, mine + 8);
  sd::store_stream(to + i * 96 + 8, second);
  sd::Vec<sd::f16, 8> third;
  sd::load_shared(third, mine + 16);
  sd::store_shared(mine, third);
  sd::load_shared(third, mine);
  sd::store_stream(to + i * 96 + 16, third);
  sd::Vec<sd::bf16, 8> sixteen;
  sd::load_stream(sixteen, from + i * 32);
  sd::store_global(to + i * 96 + 32, sixteen);
  sd::Vec<sd::f8e4m3, 2> pair;
  for (int j = 0; j < 8; ++j) {
    sd::load_stream(pair, from + i * 32 + 16 + j * 2);
    sd::store_global(to + i * 96 + 48 + j * 2, pair);
  }
  uint8_t byte;
  for (int j = 0; j < 32; ++j) {
    sd::load_global(byte, from + i * 32 + j);
    sd::store_global(to + i * 96 + 64 + j, byte);
  }
}

// Each of four warps hands its number on through two named barriers: 0 and 1 meet, 2 announces
// to 3.
extern "C" __global__ void __launch_bounds__(128) barriers(int* __restrict__ out) {
  auto* slots = reinterpret_cast<int*>(sd::shared_arena());
  const int warp = threadIdx.x / 32;
  if (warp < 3) slots[threadIdx.x] = static_cast<int>(threadIdx.x) * 3;
  if (warp < 2) sd::barrier_sync(1, 64);
  if (warp == 2) sd::barrier_arrive(2, 64);
  if (warp == 3) sd::barrier_sync(2, 64);
  if (warp < 2) out[threadIdx.x] = slots[threadIdx.x ^ 33];
  if (warp == 3) out[threadIdx.x] = slots[threadIdx.x - 32];
}

// Every block writes its part, the last one to come adds them all up; the counter ends where it
// began.
extern "C" __global__ void __launch_bounds__(64)
    last_block(float* __restrict__ parts, uint32_t* __restrict__ counter, float* __restrict__ sum) {
  auto* last = reinterpret_cast<uint32_t*>(sd::shared_arena());
  parts[blockIdx.x * 64 + threadIdx.x] = static_cast<float>(blockIdx.x + threadIdx.x);
#ifndef BUG_NO_BARRIER
  sd::sync_threads();
#endif
  if (threadIdx.x == 0) {
#ifndef BUG_NO_FENCE
    sd::fence_device();
#endif
    *last = sd::atomic_increment(counter, gridDim.x - 1) == gridDim.x - 1;
    sd::fence_device();
  }
  sd::sync_threads();
  if (!*last) return;
  float total = 0;
  for (uint32_t i = 0; i < gridDim.x; ++i) total += parts[i * 64 + threadIdx.x];
  sum[threadIdx.x] = total;
}

// Lane l: the runs of 8, 4 and 2 that begin at element l, of `count` elements: 14 values.
extern "C" __global__ void __launch_bounds__(32)
    windows(const uint16_t* __restrict__ x, uint16_t* __restrict__ out) {
  const int lane = threadIdx.x;
  sd::Window<uint16_t, 8> eight[1];
  sd::Window<uint16_t, 4> four[1];
  sd::Window<uint16_t, 2> two[1];
  sd::load_window(eight[0], x, lane, 37);
  sd::load_window(four[0], x, static_cast<int64_t>(lane), 37);
  sd::load_window(two[0], x, lane, 37);
  sd::Vec<uint16_t, 8> a;
  sd::Vec<uint16_t, 4> b;
  sd::Vec<uint16_t, 2> c;
  sd::align_window(a, eight[0], lane);
  sd::align_window(b, four[0], static_cast<int64_t>(lane));
  sd::align_window(c, two[0], lane);
  for (int i = 0; i < 8; ++i) out[lane * 14 + i] = a[i];
  for (int i = 0; i < 4; ++i) out[lane * 14 + 8 + i] = b[i];
  for (int i = 0; i < 2; ++i) out[lane * 14 + 12 + i] = c[i];
}
