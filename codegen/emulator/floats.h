// Numbers of emulated kernels: floats, as the device has them.
#ifndef SUNDOG_EMULATOR_FLOATS_H
#define SUNDOG_EMULATOR_FLOATS_H

#include <cmath>
#include <cstdint>
#include <cstring>

struct __half {
  uint16_t bits;
};
struct __nv_bfloat16 {
  uint16_t bits;
};

namespace sd {

using f16 = __half;
using bf16 = __nv_bfloat16;
using Real = float;
inline constexpr bool kResidues = false;

// --- bits ---

inline uint32_t float_bits(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, 4);
  return bits;
}
inline float bits_float(uint32_t bits) {
  float x;
  std::memcpy(&x, &bits, 4);
  return x;
}
inline uint16_t f16_bits(f16 x) { return x.bits; }
inline f16 bits_f16(uint16_t bits) { return {bits}; }
inline uint16_t bf16_bits(bf16 x) { return x.bits; }
inline bf16 bits_bf16(uint16_t bits) { return {bits}; }

#ifdef __F16C__
// The builtins that immintrin.h wraps; the header itself would double the time of a compilation.
namespace detail {
using EightHalves [[gnu::vector_size(16)]] = short;
using FourFloats [[gnu::vector_size(16)]] = float;
}  // namespace detail
#endif

inline float f16_to_float(f16 x) {
  if ((x.bits & 0x7fffu) > 0x7c00u) return bits_float(0x7fffffffu);
#ifdef __F16C__
  const detail::EightHalves halves{static_cast<short>(x.bits)};
  return __builtin_ia32_vcvtph2ps(halves)[0];
#else
  // The exponent is moved by multiplying, which also turns denormals into normal numbers.
  const uint32_t sign = (x.bits & 0x8000u) << 16, magnitude = x.bits & 0x7fffu;
  if (magnitude >= 0x7c00u) return bits_float(sign | 0x7f800000u | (magnitude & 0x3ffu) << 13);
  return bits_float(sign | float_bits(bits_float(magnitude << 13) * 0x1p112f));
#endif
}

inline f16 float_to_f16(float x) {
  if (x != x) return {0x7fff};
#ifdef __F16C__
  return {static_cast<uint16_t>(__builtin_ia32_vcvtps2ph(detail::FourFloats{x}, 0)[0])};
#else
  const uint32_t sign = (float_bits(x) >> 16) & 0x8000u, magnitude = float_bits(x) & 0x7fffffffu;
  if (magnitude >= 0x477ff000u) return {static_cast<uint16_t>(sign | 0x7c00u)};
  uint32_t code;
  if (magnitude < 0x38800000u) {  // denormal: the float unit aligns and rounds the bits
    code = float_bits(bits_float(magnitude) + 0.5f) - 0x3f000000u;
  } else {
    code = (magnitude + 0xfffu + ((magnitude >> 13) & 1) - 0x38000000u) >> 13;
  }
  return {static_cast<uint16_t>(sign | code)};
#endif
}

inline float bf16_to_float(bf16 x) { return bits_float(static_cast<uint32_t>(x.bits) << 16); }
inline bf16 float_to_bf16(float x) {
  if (x != x) return {0x7fff};
  const uint32_t bits = float_bits(x);
  return {static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1)) >> 16)};
}
inline uint32_t pack_f16(float low, float high) {
  return static_cast<uint32_t>(float_to_f16(high).bits) << 16 | float_to_f16(low).bits;
}
inline uint32_t pack_bf16(float low, float high) {
  return static_cast<uint32_t>(float_to_bf16(high).bits) << 16 | float_to_bf16(low).bits;
}
inline uint32_t float_to_tf32(float x) {
  const uint32_t bits = float_bits(x);
  if ((bits & 0x7f800000u) == 0x7f800000u) {
    return x != x ? (bits & 0xffffe000u) | 0x00400000u : bits;
  }
  return (bits + 0x1000u) & 0xffffe000u;
}

// --- arithmetic ---

inline float exp(float x) { return ::expf(x); }
inline float exp2(float x) { return ::exp2f(x); }
inline float log(float x) { return ::logf(x); }
inline float tanh(float x) { return ::tanhf(x); }
inline float erf(float x) { return ::erff(x); }
inline float sin(float x) { return ::sinf(x); }
inline float cos(float x) { return ::cosf(x); }
inline float sqrt(float x) { return __builtin_sqrtf(x); }
inline float rsqrt(float x) { return static_cast<float>(1.0 / __builtin_sqrt(x)); }
inline float div(float a, float b) { return a / b; }
inline float fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
inline float exp_fast(float x) {
  const float result = ::expf(x);
  return result < 0x1p-126f ? 0.0f : result;
}
inline float exp_difference_fast(float x, float y) { return exp_fast(x - y); }
inline float exp_scaled_difference_fast(float x, float c, float y) {
  return exp_fast(__builtin_fmaf(x, c, -y));
}
inline float div_fast(float a, float b) { return a / b; }
inline float reciprocal_fast(float x) { return 1.0f / x; }
inline float max(float a, float b) {
  if (a != a || b != b) return bits_float(0x7fffffffu);
  if (a == b) return bits_float(float_bits(a) & float_bits(b));  // +0 over -0
  return a > b ? a : b;
}
inline float max_of_multiples(float held, float x, float) { return max(held, x); }
inline float multiple_of_max(float held, float c) { return held * c; }
inline float min(float a, float b) {
  if (a != a || b != b) return bits_float(0x7fffffffu);
  if (a == b) return bits_float(float_bits(a) | float_bits(b));
  return a < b ? a : b;
}
inline float max_number(float a, float b) {
  if (a != a) return b;
  return b != b ? a : max(a, b);
}
inline float abs(float x) { return __builtin_fabsf(x); }
inline int round_to_int(float x) {
  if (x != x) return 0;
  if (x >= 0x1p31f) return 0x7fffffff;
  if (x <= -0x1p31f) return -0x7fffffff - 1;
  return static_cast<int>(__builtin_nearbyintf(x));
}

}  // namespace sd

#endif  // SUNDOG_EMULATOR_FLOATS_H
