#include "codegen/emit_library.h"

#include <gtest/gtest.h>

#include "codegen/generate.h"
#include "core/device.h"
#include "core/text.h"
#include "tests/codegen/generate_cases.h"

namespace sundog::codegen {
namespace {

// y = relu(x w) w2 with the first product a library's, between kernels of the emitted text.
const GenerateCase kBetween = {
    "between",
    "program p(n = 20, h = 24, d = 40, e = 16) {\n  input x: f16[n, h]\n  input w: f16[h, d]\n"
    "  input v: f16[d, e]\n  r[n, d] = max(sum[h](2 * x * w), 0)\n"
    "  output O: f16[n, e] = sum[d](r * v)\n}\n",
    "ugraph u of p {\n"
    "  kernel twice grid(n) warps(1) {\n    t[h] = 2 * x : reg f16\n"
    "    store t -> x2 : f16[n, h]\n  }\n"
    "  kernel up library(gemm) {\n    c[n, d] = sum[h](x2 * w) : reg f32\n"
    "    store c -> hid : f32[n, d]\n  }\n"
    "  kernel down grid(n) warps(1) {\n    z[e] = sum[d](max(hid, 0) * v) : reg f32\n"
    "    store z -> O\n  }\n}\n"};

Result<Generated> emitted(const GenerateCase& c, const char* device) {
  const Result<Program> program = parse_program(c.program, "p.sd", {});
  if (!program.ok()) return program.error();
  const Result<MuGraph> graph = parse_mugraph(c.graph, "u.mu", *program);
  if (!graph.ok()) return graph.error();
  return generate(*graph, *program, *find_device(device), {});
}

TEST(EmitLibrary, AFileWithOneSaysSoAndIncludesIt) {
  const Result<Generated> g = emitted(kBetween, "h200");
  ASSERT_TRUE(g.ok()) << to_string(g.error());
  const auto has = [&](const char* text) { return g->cuda.find(text) != std::string::npos; };
  EXPECT_TRUE(has("// By a library (cuBLAS), which the program is linked with (-lcublas): u_up."));
  EXPECT_TRUE(has("#include <cublas_v2.h>"));
  EXPECT_TRUE(has("CUBLAS_COMPUTE_32F"));
  // Behind the launcher's guard: NVRTC and the emulator see nothing of it.
  EXPECT_LT(g->cuda.find("#if !defined(__CUDACC_RTC__) && !defined(SUNDOG_EMULATOR)\n"),
            g->cuda.find("#include <cublas_v2.h>"));
  ASSERT_EQ(g->plan.kernels.size(), 3u);
  EXPECT_EQ(library_call(g->plan, g->plan.kernels[1], {"w", "x", "c"}),
            "if (int error = u_gemm(CUBLAS_OP_N, CUBLAS_OP_N, 40, 20, 24, w, 40, 0, x, 24, 0, "
            "CUDA_R_16F, c, 40, 0, CUDA_R_32F, 1, static_cast<char*>(workspace) + 4352, stream)) "
            "return error;");
  EXPECT_EQ(g->plan.library_bytes, int64_t{32} << 20);
  EXPECT_FALSE(g->plan.kernels[1].dependent);
  EXPECT_FALSE(g->plan.kernels[2].dependent) << "the library says nothing of starting early";
  EXPECT_EQ(emitted(kBetween, "a100")->plan.library_bytes, int64_t{4} << 20);
  const Result<Generated> plain =
      emitted({"plain", kBetween.program,
               "ugraph u of p {\n  kernel up grid(n) warps(1) {\n"
               "    c[d] = sum[h](2 * x * w) : shared f32\n    r[d] = max(c, 0) : shared f32\n"
               "    z[e] = sum[d](r * v) : reg f32\n    store z -> O\n  }\n}\n"},
              "h200");
  ASSERT_TRUE(plain.ok()) << to_string(plain.error());
  EXPECT_EQ(plain->cuda.find("cublas"), std::string::npos);
  EXPECT_EQ(plain->plan.library_bytes, 0);
}

TEST(EmitLibrary, RunsOnTheEmulatorInFloatsAndResidues) {
  const GenerateOutcome outcome = run_exact(kBetween);
  EXPECT_TRUE(outcome.passed) << outcome.failure << outcome.cuda;
  EXPECT_EQ(outcome.problems, "");
  EXPECT_TRUE(outcome.residues_passed) << outcome.residues;
}

TEST(EmitLibrary, StridesOffsetsAndBatchesAreThoseOfTheProgram) {
  expect_right({"strides",
                "program p(b = 3, n = 5, h = 7, d = 6) {\n"
                "  input x: bf16[b, n, h] stride(45, 1, 6) offset 4\n"
                "  input w: bf16[h, d] stride(1, 9) align 2\n"
                "  output O: f32[b, d, n] = sum[h](x * w)\n}\n",
                "ugraph u of p {\n  kernel g library(gemm) {\n"
                "    c[b, n, d] = sum[h](x * w) : reg f32\n    store c -> O\n  }\n}\n"});
}

TEST(EmitLibrary, AWrongSizeInItsPlaceIsSeen) {
  const GenerateOutcome outcome = run_exact_changed(kBetween, "k < 24", "k < 23");
  EXPECT_FALSE(outcome.passed);
  EXPECT_FALSE(outcome.residues_passed);
}

}  // namespace
}  // namespace sundog::codegen
