// Kernels that measure a device (codegen/calibrate.h), on the primitives of generated code.
//
// Parameters are 64-bit words.  Those that count cycles put what block 0 took into `cycles`: rates
// per clock do not depend on what the clock is at the moment.
#ifndef SUNDOG_CALIBRATION_KERNELS_CUH
#define SUNDOG_CALIBRATION_KERNELS_CUH

namespace calibration {

constexpr int kUnroll = 16;

// Cycles of the block between two points, from its first thread to its last.
SD_INLINE uint64_t started() {
  __syncthreads();
  return clock64();
}
SD_INLINE void stopped(uint64_t start, uint64_t* cycles) {
  __syncthreads();
  const uint64_t end = clock64();
  if (blockIdx.x == 0 && threadIdx.x == 0) *cycles = end - start;
}

// Copies words of 16 bytes to shared memory, kDepth under way for each thread.  `count` words are
// read (by all blocks together) of `size`, a power of two, over and over.
template <int kDepth>
SD_INLINE void read_in_flight(const uint4* words, uint64_t count, uint64_t size) {
  uint4* ring = reinterpret_cast<uint4*>(sd::shared_arena()) + threadIdx.x;
  const uint64_t step = static_cast<uint64_t>(gridDim.x) * blockDim.x;
  uint64_t at = static_cast<uint64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  for (int slot = 0; at < count; at += step) {
    sd::cp_async<16>(ring + slot * blockDim.x, words + (at & (size - 1)));
    sd::cp_async_commit();
    sd::cp_async_wait<kDepth - 1>();
    slot = slot + 1 == kDepth ? 0 : slot + 1;
  }
  sd::cp_async_wait<0>();
}

}  // namespace calibration

#define SD_READ(depth)                                                                         \
  extern "C" __global__ void read_##depth(const uint4* words, uint64_t count, uint64_t size) { \
    calibration::read_in_flight<depth>(words, count, size);                                    \
  }
SD_READ(1)
SD_READ(2)
SD_READ(4)
SD_READ(6)
SD_READ(8)
#undef SD_READ

// Words at `spread` bytes from one another that form one cycle: word i holds where the next one is.
// `count` is a power of two.
extern "C" __global__ void make_chain(unsigned char* memory, uint64_t count, uint64_t spread) {
  const uint64_t step = static_cast<uint64_t>(gridDim.x) * blockDim.x;
  for (uint64_t i = static_cast<uint64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
       i += step) {
    const uint64_t next = (i * 1664525 + 1013904223) & (count - 1);
    *reinterpret_cast<uint64_t*>(memory + i * spread) = next * spread;
  }
}

// One thread follows it.
extern "C" __global__ void follow_chain(const unsigned char* memory, uint64_t steps,
                                        uint64_t* end) {
  uint64_t at = 0;
  for (uint64_t i = 0; i < steps; ++i)
    at = *reinterpret_cast<const volatile uint64_t*>(memory + at);
  *end = at;
}

extern "C" __global__ void empty() {}
extern "C" __global__ void empty_dependent() {
  sd::grid_launch_dependents();
  sd::grid_wait();
}

// `rounds` times 16 reads of 16 bytes, neighbouring threads reading neighbouring words.  Volatile,
// or ptxas makes one read of them.
extern "C" __global__ void shared_reads(uint64_t* cycles, uint64_t rounds, uint32_t* sink) {
  auto* words = reinterpret_cast<uint4*>(sd::shared_arena());
  words[threadIdx.x] = make_uint4(threadIdx.x, 1, 2, 3);
  uint32_t mixed = 0;
  const uint32_t from = sd::shared_address(words + threadIdx.x);
  const uint64_t start = calibration::started();
  for (uint64_t i = 0; i < rounds; ++i) {
#pragma unroll
    for (int j = 0; j < calibration::kUnroll; ++j) {
      uint32_t a, b, c, d;
      asm volatile("ld.volatile.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                   : "=r"(a), "=r"(b), "=r"(c), "=r"(d)
                   : "r"(from));
      mixed ^= a ^ b ^ c ^ d;
    }
  }
  calibration::stopped(start, cycles);
  if (mixed == 0x13572468u) *sink = mixed;
}

// The same with reads of 4 bytes, neighbouring threads `stride` words apart.
extern "C" __global__ void strided_reads(uint64_t* cycles, uint64_t rounds, uint32_t* sink,
                                         uint64_t stride) {
  auto* words = reinterpret_cast<uint32_t*>(sd::shared_arena());
  for (uint32_t i = threadIdx.x; i < 8192; i += blockDim.x) words[i] = i;
  uint32_t mixed = 0;
  const uint32_t from = sd::shared_address(words + (threadIdx.x * stride & 8191));
  const uint64_t start = calibration::started();
  for (uint64_t i = 0; i < rounds; ++i) {
#pragma unroll
    for (int j = 0; j < calibration::kUnroll; ++j) {
      uint32_t a;
      asm volatile("ld.volatile.shared.u32 %0, [%1];" : "=r"(a) : "r"(from));
      mixed ^= a;
    }
  }
  calibration::stopped(start, cycles);
  if (mixed == 0x13572468u) *sink = mixed;
}

// Instructions in eight independent chains a thread: `rounds` times 16 of each.
#define SD_CHAINS(name, type, instruction, constraint)                                \
  extern "C" __global__ void name(uint64_t* cycles, uint64_t rounds, type* sink) {    \
    type x[8];                                                                        \
    for (int j = 0; j < 8; ++j) x[j] = static_cast<type>(threadIdx.x + j);            \
    const uint64_t start = calibration::started();                                    \
    for (uint64_t i = 0; i < rounds; ++i) {                                           \
      _Pragma("unroll") for (int k = 0; k < calibration::kUnroll; ++k) {              \
        _Pragma("unroll") for (int j = 0; j < 8;                                      \
                               ++j) asm volatile(instruction : "+" constraint(x[j])); \
      }                                                                               \
    }                                                                                 \
    calibration::stopped(start, cycles);                                              \
    for (int j = 0; j < 8; ++j) {                                                     \
      if (x[j] == static_cast<type>(0x13572468)) *sink = x[j];                        \
    }                                                                                 \
  }
SD_CHAINS(multiply_adds, float, "fma.rn.f32 %0, %0, 0f3F7FFFFE, 0f3A83126F;", "f")
SD_CHAINS(logic_operations, uint32_t, "lop3.b32 %0, %0, 0x55AA1234, 0x0F0F3C3C, 0x96;", "r")
SD_CHAINS(exponentials, float, "ex2.approx.ftz.f32 %0, %0;", "f")
#undef SD_CHAINS

// `rounds` times 16 barriers of the block.
extern "C" __global__ void block_barriers(uint64_t* cycles, uint64_t rounds) {
  const uint64_t start = calibration::started();
  for (uint64_t i = 0; i < rounds; ++i) {
#pragma unroll
    for (int j = 0; j < calibration::kUnroll; ++j) asm volatile("bar.sync 0;" ::: "memory");
  }
  calibration::stopped(start, cycles);
}

// `rounds` barriers of all blocks, which must all be there at once.  `arrived` is 0 before.
extern "C" __global__ void grid_barriers(uint32_t* arrived, uint64_t rounds) {
  for (uint32_t i = 1; i <= rounds; ++i) {
    __syncthreads();
    if (threadIdx.x == 0) {
      asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(arrived) : "memory");
      uint32_t seen = 0;
      while (seen < i * gridDim.x) {
        asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(arrived) : "memory");
      }
    }
    __syncthreads();
  }
}

// Products of warps: `rounds` times 8 of 16 x 8 x 16 a warp, in eight accumulators, operands in
// registers.
#define SD_PRODUCTS(name, type)                                                     \
  extern "C" __global__ void name(float* sink, uint64_t rounds) {                   \
    float d[8][4] = {};                                                             \
    const uint32_t bits = 0x3c003800u + threadIdx.x;                                \
    const uint32_t a[4] = {bits, bits ^ 0x80008000u, bits + 3, bits ^ 0x80000000u}; \
    for (uint64_t i = 0; i < rounds; ++i) {                                         \
      _Pragma("unroll") for (int j = 0; j < 8; ++j)                                 \
          sd::mma_m16n8k16<type>(d[j], a, bits + j, bits ^ j);                      \
    }                                                                               \
    for (int j = 0; j < 8; ++j) {                                                   \
      if (d[j][0] == 0.1357f) *sink = d[j][1];                                      \
    }                                                                               \
  }
SD_PRODUCTS(warp_products_f16, sd::f16)
SD_PRODUCTS(warp_products_bf16, sd::bf16)
#undef SD_PRODUCTS

#ifdef SUNDOG_PRIMITIVES_SM90_CUH
// Products of warp groups: `rounds` times 4 of 64 x 128 x 16 a group, operands in shared memory.
#define SD_GROUP_PRODUCTS(name, type)                                                          \
  extern "C" __global__ void __launch_bounds__(256) name(float* sink, uint64_t rounds) {       \
    auto* words = reinterpret_cast<uint32_t*>(sd::shared_arena());                             \
    for (uint32_t i = threadIdx.x; i < 10240; i += blockDim.x) {                               \
      words[i] = 0x3c003800u ^ (i * 2654435761u & 0x83ff83ffu);                                \
    }                                                                                          \
    sd::fence_async_proxy();                                                                   \
    __syncthreads();                                                                           \
    const uint64_t a = sd::matrix_tile<128>(sd::shared_arena() + threadIdx.x / 128 * 8192, 0); \
    const uint64_t b = sd::matrix_tile<128>(sd::shared_arena() + 16384, 0);                    \
    float d[16][4] = {};                                                                       \
    for (uint64_t i = 0; i < rounds; ++i) {                                                    \
      sd::warpgroup_fence();                                                                   \
      _Pragma("unroll") for (int k = 0; k < 4; ++k) {                                          \
        sd::warpgroup_mma<type, 128, false, false>(d, sd::matrix_tile_at(a, k * 32),           \
                                                   sd::matrix_tile_at(b, k * 32), true);       \
      }                                                                                        \
      sd::warpgroup_commit();                                                                  \
      sd::warpgroup_wait(d);                                                                   \
    }                                                                                          \
    for (int j = 0; j < 16; ++j) {                                                             \
      if (d[j][0] == 0.1357f) *sink = d[j][1];                                                 \
    }                                                                                          \
  }
SD_GROUP_PRODUCTS(group_products_f16, sd::f16)
SD_GROUP_PRODUCTS(group_products_bf16, sd::bf16)
#undef SD_GROUP_PRODUCTS
#endif

#endif  // SUNDOG_CALIBRATION_KERNELS_CUH
