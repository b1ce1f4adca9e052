extern "C" __global__ void __launch_bounds__(128)
gqa_safe_golden_part(const sd::f16* __restrict__ Q, const sd::f16* __restrict__ K,
    const sd::f16* __restrict__ V, float* __restrict__ part_m, float* __restrict__ part_l,
    float* __restrict__ part_o) {
  const int tid = static_cast<int>(threadIdx.x);
  [[maybe_unused]] const int lane = tid % 32, warp = tid / 32;
  const int block = static_cast<int>(blockIdx.x);
  [[maybe_unused]] const int g = block / 64;
  [[maybe_unused]] const int q_o = block / 16 % 4;
  [[maybe_unused]] const int k_s = block % 16;
  unsigned char* const arena = sd::shared_arena();
  sd::f16* const qs = reinterpret_cast<sd::f16*>(arena + 65536);  // [q.i(64), e(64)], rows of 64
  // [k.i(128), e(64)], rows of 64, 2 of them
  sd::f16* const ks = reinterpret_cast<sd::f16*>(arena + 0);
  // [k.i(128), f(64)], rows of 64, 2 of them
  sd::f16* const vs = reinterpret_cast<sd::f16*>(arena + 32768);
  sd::grid_launch_dependents();

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

  {
    const auto load_k_o = [&](int k_o, int k_o_stage) {
      // ks[k.i, e] = K
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        const int row = tid / 8 + i * 16, c = tid % 8 * 8;
        sd::cp_async<16>(ks + row * 64 + (c ^ (row & 7) * 8) + k_o_stage * 8192,
            K + g * 262144 + c + k_s * 16384 + k_o * 8192 + row * 64);
      }
      // vs[k.i, f] = V
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        const int row = tid / 8 + i * 16, c = tid % 8 * 8;
        sd::cp_async<16>(vs + row * 64 + (c ^ (row & 7) * 8) + k_o_stage * 8192,
            V + g * 262144 + c + k_s * 16384 + k_o * 8192 + row * 64);
      }
    };
#pragma unroll
    for (int ahead = 0; ahead < 1; ++ahead) {
      if (ahead < 2) load_k_o(ahead, ahead);
      sd::cp_async_commit();
    }
#pragma unroll 1
    for (int k_o = 0; k_o < 2; ++k_o) {
      sd::cp_async_wait<0>();
      sd::sync_threads();
      if (k_o + 1 < 2) load_k_o(k_o + 1, (k_o + 1) % 2);
      sd::cp_async_commit();
      const int k_o_stage = k_o % 2;

      // s[q.i, k.i] = sum[e](qs * ks)
      float s[16][4];
      {
#pragma unroll
        for (int i = 0; i < 64; ++i) s[i / 4][i % 4] = 0.0f;
        const int q_i_0 = warp * 16;
        const int qs_row_1 = q_i_0 + lane % 16, qs_k_2 = lane / 16 * 8;
        const int ks_row_3 = lane % 8 + lane / 16 * 8, ks_k_4 = lane / 8 % 2 * 8;
#pragma unroll
        for (int step = 0; step < 4; ++step) {
          uint32_t a[4];
          sd::ldmatrix_x4(a, qs + qs_row_1 * 64 + ((qs_k_2 + step * 16) ^ (qs_row_1 & 7) * 8));
#pragma unroll
          for (int j = 0; j < 16; j += 2) {
            uint32_t b[4];
            sd::ldmatrix_x4(b, ks + ks_row_3 * 64 + j * 512
                + ((ks_k_4 + step * 16) ^ (ks_row_3 & 7) * 8) + k_o_stage * 8192);
            sd::mma_m16n8k16<sd::f16>(s[j], a, b[0], b[1]);
            sd::mma_m16n8k16<sd::f16>(s[j + 1], a, b[2], b[3]);
          }
        }
      }

      // m[q.i] = max[k.o, k.i](s * rsqrt(size(e)))
      {
        float m_part[2];
#pragma unroll
        for (int i = 0; i < 2; ++i) m_part[i] = sd::bits_float(0xff800000u);
#pragma unroll
        for (int r7 = 0; r7 < 16; ++r7) {
#pragma unroll
          for (int r8 = 0; r8 < 2; ++r8) {
#pragma unroll
            for (int v = 0; v < 2; ++v) {
              m_part[r8] = sd::max_of_multiples(m_part[r8], s[r7][v + r8 * 2], 0.125f);
            }
          }
        }
#pragma unroll
        for (int i = 0; i < 2; ++i) m_part[i] = sd::multiple_of_max(m_part[i], 0.125f);
#pragma unroll
        for (int i = 0; i < 2; ++i) m_part[i] = sd::lane_max<3>(m_part[i]);
        {
#pragma unroll
          for (int r10 = 0; r10 < 2; ++r10) {
            m[r10] = sd::max(m[r10], m_part[r10]);
          }
        }
      }

      // p[q.i, k.i] = exp(s * rsqrt(size(e)) - m)
      sd::Vec<sd::f16, 2> p_[32];
      {
#pragma unroll
        for (int r13 = 0; r13 < 16; ++r13) {
#pragma unroll
          for (int r14 = 0; r14 < 2; ++r14) {
            float pair[2];
#pragma unroll
            for (int v = 0; v < 2; ++v) {
              pair[v] = sd::exp_scaled_difference_fast(s[r13][v + r14 * 2], 0.125f, m[r14]);
            }
            p_[r14 + r13 * 2] = sd::pack_vec<sd::f16>(pair[0], pair[1]);
          }
        }
      }

      // l[q.i] = sum[k.o, k.i](p)
      float l_scale[2];
      {
        {
#pragma unroll
          for (int r16 = 0; r16 < 2; ++r16) {
            const float now = m[r16];
            l_scale[r16] = l_last[r16] == sd::bits_float(0xff800000u) ? 0.0f
                : sd::exp_difference_fast(l_last[r16], now);
            l_last[r16] = now;
          }
#pragma unroll
          for (int r18 = 0; r18 < 2; ++r18) {
            l[r18] *= l_scale[r18];
          }
        }
        float sums_19[4] = {};
#pragma unroll
        for (int step = 0; step < 8; ++step) {
          const uint32_t a[4] = {sd::word(p_[step * 4]), sd::word(p_[step * 4 + 1]),
              sd::word(p_[step * 4 + 2]), sd::word(p_[step * 4 + 3])};
          sd::mma_m16n8k16<sd::f16>(sums_19, a, 0x3c003c00u, 0x3c003c00u);
        }
        l[0] += sums_19[0];
        l[1] += sums_19[2];
      }

      // o[q.i, f] = sum[k.o, k.i](p * vs)
      {
        {
#pragma unroll
          for (int r21 = 0; r21 < 2; ++r21) {
#pragma unroll
            for (int r22 = 0; r22 < 2; ++r22) {
#pragma unroll
              for (int r23 = 0; r23 < 8; ++r23) {
                o[r23][r22 + r21 * 2] *= l_scale[r21];
              }
            }
          }
        }
        const int vs_row_25 = lane / 16 * 8, vs_k_26 = lane % 16;
#pragma unroll
        for (int step = 0; step < 8; ++step) {
          uint32_t a[4];
          a[0] = sd::word(p_[step * 4]);
          a[1] = sd::word(p_[step * 4 + 1]);
          a[2] = sd::word(p_[step * 4 + 2]);
          a[3] = sd::word(p_[step * 4 + 3]);
#pragma unroll
          for (int j = 0; j < 8; j += 2) {
            uint32_t b[4];
            sd::ldmatrix_x4_trans(b, vs + vs_k_26 * 64 + step * 1024
                + ((vs_row_25 + j * 8) ^ (vs_k_26 & 7) * 8) + k_o_stage * 8192);
            sd::mma_m16n8k16<sd::f16>(o[j], a, b[0], b[1]);
            sd::mma_m16n8k16<sd::f16>(o[j + 1], a, b[2], b[3]);
          }
        }
      }
    }
  }

  // store m -> part_m
  {
    const int q_i_27 = lane / 4 + warp * 16;
    if (lane % 4 == 0) {
#pragma unroll
      for (int r28 = 0; r28 < 2; ++r28) {
        *(part_m + g * 256 + q_o * 64 + q_i_27 + r28 * 8 + k_s * 512) = m[r28];
      }
    }
  }

  // store l -> part_l
  {
    const int q_i_29 = lane / 4 + warp * 16;
    if (lane % 4 == 0) {
#pragma unroll
      for (int r30 = 0; r30 < 2; ++r30) {
        *(part_l + g * 256 + q_o * 64 + q_i_29 + r30 * 8 + k_s * 512) = l[r30];
      }
    }
  }

  // store o -> part_o
  {
    const int q_i_31 = lane / 4 + warp * 16;
    const int f_32 = lane % 4 * 2;
#pragma unroll
    for (int r33 = 0; r33 < 8; ++r33) {
#pragma unroll
      for (int r34 = 0; r34 < 2; ++r34) {
        sd::Vec<float, 2> vec[1];
#pragma unroll
        for (int v = 0; v < 2; ++v) {
          vec[0][v] = o[r33][v + r34 * 2];
        }
        sd::store_global(part_o + g * 16384 + q_o * 4096 + q_i_31 * 64 + r34 * 512 + f_32 + r33 * 8
            + k_s * 32768, vec[0]);
      }
    }
  }
}

extern "C" __global__ void __launch_bounds__(32)
gqa_safe_golden_join(sd::f16* __restrict__ O, const float* part_m, const float* part_l,
    const float* part_o) {
  const int tid = static_cast<int>(threadIdx.x);
  [[maybe_unused]] const int lane = tid % 32, warp = tid / 32;
  const int block = static_cast<int>(blockIdx.x);
  [[maybe_unused]] const int g = block / 256;
  [[maybe_unused]] const int q = block % 256;
  sd::grid_wait();

  // ms[k.s] = part_m
  float ms[8];
  {
    const int k_s_0 = lane / 16;
#pragma unroll
    for (int r1 = 0; r1 < 8; ++r1) {
      ms[r1] = sd::to_float(*(part_m + g * 256 + q + k_s_0 * 512 + r1 * 1024));
    }
  }
  sd::loads_issued();

  // top[] = max[k.s](ms)
  float top;
  {
    top = sd::bits_float(0xff800000u);
#pragma unroll
    for (int r3 = 0; r3 < 8; ++r3) {
      top = sd::max(top, ms[r3]);
    }
    top = sd::lane_max<16>(top);
  }

  // w[k.s] = exp(ms - top)
  float w[8];
  {
#pragma unroll
    for (int r5 = 0; r5 < 8; ++r5) {
      w[r5] = sd::exp_difference_fast(ms[r5], top);
    }
  }

  // total[] = sum[k.s](w * part_l)
  float total;
  {
    total = 0.0f;
    const int k_s_6 = lane / 16;
#pragma unroll
    for (int r7 = 0; r7 < 8; ++r7) {
      const float t8 = w[r7] * sd::to_float(*(part_l + g * 256 + q + k_s_6 * 512 + r7 * 1024));
      total += t8;
    }
    total = sd::lane_sum<16>(total);
  }

  // sum_o[f] = sum[k.s](w * part_o)
  float sum_o[4];
  {
#pragma unroll
    for (int i = 0; i < 4; ++i) sum_o[i] = 0.0f;
    const int f_9 = lane % 16 * 4;
    const int k_s_10 = lane / 16;
#pragma unroll
    for (int r11 = 0; r11 < 8; ++r11) {
      sd::Vec<float, 4> in_12[1];
      sd::load_global(in_12[0], part_o + g * 16384 + q * 64 + f_9 + k_s_10 * 32768 + r11 * 65536);
#pragma unroll
      for (int v = 0; v < 4; ++v) {
        sum_o[v] += w[r11] * sd::to_float(in_12[0][v]);
      }
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) sum_o[i] = sd::lane_sum<16>(sum_o[i]);
  }

  // out[f] = sum_o / total
  float out[4];
  {
#pragma unroll
    for (int v = 0; v < 4; ++v) {
      out[v] = sum_o[v] * sd::reciprocal_fast(total);
    }
  }

  // store out -> O
  {
    const int f_14 = lane % 16 * 4;
    if (lane < 16) {
      sd::Vec<sd::f16, 4> vec[1];
#pragma unroll
      for (int v = 0; v < 4; ++v) {
        vec[0][v] = sd::from_float<sd::f16>(out[v]);
      }
      sd::store_global(O + g * 16384 + q * 64 + f_14, vec[0]);
    }
  }
}

#if !defined(__CUDACC_RTC__) && !defined(SUNDOG_EMULATOR)
#include <stddef.h>

// Pointers in the order of the program's inputs and outputs; returns a cudaError_t.
extern "C" size_t gqa_safe_golden_workspace_bytes() { return 2162688; }

extern "C" int gqa_safe_golden([[maybe_unused]] void* const* inputs,
    [[maybe_unused]] void* const* outputs,
    [[maybe_unused]] void* workspace, [[maybe_unused]] cudaStream_t stream) {
  static bool ready[64] = {};  // by device: the limits of shared memory are raised
  int device = 0;
  if (cudaError_t error = cudaGetDevice(&device)) return error;
  if (device >= 64 || !ready[device]) {
    if (cudaError_t error = cudaFuncSetAttribute(gqa_safe_golden_part,
        cudaFuncAttributeMaxDynamicSharedMemorySize, 73728)) {
      return error;
    }
    if (device < 64) ready[device] = true;
  }
  gqa_safe_golden_part<<<128, 128, 73728, stream>>>(static_cast<const sd::f16*>(inputs[0]),
      static_cast<const sd::f16*>(inputs[1]), static_cast<const sd::f16*>(inputs[2]),
      reinterpret_cast<float*>(static_cast<char*>(workspace) + 0),
      reinterpret_cast<float*>(static_cast<char*>(workspace) + 32768),
      reinterpret_cast<float*>(static_cast<char*>(workspace) + 65536));
  if (cudaError_t error = cudaGetLastError()) return error;
  {
    cudaLaunchAttribute early = {};
    early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    early.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(512);
    config.blockDim = dim3(32);
    config.dynamicSmemBytes = 0;
    config.stream = stream;
    config.attrs = &early;
    config.numAttrs = 1;
    if (cudaError_t error = cudaLaunchKernelEx(&config, gqa_safe_golden_join,
        static_cast<sd::f16*>(outputs[0]),
        reinterpret_cast<float*>(static_cast<char*>(workspace) + 0),
        reinterpret_cast<float*>(static_cast<char*>(workspace) + 32768),
        reinterpret_cast<float*>(static_cast<char*>(workspace) + 65536))) return error;
  }
  return cudaSuccess;
}
#endif
