extern "C" __global__ void __launch_bounds__(256)
lora_golden_k0(const sd::f16* __restrict__ X, const sd::f16* __restrict__ W,
    const sd::f16* __restrict__ A, const sd::f16* __restrict__ B, sd::f16* __restrict__ O) {
  const int tid = static_cast<int>(threadIdx.x);
  [[maybe_unused]] const int lane = tid % 32, warp = tid / 32;
  const int block = static_cast<int>(blockIdx.x);
  [[maybe_unused]] const int d_o = block;
  unsigned char* const arena = sd::shared_arena();
  sd::f16* const xs = reinterpret_cast<sd::f16*>(arena + 36864);  // [n(16), h(256)], rows of 256
  sd::f16* const as = reinterpret_cast<sd::f16*>(arena + 0);  // [h(256), r(16)], rows of 16
  sd::f16* const ws = reinterpret_cast<sd::f16*>(arena + 20480);  // [h(256), d.i(32)], rows of 32
  sd::f16* const bs = reinterpret_cast<sd::f16*>(arena + 45056);  // [r(16), d.i(32)], rows of 32
  // [n(16), r(16)], rows of 16, 8 of them
  float* const low_scratch = reinterpret_cast<float*>(arena + 8192);
  sd::f16* const lh = reinterpret_cast<sd::f16*>(arena + 46080);  // [n(16), r(16)], rows of 16
  // [n(16), d.i(32)], rows of 40, 8 of them
  float* const acc_scratch = reinterpret_cast<float*>(arena + 0);
  float* const both_shared = reinterpret_cast<float*>(arena + 0);  // [n(16), d.i(32)], rows of 40

  // xs[n, h] = X
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const int row = tid / 32 + i * 8, c = tid % 32 * 8;
    sd::cp_async<16>(xs + row * 256 + (c ^ (row & 7) * 8), X + row * 256 + c);
  }
  sd::cp_async_commit();

  // as[h, r] = A
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const int row = tid / 2 + i * 128, c = tid % 2 * 8;
    sd::cp_async<16>(as + row * 16 + (c ^ (row >> 2 & 1) * 8), A + row * 16 + c);
  }
  sd::cp_async_commit();

  // ws[h, d.i] = W
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int row = tid / 4 + i * 64, c = tid % 4 * 8;
    sd::cp_async<16>(ws + row * 32 + (c ^ (row >> 1 & 3) * 8), W + row * 4096 + d_o * 32 + c);
  }
  sd::cp_async_commit();

  // bs[r, d.i] = B
#pragma unroll
  for (int i = 0; i < 1; ++i) {
    const int row = tid / 4 + i * 64, c = tid % 4 * 8;
    if (row < 16) {
      sd::cp_async<16>(bs + row * 32 + (c ^ (row >> 1 & 3) * 8), B + d_o * 32 + c + row * 4096);
    }
  }
  sd::cp_async_commit();

  // low[n, r] = sum[h](xs * as)
  sd::cp_async_wait<0>();
  sd::sync_threads();
  float low;
  {
    float low_part[2][4];
#pragma unroll
    for (int i = 0; i < 8; ++i) low_part[i / 4][i % 4] = 0.0f;
    const int h_0 = warp * 32;
    const int xs_row_1 = lane % 16, xs_k_2 = h_0 + lane / 16 * 8;
    const int as_row_3 = lane / 16 * 8, as_k_4 = h_0 + lane % 16;
#pragma unroll
    for (int step = 0; step < 2; ++step) {
      uint32_t a[4];
      sd::ldmatrix_x4(a, xs + xs_row_1 * 256 + ((xs_k_2 + step * 16) ^ (xs_row_1 & 7) * 8));
#pragma unroll
      for (int j = 0; j < 2; j += 2) {
        uint32_t b[4];
        sd::ldmatrix_x4_trans(b, as + as_k_4 * 16 + step * 256
            + ((as_row_3 + j * 8) ^ (as_k_4 >> 2 & 1) * 8));
        sd::mma_m16n8k16<sd::f16>(low_part[j], a, b[0], b[1]);
        sd::mma_m16n8k16<sd::f16>(low_part[j + 1], a, b[2], b[3]);
      }
    }
    {
      const int n_5 = lane / 4;
      const int r_6 = lane % 4 * 2;
#pragma unroll
      for (int r7 = 0; r7 < 2; ++r7) {
#pragma unroll
        for (int r8 = 0; r8 < 2; ++r8) {
          sd::Vec<float, 2> vec[1];
#pragma unroll
          for (int v = 0; v < 2; ++v) {
            vec[0][v] = low_part[r7][v + r8 * 2];
          }
          sd::store_shared(low_scratch + n_5 * 16 + r8 * 128 + ((r_6 + r7 * 8) ^ (n_5 & 3) * 4)
              + warp * 256, vec[0]);
        }
      }
    }
    sd::sync_threads();
    {
      const int n_9 = lane / 16 + warp * 2;
      const int r_10 = lane % 16;
      float t11 = 0.0f;
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        t11 += low_scratch[n_9 * 16 + (r_10 ^ (n_9 & 3) * 4) + i * 256];
      }
      low = t11;
    }
  }

  // lh[n, r] = low
  {
    const int n_12 = lane / 16 + warp * 2;
    const int r_13 = lane % 16;
    lh[n_12 * 16 + (r_13 ^ (n_12 >> 2 & 1) * 8)] = sd::from_float<sd::f16>(low);
  }

  // acc[n, d.i] = sum[h](xs * ws)
  float acc[2];
  {
    float acc_part[4][4];
#pragma unroll
    for (int i = 0; i < 16; ++i) acc_part[i / 4][i % 4] = 0.0f;
    const int h_14 = warp * 32;
    const int xs_row_15 = lane % 16, xs_k_16 = h_14 + lane / 16 * 8;
    const int ws_row_17 = lane / 16 * 8, ws_k_18 = h_14 + lane % 16;
#pragma unroll
    for (int step = 0; step < 2; ++step) {
      uint32_t a[4];
      sd::ldmatrix_x4(a, xs + xs_row_15 * 256 + ((xs_k_16 + step * 16) ^ (xs_row_15 & 7) * 8));
#pragma unroll
      for (int j = 0; j < 4; j += 2) {
        uint32_t b[4];
        sd::ldmatrix_x4_trans(b, ws + ws_k_18 * 32 + step * 512
            + ((ws_row_17 + j * 8) ^ (ws_k_18 >> 1 & 3) * 8));
        sd::mma_m16n8k16<sd::f16>(acc_part[j], a, b[0], b[1]);
        sd::mma_m16n8k16<sd::f16>(acc_part[j + 1], a, b[2], b[3]);
      }
    }
    sd::sync_threads();
    {
      const int n_19 = lane / 4;
      const int d_i_20 = lane % 4 * 2;
#pragma unroll
      for (int r21 = 0; r21 < 4; ++r21) {
#pragma unroll
        for (int r22 = 0; r22 < 2; ++r22) {
          sd::Vec<float, 2> vec[1];
#pragma unroll
          for (int v = 0; v < 2; ++v) {
            vec[0][v] = acc_part[r21][v + r22 * 2];
          }
          sd::store_shared(acc_scratch + n_19 * 40 + r22 * 320 + d_i_20 + r21 * 8 + warp * 640,
              vec[0]);
        }
      }
    }
    sd::sync_threads();
    {
      const int n_23 = lane / 16 + warp * 2;
      const int d_i_24 = lane % 16 * 2;
      float t25[2];
#pragma unroll
      for (int v = 0; v < 2; ++v) t25[v] = 0.0f;
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        sd::Vec<float, 2> in_26[1];
        sd::load_shared(in_26[0], acc_scratch + n_23 * 40 + d_i_24 + i * 640);
#pragma unroll
        for (int v = 0; v < 2; ++v) t25[v] += in_26[0][v];
      }
#pragma unroll
      for (int v = 0; v < 2; ++v) {
        acc[v] = t25[v];
      }
    }
  }

  // both[n, d.i] = sum[r](lh * bs)
  float both[4][4];
  {
#pragma unroll
    for (int i = 0; i < 16; ++i) both[i / 4][i % 4] = 0.0f;
    const int lh_row_27 = lane % 16, lh_k_28 = lane / 16 * 8;
    const int bs_row_29 = lane / 16 * 8, bs_k_30 = lane % 16;
#pragma unroll
    for (int step = 0; step < 1; ++step) {
      uint32_t a[4];
      sd::ldmatrix_x4(a, lh + lh_row_27 * 16 + ((lh_k_28 + step * 16) ^ (lh_row_27 >> 2 & 1) * 8));
#pragma unroll
      for (int j = 0; j < 4; j += 2) {
        uint32_t b[4];
        sd::ldmatrix_x4_trans(b, bs + bs_k_30 * 32 + step * 512
            + ((bs_row_29 + j * 8) ^ (bs_k_30 >> 1 & 3) * 8));
        sd::mma_m16n8k16<sd::f16>(both[j], a, b[0], b[1]);
        sd::mma_m16n8k16<sd::f16>(both[j + 1], a, b[2], b[3]);
      }
    }
    sd::sync_threads();
    {
      const int n_31 = lane / 4;
      const int d_i_32 = lane % 4 * 2;
      if (warp < 1) {
#pragma unroll
        for (int r33 = 0; r33 < 4; ++r33) {
#pragma unroll
          for (int r34 = 0; r34 < 2; ++r34) {
            sd::Vec<float, 2> vec[1];
#pragma unroll
            for (int v = 0; v < 2; ++v) {
              vec[0][v] = both[r33][v + r34 * 2];
            }
            sd::store_shared(both_shared + n_31 * 40 + r34 * 320 + d_i_32 + r33 * 8, vec[0]);
          }
        }
      }
    }
    sd::sync_threads();
    {
      const int n_35 = lane / 16 + warp * 2;
      const int d_i_36 = lane % 16 * 2;
#pragma unroll
      for (int v = 0; v < 2; ++v) {
        acc[v] += sd::to_float(both_shared[n_35 * 40 + d_i_36 + v]);
      }
    }
  }

  // store acc -> O
  {
    const int n_37 = lane / 16 + warp * 2;
    const int d_i_38 = lane % 16 * 2;
    sd::Vec<sd::f16, 2> vec[1];
#pragma unroll
    for (int v = 0; v < 2; ++v) {
      vec[0][v] = sd::from_float<sd::f16>(acc[v]);
    }
    sd::store_global(O + n_37 * 4096 + d_o * 32 + d_i_38, vec[0]);
  }
}

#if !defined(__CUDACC_RTC__) && !defined(SUNDOG_EMULATOR)
#include <stddef.h>

// Pointers in the order of the program's inputs and outputs; returns a cudaError_t.
extern "C" size_t lora_golden_workspace_bytes() { return 0; }

extern "C" int lora_golden([[maybe_unused]] void* const* inputs,
    [[maybe_unused]] void* const* outputs,
    [[maybe_unused]] void* workspace, [[maybe_unused]] cudaStream_t stream) {
  lora_golden_k0<<<128, 256, 46592, stream>>>(static_cast<const sd::f16*>(inputs[0]),
      static_cast<const sd::f16*>(inputs[1]), static_cast<const sd::f16*>(inputs[2]),
      static_cast<const sd::f16*>(inputs[3]), static_cast<sd::f16*>(outputs[0]));
  if (cudaError_t error = cudaGetLastError()) return error;
  return cudaSuccess;
}
#endif
