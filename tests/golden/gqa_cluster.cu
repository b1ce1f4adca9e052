extern "C" __global__ void __cluster_dims__(4, 1, 1) __launch_bounds__(128, 2)
gqa_cluster_golden_part(const sd::f16* __restrict__ Q, const sd::f16* __restrict__ K,
    const sd::f16* __restrict__ V, sd::f16* __restrict__ O,
    const __grid_constant__ sd::TensorMap<sd::f16, 0, 128, sd::Dim<64, 1, 64>,
    sd::Dim<4096, 64, 64>, sd::Dim<2, 262144, 1>> ks_map,
    const __grid_constant__ sd::TensorMap<sd::f16, 0, 128, sd::Dim<64, 1, 64>,
    sd::Dim<4096, 64, 64>, sd::Dim<2, 262144, 1>> vs_map) {
  const int tid = static_cast<int>(threadIdx.x);
  [[maybe_unused]] const int lane = tid % 32, warp = tid / 32;
  const int block = static_cast<int>(blockIdx.x);
  [[maybe_unused]] const int g = block / 16;
  [[maybe_unused]] const int q_o = block / 4 % 4;
  [[maybe_unused]] const int k_s = block % 4;
  unsigned char* const arena = sd::shared_arena();
  sd::f16* const qs = reinterpret_cast<sd::f16*>(arena + 32768);  // [q.i(64), e(64)], rows of 64
  // [k.i(64), e(64)], rows of 64, 2 of them
  sd::f16* const ks = reinterpret_cast<sd::f16*>(arena + 0);
  // [k.i(64), f(64)], rows of 64, 2 of them
  sd::f16* const vs = reinterpret_cast<sd::f16*>(arena + 16384);
  // [g(1), q(64)], for the blocks of the cluster
  float* const part_m = reinterpret_cast<float*>(arena + 42496);
  // [g(1), q(64)], for the blocks of the cluster
  float* const part_l = reinterpret_cast<float*>(arena + 42880);
  // [g(1), q(64), f(64)], for the blocks of the cluster
  float* const part_o = reinterpret_cast<float*>(arena + 43264);
  // 2 barriers: bytes have come
  uint64_t* const k_o_full = reinterpret_cast<uint64_t*>(arena + 40960);
  uint64_t* const k_o_empty = k_o_full + 2;  // and have been read
  if (tid == 0) {
    for (int i = 0; i < 2; ++i) {
      sd::mbarrier_init(k_o_full + i, 1);
      sd::mbarrier_init(k_o_empty + i, 4);
    }
    sd::mbarrier_init_fence();
    {
#pragma unroll
      for (int ahead = 0; ahead < 1; ++ahead) {
        if (ahead < 16) {
          const int k_o = ahead;
          sd::mbarrier_expect(k_o_full + ahead, 16384);
          // ks[k.i, e] = K
          sd::bulk_copy(ks + ahead * 4096, ks_map, k_o_full + ahead, 0, k_s * 1024 + k_o * 64, g);
          // vs[k.i, f] = V
          sd::bulk_copy(vs + ahead * 4096, vs_map, k_o_full + ahead, 0, k_s * 1024 + k_o * 64, g);
        }
      }
    }
  }
  sd::sync_threads();


  // qs[q.i, e] = Q
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int row = tid / 8 + i * 16, c = tid % 8 * 8;
    sd::cp_async<16>(qs + row * 64 + (c ^ (row & 7) * 8),
        Q + g * 16384 + q_o * 4096 + row * 64 + c);
  }
  sd::cp_async_commit();
  float m[2];
#pragma unroll
  for (int i = 0; i < 2; ++i) m[i] = sd::bits_float(0xff800000u);
  float l[2];
#pragma unroll
  for (int i = 0; i < 2; ++i) l[i] = 0.0f;
  float l_last[2];
#pragma unroll
  for (int i = 0; i < 2; ++i) l_last[i] = sd::bits_float(0xff800000u);
  float o[8][4];
#pragma unroll
  for (int i = 0; i < 32; ++i) o[i / 4][i % 4] = 0.0f;
  sd::cp_async_wait<0>();
  sd::fence_async_proxy();
  sd::sync_threads();

  {
    int k_o_stage = 0, k_o_phase = 0;
    int k_o_next = 1, k_o_next_phase = 1;
#pragma unroll 1
    for (int k_o = 0; k_o < 16; ++k_o) {
      if (tid == 0 && k_o + 1 < 16) {
        sd::mbarrier_wait(k_o_empty + k_o_next, k_o_next_phase);
        const int k_o_0 = k_o + 1;
        {
          const int k_o = k_o_0;
          sd::mbarrier_expect(k_o_full + k_o_next, 16384);
          // ks[k.i, e] = K
          sd::bulk_copy(ks + k_o_next * 4096, ks_map, k_o_full + k_o_next, 0, k_s * 1024 + k_o * 64,
              g);
          // vs[k.i, f] = V
          sd::bulk_copy(vs + k_o_next * 4096, vs_map, k_o_full + k_o_next, 0, k_s * 1024 + k_o * 64,
              g);
        }
      }
      sd::sync_warp();
      if (++k_o_next == 2) {
        k_o_next = 0;
        k_o_next_phase ^= 1;
      }
      sd::mbarrier_wait(k_o_full + k_o_stage, k_o_phase);

      // s[q.i, k.i] = sum[e](qs * ks)
      float s[8][4];
      {
        const uint64_t qs_tile_1 = sd::matrix_tile<128>(qs, 8192);
        const uint64_t ks_tile_2 = sd::matrix_tile<128>(ks + k_o_stage * 4096, 8192);
        sd::warpgroup_fence();
#pragma unroll
        for (int step = 0; step < 4; ++step) {
          sd::warpgroup_mma<sd::f16, 64, false, false>(s, sd::matrix_tile_at(qs_tile_1, step * 32),
              sd::matrix_tile_at(ks_tile_2, step * 32), step > 0);
        }
        sd::warpgroup_commit();
      }
      sd::warpgroup_wait(s);

      // m[q.i] = max[k.o, k.i](s * rsqrt(size(e)))
      {
        float m_part[2];
#pragma unroll
        for (int i = 0; i < 2; ++i) m_part[i] = sd::bits_float(0xff800000u);
#pragma unroll
        for (int r5 = 0; r5 < 8; ++r5) {
#pragma unroll
          for (int r6 = 0; r6 < 2; ++r6) {
#pragma unroll
            for (int v = 0; v < 2; ++v) {
              m_part[r6] = sd::max_of_multiples(m_part[r6], s[r5][v + r6 * 2], 0.125f);
            }
          }
        }
#pragma unroll
        for (int i = 0; i < 2; ++i) m_part[i] = sd::multiple_of_max(m_part[i], 0.125f);
#pragma unroll
        for (int i = 0; i < 2; ++i) m_part[i] = sd::lane_max<3>(m_part[i]);
        {
#pragma unroll
          for (int r8 = 0; r8 < 2; ++r8) {
            m[r8] = sd::max(m[r8], m_part[r8]);
          }
        }
      }

      // p[q.i, k.i] = exp(s * rsqrt(size(e)) - m)
      sd::Vec<sd::f16, 2> p_[16];
      {
#pragma unroll
        for (int r11 = 0; r11 < 8; ++r11) {
#pragma unroll
          for (int r12 = 0; r12 < 2; ++r12) {
            float pair[2];
#pragma unroll
            for (int v = 0; v < 2; ++v) {
              pair[v] = sd::exp_scaled_difference_fast(s[r11][v + r12 * 2], 0.125f, m[r12]);
            }
            p_[r12 + r11 * 2] = sd::pack_vec<sd::f16>(pair[0], pair[1]);
          }
        }
      }

      // l[q.i] = sum[k.o, k.i](p)
      float l_scale[2];
      {
        {
#pragma unroll
          for (int r14 = 0; r14 < 2; ++r14) {
            const float now = m[r14];
            l_scale[r14] = l_last[r14] == sd::bits_float(0xff800000u) ? 0.0f
                : sd::exp_difference_fast(l_last[r14], now);
            l_last[r14] = now;
          }
#pragma unroll
          for (int r16 = 0; r16 < 2; ++r16) {
            l[r16] *= l_scale[r16];
          }
        }
        float sums_17[4] = {};
#pragma unroll
        for (int step = 0; step < 4; ++step) {
          const uint32_t a[4] = {sd::word(p_[step * 4]), sd::word(p_[step * 4 + 1]),
              sd::word(p_[step * 4 + 2]), sd::word(p_[step * 4 + 3])};
          sd::mma_m16n8k16<sd::f16>(sums_17, a, 0x3c003c00u, 0x3c003c00u);
        }
        l[0] += sums_17[0];
        l[1] += sums_17[2];
      }

      // o[q.i, f] = sum[k.o, k.i](p * vs)
      {
        {
#pragma unroll
          for (int r19 = 0; r19 < 2; ++r19) {
#pragma unroll
            for (int r20 = 0; r20 < 2; ++r20) {
#pragma unroll
              for (int r21 = 0; r21 < 8; ++r21) {
                o[r21][r20 + r19 * 2] *= l_scale[r19];
              }
            }
          }
        }
        const uint64_t vs_tile_22 = sd::matrix_tile<128>(vs + k_o_stage * 4096, 8192);
        sd::warpgroup_fence();
#pragma unroll
        for (int step = 0; step < 4; ++step) {
          const uint32_t a[4] = {sd::word(p_[step * 4]), sd::word(p_[step * 4 + 1]),
              sd::word(p_[step * 4 + 2]), sd::word(p_[step * 4 + 3])};
          sd::warpgroup_mma<sd::f16, 64, true>(o, a, sd::matrix_tile_at(vs_tile_22, step * 2048),
              true);
        }
        sd::warpgroup_commit();
      }
      sd::warpgroup_wait(o);
      sd::sync_warp();
      if (lane == 0) sd::mbarrier_arrive(k_o_empty + k_o_stage);
      if (++k_o_stage == 2) {
        k_o_stage = 0;
        k_o_phase ^= 1;
      }
    }
  }

  // store m -> part_m
  {
    const int q_i_23 = lane / 4 + warp * 16;
    if (lane % 4 == 0) {
#pragma unroll
      for (int r24 = 0; r24 < 2; ++r24) {
        *(part_m + q_i_23 + r24 * 8) = m[r24];
      }
    }
  }

  // store l -> part_l
  {
    const int q_i_25 = lane / 4 + warp * 16;
    if (lane % 4 == 0) {
#pragma unroll
      for (int r26 = 0; r26 < 2; ++r26) {
        *(part_l + q_i_25 + r26 * 8) = l[r26];
      }
    }
  }

  // store o -> part_o
  {
    const int q_i_27 = lane / 4 + warp * 16;
    const int f_28 = lane % 4 * 2;
#pragma unroll
    for (int r29 = 0; r29 < 8; ++r29) {
#pragma unroll
      for (int r30 = 0; r30 < 2; ++r30) {
        sd::Vec<float, 2> vec[1];
#pragma unroll
        for (int v = 0; v < 2; ++v) {
          vec[0][v] = o[r29][v + r30 * 2];
        }
        sd::store_shared(part_o + q_i_27 * 72 + r30 * 576 + f_28 + r29 * 8, vec[0]);
      }
    }
  }

  // the blocks of a cluster, 4, have stored; each runs its share of kernel join
  sd::fence_async_proxy();
  sd::cluster_sync();
  {
    const int block = ((g) * 4 + q_o) * 4 + k_s;
    [[maybe_unused]] const int g = block / 16;
    [[maybe_unused]] const int q_o = block / 4 % 4;
    [[maybe_unused]] const int q_c = block % 4;
    unsigned char* const arena = sd::shared_arena();
    float* const w = reinterpret_cast<float*>(arena + 41984);  // [q.i(16), k.s(4)], rows of 4
    float* const total_shared = reinterpret_cast<float*>(arena + 42368);  // [q.i(16)]
    float* const total_scratch = reinterpret_cast<float*>(arena + 42240);  // [q.i(16)], 2 of them

    // ms[k.s, q.i] = part_m
    float ms[8];
    {
      const int q_i_0 = lane / 16 + warp * 2;
#pragma unroll
      for (int r1 = 0; r1 < 2; ++r1) {
#pragma unroll
        for (int v = 0; v < 4; ++v) {
          ms[v + r1 * 4] = sd::read_cluster(part_m + q_c * 16 + q_i_0 + r1 * 8, v);
        }
      }
    }
    sd::loads_issued();

    // top[q.i] = max[k.s](ms)
    float top[2];
    {
#pragma unroll
      for (int i = 0; i < 2; ++i) top[i] = sd::bits_float(0xff800000u);
#pragma unroll
      for (int r3 = 0; r3 < 2; ++r3) {
#pragma unroll
        for (int v = 0; v < 4; ++v) {
          top[r3] = sd::max(top[r3], ms[v + r3 * 4]);
        }
      }
    }

    // w[k.s, q.i] = exp(ms - top)
    {
      const int q_i_4 = lane / 16 + warp * 2;
      if (lane % 16 == 0) {
#pragma unroll
        for (int r5 = 0; r5 < 2; ++r5) {
          sd::Vec<float, 4> vec[1];
#pragma unroll
          for (int v = 0; v < 4; ++v) {
            vec[0][v] = sd::exp_difference_fast(ms[v + r5 * 4], top[r5]);
          }
          sd::store_shared(w + q_i_4 * 4 + r5 * 32, vec[0]);
        }
      }
    }

    // total[q.i] = sum[k.s](w * part_l)
    sd::sync_threads();
    float total;
    {
      total = 0.0f;
      const int q_i_6 = lane % 16;
      const int k_s_7 = lane / 16 + warp % 2 * 2;
      const float t8 = sd::to_float(w[q_i_6 * 4 + k_s_7])
          * sd::read_cluster(part_l + q_c * 16 + q_i_6, k_s_7);
      total += t8;
      total = sd::lane_sum<16>(total);
      {
        const int q_i_9 = lane % 16;
        if (lane < 16 && warp < 2) {
          total_scratch[q_i_9 + (warp % 2) * 16] = total;
        }
      }
      sd::sync_threads();
      {
        const int q_i_10 = lane % 16;
        float t11 = 0.0f;
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          t11 += total_scratch[q_i_10 + i * 16];
        }
        total = t11;
      }
      {
        const int q_i_12 = lane % 16;
        if (lane < 16 && warp < 1) {
          total_shared[q_i_12] = total;
        }
      }
    }

    // sum_o[q.i, f] = sum[k.s](w * part_o)
    float sum_o[8];
    {
#pragma unroll
      for (int i = 0; i < 8; ++i) sum_o[i] = 0.0f;
      const int q_i_13 = lane / 16 + warp * 2;
      const int f_14 = lane % 16 * 4;
#pragma unroll 4
      for (int r16 = 0; r16 < 4; ++r16) {
#pragma unroll
        for (int r15 = 0; r15 < 2; ++r15) {
          sd::Vec<float, 4> in_17[1];
          sd::load_cluster(in_17[0], part_o + q_c * 1152 + q_i_13 * 72 + r15 * 576 + f_14, r16);
#pragma unroll
          for (int v = 0; v < 4; ++v) {
            const float t18 = sd::to_float(w[q_i_13 * 4 + r15 * 32 + r16])
                * sd::to_float(in_17[0][v]);
            sum_o[v + r15 * 4] += t18;
          }
        }
      }
    }

    // out[q.i, f] = sum_o / total
    sd::sync_threads();
    float out[8];
    {
      const int q_i_19 = lane / 16 + warp * 2;
#pragma unroll
      for (int r21 = 0; r21 < 2; ++r21) {
#pragma unroll
        for (int v = 0; v < 4; ++v) {
          const float t22 = sum_o[v + r21 * 4]
              * sd::reciprocal_fast(sd::to_float(total_shared[q_i_19 + r21 * 8]));
          out[v + r21 * 4] = t22;
        }
      }
    }

    // store out -> O
    {
      const int q_i_23 = lane / 16 + warp * 2;
      const int f_24 = lane % 16 * 4;
#pragma unroll
      for (int r25 = 0; r25 < 2; ++r25) {
        sd::Vec<sd::f16, 4> vec[1];
#pragma unroll
        for (int v = 0; v < 4; ++v) {
          vec[0][v] = sd::from_float<sd::f16>(out[v + r25 * 4]);
        }
        sd::store_global(O + g * 16384 + q_o * 4096 + q_c * 1024 + q_i_23 * 64 + r25 * 512 + f_24,
            vec[0]);
      }
    }
  }
  // the memory of a block stays for those who read it
  sd::cluster_sync();
}

#if !defined(__CUDACC_RTC__) && !defined(SUNDOG_EMULATOR)
#include <stddef.h>

// Pointers in the order of the program's inputs and outputs; returns a cudaError_t.
extern "C" size_t gqa_cluster_golden_workspace_bytes() { return 0; }

extern "C" int gqa_cluster_golden([[maybe_unused]] void* const* inputs,
    [[maybe_unused]] void* const* outputs,
    [[maybe_unused]] void* workspace, [[maybe_unused]] cudaStream_t stream) {
  static bool ready[64] = {};  // by device: the limits of shared memory are raised
  int device = 0;
  if (cudaError_t error = cudaGetDevice(&device)) return error;
  if (device >= 64 || !ready[device]) {
    if (cudaError_t error = cudaFuncSetAttribute(gqa_cluster_golden_part,
        cudaFuncAttributeMaxDynamicSharedMemorySize, 61696)) {
      return error;
    }
    if (device < 64) ready[device] = true;
  }
  sd::TensorMap<sd::f16, 0, 128, sd::Dim<64, 1, 64>, sd::Dim<4096, 64, 64>, sd::Dim<2, 262144, 1>>
      map_0;
  if (cudaError_t error = sd::encode(map_0, static_cast<const sd::f16*>(inputs[1]))) return error;
  sd::TensorMap<sd::f16, 0, 128, sd::Dim<64, 1, 64>, sd::Dim<4096, 64, 64>, sd::Dim<2, 262144, 1>>
      map_1;
  if (cudaError_t error = sd::encode(map_1, static_cast<const sd::f16*>(inputs[2]))) return error;
  gqa_cluster_golden_part<<<32, 128, 61696, stream>>>(static_cast<const sd::f16*>(inputs[0]),
      static_cast<const sd::f16*>(inputs[1]), static_cast<const sd::f16*>(inputs[2]),
      static_cast<sd::f16*>(outputs[0]), map_0, map_1);
  if (cudaError_t error = cudaGetLastError()) return error;
  return cudaSuccess;
}
#endif
