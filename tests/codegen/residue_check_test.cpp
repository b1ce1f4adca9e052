#include "codegen/residue_check.h"

#include <gtest/gtest.h>

#include <cmath>

#include "codegen/emulator/residue.h"
#include "tests/codegen/generate_cases.h"

namespace sundog::codegen {
namespace {

using sd::emulator::Code;
using sd::emulator::CodeStorage;
using sd::emulator::ResidueField;

// --- the field

ResidueField field_of(std::vector<uint32_t> primes, uint64_t seed = 5) {
  return ResidueField(primes.data(), static_cast<int>(primes.size()), seed);
}

const std::vector<std::vector<uint32_t>> kTowers = {{65519}, {359, 179}, {47, 23, 11},
                                                    {251},   {11, 5},    {167, 83}};

TEST(ResidueField, AddsAndMultipliesLikeNumbers) {
  for (const auto& primes : kTowers) {
    const ResidueField f = field_of(primes);
    for (uint64_t i = 0; i < 300; ++i) {
      const Code x = f.random(3 * i), y = f.random(3 * i + 1), z = f.random(3 * i + 2);
      EXPECT_EQ(f.add(x, y), f.add(y, x));
      EXPECT_EQ(f.mul(x, f.mul(y, z)), f.mul(f.mul(x, y), z));
      EXPECT_EQ(f.mul(x, f.add(y, z)), f.add(f.mul(x, y), f.mul(x, z)));
      EXPECT_EQ(f.sub(x, x), 0u);
      const Code a[] = {x, y, z}, b[] = {z, x, y};
      EXPECT_EQ(f.dot(y, a, b, 3), f.add(y, f.add(f.mul(x, z), f.add(f.mul(y, x), f.mul(z, y)))));
    }
    EXPECT_EQ(f.mul(f.constant(1.0f / 3), f.integer(3)), f.integer(1));
    EXPECT_EQ(f.mul(f.constant(-0.375f), f.integer(-8)), f.integer(3));
    EXPECT_EQ(f.constant(1e-6f), f.inverse(f.integer(1000000)));
    EXPECT_EQ(f.constant(0x1p-100f), f.inverse(f.constant(0x1p100f)));
    EXPECT_EQ(f.constant(0x1p90f), f.mul(f.constant(0x1p60f), f.constant(0x1p30f)));
  }
}

TEST(ResidueField, ExponentialsOfSumsAreProducts) {
  for (const auto& primes : kTowers) {
    const ResidueField f = field_of(primes);
    for (uint64_t i = 0; i < 100; ++i) {
      const Code x = f.random(2 * i), y = f.random(2 * i + 1);
      EXPECT_EQ(f.exp(f.add(x, y)), f.mul(f.exp(x), f.exp(y)));
      EXPECT_EQ(f.exp(f.sub(x, y)), f.div(f.exp(x), f.exp(y)));
    }
    EXPECT_EQ(f.exp(ResidueField::kMinusInfinity), 0u);
  }
}

TEST(ResidueField, LogarithmsUndoExponentials) {
  const ResidueField f = field_of({359, 179});
  for (uint64_t i = 0; i < 100; ++i) {
    const Code x = f.random(i);
    const ResidueField::Parts once = f.parts(f.log(f.exp(x)));
    EXPECT_EQ(once.at[1], f.parts(x).at[1]);
    EXPECT_EQ(once.at[0], f.prime(0));  // nothing is known of it
  }
}

TEST(ResidueField, TheMaximumDependsOnTheSetAlone) {
  for (const auto& primes : kTowers) {
    const ResidueField f = field_of(primes);
    for (uint64_t i = 0; i < 100; ++i) {
      const Code x = f.random(3 * i), y = f.random(3 * i + 1), z = f.random(3 * i + 2);
      EXPECT_EQ(f.max(x, f.max(y, z)), f.max(f.max(z, x), f.max(y, x)));
      EXPECT_EQ(f.max(x, x), x);
      EXPECT_EQ(f.max(x, ResidueField::kMinusInfinity), x);
      bool sure = true;
      EXPECT_TRUE(x == y || f.less(x, y, &sure) != f.less(y, x, &sure) ||
                  f.parts(x).at[0] == f.parts(y).at[0]);
      EXPECT_TRUE(sure);
    }
  }
}

TEST(ResidueField, WhatHasNoValueIsAbsentAndNotForgotten) {
  const ResidueField f = field_of({359, 179});
  const Code zero_below = f.integer(359), nothing = f.inverse(0);
  EXPECT_EQ(nothing, f.absent());
  EXPECT_EQ(f.parts(f.inverse(zero_below)).at[0], 359u);
  EXPECT_NE(f.parts(f.inverse(zero_below)).at[1], 179u);
  EXPECT_EQ(f.add(nothing, f.integer(1)), f.absent());
  EXPECT_EQ(f.mul(nothing, 0), f.absent());
  bool sure = true;
  f.less(nothing, f.integer(2), &sure);
  EXPECT_FALSE(sure);
  EXPECT_EQ(f.add(ResidueField::kUnwritten, f.integer(1)), ResidueField::kUnwritten);
  EXPECT_EQ(f.sub(ResidueField::kMinusInfinity, ResidueField::kMinusInfinity), f.absent());
}

TEST(ResidueField, StorageKeepsEveryCode) {
  for (const auto& primes : kTowers) {
    const ResidueField f = field_of(primes);
    for (const CodeStorage storage : {CodeStorage::kByte, CodeStorage::kF16, CodeStorage::kBf16,
                                      CodeStorage::kOther16, CodeStorage::kWord}) {
      if (storage == CodeStorage::kByte && f.codes() > 253) continue;
      for (Code x = 0; x < f.codes(); ++x) EXPECT_EQ(f.load(storage, f.store(storage, x)), x);
      for (const Code x :
           {ResidueField::kUnwritten, ResidueField::kMinusInfinity, ResidueField::kPlusInfinity}) {
        EXPECT_EQ(f.load(storage, f.store(storage, x)), x);
      }
      EXPECT_EQ(f.store(storage, 0), 0u);
    }
    EXPECT_EQ(f.load(CodeStorage::kF16, 0x3c00), f.integer(1));
    EXPECT_EQ(f.load(CodeStorage::kBf16, 0x3f80), f.integer(1));
    EXPECT_EQ(f.load(CodeStorage::kByte, 0xff), ResidueField::kUnwritten);
  }
}

// --- kernels

GenerateCase norm() {
  return {"norm",
          "program p(n = 16, h = 200, d = 24) {\n  input X: f16[n, h]\n  input W: f16[h, d]\n"
          "  r[n] = rsqrt(mean[h](X * X) + 1e-6)\n"
          "  output O: f16[n, d] = sum[h](X * r * W)\n}\n",
          "ugraph g of p {\n  kernel k0 grid(d.o) warps(2) {\n    split h = h.o * h.i(64)\n"
          "    split d = d.o * d.i(8)\n    loop h.o stages(2) {\n"
          "      xs[n, h.i] = X : shared f16\n      ws[h.i, d.i] = W : shared f16\n"
          "      q[n] = sum[h.o, h.i](xs * xs) : reg f32\n"
          "      t[n, d.i] = sum[h.o, h.i](xs * ws) : reg f32 mma(m16n8k16) warps(h.i/2)\n    }\n"
          "    o[n, d.i] = rsqrt(q / size(h) + 1e-6) * t : reg f32\n    store o -> O\n  }\n}\n"};
}

// Rows are summed in f32, so that a single term is within the tolerance of f16.
GenerateCase row_sums() {
  return {"row_sums",
          "program p(n = 3, h = 4000) {\n  input X: f16[n, h] in [0, 1]\n"
          "  output O: f16[n] = sum[h](X)\n}\n",
          "ugraph g of p {\n  kernel k0 grid(n) warps(4) {\n"
          "    t = sum[h](X) : reg f32\n    store t -> O\n  }\n}\n"};
}

GenerateCase online_softmax(const std::string& mma, int warps) {
  return {"attention",
          "program p(q = 128, e = 64, f = 32, k = 120) {\n  input Q: f16[q, e]\n  input K: f16[k, "
          "e]\n  input V: f16[k, f]\n  s[q, k] = sum[e](Q * K) * rsqrt(size(e) + 1)\n"
          "  m[q] = max[k](s)\n  p[q, k] = exp(s - m)\n"
          "  output O: f16[q, f] = sum[k](p * V) / sum[k](p)\n}\n",
          "ugraph g of p {\n  kernel k0 grid(q.o) warps(" + std::to_string(warps) +
              ") {\n    split q = q.o * q.i(64)\n    "
              "split k = k.o * k.i(32)\n    qs[q.i, e] = Q : shared f16\n    loop k.o stages(3) {\n"
              "      ks[k.i, e] = K : shared f16\n      vs[k.i, f] = V : shared f16\n"
              "      t[q.i, k.i] = sum[e](qs * ks) : reg f32 " +
              mma +
              "\n      m[q.i] = max[k.o, k.i](t * rsqrt(size(e) + 1)) : reg f32\n"
              "      p[q.i, k.i] = exp(t * rsqrt(size(e) + 1) - m) : reg f16\n"
              "      o[q.i, f] = sum[k.o, k.i](p * vs) : reg f32 " +
              mma +
              " rescale m\n"
              "      l[q.i] = sum[k.o, k.i](p) : reg f32 rescale m\n    }\n"
              "    out[q.i, f] = o / l : reg f32\n    store out -> O\n  }\n}\n"};
}

// One kernel, one thread an element or so: whatever its terms are.
GenerateCase elementwise(const std::string& name, const std::string& dtype,
                         const std::string& value) {
  return {name,
          "program p(n = 70) {\n  input x: " + dtype + "[n]\n  input y: " + dtype +
              "[n]\n  output z: f32[n] = " + value + "\n}\n",
          "ugraph g of p {\n  kernel k0 grid() warps(2) {\n    xs[n] = x : shared " + dtype +
              "\n    ys[n] = y : reg " + dtype + "\n    z[n] = " +
              [&] {
                std::string text = value;
                for (size_t i = 0; i < text.size(); ++i) {
                  const bool name_here = (text[i] == 'x' || text[i] == 'y') &&
                                         (i == 0 || !std::isalpha(text[i - 1])) &&
                                         (i + 1 == text.size() || !std::isalpha(text[i + 1]));
                  if (name_here) text.insert(++i, "s");
                }
                return text;
              }() +
              " : reg f32\n    store z -> z\n  }\n}\n"};
}

void expect_exact(const GenerateCase& c, const std::string& primes) {
  const GenerateOutcome outcome = run_exact(c);
  EXPECT_TRUE(outcome.passed) << c.name << ": " << outcome.failure;
  EXPECT_TRUE(outcome.residues_passed) << c.name << ": " << outcome.residues;
  EXPECT_NE(outcome.residues.find("modulo " + primes), std::string::npos) << outcome.residues;
}

TEST(ResidueCheck, RightKernelsAgreeWhateverTheOrder) {
  expect_exact(norm(), "65519");
  expect_exact(row_sums(), "65519");
  expect_exact(online_softmax("mma(m16n8k16) warps(q.i/4)", 4), "359 and 179");
  expect_exact(online_softmax("mma(m64n8k16)", 4), "359 and 179");
}

TEST(ResidueCheck, OfNothingNoBoundIsGiven) {
  ResidueCheck check;
  check.primes = {65519};
  check.rounds = 1;
  check.error_log2 = -INFINITY;
  EXPECT_EQ(to_string(check), "residues modulo 65519: there is no element to compare");
  check.error_log2 = -31;
  EXPECT_EQ(to_string(check), "residues modulo 65519 equal in 1 rounds (2^-31)");
}

TEST(ResidueCheck, FunctionsAndDtypes) {
  expect_exact(elementwise("silu", "f16", "silu(x) * y + gelu(y)"), "359 and 179");
  expect_exact(elementwise("nested", "bf16", "exp(x - sigmoid(y))"), "47, 23 and 11");
  expect_exact(elementwise("bytes", "f8e4m3", "x * y + max(x, -y) / 3"), "251");
  expect_exact(elementwise("integers", "i8", "(x + y) * 0.3 + tanh(x)"), "251");
  expect_exact(elementwise("bytes_exp", "f8e5m2", "exp(x) / (1 + exp(y))"), "11 and 5");
  expect_exact(elementwise("wide", "f32", "abs(x) + min(x, y) + sqrt(y * y + 2) + index(n)"),
               "65519");
}

struct Fault {
  GenerateCase c;
  std::string from, to;
};

// Each leaves floats within their tolerance.
TEST(ResidueCheck, SeesWhatAToleranceLetsPass) {
  const Fault faults[] = {
      {row_sums(), "+ v < 4000) ?", "+ v < 3999) ?"},  // the last of 4,000 terms
      {norm(), " * 0.005f", " * 0.00501f"},
      {norm(), "1e-06f", "2e-06f"},
      {online_softmax("mma(m16n8k16) warps(q.i/4)", 4), "0.12403473f", "0.12409473f"},
  };
  for (const Fault& fault : faults) {
    const GenerateOutcome outcome = run_exact_changed(fault.c, fault.from, fault.to);
    EXPECT_TRUE(outcome.passed) << fault.from << ": " << outcome.failure;
    EXPECT_FALSE(outcome.residues_passed) << fault.from;
    EXPECT_NE(outcome.residues.find("residues differ: O["), std::string::npos) << outcome.residues;
  }
}

}  // namespace
}  // namespace sundog::codegen
