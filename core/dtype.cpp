#include "core/dtype.h"

#include <bit>
#include <cmath>
#include <limits>

#include "core/check.h"

// The small floating types are described by three numbers, from which rounding, encoding and
// decoding follow.  Layouts: IEEE 754 binary16, bfloat16, and the two 8-bit types of the OCP "OFP8"
// specification (E4M3 without infinities, E5M2 with).

namespace sundog {
namespace {

struct Format {
  int significand;   // bits with the hidden one
  int min_exponent;  // of the smallest normal value
  int exponent_bits;
  double max;
  bool has_infinity;
};

Format format_of(DType dtype) {
  switch (dtype) {
    case DType::kF16:
      return {11, -14, 5, 65504.0, true};
    case DType::kBF16:
      return {8, -126, 8, 0x1.fep127, true};
    case DType::kF32:
      return {24, -126, 8, 0x1.fffffep127, true};
    case DType::kF64:
      return {53, -1022, 11, std::numeric_limits<double>::max(), true};
    case DType::kF8E4M3:
      return {4, -6, 4, 448.0, false};
    case DType::kF8E5M2:
      return {3, -14, 5, 57344.0, true};
    case DType::kI8:
      return {7, 0, 0, 127.0, false};
  }
  SUNDOG_CHECK(false);
}

double round_float(const Format& format, double x) {
  if (x == 0 || std::isnan(x)) return x;
  if (std::isfinite(x)) {
    double result = 0;
    if (std::fabs(x) >= std::ldexp(1.0, format.min_exponent)) {
      // Half a unit of the last place, less one bit unless that place is odd; the carry may run
      // into the exponent, as it should.
      const int dropped = 53 - format.significand;
      const auto bits = std::bit_cast<uint64_t>(x);
      const uint64_t half = (uint64_t{1} << (dropped - 1)) - 1 + (bits >> dropped & 1);
      result = std::bit_cast<double>((bits + half) >> dropped << dropped);
    } else {
      // Adding 1.5 * 2^52 units of the smallest value leaves no bits below it.
      const double shift = std::ldexp(1.5, 52 + format.min_exponent - format.significand + 1);
      result = std::copysign((x + shift) - shift, x);
    }
    if (std::fabs(result) <= format.max) return result;
  }
  if (!format.has_infinity) return std::numeric_limits<double>::quiet_NaN();
  return std::copysign(std::numeric_limits<double>::infinity(), x);
}

uint64_t encode_float(const Format& format, double x) {
  const int mantissa_bits = format.significand - 1;
  const uint64_t sign = (std::signbit(x) ? uint64_t{1} : uint64_t{0})
                        << (format.exponent_bits + mantissa_bits);
  const uint64_t all_ones = (uint64_t{1} << format.exponent_bits) - 1;
  const uint64_t mantissa_mask = (uint64_t{1} << mantissa_bits) - 1;
  x = round_float(format, x);
  if (std::isnan(x)) {
    const uint64_t payload =
        format.has_infinity ? uint64_t{1} << (mantissa_bits - 1) : mantissa_mask;
    return sign | all_ones << mantissa_bits | payload;
  }
  if (std::isinf(x)) return sign | all_ones << mantissa_bits;
  if (x == 0) return sign;
  const double magnitude = std::fabs(x);
  const int exponent = std::max(std::ilogb(magnitude), format.min_exponent);
  const auto significand = static_cast<uint64_t>(std::ldexp(magnitude, mantissa_bits - exponent));
  const bool normal = significand >> mantissa_bits != 0;
  const uint64_t field =
      normal ? static_cast<uint64_t>(exponent - format.min_exponent + 1) : uint64_t{0};
  return sign | field << mantissa_bits | (significand & mantissa_mask);
}

double decode_float(const Format& format, uint64_t bits) {
  const int mantissa_bits = format.significand - 1;
  const uint64_t all_ones = (uint64_t{1} << format.exponent_bits) - 1;
  const uint64_t mantissa = bits & ((uint64_t{1} << mantissa_bits) - 1);
  const uint64_t field = bits >> mantissa_bits & all_ones;
  const bool negative = (bits >> (mantissa_bits + format.exponent_bits) & 1) != 0;
  double magnitude = 0;
  const bool is_nan =
      field == all_ones &&
      (format.has_infinity ? mantissa != 0 : mantissa + 1 == uint64_t{1} << mantissa_bits);
  if (is_nan) {
    magnitude = std::numeric_limits<double>::quiet_NaN();
  } else if (field == all_ones && format.has_infinity) {
    magnitude = std::numeric_limits<double>::infinity();
  } else {
    const uint64_t hidden = field == 0 ? 0 : uint64_t{1} << mantissa_bits;
    const int exponent = format.min_exponent + (field == 0 ? 0 : static_cast<int>(field) - 1);
    magnitude = std::ldexp(static_cast<double>(mantissa | hidden), exponent - mantissa_bits);
  }
  return negative ? -magnitude : magnitude;
}

double round_i8(double x) {
  if (std::isnan(x)) return 0;
  return std::nearbyint(std::fmin(std::fmax(x, -128.0), 127.0));
}

}  // namespace

std::string_view name(DType dtype) {
  switch (dtype) {
    case DType::kF16:
      return "f16";
    case DType::kBF16:
      return "bf16";
    case DType::kF32:
      return "f32";
    case DType::kF64:
      return "f64";
    case DType::kF8E4M3:
      return "f8e4m3";
    case DType::kF8E5M2:
      return "f8e5m2";
    case DType::kI8:
      return "i8";
  }
  SUNDOG_CHECK(false);
}

std::optional<DType> parse_dtype(std::string_view text) {
  for (DType dtype : kAllDTypes) {
    if (name(dtype) == text) return dtype;
  }
  return std::nullopt;
}

int bytes(DType dtype) {
  switch (dtype) {
    case DType::kF8E4M3:
    case DType::kF8E5M2:
    case DType::kI8:
      return 1;
    case DType::kF16:
    case DType::kBF16:
      return 2;
    case DType::kF32:
      return 4;
    case DType::kF64:
      return 8;
  }
  SUNDOG_CHECK(false);
}

double max_finite(DType dtype) { return format_of(dtype).max; }

double unit_roundoff(DType dtype) {
  return dtype == DType::kI8 ? 0.5 : std::ldexp(1.0, -format_of(dtype).significand);
}

bool is_widening(DType from, DType to) {
  if (from == to) return true;
  if (to == DType::kI8) return false;
  const Format a = format_of(from), b = format_of(to);
  // i8 holds -128 to 127: seven significant bits (-128 is a power of two).
  const int smallest = from == DType::kI8 ? 0 : a.min_exponent - a.significand + 1;
  const double largest = from == DType::kI8 ? 128.0 : a.max;
  return a.significand <= b.significand && largest <= b.max &&
         smallest >= b.min_exponent - b.significand + 1 && (b.has_infinity || !a.has_infinity);
}

std::optional<DType> product_dtype(DType a, DType b) {
  if (bytes(a) == 1 && bytes(b) == 1) return DType::kF16;
  const DType wider = bytes(a) == 1 ? b : a;
  if (bytes(wider) != 2 || (bytes(b) != 1 && b != wider)) return std::nullopt;
  return wider;
}

bool is_integer(DType dtype) { return dtype == DType::kI8; }

bool keeps_cast(Rounding rounding, DType to) {
  if (is_integer(to)) return true;
  return rounding == Rounding::kEager && !is_widening(DType::kF32, to);
}

double round_to(DType dtype, double x) {
  switch (dtype) {
    case DType::kF64:
      return x;
    case DType::kF32:
      return static_cast<double>(static_cast<float>(x));
    case DType::kI8:
      return round_i8(x);
    case DType::kF16:
    case DType::kBF16:
    case DType::kF8E4M3:
    case DType::kF8E5M2:
      return round_float(format_of(dtype), x);
  }
  SUNDOG_CHECK(false);
}

double round_settled(DType dtype, double x) {
  constexpr double kSplit = 0x1p13 + 1;  // Veltkamp: the upper 40 of 53 bits
  const double scaled = x * kSplit;
  if (!std::isfinite(scaled)) return round_to(dtype, x);
  return round_to(dtype, scaled - (scaled - x));
}

uint64_t encode(DType dtype, double x) {
  switch (dtype) {
    case DType::kF64:
      return std::bit_cast<uint64_t>(x);
    case DType::kF32:
      return std::bit_cast<uint32_t>(static_cast<float>(x));
    case DType::kI8:
      return static_cast<uint8_t>(static_cast<int8_t>(round_i8(x)));
    case DType::kF16:
    case DType::kBF16:
    case DType::kF8E4M3:
    case DType::kF8E5M2:
      return encode_float(format_of(dtype), x);
  }
  SUNDOG_CHECK(false);
}

double decode(DType dtype, uint64_t bits) {
  switch (dtype) {
    case DType::kF64:
      return std::bit_cast<double>(bits);
    case DType::kF32:
      return static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(bits)));
    case DType::kI8:
      return static_cast<double>(static_cast<int8_t>(static_cast<uint8_t>(bits)));
    case DType::kF16:
    case DType::kBF16:
    case DType::kF8E4M3:
    case DType::kF8E5M2:
      return decode_float(format_of(dtype), bits);
  }
  SUNDOG_CHECK(false);
}

}  // namespace sundog
