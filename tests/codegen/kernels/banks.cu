// Each writes 1,024 words without conflicts (32 turns of the banks), then reads once as its name
// says; `step` is in units of what a lane reads.
#include "primitives.cuh"
#define FILL                                                     \
  auto* words = reinterpret_cast<uint32_t*>(sd::shared_arena()); \
  const int lane = static_cast<int>(threadIdx.x);                \
  for (int i = lane; i < 1024; i += 32) words[i] = i;            \
  sd::sync_threads()
extern "C" __global__ void __launch_bounds__(32)
    of_words(const int* __restrict__ step, uint32_t* __restrict__ out) {
  FILL;
  out[lane] = words[lane * step[0] % 1024];
}
extern "C" __global__ void __launch_bounds__(32)
    of_halves(const int* __restrict__ step, uint32_t* __restrict__ out) {
  FILL;
  out[lane] = reinterpret_cast<const uint16_t*>(words)[lane * step[0] % 2048];
}
extern "C" __global__ void __launch_bounds__(32)
    of_four_words(const int* __restrict__ step, uint32_t* __restrict__ out) {
  FILL;
  sd::Vec<sd::f16, 8> four;
  sd::load_shared(four, words + lane * step[0] * 4 % 1024);
  out[lane] = sd::f16_bits(four[0]);
}
extern "C" __global__ void __launch_bounds__(32)
    by_half_of_the_lanes(const int* __restrict__ step, uint32_t* __restrict__ out) {
  FILL;
  if (lane % 2 == 0) out[lane] = words[lane * step[0] % 1024];
}
extern "C" __global__ void __launch_bounds__(32)
    of_matrices(const int* __restrict__ step, uint32_t* __restrict__ out) {
  FILL;
  uint32_t four[4];
  sd::ldmatrix_x4(four, words + lane % 8 * step[0] * 4);
  out[lane] = four[0];
}
