// Products of warp groups: every way in which an operand can lie, and that what the emitted text
// does for them is needed: without it the emulator complains.
#include <gtest/gtest.h>

#include "codegen/generate.h"
#include "codegen/kernel_check.h"
#include "codegen/launch_emulator.h"
#include "core/device.h"
#include "core/text.h"
#include "tests/codegen/generate_cases.h"

namespace sundog::codegen {
namespace {

// A product of m x k and k x n whose operands have the axis orders given.
GenerateCase product(const std::string& name, const std::string& dtype, int m, int n, int k,
                     const std::string& a, const std::string& b, int warps, bool swap = false) {
  const std::string sizes = "(m = " + std::to_string(m) + ", n = " + std::to_string(n) +
                            ", k = " + std::to_string(k) + ")";
  return {name,
          "program p" + sizes + " {\n  input A: " + dtype + "[" + a + "]\n  input B: " + dtype +
              "[" + b + "]\n  output C: f32[m, n] = sum[k](A * B)\n}\n",
          "ugraph g of p {\n  kernel k0 grid() warps(" + std::to_string(warps) + ") {\n    as[" +
              a + "] = A : shared " + dtype + "\n    bs[" + b + "] = B : shared " + dtype +
              "\n    c[m, n] = sum[k](as * bs) : reg f32 mma(m64n8k16" + (swap ? ", swap" : "") +
              ")\n    store c -> C\n  }\n}\n"};
}

void expect_warpgroups(const GenerateCase& c) {
  const GenerateOutcome outcome = run_case(c);
  EXPECT_TRUE(outcome.passed) << c.name << ": " << outcome.failure;
  EXPECT_NE(outcome.cuda.find("sd::warpgroup_mma<"), std::string::npos) << c.name;
}

TEST(EmitWarpgroup, MultipliesHoweverTheOperandsLie) {
  expect_warpgroups(product("along_k", "f16", 64, 64, 64, "m, k", "n, k", 4));
  expect_warpgroups(product("across_k", "f16", 64, 64, 48, "k, m", "k, n", 4));
  expect_warpgroups(product("bf16", "bf16", 128, 32, 32, "m, k", "k, n", 8));
  expect_warpgroups(product("rows_of_32_bytes", "f16", 64, 16, 16, "m, k", "k, n", 4));
  expect_warpgroups(product("odd_width", "f16", 64, 104, 16, "m, k", "n, k", 4));
  expect_warpgroups(product("swapped", "f16", 16, 64, 32, "m, k", "k, n", 4, true));
}

TEST(EmitWarpgroup, CutsLongRowsIntoPanels) {
  expect_warpgroups(product("panels_along", "f16", 64, 24, 128, "m, k", "n, k", 4));
  expect_warpgroups(product("panels_across", "f16", 128, 192, 16, "k, m", "k, n", 4));
}

TEST(EmitWarpgroup, GivesAGroupSeveralRowsOfAtoms) {
  expect_warpgroups(product("two_a_group", "f16", 256, 16, 32, "m, k", "k, n", 8));
  expect_warpgroups(product("idle_warps", "f16", 64, 16, 32, "m, k", "k, n", 8));
}

TEST(EmitWarpgroup, LeavesWhatItCannotDoToSingleWarps) {
  for (const GenerateCase& c : {product("rows", "f16", 48, 16, 32, "m, k", "k, n", 4),
                                product("columns", "f16", 64, 12, 32, "m, k", "n, k", 4),
                                product("row_bytes", "f16", 64, 48, 32, "m, k", "k, n", 4),
                                product("warps", "f16", 64, 16, 32, "m, k", "k, n", 2)}) {
    const GenerateOutcome outcome = run_case(c);
    EXPECT_TRUE(outcome.passed) << c.name << ": " << outcome.failure;
    EXPECT_EQ(outcome.cuda.find("sd::warpgroup_mma<"), std::string::npos) << c.name;
  }
}

// Attention: the second product takes its rows from registers, and runs on while rows are summed.
GenerateCase attention() {
  return {"attention",
          "program p(q = 128, e = 64, f = 32, k = 120) {\n  input Q: f16[q, e]\n  input K: f16[k, "
          "e]\n  input V: f16[k, f]\n  s[q, k] = sum[e](Q * K) / 8\n  m[q] = max[k](s)\n  "
          "p[q, k] = exp(s - m)\n  output O: f16[q, f] = sum[k](p * V) / sum[k](p)\n}\n",
          "ugraph g of p {\n  kernel k0 grid(q.o) warps(4) {\n    split q = q.o * q.i(64)\n    "
          "split k = k.o * k.i(32)\n    qs[q.i, e] = Q : shared f16\n    loop k.o stages(3) {\n"
          "      ks[k.i, e] = K : shared f16\n      vs[k.i, f] = V : shared f16\n"
          "      t[q.i, k.i] = sum[e](qs * ks) : reg f32 mma(m64n8k16)\n"
          "      m[q.i] = max[k.o, k.i](t / 8) : reg f32\n"
          "      p[q.i, k.i] = exp(t / 8 - m) : reg f16\n"
          "      o[q.i, f] = sum[k.o, k.i](p * vs) : reg f32 mma(m64n8k16) rescale m\n"
          "      l[q.i] = sum[k.o, k.i](p) : reg f32 rescale m\n    }\n"
          "    out[q.i, f] = o / l : reg f32\n    store out -> O\n  }\n}\n"};
}

TEST(EmitWarpgroup, ChainsProductsThroughRegisters) {
  expect_warpgroups(attention());
  const std::string cuda = run_case(attention()).cuda;
  // The second product is waited for behind the sum beside it.
  const size_t sum = cuda.find("// l[q.i] = sum"), wait = cuda.find("sd::warpgroup_wait(o);");
  ASSERT_NE(sum, std::string::npos);
  ASSERT_NE(wait, std::string::npos);
  EXPECT_LT(sum, wait);
}

// What the emulator says of attention whose emitted text was changed.
std::string broken(const std::string& from, const std::string& to) {
  return run_changed(attention(), from, to).failure;
}

TEST(EmitWarpgroup, NeedsFencesGroupsAndWaits) {
  EXPECT_EQ(broken("sd::warpgroup_fence();", "sd::warpgroup_fence();"), "");
  EXPECT_NE(broken("sd::fence_async_proxy();", "").find("missing fence"), std::string::npos);
  EXPECT_NE(broken("sd::warpgroup_commit();", "").find("uncommitted product"), std::string::npos);
  EXPECT_NE(broken("sd::warpgroup_wait(t);", ""), "");
  EXPECT_NE(broken("sd::warpgroup_wait(o);", ""), "");
}

TEST(EmitWarpgroup, IsRefusedWhereTheDeviceLacksThem) {
  const GenerateCase c = attention();
  const Result<Program> program = parse_program(c.program, "p.sd", {});
  const Result<MuGraph> graph = parse_mugraph(c.graph, "p.mu", *program);
  const Result<Generated> generated = generate(*graph, *program, *find_device("a100"), {});
  ASSERT_FALSE(generated.ok());
  EXPECT_EQ(generated.error().code, ErrorCode::kUnsupported);
}

}  // namespace
}  // namespace sundog::codegen
