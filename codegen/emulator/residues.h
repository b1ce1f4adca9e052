// Numbers of emulated kernels in the exact check: residues (residue.h) in place of floats.  Only
// what computes with numbers differs from floats.h; what moves them is the same code.  Once the
// emulator's header is read, `float` and `double` are these types, so that the emitted text
// computes with them as it stands.
#ifndef SUNDOG_EMULATOR_RESIDUES_H
#define SUNDOG_EMULATOR_RESIDUES_H

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "residue.h"

struct __half {
  uint16_t bits;
};
struct __nv_bfloat16 {
  uint16_t bits;
};

namespace sd {

namespace emulator {

// In the field of the run; out of line, since only the runtime knows it.
Code residue_constant(float x);
Code residue_integer(int64_t x);
Code residue_add(Code x, Code y);
Code residue_sub(Code x, Code y);
Code residue_neg(Code x);
Code residue_mul(Code x, Code y);
Code residue_div(Code x, Code y);
Code residue_exp(Code x);
Code residue_log(Code x);
Code residue_sqrt(Code x);
Code residue_max(Code x, Code y);
Code residue_min(Code x, Code y);
Code residue_call(const char* function, Code x);
bool residue_equal(Code x, Code y);
bool residue_less(Code x, Code y);
uint32_t residue_store(CodeStorage storage, Code x);
Code residue_load(CodeStorage storage, uint32_t bits);
Code atomic_add_residue(Code* address, Code value);

}  // namespace emulator

struct Wide;

// Four bytes, as a float has.
struct Residue {
  emulator::Code code;

  Residue() = default;
  template <class T, std::enable_if_t<std::is_arithmetic_v<T>, int> = 0>
  Residue(T x) {
    if constexpr (std::is_floating_point_v<T>) {
      code = emulator::residue_constant(static_cast<float>(x));
    } else {
      code = emulator::residue_integer(static_cast<int64_t>(x));
    }
  }
  explicit Residue(Wide x);
  static Residue of(emulator::Code code) {
    Residue x;
    x.code = code;
    return x;
  }

  friend Residue operator+(Residue x, Residue y) {
    return of(emulator::residue_add(x.code, y.code));
  }
  friend Residue operator-(Residue x, Residue y) {
    return of(emulator::residue_sub(x.code, y.code));
  }
  friend Residue operator*(Residue x, Residue y) {
    return of(emulator::residue_mul(x.code, y.code));
  }
  friend Residue operator/(Residue x, Residue y) {
    return of(emulator::residue_div(x.code, y.code));
  }
  friend Residue operator-(Residue x) { return of(emulator::residue_neg(x.code)); }
  Residue& operator+=(Residue y) { return *this = *this + y; }
  Residue& operator-=(Residue y) { return *this = *this - y; }
  Residue& operator*=(Residue y) { return *this = *this * y; }
  Residue& operator/=(Residue y) { return *this = *this / y; }
  friend bool operator==(Residue x, Residue y) { return emulator::residue_equal(x.code, y.code); }
  friend bool operator!=(Residue x, Residue y) { return !(x == y); }
  friend bool operator<(Residue x, Residue y) { return emulator::residue_less(x.code, y.code); }
  friend bool operator>(Residue x, Residue y) { return y < x; }
  friend bool operator<=(Residue x, Residue y) { return x < y || x == y; }
  friend bool operator>=(Residue x, Residue y) { return y <= x; }
  friend Residue sinf(Residue x) { return of(emulator::residue_call("sin", x.code)); }
  friend Residue cosf(Residue x) { return of(emulator::residue_call("cos", x.code)); }
};

// Eight bytes, as a double has.
struct Wide {
  uint64_t bits;
  Wide() = default;
  explicit Wide(Residue x) : bits(x.code | uint64_t{x.code} << 32) {}
};
inline Residue::Residue(Wide x) : code(static_cast<emulator::Code>(x.bits)) {}

using f16 = __half;
using bf16 = __nv_bfloat16;
using Real = Residue;
inline constexpr bool kResidues = true;

// --- storage ---

namespace detail {

inline Residue load(emulator::CodeStorage storage, uint32_t bits) {
  return Residue::of(emulator::residue_load(storage, bits));
}
inline uint16_t store(emulator::CodeStorage storage, Residue x) {
  return static_cast<uint16_t>(emulator::residue_store(storage, x.code));
}

}  // namespace detail

inline uint32_t float_bits(Residue x) { return x.code; }
// The literal of a float, as emitted text has it.
inline Residue bits_float(uint32_t bits) {
  float x;
  std::memcpy(&x, &bits, 4);
  return Residue(x);
}
inline uint16_t f16_bits(f16 x) { return x.bits; }
inline f16 bits_f16(uint16_t bits) { return {bits}; }
inline uint16_t bf16_bits(bf16 x) { return x.bits; }
inline bf16 bits_bf16(uint16_t bits) { return {bits}; }
inline Residue f16_to_float(f16 x) { return detail::load(emulator::CodeStorage::kF16, x.bits); }
inline f16 float_to_f16(Residue x) { return {detail::store(emulator::CodeStorage::kF16, x)}; }
inline Residue bf16_to_float(bf16 x) { return detail::load(emulator::CodeStorage::kBf16, x.bits); }
inline bf16 float_to_bf16(Residue x) { return {detail::store(emulator::CodeStorage::kBf16, x)}; }
inline uint32_t pack_f16(Residue low, Residue high) {
  return static_cast<uint32_t>(float_to_f16(high).bits) << 16 | float_to_f16(low).bits;
}
inline uint32_t pack_bf16(Residue low, Residue high) {
  return static_cast<uint32_t>(float_to_bf16(high).bits) << 16 | float_to_bf16(low).bits;
}
inline uint32_t float_to_tf32(Residue x) { return x.code; }

struct f8e4m3 {
  uint8_t bits;
};
struct f8e5m2 {
  uint8_t bits;
};
inline Residue byte_to_float(uint8_t bits) {
  return detail::load(emulator::CodeStorage::kByte, bits);
}
inline uint8_t float_to_byte(Residue x) {
  return static_cast<uint8_t>(detail::store(emulator::CodeStorage::kByte, x));
}
inline Residue f8e4m3_to_float(f8e4m3 x) { return byte_to_float(x.bits); }
inline Residue f8e5m2_to_float(f8e5m2 x) { return byte_to_float(x.bits); }
inline Residue int8_to_float(int8_t x) { return byte_to_float(static_cast<uint8_t>(x)); }
inline f8e4m3 float_to_f8e4m3(Residue x) { return {float_to_byte(x)}; }
inline f8e5m2 float_to_f8e5m2(Residue x) { return {float_to_byte(x)}; }
inline int8_t float_to_int8(Residue x) { return static_cast<int8_t>(float_to_byte(x)); }

// --- functions ---

inline Residue exp(Residue x) { return Residue::of(emulator::residue_exp(x.code)); }
inline Residue log(Residue x) { return Residue::of(emulator::residue_log(x.code)); }
inline Residue sqrt(Residue x) { return Residue::of(emulator::residue_sqrt(x.code)); }
inline Residue rsqrt(Residue x) { return Residue(1) / sqrt(x); }
inline Residue div(Residue a, Residue b) { return a / b; }
inline Residue fma(Residue a, Residue b, Residue c) { return a * b + c; }
inline Residue exp_fast(Residue x) { return exp(x); }
inline Residue exp_difference_fast(Residue x, Residue y) { return exp(x - y); }
inline Residue exp_scaled_difference_fast(Residue x, Residue c, Residue y) {
  return exp(x * c - y);
}
inline Residue div_fast(Residue a, Residue b) { return a / b; }
inline Residue reciprocal_fast(Residue x) { return Residue(1) / x; }
inline Residue max(Residue a, Residue b) {
  return Residue::of(emulator::residue_max(a.code, b.code));
}
inline Residue min(Residue a, Residue b) {
  return Residue::of(emulator::residue_min(a.code, b.code));
}
// A field has no order by which the maximum of multiples would be a multiple: what is held is that
// of the multiples.
inline Residue max_of_multiples(Residue held, Residue x, Residue c) { return max(held, x * c); }
inline Residue multiple_of_max(Residue held, Residue) { return held; }
inline Residue max_number(Residue a, Residue b) { return max(a, b); }
inline Residue abs(Residue x) { return max(x, -x); }
inline Residue exp2(Residue x) { return Residue::of(emulator::residue_call("exp2", x.code)); }
inline Residue tanh(Residue x) { return Residue::of(emulator::residue_call("tanh", x.code)); }
inline Residue erf(Residue x) { return Residue::of(emulator::residue_call("erf", x.code)); }
inline Residue sin(Residue x) { return sinf(x); }
inline Residue cos(Residue x) { return cosf(x); }

}  // namespace sd

#endif  // SUNDOG_EMULATOR_RESIDUES_H
