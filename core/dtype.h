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

// The value of `dtype` nearest to x, ties to even.  Overflow gives infinity for f16, bf16, f32 and
// f8e5m2, NaN for f8e4m3 (which has no infinity) and saturates for i8.
double round_to(DType dtype, double x);

// Stored bits <-> value, little endian in the low bytes of the word.
uint64_t encode(DType dtype, double x);
double decode(DType dtype, uint64_t bits);

}  // namespace sundog
