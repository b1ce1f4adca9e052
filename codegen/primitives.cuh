// The primitives of generated kernels: every PTX instruction that Sundog emits stands in this file.
//
// It has two bodies.  Under nvcc and NVRTC the functions are inline PTX for sm_80 and later (sm_90
// features fall away below sm_90).  Under a plain C++ compiler (SUNDOG_EMULATOR) the same functions
// come from the CPU emulator, which checks what it runs.  Destination first, as in assembly; all
// warp functions must be reached by all 32 lanes.  Of shared memory there is one arena a block.
#ifndef SUNDOG_PRIMITIVES_CUH
#define SUNDOG_PRIMITIVES_CUH

#ifdef SUNDOG_EMULATOR
#include "sundog_emulator.h"
#else

#ifdef __CUDACC_RTC__
typedef signed char int8_t;
typedef unsigned char uint8_t;
typedef short int16_t;
typedef unsigned short uint16_t;
typedef int int32_t;
typedef unsigned int uint32_t;
typedef long long int64_t;
typedef unsigned long long uint64_t;
#else
#include <stdint.h>
#endif
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#define SD_INLINE __device__ __forceinline__

namespace sd {

using f16 = __half;
using bf16 = __nv_bfloat16;

// --- shared memory ---

// The dynamic shared memory of the block, aligned to 1,024 bytes.
SD_INLINE unsigned char* shared_arena() {
  extern __shared__ __align__(1024) unsigned char sd_arena[];
  return sd_arena;
}

// The 32-bit address in the shared window of a pointer into the arena.
SD_INLINE uint32_t shared_address(const void* pointer) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

// --- bits ---

SD_INLINE uint32_t float_bits(float x) { return __float_as_uint(x); }
SD_INLINE float bits_float(uint32_t bits) { return __uint_as_float(bits); }
SD_INLINE uint16_t f16_bits(f16 x) { return __half_as_ushort(x); }
SD_INLINE f16 bits_f16(uint16_t bits) { return __ushort_as_half(bits); }
SD_INLINE uint16_t bf16_bits(bf16 x) { return __bfloat16_as_ushort(x); }
SD_INLINE bf16 bits_bf16(uint16_t bits) { return __ushort_as_bfloat16(bits); }
SD_INLINE float f16_to_float(f16 x) { return __half2float(x); }
SD_INLINE float bf16_to_float(bf16 x) { return __bfloat162float(x); }
// Nearest, ties to even; overflow gives infinity, NaN the canonical NaN 0x7fff.
SD_INLINE f16 float_to_f16(float x) { return __float2half_rn(x); }
SD_INLINE bf16 float_to_bf16(float x) { return __float2bfloat16_rn(x); }
// Two at once, `low` in the low half of the word.
SD_INLINE uint32_t pack_f16(float low, float high) {
  uint32_t packed;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(high), "f"(low));
  return packed;
}
SD_INLINE uint32_t pack_bf16(float low, float high) {
  uint32_t packed;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(high), "f"(low));
  return packed;
}
// Float to the 19 bits that a tf32 operand of an mma keeps, ties away from zero.
SD_INLINE uint32_t float_to_tf32(float x) {
  uint32_t bits;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(x));
  return bits;
}

// --- arithmetic ---
// Errors in units of the last place, those of the CUDA math library without fast-math flags.

SD_INLINE float exp(float x) { return expf(x); }         // 1 ulp
SD_INLINE float exp2(float x) { return exp2f(x); }       // 2 ulp, one instruction and a scale
SD_INLINE float log(float x) { return logf(x); }         // 1 ulp
SD_INLINE float tanh(float x) { return tanhf(x); }       // 2 ulp
SD_INLINE float erf(float x) { return erff(x); }         // 2 ulp
SD_INLINE float sin(float x) { return sinf(x); }         // 2 ulp
SD_INLINE float cos(float x) { return cosf(x); }         // 2 ulp
SD_INLINE float rsqrt(float x) { return rsqrtf(x); }     // 2 ulp
SD_INLINE float sqrt(float x) { return __fsqrt_rn(x); }  // correctly rounded
SD_INLINE float div(float a, float b) { return __fdiv_rn(a, b); }              // correctly rounded
SD_INLINE float fma(float a, float b, float c) { return __fmaf_rn(a, b, c); }  // one rounding
SD_INLINE float exp2_fast(float x) {  // exp_fast: 2 + |1.173 x| ulp, denormal results are 0
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
}
SD_INLINE float exp_fast(float x) { return exp2_fast(x * 1.44269504f); }
// exp(x * c - y): one fused product where c and y are the same for many x; 2 + |4 y| ulp more.
SD_INLINE float exp_scaled_difference_fast(float x, float c, float y) {
  return exp2_fast(__fmaf_rn(x, c * 1.44269504f, -(y * 1.44269504f)));
}
SD_INLINE float exp_difference_fast(float x, float y) {
  return exp_scaled_difference_fast(x, 1, y);
}
// 2 ulp for 2^-126 <= |b| <= 2^126; outside it may be 0 or NaN.
SD_INLINE float div_fast(float a, float b) { return __fdividef(a, b); }
SD_INLINE float reciprocal_fast(float x) {  // 1 ulp; denormals are kept
  float result;
  asm("rcp.approx.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
}
// The greater; NaN if either is NaN, so that a NaN of an input is seen in the output.  +0 > -0.
SD_INLINE float max(float a, float b) {
  float result;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
  return result;
}
// The maximum of c x over many x with one c > 0 is c times that of x, bit by bit.  What is held on
// the way, beginning with -inf, and what it comes to.
SD_INLINE float max_of_multiples(float held, float x, float) { return max(held, x); }
SD_INLINE float multiple_of_max(float held, float c) { return held * c; }
SD_INLINE float min(float a, float b) {
  float result;
  asm("min.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
  return result;
}
SD_INLINE float max_number(float a, float b) { return fmaxf(a, b); }  // b if a is NaN
SD_INLINE float abs(float x) { return fabsf(x); }
SD_INLINE int round_to_int(float x) { return __float2int_rn(x); }  // ties to even; NaN gives 0

// --- warps: all 32 lanes together ---

// The value of lane (own ^ mask).  T has 4 bytes.
template <class T>
SD_INLINE T shfl_xor(T value, int mask) {
  static_assert(sizeof(T) == 4, "shuffles move words");
  return __shfl_xor_sync(0xffffffffu, value, mask);
}
// The value of lane `lane` (modulo 32).
template <class T>
SD_INLINE T shfl_idx(T value, int lane) {
  static_assert(sizeof(T) == 4, "shuffles move words");
  return __shfl_sync(0xffffffffu, value, lane);
}
SD_INLINE bool vote_any(bool predicate) { return __any_sync(0xffffffffu, predicate); }
SD_INLINE bool vote_all(bool predicate) { return __all_sync(0xffffffffu, predicate); }
// Bit i is the predicate of lane i.
SD_INLINE uint32_t ballot(bool predicate) { return __ballot_sync(0xffffffffu, predicate); }

// --- barriers ---

// Orders shared and global memory among the lanes of the warp.  Shuffles, votes, ldmatrix and mma
// do not: what one lane stored, another sees only after sync_warp or a barrier.
SD_INLINE void sync_warp() { __syncwarp(); }
// Orders memory among all threads of the block; every thread that has not returned must come.
SD_INLINE void sync_threads() { __syncthreads(); }
// As sync_threads; whether the predicate holds for any of them.
SD_INLINE bool sync_threads_any(bool predicate) { return __syncthreads_or(predicate) != 0; }
// Barrier `id` (1 to 15) among `count` threads, a multiple of 32.
SD_INLINE void barrier_sync(int id, int count) {
  asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(count) : "memory");
}
// As barrier_sync, but only announces and does not wait.
SD_INLINE void barrier_arrive(int id, int count) {
  asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(count) : "memory");
}

// --- global memory ---

namespace detail {

template <int kBytes>
struct Word;
template <>
struct Word<2> {
  using Type = uint16_t;
};
template <>
struct Word<4> {
  using Type = uint32_t;
};
template <>
struct Word<8> {
  using Type = uint2;
};
template <>
struct Word<16> {
  using Type = uint4;
};

// Asked from L2 and beyond; kept out of L1, for data that is read once.  Nothing unless `there`: in
// one statement, since a load behind a branch is not moved in front of it, and few are in flight.
SD_INLINE void load_stream(uint16_t& dst, const void* src, int there) {
  asm("{\n.reg .pred p;\nsetp.ne.s32 p, %2, 0;\n"
      "@p ld.global.nc.L1::no_allocate.u16 %0, [%1];\n}"
      : "+h"(dst)
      : "l"(src), "r"(there));
}
SD_INLINE void load_stream(uint32_t& dst, const void* src, int there) {
  asm("{\n.reg .pred p;\nsetp.ne.s32 p, %2, 0;\n"
      "@p ld.global.nc.L1::no_allocate.u32 %0, [%1];\n}"
      : "+r"(dst)
      : "l"(src), "r"(there));
}
SD_INLINE void load_stream(uint2& dst, const void* src, int there) {
  asm("{\n.reg .pred p;\nsetp.ne.s32 p, %3, 0;\n"
      "@p ld.global.nc.L1::no_allocate.v2.u32 {%0, %1}, [%2];\n}"
      : "+r"(dst.x), "+r"(dst.y)
      : "l"(src), "r"(there));
}
SD_INLINE void load_stream(uint4& dst, const void* src, int there) {
  asm("{\n.reg .pred p;\nsetp.ne.s32 p, %5, 0;\n"
      "@p ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];\n}"
      : "+r"(dst.x), "+r"(dst.y), "+r"(dst.z), "+r"(dst.w)
      : "l"(src), "r"(there));
}

}  // namespace detail

// One load or store of sizeof(V) = 1, 2, 4, 8 or 16 bytes, at a multiple of that; V is plain data.
template <class V>
SD_INLINE void load_global(V& dst, const void* src) {
  dst = *static_cast<const V*>(src);
}
template <class V>
SD_INLINE void store_global(void* dst, const V& src) {
  *static_cast<V*>(dst) = src;
}
// As load_global, for data that no kernel running now writes and that is read once (2 to 16 bytes);
// zeros unless `there`, and the address need not be one then.
template <class V>
SD_INLINE void load_stream(V& dst, const void* src, bool there = true) {
  typename detail::Word<sizeof(V)>::Type word = {};
  detail::load_stream(word, src, there);
  memcpy(&dst, &word, sizeof(V));
}
// Loads that stand in front of this are asked for before what stands behind it is begun.  The
// assembler moves a load behind what uses an earlier one, and memory is waited for twice; it does
// not do so over a branch, which is never taken here.
SD_INLINE void loads_issued() {
  asm volatile("{ .reg .pred p; .reg .b32 n; mov.b32 n, %ntid.x; setp.eq.b32 p, n, 0; @p trap; }");
}
// As store_global, past L1 and first out of L2, for data that is not read again soon.
template <class V>
SD_INLINE void store_stream(void* dst, const V& src) {
  typename detail::Word<sizeof(V)>::Type word;
  memcpy(&word, &src, sizeof(V));
  __stcs(static_cast<typename detail::Word<sizeof(V)>::Type*>(dst), word);
}
// The same for the arena.
template <class V>
SD_INLINE void load_shared(V& dst, const void* src) {
  dst = *static_cast<const V*>(src);
}
template <class V>
SD_INLINE void store_shared(void* dst, const V& src) {
  *static_cast<V*>(dst) = src;
}

// Adds and returns the old value; the order among threads is not fixed.
SD_INLINE float atomic_add(float* address, float value) { return atomicAdd(address, value); }
SD_INLINE uint32_t atomic_add(uint32_t* address, uint32_t value) {
  return atomicAdd(address, value);
}
// old < limit ? old + 1 : 0 is stored, old returned: a counter that resets itself.
SD_INLINE uint32_t atomic_increment(uint32_t* address, uint32_t limit) {
  return atomicInc(address, limit);
}
// In front of an atomic: whoever sees it, and fences behind its own, sees what this thread wrote
// and what a barrier had shown it.
SD_INLINE void fence_device() { asm volatile("fence.acq_rel.gpu;" ::: "memory"); }

// --- copies from global to shared memory behind the thread's back ---

// Starts a copy of kBytes (4, 8 or 16; both addresses are multiples of it).  With a false predicate
// nothing is read and zeros are written.  The bytes are there after cp_async_wait, for other
// threads after a barrier behind it.
template <int kBytes>
SD_INLINE void cp_async(void* dst, const void* src, bool predicate = true) {
  static_assert(kBytes == 4 || kBytes == 8 || kBytes == 16, "cp.async copies 4, 8 or 16 bytes");
  const int bytes = predicate ? kBytes : 0;
  if constexpr (kBytes == 16) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(dst)),
                 "l"(src), "r"(bytes)
                 : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(shared_address(dst)),
                 "l"(src), "n"(kBytes), "r"(bytes)
                 : "memory");
  }
}
// Closes a group of the copies started since the last one, by this thread.
SD_INLINE void cp_async_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
// Waits until at most kGroups of this thread's groups are under way; the oldest arrive first.
template <int kGroups>
SD_INLINE void cp_async_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kGroups) : "memory");
}

// --- matrices: all 32 lanes together ---

// ldmatrix: each of the 1, 2 or 4 matrices has 8 rows of 16 bytes in the arena; lane 8 i + r gives
// the address of row r of matrix i, a multiple of 16.  Afterwards lane l holds the elements 2 (l %
// 4) and 2 (l % 4) + 1 of row l / 4 of matrix i in register i (_trans: of column l / 4).
SD_INLINE void ldmatrix_x1(uint32_t (&dst)[1], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];"
               : "=r"(dst[0])
               : "r"(shared_address(row))
               : "memory");
}
SD_INLINE void ldmatrix_x2(uint32_t (&dst)[2], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
               : "=r"(dst[0]), "=r"(dst[1])
               : "r"(shared_address(row))
               : "memory");
}
SD_INLINE void ldmatrix_x4(uint32_t (&dst)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(dst[0]), "=r"(dst[1]), "=r"(dst[2]), "=r"(dst[3])
               : "r"(shared_address(row))
               : "memory");
}
SD_INLINE void ldmatrix_x1_trans(uint32_t (&dst)[1], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%0}, [%1];"
               : "=r"(dst[0])
               : "r"(shared_address(row))
               : "memory");
}
SD_INLINE void ldmatrix_x2_trans(uint32_t (&dst)[2], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
               : "=r"(dst[0]), "=r"(dst[1])
               : "r"(shared_address(row))
               : "memory");
}
SD_INLINE void ldmatrix_x4_trans(uint32_t (&dst)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(dst[0]), "=r"(dst[1]), "=r"(dst[2]), "=r"(dst[3])
               : "r"(shared_address(row))
               : "memory");
}
// Transposes one 8 x 8 matrix held as ldmatrix_x1 leaves it.
SD_INLINE uint32_t movmatrix_trans(uint32_t src) {
  uint32_t dst;
  asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(dst) : "r"(src));
  return dst;
}

// d[16, 8] += a[16, 16] * b[16, 8] in f32; T is f16 or bf16.  With g = lane / 4 and t = lane % 4,
// each register pair of neighbouring columns:
//   a[0] (g, 2t)  a[1] (g + 8, 2t)  a[2] (g, 2t + 8)  a[3] (g + 8, 2t + 8)
//   b0 (2t, g) and (2t + 1, g)      b1 (2t + 8, g) and (2t + 9, g)
//   d[0], d[1] (g, 2t), (g, 2t + 1) d[2], d[3] (g + 8, 2t), (g + 8, 2t + 1)
template <class T>
SD_INLINE void mma_m16n8k16(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1);
template <>
SD_INLINE void mma_m16n8k16<f16>(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
template <>
SD_INLINE void mma_m16n8k16<bf16>(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
// d[16, 8] += a[16, 8] * b[8, 8], operands from float_to_tf32: a[0] (g, t), a[1] (g + 8, t),
// a[2] (g, t + 4), a[3] (g + 8, t + 4); b0 (t, g), b1 (t + 4, g); d as above.
SD_INLINE void mma_m16n8k8_tf32(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// --- programmatic dependent launch (nothing below sm_90) ---

// The next kernel, if launched as a dependent one, may start once all blocks have called this.
SD_INLINE void grid_launch_dependents() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}
// Waits until the kernels before are done and their writes are seen.  Every thread of a dependent
// kernel calls it, before it reads what they write and before it writes anything.
SD_INLINE void grid_wait() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

}  // namespace sd

#endif  // SUNDOG_EMULATOR

// From here on, one body for both.

namespace sd {

// --- narrow storage ---

#ifndef SUNDOG_EMULATOR_RESIDUES  // the emulator's exact check has its own

// One byte of storage each: 4 exponent and 3 mantissa bits without infinity, 5 and 2 with it.
struct f8e4m3 {
  uint8_t bits;
};
struct f8e5m2 {
  uint8_t bits;
};

namespace detail {

// Rounds to a float with `kMantissa` mantissa bits and least exponent `kLeast`, ties to even;
// returns the code without sign, 0x100 or above on overflow of kExponent bits.
template <int kMantissa, int kLeast>
SD_INLINE uint32_t small_float_code(float x) {
  const uint32_t magnitude = float_bits(x) & 0x7fffffffu;
  const int exponent = static_cast<int>(magnitude >> 23) - 127;
  if (exponent < kLeast) {  // denormal: adding aligns the bits, the float unit rounds them
    const float unit = bits_float(static_cast<uint32_t>(127 + kLeast - kMantissa + 23) << 23);
    return float_bits(bits_float(magnitude) + unit) - float_bits(unit);
  }
  const int drop = 23 - kMantissa;
  const uint32_t rounded = magnitude + ((1u << (drop - 1)) - 1) + ((magnitude >> drop) & 1);
  return (rounded >> drop) - (static_cast<uint32_t>(127 + kLeast - 1) << kMantissa);
}

}  // namespace detail

SD_INLINE float f8e4m3_to_float(f8e4m3 x) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
  uint32_t two;
  asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(two) : "h"(static_cast<uint16_t>(x.bits)));
  return f16_to_float(bits_f16(static_cast<uint16_t>(two)));
#else
  const uint32_t magnitude = x.bits & 0x7fu;
  if (magnitude == 0x7fu) return bits_float(0x7fffffffu);
  const uint32_t half = ((x.bits & 0x80u) << 8) | (magnitude << 7);  // exponent bias 15, not 7
  return f16_to_float(bits_f16(static_cast<uint16_t>(half))) * 256.0f;
#endif
}
SD_INLINE float f8e5m2_to_float(f8e5m2 x) {
  return f16_to_float(bits_f16(static_cast<uint16_t>(x.bits << 8)));
}
// Nearest, ties to even; what rounds beyond 448, infinity and NaN give NaN (0x7f).
SD_INLINE f8e4m3 float_to_f8e4m3(float x) {
  const uint32_t sign = (float_bits(x) >> 24) & 0x80u;
  const uint32_t code = detail::small_float_code<3, -6>(x);
  return {static_cast<uint8_t>(code >= 0x7fu ? (x == x ? sign | 0x7fu : 0x7fu) : sign | code)};
}
// Nearest, ties to even; what rounds beyond 57344 gives infinity (0x7c), NaN gives 0x7f.
SD_INLINE f8e5m2 float_to_f8e5m2(float x) {
  const uint32_t sign = (float_bits(x) >> 24) & 0x80u;
  const uint32_t code = detail::small_float_code<2, -14>(x);
  if (x != x) return {0x7f};
  return {static_cast<uint8_t>(sign | (code >= 0x7cu ? 0x7cu : code))};
}
// Nearest, ties to even, saturated to [-128, 127]; NaN gives 0.
SD_INLINE int8_t float_to_int8(float x) {
  const int value = round_to_int(x);
  return static_cast<int8_t>(value < -128 ? -128 : value > 127 ? 127 : value);
}
SD_INLINE float int8_to_float(int8_t x) { return static_cast<float>(x); }

#endif  // SUNDOG_EMULATOR_RESIDUES

// --- conversion by type ---

// to_float(x) widens any stored type exactly (double is rounded); from_float<T>(x) rounds as above.
SD_INLINE float to_float(float x) { return x; }
SD_INLINE float to_float(double x) { return static_cast<float>(x); }
SD_INLINE float to_float(f16 x) { return f16_to_float(x); }
SD_INLINE float to_float(bf16 x) { return bf16_to_float(x); }
SD_INLINE float to_float(f8e4m3 x) { return f8e4m3_to_float(x); }
SD_INLINE float to_float(f8e5m2 x) { return f8e5m2_to_float(x); }
SD_INLINE float to_float(int8_t x) { return int8_to_float(x); }

template <class T>
SD_INLINE T from_float(float x);
template <>
SD_INLINE float from_float<float>(float x) {
  return x;
}
template <>
SD_INLINE double from_float<double>(float x) {
  return static_cast<double>(x);
}
template <>
SD_INLINE f16 from_float<f16>(float x) {
  return float_to_f16(x);
}
template <>
SD_INLINE bf16 from_float<bf16>(float x) {
  return float_to_bf16(x);
}
template <>
SD_INLINE f8e4m3 from_float<f8e4m3>(float x) {
  return float_to_f8e4m3(x);
}
template <>
SD_INLINE f8e5m2 from_float<f8e5m2>(float x) {
  return float_to_f8e5m2(x);
}
template <>
SD_INLINE int8_t from_float<int8_t>(float x) {
  return float_to_int8(x);
}

// Two values of T (f16 or bf16) in a word, `low` in the low half, as mma operands want them.
template <class T>
SD_INLINE uint32_t pack(float low, float high);
template <>
SD_INLINE uint32_t pack<f16>(float low, float high) {
  return pack_f16(low, high);
}
template <>
SD_INLINE uint32_t pack<bf16>(float low, float high) {
  return pack_bf16(low, high);
}
template <class T>
SD_INLINE void unpack(float& low, float& high, uint32_t packed);
template <>
SD_INLINE void unpack<f16>(float& low, float& high, uint32_t packed) {
  low = f16_to_float(bits_f16(static_cast<uint16_t>(packed & 0xffffu)));
  high = f16_to_float(bits_f16(static_cast<uint16_t>(packed >> 16)));
}
template <>
SD_INLINE void unpack<bf16>(float& low, float& high, uint32_t packed) {
  low = bits_float(packed << 16);
  high = bits_float(packed & 0xffff0000u);
}

// --- vectors ---

// kCount values of T that load and store as one word of 2, 4, 8 or 16 bytes (f32 and f64 as well).
template <class T, int kCount>
struct alignas(sizeof(T) * kCount) Vec {
  static_assert(sizeof(T) * kCount <= 16, "a load has at most 16 bytes");
  T at[kCount];
  SD_INLINE T& operator[](int i) { return at[i]; }
  SD_INLINE const T& operator[](int i) const { return at[i]; }
};

// Two values rounded to T side by side, and the word that two of 16 bits make: operands of mma.
template <class T>
SD_INLINE Vec<T, 2> pack_vec(float low, float high) {
  const uint32_t packed = pack<T>(low, high);
  Vec<T, 2> result;
  memcpy(&result, &packed, sizeof(packed));
  return result;
}
template <class T>
SD_INLINE uint32_t word(const Vec<T, 2>& pair) {
  static_assert(sizeof(pair) == 4, "a word is two values of 16 bits");
  uint32_t packed;
  memcpy(&packed, &pair, sizeof(packed));
  return packed;
}
SD_INLINE int min_int(int a, int b) { return a < b ? a : b; }

// --- reductions over lanes ---

// Over all lanes that differ only in the bits of kLaneBits (31: the whole warp; 3: each four
// neighbours); every lane gets the same bits.  Highest bit first.
template <int kLaneBits>
SD_INLINE float lane_sum(float value) {
#pragma unroll
  for (int bit = 16; bit > 0; bit >>= 1) {
    if (kLaneBits & bit) value += shfl_xor(value, bit);
  }
  return value;
}
template <int kLaneBits>
SD_INLINE float lane_max(float value) {
#pragma unroll
  for (int bit = 16; bit > 0; bit >>= 1) {
    if (kLaneBits & bit) value = max(value, shfl_xor(value, bit));
  }
  return value;
}
template <int kLaneBits>
SD_INLINE float lane_min(float value) {
#pragma unroll
  for (int bit = 16; bit > 0; bit >>= 1) {
    if (kLaneBits & bit) value = min(value, shfl_xor(value, bit));
  }
  return value;
}

}  // namespace sd

#endif  // SUNDOG_PRIMITIVES_CUH
