// codegen/primitives.cuh in the emulator, against core and against the layouts as PTX defines them.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <random>

#include "core/dtype.h"
#include "tests/codegen/emulator_helpers.h"

namespace sundog::codegen {
namespace {

class Primitives : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    module_ = new Result<EmulatorModule>(
        EmulatorModule::compile(read_kernel("primitives.cu"), EmulatorOptions{}));
  }
  static void TearDownTestSuite() { delete module_; }

  // Runs a kernel that must have no problem.
  void run(const std::string& kernel, uint32_t grid, uint32_t block, size_t shared_bytes,
           const std::vector<EmulatorBuffer>& buffers) {
    const EmulatorReport report =
        run_kernel(*module_, launch_all(kernel, grid, block, shared_bytes, buffers.size()), buffers,
                   EmulatorOptions{});
    EXPECT_TRUE(report.problems.empty()) << join(report.problems);
  }
  static Result<EmulatorModule>* module_;
};
Result<EmulatorModule>* Primitives::module_ = nullptr;

// All floats that matter: every exponent, ties of every format, the specials; padded to 65,536.
std::vector<float> many_floats() {
  std::mt19937 random(7);
  std::vector<float> values{0.0f,     -0.0f,    INFINITY, -INFINITY, NAN,      448.0f,
                            464.0f,   464.1f,   57344.0f, 61440.0f,  61439.0f, 65504.0f,
                            65519.9f, 65520.0f, 127.5f,   -128.5f,   126.5f,   0.5f,
                            1.5f,     -0.5f,    1e10f,    -1e10f};
  for (int bits = 0; bits < 65536; bits += 7) {  // halves, and the points halfway between two
    const double half = decode(DType::kF16, static_cast<uint64_t>(bits));
    values.push_back(static_cast<float>(half));
    values.push_back(static_cast<float>(half * (1 + 0x1p-12)));
  }
  for (uint64_t bits = 0; bits < 256; ++bits) {
    for (const DType dtype : {DType::kF8E4M3, DType::kF8E5M2}) {
      const double low = decode(dtype, bits), high = decode(dtype, (bits + 1) & 255);
      values.push_back(static_cast<float>((low + high) / 2));
    }
  }
  while (values.size() < 65536)
    values.push_back(std::bit_cast<float>(static_cast<uint32_t>(random())));
  return values;
}

bool same(double a, double b) {
  return (std::isnan(a) && std::isnan(b)) || (a == b && std::signbit(a) == std::signbit(b));
}

TEST_F(Primitives, WidenEveryCode) {
  std::vector<float> f16(65536), bf16(65536), e4m3(256), e5m2(256), i8(256);
  run("widen", 256, 256, 0, {output(f16), output(bf16), output(e4m3), output(e5m2), output(i8)});
  for (uint64_t i = 0; i < 65536; ++i) {
    ASSERT_TRUE(same(f16[i], decode(DType::kF16, i))) << i;
    ASSERT_TRUE(same(bf16[i], decode(DType::kBF16, i))) << i;
  }
  for (uint64_t i = 0; i < 256; ++i) {
    EXPECT_TRUE(same(e4m3[i], decode(DType::kF8E4M3, i))) << i << " " << e4m3[i];
    EXPECT_TRUE(same(e5m2[i], decode(DType::kF8E5M2, i))) << i << " " << e5m2[i];
    EXPECT_TRUE(same(i8[i], decode(DType::kI8, i))) << i;
  }
}

TEST_F(Primitives, WidenEveryPairOfBytes) {
  std::vector<uint32_t> e4m3(262144), e5m2(262144), i8(262144);
  run("widen_pairs", 256, 256, 1536, {output(e4m3), output(e5m2), output(i8)});
  const auto expect_pair = [](DType to, uint32_t word, DType from, uint64_t low, uint64_t high) {
    ASSERT_TRUE(same(decode(to, word & 0xffff), decode(from, low))) << low << " " << name(from);
    ASSERT_TRUE(same(decode(to, word >> 16), decode(from, high))) << high << " " << name(from);
  };
  const auto expect_pairs = [&](DType from, const std::vector<uint32_t>& words) {
    for (uint64_t i = 0; i < 65536; ++i) {
      const uint64_t low = i & 255, high = i >> 8;
      expect_pair(DType::kF16, words[i], from, low, high);
      expect_pair(DType::kBF16, words[65536 + i], from, low, high);
      expect_pair(DType::kF16, words[131072 + i], from, high, low);
      expect_pair(DType::kF16, words[196608 + i], from, low, high);
    }
  };
  expect_pairs(DType::kF8E4M3, e4m3);
  expect_pairs(DType::kF8E5M2, e5m2);
  expect_pairs(DType::kI8, i8);
}

TEST_F(Primitives, NarrowAsCoreDoes) {
  std::vector<float> x = many_floats();
  std::vector<uint16_t> f16(x.size()), bf16(x.size());
  std::vector<uint8_t> e4m3(x.size()), e5m2(x.size()), i8(x.size());
  std::vector<uint32_t> pair_f16(x.size()), pair_bf16(x.size()), tf32(x.size());
  run("narrow", 256, 256, 0,
      {input(x), output(f16), output(bf16), output(e4m3), output(e5m2), output(i8),
       output(pair_f16), output(pair_bf16), output(tf32)});
  const auto agrees = [](DType dtype, uint64_t bits, double value) {
    if (std::isnan(value) && dtype == DType::kI8) return bits == 0;
    return same(decode(dtype, bits), round_to(dtype, value));
  };
  for (size_t i = 0; i < x.size(); ++i) {
    ASSERT_TRUE(agrees(DType::kF16, f16[i], x[i])) << x[i];
    ASSERT_TRUE(agrees(DType::kBF16, bf16[i], x[i])) << x[i];
    ASSERT_TRUE(agrees(DType::kF8E4M3, e4m3[i], x[i])) << x[i] << " " << int{e4m3[i]};
    ASSERT_TRUE(agrees(DType::kF8E5M2, e5m2[i], x[i])) << x[i] << " " << int{e5m2[i]};
    ASSERT_TRUE(std::isnan(x[i]) ? i8[i] == 0
                                 : decode(DType::kI8, i8[i]) == round_to(DType::kI8, x[i]))
        << x[i];
    ASSERT_EQ(pair_f16[i], f16[i] | static_cast<uint32_t>(f16[i ^ 1]) << 16);
    ASSERT_EQ(pair_bf16[i], bf16[i] | static_cast<uint32_t>(bf16[i ^ 1]) << 16);
    if (std::isfinite(x[i])) {  // ten bits after the point, ties away from zero
      const double unit = std::ldexp(1.0, std::max(std::ilogb(x[i]), -126) - 10);
      const double rounded =
          std::copysign(std::floor(std::fabs(double{x[i]}) / unit + 0.5) * unit, x[i]);
      ASSERT_EQ(std::bit_cast<float>(tf32[i]), static_cast<float>(rounded)) << x[i];
    }
  }
}

// Of 37 elements: what lies beyond them comes as zero.
TEST_F(Primitives, WindowsBeginAnywhere) {
  std::vector<uint16_t> x(37), out(32 * 14);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<uint16_t>(1000 + i);
  run("windows", 1, 32, 0, {input(x), output(out)});
  for (size_t lane = 0; lane < 32; ++lane) {
    size_t at = lane * 14;
    for (const size_t count : {8u, 4u, 2u}) {
      for (size_t i = 0; i < count; ++i) {
        EXPECT_EQ(out[at++], lane + i < 37 ? 1000 + lane + i : 0) << lane << " " << i;
      }
    }
  }
}

TEST_F(Primitives, ArithmeticIsAccurate) {
  std::mt19937 random(3);
  std::uniform_real_distribution<float> exponent(-8, 4), sign(-1, 1);
  std::vector<float> x(256), y(256), out(18 * 256);
  for (size_t i = 0; i < 256; ++i) {
    x[i] = std::copysign(std::exp2(exponent(random)), sign(random));
    y[i] = std::copysign(std::exp2(exponent(random)), sign(random));
  }
  x[0] = NAN;
  y[1] = NAN;
  x[2] = 0.0f, y[2] = -0.0f;
  run("arithmetic", 1, 256, 0, {input(x), input(y), output(out)});
  for (size_t i = 0; i < 256; ++i) {
    const double a = x[i], b = y[i];
    const double expected[] = {
        std::exp(a),  std::exp2(a), std::log(a),       std::tanh(a), std::erf(a), 1 / std::sqrt(a),
        std::sqrt(a), a / b,        std::fma(a, b, a), std::exp(a),  NAN,         NAN,
        std::sin(a),  std::cos(a),  std::fmax(a, b),   std::fabs(a), a / b,       1 / a};
    for (size_t f = 0; f < 18; ++f) {
      const float result = out[f * 256 + i];
      if (f == 10 || f == 11) {  // max and min propagate NaN
        const double wanted = f == 10 ? std::fmax(a, b) : std::fmin(a, b);
        EXPECT_TRUE(std::isnan(a) || std::isnan(b) ? std::isnan(result) : result == wanted) << i;
      } else if (std::isfinite(expected[f])) {
        EXPECT_LE(std::fabs(result - expected[f]), 3e-7 * std::fabs(expected[f]) + 1e-37)
            << "function " << f << " of " << a << ", " << b;
      } else {
        EXPECT_TRUE(same(result, expected[f]) || std::isnan(expected[f])) << f << " of " << a;
      }
    }
  }
  EXPECT_FALSE(std::signbit(out[10 * 256 + 2]));  // max(+0, -0)
  EXPECT_TRUE(std::signbit(out[11 * 256 + 2]));   // min(+0, -0)
}

TEST_F(Primitives, LanesReduceShuffleAndVote) {
  std::vector<float> x(32);
  std::vector<uint32_t> out(320);
  for (size_t i = 0; i < 32; ++i) x[i] = static_cast<float>((i * 37 + 11) % 32) - 15;
  run("lanes", 1, 32, 0, {input(x), output(out)});
  const auto fold = [&](size_t lane, size_t mask, auto combine) {
    float result = x[lane];
    for (size_t other = 0; other < 32; ++other) {
      if (other != lane && ((other ^ lane) & ~mask) == 0) result = combine(result, x[other]);
    }
    return std::bit_cast<uint32_t>(result);
  };
  const auto add = [](float a, float b) { return a + b; };  // small integers: exact in any order
  uint32_t positive = 0;
  for (size_t i = 0; i < 32; ++i) positive |= static_cast<uint32_t>(x[i] > 0) << i;
  for (size_t lane = 0; lane < 32; ++lane) {
    const uint32_t* mine = &out[lane * 10];
    EXPECT_EQ(mine[0], fold(lane, 31, add));
    EXPECT_EQ(mine[1], fold(lane, 3, add));
    EXPECT_EQ(mine[2], fold(lane, 28, add));
    EXPECT_EQ(mine[3], fold(lane, 31, [](float a, float b) { return std::max(a, b); }));
    EXPECT_EQ(mine[4], fold(lane, 12, [](float a, float b) { return std::min(a, b); }));
    EXPECT_EQ(mine[5], std::bit_cast<uint32_t>(x[(lane * 7 + 3) % 32]));
    EXPECT_EQ(mine[6], positive);
    EXPECT_EQ(mine[7], 0u);
    EXPECT_EQ(mine[8], 1u);
    // Element (r, c) of the matrix was r * 8 + c.
    const size_t r = lane / 4, c = lane % 4 * 2;
    EXPECT_EQ(mine[9], (c * 8 + r) | ((c + 1) * 8 + r) << 16);
  }
}

TEST_F(Primitives, LdmatrixHandsOutRowsAndColumns) {
  std::vector<uint32_t> out(32 * 14);
  run("matrices", 1, 32, 512, {output(out)});
  const size_t first[] = {0, 1, 3}, count[] = {1, 2, 4};
  for (size_t lane = 0; lane < 32; ++lane) {
    const size_t r = lane / 4, c = lane % 4 * 2;
    for (size_t form = 0; form < 3; ++form) {
      for (size_t m = 0; m < count[form]; ++m) {
        const size_t base = m * 64;  // element (r, c) of matrix m is m * 64 + r * 8 + c
        EXPECT_EQ(out[lane * 14 + first[form] + m], (base + r * 8 + c) | (base + r * 8 + c + 1)
                                                                             << 16);
        EXPECT_EQ(out[lane * 14 + 7 + first[form] + m],
                  (base + c * 8 + r) | (base + (c + 1) * 8 + r) << 16);
      }
    }
  }
}

TEST_F(Primitives, MmaMultiplies) {
  std::mt19937 random(5);
  std::normal_distribution<float> normal;
  std::vector<float> a(256), b(128), d(3 * 128);
  for (std::vector<float>* values : {&a, &b, &d}) {
    for (float& value : *values) value = normal(random);
  }
  const std::vector<float> before = d;
  run("multiply", 1, 32, 0, {input(a), input(b), output(d)});
  const auto stored = [](size_t kind, float x) {
    if (kind < 2) return round_to(kind == 0 ? DType::kF16 : DType::kBF16, x);
    return double{std::bit_cast<float>((std::bit_cast<uint32_t>(x) + 0x1000u) & 0xffffe000u)};
  };
  for (size_t kind = 0; kind < 3; ++kind) {
    for (size_t i = 0; i < 16; ++i) {
      for (size_t j = 0; j < 8; ++j) {
        const size_t at = kind * 128 + i * 8 + j;
        double sum = before[at];
        for (size_t k = 0; k < (kind == 2 ? 8u : 16u); ++k) {
          sum += stored(kind, a[i * 16 + k]) * stored(kind, b[k * 8 + j]);
        }
        EXPECT_NEAR(d[at], sum, 1e-5) << kind << ": " << i << ", " << j;
      }
    }
  }
}

TEST_F(Primitives, EveryWidthOfLoadStoreAndCopy) {
  std::vector<uint8_t> from(64 * 32), to(64 * 96, 0xee);
  std::mt19937 random(9);
  for (uint8_t& byte : from) byte = static_cast<uint8_t>(random());
  run("moves", 1, 64, 64 * 32, {input(from), output(to)});
  for (size_t i = 0; i < 64; ++i) {
    for (size_t j = 0; j < 32; ++j) {
      const uint8_t source = from[i * 32 + j];
      const bool copied = j < 4 || (j < 8 ? i % 2 == 0 : j < 16 ? i % 3 == 0 : i % 5 == 0);
      EXPECT_EQ(to[i * 96 + j], copied ? source : 0) << i << ", " << j;
      EXPECT_EQ(to[i * 96 + 32 + j], source) << i << ", " << j;
      EXPECT_EQ(to[i * 96 + 64 + j], source) << i << ", " << j;
    }
  }
}

TEST_F(Primitives, NamedBarriersOrderWarps) {
  std::vector<int> out(128, -1);
  run("barriers", 1, 128, 512, {output(out)});
  for (int i = 0; i < 64; ++i) EXPECT_EQ(out[static_cast<size_t>(i)], (i ^ 33) * 3);
  for (int i = 96; i < 128; ++i) EXPECT_EQ(out[static_cast<size_t>(i)], (i - 32) * 3);
}

TEST_F(Primitives, TheLastBlockSeesWhatAllWrote) {
  std::vector<float> parts(40 * 64), sum(64);
  std::vector<uint32_t> counter(1);
  run("last_block", 40, 64, 16, {output(parts), output(counter), output(sum)});
  EXPECT_EQ(counter[0], 0u);
  for (size_t t = 0; t < 64; ++t) EXPECT_EQ(sum[t], static_cast<float>(39 * 40 / 2 + 40 * t));
}

}  // namespace
}  // namespace sundog::codegen
