// Primitives behind primitives.cuh, for operands of products that are stored in 8 bits
// (codegen/emit_mma.cpp).  Types of 8 bits have no value that f16 and bf16 lack, so that widening
// is exact; NaN stays NaN.
#ifndef SUNDOG_PRIMITIVES_NARROW_CUH
#define SUNDOG_PRIMITIVES_NARROW_CUH

namespace sd {

// --- operands of 8 bits ---

#ifdef SUNDOG_EMULATOR

template <class T, class Narrow>
inline uint32_t widened(Narrow low, Narrow high) {
  return pack<T>(to_float(low), to_float(high));
}
template <class T, class Narrow>
inline uint32_t widened_pair(const Narrow* pair) {
  Vec<Narrow, 2> values;
  load_shared(values, pair);
  return widened<T>(values[0], values[1]);
}

// Of residues as of numbers: the narrow types differ in how a byte becomes one of them.
template <class T, class Narrow>
inline void widened_columns(uint32_t& first, uint32_t& second, uint32_t columns) {
  Vec<Narrow, 4> x;
  memcpy(&x, &columns, 4);
  first = widened<T>(x[0], x[2]);
  second = widened<T>(x[1], x[3]);
}

#else

namespace detail {

SD_INLINE uint32_t mul_f16x2(uint32_t a, uint32_t b) {
  uint32_t result;
  asm("mul.rn.f16x2 %0, %1, %2;" : "=r"(result) : "r"(a), "r"(b));
  return result;
}
SD_INLINE uint32_t sub_f16x2(uint32_t a, uint32_t b) {
  uint32_t result;
  asm("sub.rn.f16x2 %0, %1, %2;" : "=r"(result) : "r"(a), "r"(b));
  return result;
}
SD_INLINE uint32_t sub_bf16x2(uint32_t a, uint32_t b) {
  uint32_t result;
  asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(result) : "r"(b), "r"(0xbf80bf80u), "r"(a));
  return result;
}

// The two values in the low bytes of a word.
template <class T, class Narrow>
struct Widen;
template <>
struct Widen<f16, f8e4m3> {
  static SD_INLINE uint32_t of(uint32_t pair) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
    uint32_t result;
    asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(result) : "h"(static_cast<uint16_t>(pair)));
    return result;
#else
    // The exponent's bias is 15, not 7; all bits set, which is NaN, carry into the bit above.
    const uint32_t high = __byte_perm(pair, 0, 0x1404);
    const uint32_t magnitude = high >> 1 & 0x3f803f80u;
    const uint32_t nan = magnitude + 0x00800080u & 0x40004000u;
    return mul_f16x2(magnitude, 0x5c005c00u) | (nan << 1) - (nan >> 14) | high & 0x80008000u;
#endif
  }
};
template <>
struct Widen<f16, f8e5m2> {  // the upper half of an f16
  static SD_INLINE uint32_t of(uint32_t pair) { return __byte_perm(pair, 0, 0x1404); }
};
template <>
struct Widen<f16, int8_t> {  // 1024 + (128 + x), less 1152
  static SD_INLINE uint32_t of(uint32_t pair) {
    return sub_f16x2(__byte_perm(pair ^ 0x8080u, 0x64646464u, 0x4140), 0x64806480u);
  }
};
template <>
struct Widen<bf16, int8_t> {  // 128 + the low seven bits, less 128 or, where the sign is set, 256
  static SD_INLINE uint32_t of(uint32_t pair) {
    const uint32_t bits = __byte_perm(pair, 0x43434343u, 0x4140);
    return sub_bf16x2(bits & 0xff7fff7fu, bits & 0xff80ff80u);
  }
};
template <class Narrow>
struct Widen<bf16, Narrow> {
  static SD_INLINE uint32_t of(uint32_t pair) {
    float low, high;
    unpack<f16>(low, high, Widen<f16, Narrow>::of(pair));
    return pack_bf16(low, high);
  }
};

SD_INLINE uint32_t byte_of(f8e4m3 x) { return x.bits; }
SD_INLINE uint32_t byte_of(f8e5m2 x) { return x.bits; }
SD_INLINE uint32_t byte_of(int8_t x) { return static_cast<uint8_t>(x); }

}  // namespace detail

// Two values of 8 bits as a word of two of T (f16 or bf16), as mma operands want them.
template <class T, class Narrow>
SD_INLINE uint32_t widened(Narrow low, Narrow high) {
  return detail::Widen<T, Narrow>::of(detail::byte_of(low) | detail::byte_of(high) << 8);
}
// Likewise two neighbours in the arena, the first of them at a multiple of 2 bytes.
template <class T, class Narrow>
SD_INLINE uint32_t widened_pair(const Narrow* pair) {
  return detail::Widen<T, Narrow>::of(*reinterpret_cast<const uint16_t*>(pair));
}

// Two columns of two values of 8 bits each, as ldmatrix (_trans) leaves them: (0, 0) (0, 1) (1, 0)
// (1, 1).
template <class T, class Narrow>
SD_INLINE void widened_columns(uint32_t& first, uint32_t& second, uint32_t columns) {
  const uint32_t sorted = __byte_perm(columns, 0, 0x3120);
  first = detail::Widen<T, Narrow>::of(sorted);
  second = detail::Widen<T, Narrow>::of(sorted >> 16);
}

#endif  // SUNDOG_EMULATOR

}  // namespace sd

#endif  // SUNDOG_PRIMITIVES_NARROW_CUH
