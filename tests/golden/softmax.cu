extern "C" __global__ void __launch_bounds__(256)
softmax_golden_k0(const sd::f16* __restrict__ X, sd::f16* __restrict__ O) {
  const int tid = static_cast<int>(threadIdx.x);
  [[maybe_unused]] const int lane = tid % 32, warp = tid / 32;
  const int block = static_cast<int>(blockIdx.x);
  [[maybe_unused]] const int n = block;
  unsigned char* const arena = sd::shared_arena();
  float* const m_scratch = reinterpret_cast<float*>(arena + 0);  // [], 8 of them
  float* const l_scratch = reinterpret_cast<float*>(arena + 128);  // [], 8 of them

  // xs[k] = X
  sd::Vec<sd::f16, 8> xs[2];
  {
    const int k_0 = lane * 8 + warp * 256;
#pragma unroll
    for (int r1 = 0; r1 < 2; ++r1) {
      sd::Vec<sd::f16, 8> in_2[1];
      sd::load_stream(in_2[0], X + n * 4096 + k_0 + r1 * 2048);
#pragma unroll
      for (int v = 0; v < 8; ++v) {
        xs[r1][v] = in_2[0][v];
      }
    }
  }
  sd::loads_issued();

  // m[] = max[k](xs)
  float m;
  {
    m = sd::bits_float(0xff800000u);
#pragma unroll
    for (int r4 = 0; r4 < 2; ++r4) {
#pragma unroll
      for (int v = 0; v < 8; ++v) {
        m = sd::max(m, sd::to_float(xs[r4][v]));
      }
    }
    m = sd::lane_max<31>(m);
    {
      if (lane < 1) {
        m_scratch[warp] = m;
      }
    }
    sd::sync_threads();
    {
      sd::Vec<float, 4> in_6;
      sd::load_shared(in_6, m_scratch + lane % 2 * 4);
      in_6[0] = sd::max(in_6[0], in_6[2]);
      in_6[1] = sd::max(in_6[1], in_6[3]);
      in_6[0] = sd::max(in_6[0], in_6[1]);
      const float t5[1] = {sd::lane_max<1>(in_6[0])};
      m = t5[0];
    }
  }

  // p[k] = exp(xs - m)
  float p_[16];
  {
#pragma unroll
    for (int r8 = 0; r8 < 2; ++r8) {
#pragma unroll
      for (int v = 0; v < 8; ++v) {
        p_[v + r8 * 8] = sd::exp_difference_fast(sd::to_float(xs[r8][v]), m);
      }
    }
  }

  // l[] = sum[k](p)
  float l;
  {
    l = 0.0f;
#pragma unroll
    for (int r10 = 0; r10 < 2; ++r10) {
#pragma unroll
      for (int v = 0; v < 8; ++v) {
        l += p_[v + r10 * 8];
      }
    }
    l = sd::lane_sum<31>(l);
    {
      if (lane < 1) {
        l_scratch[warp] = l;
      }
    }
    sd::sync_threads();
    {
      sd::Vec<float, 4> in_12;
      sd::load_shared(in_12, l_scratch + lane % 2 * 4);
      in_12[0] += in_12[2];
      in_12[1] += in_12[3];
      in_12[0] += in_12[1];
      const float t11[1] = {sd::lane_sum<1>(in_12[0])};
      l = t11[0];
    }
  }

  // o[k] = p / l
  float o[16];
  {
#pragma unroll
    for (int r14 = 0; r14 < 2; ++r14) {
#pragma unroll
      for (int v = 0; v < 8; ++v) {
        o[v + r14 * 8] = p_[v + r14 * 8] * sd::reciprocal_fast(l);
      }
    }
  }

  // store o -> O
  {
    const int k_15 = lane * 8 + warp * 256;
#pragma unroll
    for (int r16 = 0; r16 < 2; ++r16) {
      sd::Vec<sd::f16, 8> vec[1];
#pragma unroll
      for (int v = 0; v < 8; ++v) {
        vec[0][v] = sd::from_float<sd::f16>(o[v + r16 * 8]);
      }
      sd::store_stream(O + n * 4096 + k_15 + r16 * 2048, vec[0]);
    }
  }
}

#if !defined(__CUDACC_RTC__) && !defined(SUNDOG_EMULATOR)
#include <stddef.h>

// Pointers in the order of the program's inputs and outputs; returns a cudaError_t.
extern "C" size_t softmax_golden_workspace_bytes() { return 0; }

extern "C" int softmax_golden([[maybe_unused]] void* const* inputs,
    [[maybe_unused]] void* const* outputs,
    [[maybe_unused]] void* workspace, [[maybe_unused]] cudaStream_t stream) {
  softmax_golden_k0<<<4096, 256, 160, stream>>>(static_cast<const sd::f16*>(inputs[0]),
      static_cast<sd::f16*>(outputs[0]));
  if (cudaError_t error = cudaGetLastError()) return error;
  return cudaSuccess;
}
#endif
