// Data types of tensors.  Arithmetic is on real numbers; a dtype says how a value is stored.
// f8 and i8 are storage only: inputs and outputs may have them, accumulators may not.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace sundog {

enum class DType : uint8_t { kF16, kBF16, kF32, kF64, kF8E4M3, kF8E5M2, kI8 };

inline constexpr DType kAllDTypes[] = {DType::kF16,    DType::kBF16,   DType::kF32, DType::kF64,
                                       DType::kF8E4M3, DType::kF8E5M2, DType::kI8};

// "f16", "bf16", "f32", "f64", "f8e4m3", "f8e5m2", "i8".
std::string_view name(DType dtype);
std::optional<DType> parse_dtype(std::string_view text);

// Bytes of one element.
int bytes(DType dtype);

// Largest finite value, and the rounding unit u (half the spacing at 1; 0.5 for i8).
double max_finite(DType dtype);
double unit_roundoff(DType dtype);

// True if every value of `from` is a value of `to`, so that the cast changes nothing.
bool is_widening(DType from, DType to);

// The 16-bit type in which a tensor core multiplies values of these two exactly: that of the one
// that has 16 bits.  Types of 8 bits have no value that f16 and bf16 lack, and two of them meet in
// f16.  None for wider types, and for two different ones of 16 bits.
std::optional<DType> product_dtype(DType a, DType b);

// Whether values of the type are integers.
bool is_integer(DType dtype);

// What happens to the casts that are written in a program.
//   kWide   those that only round to a narrower floating type are dropped: intermediates are real
//           numbers, and what is stored narrower is a matter of storage
//   kEager  every narrowing cast is kept in its place
enum class Rounding : uint8_t { kWide, kEager };

// Whether a cast to this type changes a value under a rounding: every meaning of programs asks
// here. Rounding to integers is a step of the computation (quantisation), so it is kept under
// either. Casts to f32 and wider never count: f32 is what the device keeps intermediates in.
bool keeps_cast(Rounding rounding, DType to);

// The value of `dtype` nearest to x, ties to even.  Overflow gives infinity for f16, bf16, f32 and
// f8e5m2, NaN for f8e4m3 (which has no infinity) and saturates for i8.
double round_to(DType dtype, double x);

// The same where x is a float64 that stands for a real number: what is within 2^-40 of a tie is the
// tie, so that x / 3 and x * (1 / 3) round alike where the real number lies halfway.
double round_settled(DType dtype, double x);

// Stored bits <-> value, little endian in the low bytes of the word.
uint64_t encode(DType dtype, double x);
double decode(DType dtype, uint64_t bits);

}  // namespace sundog
