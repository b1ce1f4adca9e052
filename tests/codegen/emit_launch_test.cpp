// Kernels that start before those before them are done: what the emitted text waits for is needed,
// without it the emulator complains.
#include <gtest/gtest.h>

#include "codegen/emit_kernel.h"
#include "codegen/generate.h"
#include "core/device.h"
#include "core/text.h"
#include "tests/codegen/generate_cases.h"

namespace sundog::codegen {
namespace {

// The text with lines joined: where a long one is broken is none of these tests' business.
std::string unbroken(const std::string& text) {
  std::string joined;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\n') {
      joined += text[i];
      continue;
    }
    while (i + 1 < text.size() && text[i + 1] == ' ') ++i;
    joined += ' ';
  }
  return joined;
}

// A product whose reduced axis is cut into two parts; the second kernel joins them.
GenerateCase split_sum() {
  return {"split_sum",
          "program p(n = 8, h = 64, d = 48) {\n  input X: f16[n, h]\n  input W: f16[h, d]\n"
          "  input B: f16[n, d]\n  output O: f16[n, d] = sum[h](X * W) + B\n}\n",
          "ugraph g of p {\n  kernel part grid(d.o, h.s) warps(2) {\n"
          "    split h = h.s(2) * h.i(32)\n    split d = d.o(3) * d.i(16)\n"
          "    xs[n, h.i] = X : shared f16\n    ws[h.i, d.i] = W : shared f16\n"
          "    acc[n, d.i] = sum[h.i](xs * ws) : reg f32\n    store acc -> t : f32[h.s, n, d]\n"
          "  }\n  kernel join grid(d.o) warps(2) {\n    split d = d.o(3) * d.i(16)\n"
          "    b[n, d.i] = B : shared f16\n    s[n, d.i] = sum[h.s](t) : reg f32\n"
          "    o[n, d.i] = s + b : reg f32\n    store o -> O\n  }\n}\n"};
}

// Three kernels in a row; the last reads what the first wrote.
GenerateCase chain() {
  return {"chain",
          "program p(n = 96) {\n  input X: f32[n]\n  a[n] = X * 2\n  b[n] = a + 1\n"
          "  output O: f32[n] = a * b\n}\n",
          "ugraph g of p {\n  kernel k0 grid(n.o) warps(1) {\n    split n = n.o * n.i(32)\n"
          "    a[n.i] = X * 2 : reg f32\n    store a -> ta : f32[n]\n  }\n"
          "  kernel k1 grid(n.o) warps(1) {\n    split n = n.o * n.i(32)\n"
          "    b[n.i] = ta + 1 : reg f32\n    store b -> tb : f32[n]\n  }\n"
          "  kernel k2 grid(n.o) warps(1) {\n    split n = n.o * n.i(32)\n"
          "    o[n.i] = ta * tb : reg f32\n    store o -> O\n  }\n}\n"};
}

TEST(EmitLaunch, LoadsOfInputsComeBeforeTheWait) {
  const GenerateOutcome outcome = run_case(split_sum());
  EXPECT_TRUE(outcome.passed) << outcome.failure;
  const std::string& text = outcome.cuda;
  const size_t part = text.find("g_part("), join = text.find("g_join(");
  ASSERT_LT(part, join);
  const size_t launch = text.find("sd::grid_launch_dependents();", part);
  EXPECT_LT(launch, join);
  const size_t load = text.find("// b[n, d.i] = B", join),
               wait = text.find("sd::grid_wait();", join),
               read = text.find("// s[n, d.i] = sum[h.s]", join);
  EXPECT_LT(load, wait);
  EXPECT_LT(wait, read);
  // What the first kernel writes is no memory that nobody changes.
  EXPECT_NE(text.find("const float* t)", join), std::string::npos) << text.substr(join, 300);
}

TEST(EmitLaunch, AKernelWaitsOnceAndTheFirstNever) {
  const GenerateOutcome outcome = run_case(chain());
  EXPECT_TRUE(outcome.passed) << outcome.failure;
  std::string rest = outcome.cuda.substr(outcome.cuda.find("g_k0("));
  int waits = 0, starts = 0;
  for (size_t at = 0; (at = rest.find("sd::grid_wait();", at)) != std::string::npos; ++at) ++waits;
  for (size_t at = 0; (at = rest.find("sd::grid_launch_dependents();", at)) != std::string::npos;
       ++at) {
    ++starts;
  }
  EXPECT_EQ(waits, 2);
  EXPECT_EQ(starts, 2);
  EXPECT_GT(rest.find("sd::grid_wait();"), rest.find("g_k1("));
}

TEST(EmitLaunch, AMissingWaitIsFound) {
  const std::string found = run_changed(split_sum(), "sd::grid_wait();", "").problems;
  EXPECT_NE(found.find("global race"), std::string::npos) << found;
  EXPECT_NE(found.find("an earlier kernel"), std::string::npos) << found;
  EXPECT_NE(found.find("missing wait"), std::string::npos) << found;
  EXPECT_NE(found.find("schedule dependence"), std::string::npos) << found;
  EXPECT_NE(run_changed(chain(), "sd::grid_wait();", "").failure, "");
}

TEST(EmitLaunch, AWaitOfSomeThreadsIsFound) {
  const std::string found =
      run_changed(split_sum(), "sd::grid_wait();", "if (warp == 0) sd::grid_wait();").problems;
  EXPECT_NE(found.find("global race"), std::string::npos) << found;
}

// An earlier kernel's output must not be written before it is done either.
TEST(EmitLaunch, AStoreBeforeTheWaitIsFound) {
  const GenerateCase c = {
      "two_outputs",
      "program p(n = 64) {\n  input X: f32[n]\n  output A: f32[n] = X + 1\n"
      "  output B: f32[n] = X * 3\n}\n",
      "ugraph g of p {\n  kernel k0 grid(n.o) warps(1) {\n    split n = n.o * n.i(32)\n"
      "    a[n.i] = X + 1 : reg f32\n    store a -> A\n  }\n"
      "  kernel k1 grid(n.o) warps(1) {\n    split n = n.o * n.i(32)\n"
      "    b[n.i] = X * 3 : reg f32\n    store b -> B\n  }\n}\n"};
  expect_right(c);
  const std::string found = run_changed(c, "sd::grid_wait();", "").problems;
  EXPECT_NE(found.find("before grid_wait"), std::string::npos) << found;
}

TEST(EmitLaunch, OlderDevicesRunKernelsInTurn) {
  const GenerateCase c = split_sum();
  const Result<Program> program = parse_program(c.program, "p.sd", {});
  const Result<MuGraph> graph = parse_mugraph(c.graph, "p.mu", *program);
  const Result<Generated> old = generate(*graph, *program, *find_device("a100"), {});
  ASSERT_TRUE(old.ok());
  EXPECT_EQ(unbroken(old->cuda).find("sd::grid_wait();"), std::string::npos);
  EXPECT_EQ(unbroken(old->cuda).find("cudaLaunchKernelEx"), std::string::npos);
  EXPECT_FALSE(old->plan.kernels[1].dependent);
  const Result<Generated> now = generate(*graph, *program, *find_device("h200"), {});
  ASSERT_TRUE(now.ok());
  EXPECT_FALSE(now->plan.kernels[0].dependent);
  EXPECT_TRUE(now->plan.kernels[1].dependent);
  EXPECT_NE(unbroken(now->cuda).find("cudaLaunchKernelEx(&config, g_join, "), std::string::npos);
}

// --- kernels that the last blocks of another one run

// The same product; the last of four parts of a tile adds them up.
GenerateCase last_block() {
  return {"last_block",
          "program p(n = 8, h = 128, d = 40) {\n  input X: f16[n, h]\n  input W: f16[h, d]\n"
          "  input B: f16[n, d]\n  output O: f16[n, d] = sum[h](X * W) + B\n"
          "  output R: f32[n, d] = max[h](X * W)\n}\n",
          "ugraph g of p {\n  kernel part grid(d.o, h.s) warps(2) {\n"
          "    split h = h.s(4) * h.i(32)\n    split d = d.o(3) * d.i(16)\n"
          "    xs[n, h.i] = X : shared f16\n    ws[h.i, d.i] = W : shared f16\n"
          "    acc[n, d.i] = sum[h.i](xs * ws) : reg f32 mma(m16n8k16)\n"
          "    top[n, d.i] = max[h.i](xs * ws) : reg f32\n"
          "    store acc -> t : f32[h.s, n, d]\n    store top -> u : f32[h.s, n, d]\n"
          "  }\n  kernel join grid(d.o) warps(2) via last_block {\n    split d = d.o(3) * d.i(16)\n"
          "    s[n, d.i] = sum[h.s](t) : reg f32\n    o[n, d.i] = s + B : reg f32\n"
          "    r[n, d.i] = max[h.s](u) : reg f32\n    store o -> O\n    store r -> R\n  }\n}\n"};
}

TEST(EmitLaunch, TheLastBlockJoinsTheParts) {
  const GenerateOutcome outcome = run_case(last_block());
  EXPECT_TRUE(outcome.passed) << outcome.failure;
  EXPECT_EQ(unbroken(outcome.cuda).find("g_join("), std::string::npos);
  EXPECT_NE(unbroken(outcome.cuda).find("float* t, float* u, uint32_t* __restrict__ arrivals)"),
            std::string::npos);
}

TEST(EmitLaunch, LastBlocksNeedFencesBarriersAndTheWholeGroup) {
  const auto found = [](const std::string& from, const std::string& to) {
    return run_changed(last_block(), from, to).problems;
  };
  const std::string arrival = "last = sd::atomic_increment(arrivals + d_o, 3) == 3;";
  EXPECT_EQ(found(arrival, arrival), "");
  // No fence at all; none in front of the arrival; none behind it.
  EXPECT_NE(found("sd::fence_device();", "").find("global race"), std::string::npos);
  EXPECT_NE(found("sd::fence_device();\n    " + arrival, arrival).find("global race"),
            std::string::npos);
  EXPECT_NE(found(arrival + "\n    sd::fence_device();", arrival).find("global race"),
            std::string::npos);
  EXPECT_NE(found("sd::sync_threads_any(last)", "sd::vote_any(last)").find("global race"),
            std::string::npos);
  EXPECT_NE(found("sd::sync_threads();\n  bool last", "bool last").find("global race"),
            std::string::npos);
  // The second of four is not the last, and a counter that only grows is good for one launch.
  EXPECT_NE(run_changed(last_block(), " == 3;", " == 1;").failure, "");
  EXPECT_NE(found("sd::atomic_increment(arrivals + d_o, 3)", "sd::atomic_add(arrivals + d_o, 1u)")
                .find("counter not reset"),
            std::string::npos);
}

TEST(EmitLaunch, ALaunchWithItsLastBlocksIsOnePlanEntry) {
  const GenerateCase c = last_block();
  const Result<Program> program = parse_program(c.program, "p.sd", {});
  const Result<MuGraph> graph = parse_mugraph(c.graph, "p.mu", *program);
  const Result<Generated> generated = generate(*graph, *program, *find_device("h200"), {});
  ASSERT_TRUE(generated.ok());
  const LaunchPlan& plan = generated->plan;
  ASSERT_EQ(plan.kernels.size(), 1u);
  EXPECT_EQ(plan.kernels[0].grid[0], 12);
  EXPECT_EQ(plan.zeroed_bytes, 256);
  EXPECT_EQ(plan.kernels[0].arguments.back().kind, PlanArgument::Kind::kWorkspace);
  EXPECT_EQ(plan.kernels[0].arguments.back().offset, 0);
  EXPECT_EQ(plan.workspace_bytes, 256 + 2 * 5120);
  EXPECT_NE(unbroken(generated->cuda).find("g_zeroed_bytes() { return 256; }"), std::string::npos);
  EXPECT_NE(unbroken(generated->cuda)
                .find("reinterpret_cast<uint32_t*>(static_cast<char*>(workspace) + 0)"),
            std::string::npos);
}

// Attention over parts of the keys: maxima, sums and outputs of each part, rescaled when joined.
TEST(EmitLaunch, JoinsRescaledParts) {
  const GenerateCase c = split_attention("grid(q.o) warps(1) via last_block", "f");
  const GenerateOutcome outcome = run_exact(c);
  EXPECT_TRUE(outcome.passed) << outcome.failure;
  EXPECT_TRUE(outcome.residues_passed) << outcome.residues;
  EXPECT_NE(run_changed(c, "sd::fence_device();", "").problems.find("global race"),
            std::string::npos);
}

// Bulk copies, whose barriers in shared memory the joined kernel must leave alone, and a kernel
// behind that starts early.
TEST(EmitLaunch, JoinsBehindBulkCopiesAndBeforeAnotherKernel) {
  const GenerateCase c = {
      "bulk_last_block",
      "program p(n = 16, h = 512, d = 64) {\n  input X: f16[n, h]\n  input W: f16[h, d]\n"
      "  y[n, d] = sum[h](X * W)\n  output O: f32[n, d] = y * rsqrt(mean[d](y * y) + 1)\n}\n",
      "ugraph g of p {\n  kernel part grid(d.o, h.s) warps(4) {\n"
      "    split h = h.s(2) * h.o(4) * h.i(64)\n    split d = d.o(2) * d.i(32)\n"
      "    loop h.o stages(3) bulk {\n"
      "      xs[n, h.i] = X : shared f16\n      ws[h.i, d.i] = W : shared f16\n"
      "      acc[n, d.i] = sum[h.o, h.i](xs * ws) : reg f32 mma(m16n8k16) warps(h.i/4)\n    }\n"
      "    store acc -> t : f32[h.s, n, d]\n  }\n"
      "  kernel join grid(d.o) warps(4) via last_block {\n    split d = d.o(2) * d.i(32)\n"
      "    s[n, d.i] = sum[h.s](t) : shared f32\n    store s -> y : f32[n, d]\n  }\n"
      "  kernel norm grid(n) warps(2) {\n    ys[d] = y : reg f32\n"
      "    v[] = sum[d](ys * ys) : reg f32\n"
      "    o[d] = ys * rsqrt(v / size(d) + 1) : reg f32\n    store o -> O\n  }\n}\n"};
  const GenerateOutcome outcome = run_case(c);
  EXPECT_TRUE(outcome.passed) << outcome.failure << outcome.cuda.substr(outcome.cuda.size() - 6000);
  EXPECT_NE(unbroken(outcome.cuda).find("sd::bulk_copy("), std::string::npos);
  EXPECT_NE(run_changed(c, "sd::grid_wait();", "").failure, "");
}

}  // namespace
}  // namespace sundog::codegen
