extern "C" __global__ void __cluster_dims__(4, 1, 1) __launch_bounds__(128)
rms_norm_cluster_golden_part(const sd::f16* __restrict__ X, const sd::f16* __restrict__ W,
    sd::f16* __restrict__ O, const __grid_constant__
    sd::TensorMap<sd::f16, 0, 0, sd::Dim<4096, 1, 64>, sd::Dim<2, 4096, 2>> xs_map,
    const __grid_constant__ sd::TensorMap<sd::f16, 0, 128, sd::Dim<6144, 1, 64>,
    sd::Dim<4096, 6144, 64>> ws_map) {
  const int tid = static_cast<int>(threadIdx.x);
  [[maybe_unused]] const int lane = tid % 32, warp = tid / 32;
  const int block = static_cast<int>(blockIdx.x);
  [[maybe_unused]] const int d_o = block / 4;
  [[maybe_unused]] const int h_s = block % 4;
  unsigned char* const arena = sd::shared_arena();
  // [n(2), h.i(64)], rows of 64, 4 of them
  sd::f16* const xs = reinterpret_cast<sd::f16*>(arena + 32768);
  // [h.i(64), d.i(64)], rows of 64, 4 of them
  sd::f16* const ws = reinterpret_cast<sd::f16*>(arena + 0);
  float* const ss_scratch = reinterpret_cast<float*>(arena + 0);  // [n(2)], 2 of them
  // [n(2)], for the blocks of the cluster
  float* const ps = reinterpret_cast<float*>(arena + 35328);
  // [n(2), d(64)], for the blocks of the cluster
  float* const pa = reinterpret_cast<float*>(arena + 35456);
  // 4 barriers: bytes have come
  uint64_t* const h_o_full = reinterpret_cast<uint64_t*>(arena + 33792);
  uint64_t* const h_o_empty = h_o_full + 4;  // and have been read
  if (tid == 0) {
    for (int i = 0; i < 4; ++i) {
      sd::mbarrier_init(h_o_full + i, 1);
      sd::mbarrier_init(h_o_empty + i, 4);
    }
    sd::mbarrier_init_fence();
    {
#pragma unroll
      for (int ahead = 0; ahead < 2; ++ahead) {
        if (ahead < 16) {
          const int h_o = ahead;
          sd::mbarrier_expect(h_o_full + ahead, 8448);
          // xs[n, h.i] = X
          sd::bulk_copy(xs + ahead * 128, xs_map, h_o_full + ahead, h_s * 1024 + h_o * 64, 0);
          // ws[h.i, d.i] = W
          sd::bulk_copy(ws + ahead * 4096, ws_map, h_o_full + ahead, d_o * 64,
              h_s * 1024 + h_o * 64);
        }
      }
    }
  }
  sd::sync_threads();

  float ss;
  ss = 0.0f;
  float acc[1][4];
#pragma unroll
  for (int i = 0; i < 4; ++i) acc[i / 4][i % 4] = 0.0f;

  {
    int h_o_stage = 0, h_o_phase = 0;
    int h_o_next = 2, h_o_next_phase = 1;
#pragma unroll 1
    for (int h_o = 0; h_o < 16; ++h_o) {
      if (tid == 0 && h_o + 2 < 16) {
        sd::mbarrier_wait(h_o_empty + h_o_next, h_o_next_phase);
        const int h_o_0 = h_o + 2;
        {
          const int h_o = h_o_0;
          sd::mbarrier_expect(h_o_full + h_o_next, 8448);
          // xs[n, h.i] = X
          sd::bulk_copy(xs + h_o_next * 128, xs_map, h_o_full + h_o_next, h_s * 1024 + h_o * 64, 0);
          // ws[h.i, d.i] = W
          sd::bulk_copy(ws + h_o_next * 4096, ws_map, h_o_full + h_o_next, d_o * 64,
              h_s * 1024 + h_o * 64);
        }
      }
      sd::sync_warp();
      if (++h_o_next == 4) {
        h_o_next = 0;
        h_o_next_phase ^= 1;
      }
      sd::mbarrier_wait(h_o_full + h_o_stage, h_o_phase);

      // ss[n] = sum[h.o, h.i](xs * xs)
      {
        const int n_1 = warp % 2;
        const int h_i_2 = lane + warp / 2 * 32;
        const float t3 = sd::to_float(xs[n_1 * 64 + h_i_2 + h_o_stage * 128]);
        const float t4 = sd::to_float(xs[n_1 * 64 + h_i_2 + h_o_stage * 128]);
        ss += t3 * t4;
      }

      // acc[n, d.i] = sum[h.o, h.i](xs * ws)
      {
        const int d_i_5 = warp * 16;
        const int ws_row_6 = d_i_5 + lane / 8 % 2 * 8, ws_k_7 = lane % 8 + lane / 16 * 8;
        const int xs_row_8 = lane % 8 + lane / 16 * 8, xs_k_9 = lane / 8 % 2 * 8;
#pragma unroll
        for (int step = 0; step < 4; ++step) {
          uint32_t a[4];
          sd::ldmatrix_x4_trans(a, ws + ws_k_7 * 64 + step * 1024 + (ws_row_6 ^ (ws_k_7 & 7) * 8)
              + h_o_stage * 4096);
#pragma unroll
          for (int j = 0; j < 1; ++j) {
            uint32_t b[2];
            const int row_10 = sd::min_int(xs_row_8 + j * 8, 1);
            sd::ldmatrix_x2(b, xs + row_10 * 64 + xs_k_9 + step * 16 + h_o_stage * 128);
            sd::mma_m16n8k16<sd::f16>(acc[0], a, b[0], b[1]);
          }
        }
      }
      sd::sync_warp();
      if (lane == 0) sd::mbarrier_arrive(h_o_empty + h_o_stage);
      if (++h_o_stage == 4) {
        h_o_stage = 0;
        h_o_phase ^= 1;
      }
    }
  }
  ss = sd::lane_sum<31>(ss);
  sd::sync_threads();
  {
    const int n_11 = warp % 2;
    if (lane < 1) {
      ss_scratch[n_11 + (warp / 2) * 2] = ss;
    }
  }
  sd::sync_threads();
  {
    const int n_12 = warp % 2;
    float t13 = 0.0f;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      t13 += ss_scratch[n_12 + i * 2];
    }
    ss = t13;
  }

  // store ss -> ps
  {
    const int n_14 = warp % 2;
    if (lane < 1 && warp < 2) {
      *(ps + n_14) = ss;
    }
  }

  // store acc -> pa
  {
    const int n_15 = lane % 4 * 2;
    const int d_i_16 = lane / 4 + warp * 16;
#pragma unroll
    for (int r17 = 0; r17 < 2; ++r17) {
#pragma unroll
      for (int v = 0; v < 2; ++v) {
        if (n_15 + v < 2) *(pa + n_15 * 72 + v * 72 + d_i_16 + r17 * 8) = acc[0][v + r17 * 2];
      }
    }
  }

  // the blocks of a cluster, 4, have stored; each runs its share of kernel join
  sd::cluster_sync();
  {
    const int block = (d_o) * 4 + h_s;
    [[maybe_unused]] const int d_o = block / 4;
    [[maybe_unused]] const int d_c = block % 4;
    unsigned char* const arena = sd::shared_arena();
    float* const q_shared = reinterpret_cast<float*>(arena + 35200);  // [n(2)]
    // [n(2), d.i(16)], rows of 20, 2 of them
    float* const a__scratch = reinterpret_cast<float*>(arena + 34816);

    // q[n] = sum[h.s](ps)
    float q;
    {
      q = 0.0f;
      const int n_0 = lane % 2;
      const int h_s_1 = lane / 2 % 4;
      q += sd::read_cluster(ps + n_0, h_s_1);
      q = sd::lane_sum<6>(q);
      {
        const int n_2 = lane % 2;
        if (lane < 2 && warp < 1) {
          q_shared[n_2] = q;
        }
      }
    }

    // a[n, d.i] = sum[h.s](pa)
    float a_;
    {
      a_ = 0.0f;
      const int n_3 = warp % 2;
      const int d_i_4 = lane % 16;
      const int h_s_5 = lane / 16 + warp / 2 * 2;
      a_ += sd::read_cluster(pa + n_3 * 72 + d_c * 16 + d_i_4, h_s_5);
      a_ = sd::lane_sum<16>(a_);
      {
        const int n_6 = warp % 2;
        const int d_i_7 = lane % 16;
        if (lane < 16) {
          a__scratch[n_6 * 20 + d_i_7 + (warp / 2) * 40] = a_;
        }
      }
      sd::sync_threads();
      {
        const int n_8 = warp % 2;
        const int d_i_9 = lane % 16;
        float t10 = 0.0f;
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          t10 += a__scratch[n_8 * 20 + d_i_9 + i * 40];
        }
        a_ = t10;
      }
    }

    // o[n, d.i] = a * rsqrt(q / size(h) + 1e-6)
    float o;
    {
      const int n_11 = warp % 2;
      o = a_ * sd::rsqrt(sd::to_float(q_shared[n_11]) * 0.00024414062f + 1e-06f);
    }

    // store o -> O
    {
      const int n_13 = warp % 2;
      const int d_i_14 = lane % 16;
      if (lane < 16 && warp < 2) {
        *(O + n_13 * 6144 + d_o * 64 + d_c * 16 + d_i_14) = sd::from_float<sd::f16>(o);
      }
    }
  }
  // the memory of a block stays for those who read it
  sd::cluster_sync();
}

#if !defined(__CUDACC_RTC__) && !defined(SUNDOG_EMULATOR)
#include <stddef.h>

// Pointers in the order of the program's inputs and outputs; returns a cudaError_t.
extern "C" size_t rms_norm_cluster_golden_workspace_bytes() { return 0; }

extern "C" int rms_norm_cluster_golden([[maybe_unused]] void* const* inputs,
    [[maybe_unused]] void* const* outputs,
    [[maybe_unused]] void* workspace, [[maybe_unused]] cudaStream_t stream) {
  sd::TensorMap<sd::f16, 0, 0, sd::Dim<4096, 1, 64>, sd::Dim<2, 4096, 2>> map_0;
  if (cudaError_t error = sd::encode(map_0, static_cast<const sd::f16*>(inputs[0]))) return error;
  sd::TensorMap<sd::f16, 0, 128, sd::Dim<6144, 1, 64>, sd::Dim<4096, 6144, 64>> map_1;
  if (cudaError_t error = sd::encode(map_1, static_cast<const sd::f16*>(inputs[1]))) return error;
  rms_norm_cluster_golden_part<<<384, 128, 36032, stream>>>(static_cast<const sd::f16*>(inputs[0]),
      static_cast<const sd::f16*>(inputs[1]), static_cast<sd::f16*>(outputs[0]), map_0, map_1);
  if (cudaError_t error = cudaGetLastError()) return error;
  return cudaSuccess;
}
#endif
