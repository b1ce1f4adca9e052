// Kernels that each do one thing wrong, and a few that do something unusual but right.
#include "primitives.cuh"

extern "C" __global__ void lane_race(float* __restrict__ out) {
  auto* slots = reinterpret_cast<float*>(sd::shared_arena());
  slots[threadIdx.x] = static_cast<float>(threadIdx.x);
  out[threadIdx.x] = slots[threadIdx.x ^ 1];  // another lane of the same warp: needs sync_warp
}

extern "C" __global__ void lane_exchange(float* __restrict__ out) {
  auto* slots = reinterpret_cast<float*>(sd::shared_arena());
  slots[threadIdx.x] = static_cast<float>(threadIdx.x);
  sd::sync_warp();
  out[threadIdx.x] = slots[threadIdx.x ^ 1];
}

extern "C" __global__ void shuffle_is_no_fence(float* __restrict__ out) {
  auto* slots = reinterpret_cast<float*>(sd::shared_arena());
  slots[threadIdx.x] = static_cast<float>(threadIdx.x);
  const float other = sd::shfl_xor(slots[threadIdx.x], 1);
  out[threadIdx.x] = slots[threadIdx.x ^ 1] + other;
}

extern "C" __global__ void bytes_of_one_word(unsigned char* __restrict__ out) {
  unsigned char* slots = sd::shared_arena();
  slots[threadIdx.x] = static_cast<unsigned char>(threadIdx.x);  // neighbours, but different bytes
  sd::sync_threads();
  out[threadIdx.x] = slots[blockDim.x - 1 - threadIdx.x];
}

extern "C" __global__ void read_then_write(float* __restrict__ out) {
  auto* slots = reinterpret_cast<float*>(sd::shared_arena());
  slots[threadIdx.x] = static_cast<float>(threadIdx.x);
  sd::sync_threads();
  float sum = 0;
  for (uint32_t i = 0; i < blockDim.x; ++i) sum += slots[i];  // every warp reads all
  slots[threadIdx.x] = sum;
  out[threadIdx.x] = slots[threadIdx.x];
}

extern "C" __global__ void missing_lanes(float* __restrict__ out) {
  if (threadIdx.x < 20) out[threadIdx.x] = sd::lane_sum<31>(1.0f);
}

extern "C" __global__ void different_collectives(float* __restrict__ out) {
  float value = static_cast<float>(threadIdx.x);
  if (threadIdx.x < 16) {
    value = sd::shfl_xor(value, 1);
  } else {
    value = sd::shfl_xor(value, 2);
  }
  out[threadIdx.x] = value;
}

extern "C" __global__ void half_a_barrier(float* __restrict__ out) {
  if (threadIdx.x < 64) sd::barrier_sync(1, 128);
  out[threadIdx.x] = 1;
}

extern "C" __global__ void early_return(float* __restrict__ out) {
  out[threadIdx.x] = 1;
  if (threadIdx.x >= 32) return;
  sd::sync_threads();  // fine: those that returned do not count
  out[threadIdx.x] = 2;
}

extern "C" __global__ void wrong_count(float* __restrict__ out) {
  sd::barrier_sync(3, threadIdx.x < 32 ? 64 : 128);
  out[threadIdx.x] = 1;
}

extern "C" __global__ void forever(float* __restrict__ out) {
  while (*const_cast<volatile float*>(out) == 0) {
  }
}

extern "C" __global__ void wild(float* __restrict__ out) {
  out[(threadIdx.x + 1) * 100000000ll] = 1;
}

extern "C" __global__ void just_past(float* __restrict__ out) { out[threadIdx.x + 1] = 1; }

extern "C" __global__ void just_before(const float* __restrict__ x, float* __restrict__ out) {
  out[threadIdx.x] = x[static_cast<int>(threadIdx.x) - 1];
}

extern "C" __global__ void misaligned_vector(const float* __restrict__ x, float* __restrict__ out) {
  sd::Vec<float, 4> four;
  sd::load_global(four, x + threadIdx.x * 4 + 1);
  out[threadIdx.x] = four[0];
}

extern "C" __global__ void vector(const float* __restrict__ x, float* __restrict__ out) {
  sd::Vec<float, 4> four;
  sd::load_global(four, x + threadIdx.x * 4);
  out[threadIdx.x] = four[0] + four[3];
}

extern "C" __global__ void shared_as_global(float* __restrict__ out) {
  float value = 1;
  sd::store_shared(sd::shared_arena() + threadIdx.x * 4, value);
  sd::load_global(value, sd::shared_arena() + threadIdx.x * 4);
  out[threadIdx.x] = value;
}

extern "C" __global__ void deep(float* __restrict__ out) {
  volatile float local[40000];
  for (int i = 0; i < 40000; ++i) local[i] = 1;
  out[threadIdx.x] = local[threadIdx.x];
}

extern "C" __global__ void divides(int* __restrict__ out) {
  out[threadIdx.x] = 7 / out[threadIdx.x];
}

extern "C" __global__ void adds(float* __restrict__ out) {
  sd::atomic_add(out, static_cast<float>(threadIdx.x));
}

extern "C" __global__ void reads_other_block(float* __restrict__ out) {
  out[blockIdx.x] = static_cast<float>(blockIdx.x);
  if (blockIdx.x == 3) out[3] = out[1];
}

// The two halves of a chain of launches.
extern "C" __global__ void first_half(const float* __restrict__ x, float* __restrict__ middle) {
  middle[blockIdx.x * blockDim.x + threadIdx.x] = x[blockIdx.x * blockDim.x + threadIdx.x] + 1;
}
extern "C" __global__ void second_half(const float* __restrict__ middle, float* __restrict__ y) {
  const uint32_t n = gridDim.x * blockDim.x, i = blockIdx.x * blockDim.x + threadIdx.x;
  y[i] = 2 * middle[n - 1 - i];
}

// Each launch adds to what the one before it has stored.
extern "C" __global__ void one_more(float* __restrict__ out) {
  sd::grid_wait();
  out[blockIdx.x * blockDim.x + threadIdx.x] += 1;
}
