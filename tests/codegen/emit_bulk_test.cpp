// Loops whose loads are bulk tensor copies: tiles of every kind against their program, and that
// each thing that the emitted text does for them is needed: without it the emulator complains.
#include <gtest/gtest.h>

#include "codegen/generate.h"
#include "codegen/kernel_check.h"
#include "codegen/launch_emulator.h"
#include "core/device.h"
#include "core/text.h"
#include "tests/codegen/generate_cases.h"

namespace sundog::codegen {
namespace {

// x[n, h] * w[h, d] with steps of `step` along h.
GenerateCase streaming(const std::string& name, int n, int h, int d, int step, int tile, int stages,
                       const std::string& attributes = "") {
  const auto text = [](int x) { return std::to_string(x); };
  return {name,
          "program p(n = " + text(n) + ", h = " + text(h) + ", d = " + text(d) +
              ") {\n  input x: f16[n, h]" + attributes +
              "\n  input w: f16[h, d]\n  output y: f32[n, d] = sum[h](x * w)\n}\n",
          "ugraph g of p {\n  kernel k0 grid(d.o) warps(4) {\n    split h = h.o * h.i(" +
              text(step) + ")\n    split d = d.o * d.i(" + text(tile) + ")\n    loop h.o stages(" +
              text(stages) +
              ") bulk {\n      xs[n, h.i] = x : shared f16\n      ws[h.i, d.i] = w : shared f16\n"
              "      y[n, d.i] = sum[h.o, h.i](xs * ws) : reg f32 mma(m16n8k16, swap) "
              "warps(h.i/4)\n    }\n    store y -> y\n  }\n}\n"};
}

void expect_bulk(const GenerateCase& c, bool bulk = true) {
  const GenerateOutcome outcome = run_case(c);
  EXPECT_TRUE(outcome.passed) << c.name << ": " << outcome.failure;
  const bool found = outcome.cuda.find("  sd::bulk_copy(") != std::string::npos &&
                     outcome.cuda.find("_map, ") != std::string::npos;
  EXPECT_EQ(found, bulk) << c.name;
}

TEST(EmitBulk, CopiesSwizzledPlainAndLongRows) {
  expect_bulk(streaming("swizzled", 8, 256, 64, 64, 32, 4));
  expect_bulk(streaming("plain", 2, 256, 96, 64, 48, 3));
  expect_bulk(streaming("panels", 16, 512, 128, 128, 128, 2));
  expect_bulk(streaming("plain_long_rows", 2, 512, 32, 256, 16, 2));
  expect_bulk(streaming("more_stages_than_steps", 8, 128, 32, 64, 32, 5));
}

// A copy takes at most 256 elements of a dimension.  Where the tensor divides into pieces of a box,
// they are a dimension more of one copy.
TEST(EmitBulk, CopiesTilesLongerThanABox) {
  const auto case_of = [](const std::string& name, int h, int step, int tile) {
    return streaming(name, 8, h, 2 * tile, step, tile, 2);
  };
  const auto weights = [](const GenerateCase& c) {
    const std::string cuda = run_case(c).cuda;
    const size_t at = cuda.find("// ws[h.i, d.i] = w\n");
    return at == std::string::npos ? "" : cuda.substr(at, cuda.find("// y[", at) - at);
  };
  for (const GenerateCase& c :
       {case_of("two_boxes", 1024, 512, 32), case_of("plain", 1024, 512, 48),
        case_of("of_fives", 640, 320, 32)}) {
    expect_bulk(c);
    EXPECT_EQ(weights(c).find("i < 2; ++i)"), std::string::npos) << weights(c);
  }
  const GenerateCase ragged = case_of("ragged", 904, 512, 32);
  expect_bulk(ragged);
  EXPECT_NE(weights(ragged).find("i < 2; ++i)"), std::string::npos) << weights(ragged);
}

// Panels of rows, too: one copy brings all eight of a step, zeros for rows that do not exist.
TEST(EmitBulk, CopiesAllPanelsAtOnce) {
  for (const auto& [n, step] : {std::pair(8, 512), {5, 512}, {16, 128}}) {
    const GenerateCase c = streaming("panels", n, 1024, 64, step, 32, 2);
    expect_bulk(c);
    const std::string panels = "sd::Dim<64, 1, 64>, sd::Dim<" + std::to_string(n) + ", 1024, " +
                               std::to_string(n) + ">, sd::Dim<16, 64, " +
                               std::to_string(step / 64) + ">";
    EXPECT_NE(run_case(c).cuda.find(panels), std::string::npos) << n;
  }
  // Rows that do not divide into panels.
  const GenerateCase ragged = streaming("ragged", 8, 1000, 64, 128, 32, 2);
  expect_bulk(ragged);
  EXPECT_NE(run_case(ragged).cuda.find("sd::Dim<1000, 1, 64>"), std::string::npos);
}

// A vector beside the operands, of few elements and of more than a box, in steps that the tensor
// divides into and that it does not; and an operand that each warp makes for itself of tiles that
// have come.
TEST(EmitBulk, CopiesVectorsAndMakesOperandsOfThem) {
  for (const auto& [h, step] : {std::pair(512, 64), {1024, 512}, {904, 512}, {640, 128}}) {
    for (const char* storage : {"reg", "shared"}) {
      const auto text = [](int x) { return std::to_string(x); };
      const GenerateCase c{
          "gain_" + text(h) + "_" + text(step) + "_" + storage,
          "program p(n = 7, h = " + text(h) +
              ", d = 64) {\n  input x: f16[n, h]\n  input g: f16[h]\n  input w: f16[h, d]\n"
              "  output y: f32[n, d] = sum[h](x * g * w)\n}\n",
          "ugraph u of p {\n  kernel k0 grid(d.o) warps(4) {\n    split h = h.o * h.i(" +
              text(step) +
              ")\n    split d = d.o * d.i(32)\n    loop h.o stages(3) bulk {\n"
              "      xs[n, h.i] = x : shared f16\n      gs[h.i] = g : shared f16\n"
              "      ws[h.i, d.i] = w : shared f16\n      t[n, h.i] = xs * gs : " +
              storage +
              " f16\n      y[n, d.i] = sum[h.o, h.i](t * ws) : reg f32 mma(m16n8k16, swap) "
              "warps(h.i/4)\n    }\n    store y -> y\n  }\n}\n"};
      expect_bulk(c);
      const std::string cuda = run_case(c).cuda;
      EXPECT_NE(cuda.find("sd::bulk_copy(gs"), std::string::npos) << c.name;
      const size_t product = cuda.find("// y[n, d.i] = sum");
      const size_t operand = cuda.find("// t[n, h.i] = xs * gs");
      ASSERT_LT(operand, product);
      const std::string between = cuda.substr(operand, product - operand);
      EXPECT_EQ(between.find("sd::sync_threads()") != std::string::npos,
                std::string(storage) == "shared")
          << between;
    }
  }
}

// What threads load themselves is under way while an iteration waits for its copies.
TEST(EmitBulk, LoadsToRegistersComeBesideTheCopies) {
  const GenerateCase c{
      "scaled",
      "program p(n = 8, h = 512, d = 64) {\n  input x: f16[n, h]\n  input g: f16[h]\n  input w: "
      "f16[h, d]\n  output y: f32[n, d] = sum[h](x * g * w)\n}\n",
      "ugraph g of p {\n  kernel k0 grid(d.o) warps(4) {\n    split h = h.o * h.i(64)\n    split d "
      "= d.o * d.i(32)\n    loop h.o stages(3) bulk {\n      xs[n, h.i] = x : reg f16\n      "
      "gs[h.i] = g : reg f16\n      ws[h.i, d.i] = w : shared f16\n      t[n, h.i] = xs * gs : "
      "shared f16\n      y[n, d.i] = sum[h.o, h.i](t * ws) : reg f32 mma(m16n8k16, swap) "
      "warps(h.i/4)\n    }\n    store y -> y\n  }\n}\n"};
  expect_bulk(c);
  const std::string cuda = run_case(c).cuda;
  const size_t wait = cuda.find("sd::mbarrier_wait(h_o_full + h_o_stage");
  EXPECT_LT(cuda.find("// xs[n, h.i] = x"), wait);
  EXPECT_LT(cuda.find("// gs[h.i] = g"), wait);
  EXPECT_GT(cuda.find("// t[n, h.i] = xs * gs"), wait);
}

TEST(EmitBulk, FillsWhatIsOutsideWithZeros) {
  expect_bulk(streaming("ragged_columns", 8, 128, 40, 64, 32, 3));
  expect_bulk(streaming("ragged_steps", 8, 104, 32, 32, 32, 3));
}

TEST(EmitBulk, LeavesToThreadsWhatItCannotCopy) {
  expect_bulk(streaming("odd_stride", 8, 132, 32, 64, 32, 3), false);
  expect_bulk(streaming("alignment", 8, 128, 32, 64, 32, 3, " align 8"), false);
  expect_bulk(streaming("padded_rows", 8, 72, 32, 24, 32, 3), false);
}

// Three-dimensional tensors, products of warp groups, a loop whose range depends on the block.
TEST(EmitBulk, FeedsProductsOfWarpGroups) {
  const GenerateCase c{
      "causal",
      "program p(g = 2, q = 128, e = 64, f = 32, k = 128) {\n  input Q: f16[g, q, e]\n  input K: "
      "f16[g, k, e]\n  input V: f16[g, k, f]\n  s[g, q, k] = select(k <= q, sum[e](Q * K) / 8, "
      "-inf)\n  m[g, q] = max[k](s)\n  p[g, q, k] = exp(s - m)\n  output O: f16[g, q, f] = "
      "sum[k](p * V) / sum[k](p)\n}\n",
      "ugraph g of p {\n  kernel k0 grid(g, q.o) warps(4) {\n    split q = q.o * q.i(64)\n    "
      "split k = k.o * k.i(32)\n    qs[q.i, e] = Q : shared f16\n    loop k.o stages(3) bulk "
      "trim(32 * k.o <= 64 * q.o + 63) {\n      ks[k.i, e] = K : shared f16\n      vs[k.i, f] = V "
      ": shared f16\n      t[q.i, k.i] = sum[e](qs * ks) : reg f32 mma(m64n8k16)\n"
      "      s[q.i, k.i] = select(32 * k.o + k.i <= 64 * q.o + q.i, t / 8, -inf) : reg f32\n"
      "      m[q.i] = max[k.o, k.i](s) : reg f32\n      p[q.i, k.i] = exp(s - m) : reg f16\n"
      "      o[q.i, f] = sum[k.o, k.i](p * vs) : reg f32 mma(m64n8k16) rescale m\n"
      "      l[q.i] = sum[k.o, k.i](p) : reg f32 rescale m\n    }\n"
      "    out[q.i, f] = o / l : reg f32\n    store out -> O\n  }\n}\n"};
  expect_bulk(c);
  // The sum along the rows of fragments is a product with ones.
  EXPECT_NE(run_case(c).cuda.find("0x3c003c00u"), std::string::npos);
}

// Two passes over the same rows: each loop has barriers and stages of its own.
TEST(EmitBulk, LoopsInSequenceOverOneFactor) {
  const GenerateCase c{
      "two_passes",
      "program p(n = 8, h = 512, d = 64) {\n  input x: f16[n, h]\n  input v: f16[h, d]\n  input "
      "w: f16[h, d]\n  a[n, d] = sum[h](x * v)\n  output y: f32[n, d] = sum[h](x * w) * a\n}\n",
      "ugraph g of p {\n  kernel k0 grid(d.o) warps(4) {\n    split h = h.o * h.i(64)\n    split d "
      "= d.o * d.i(32)\n    loop h.o stages(4) bulk {\n      xs[n, h.i] = x : shared f16\n      "
      "vs[h.i, d.i] = v : shared f16\n      a[n, d.i] = sum[h.o, h.i](xs * vs) : reg f32 "
      "mma(m16n8k16, swap) warps(h.i/4)\n    }\n    loop h.o stages(3) bulk {\n      xs2[n, h.i] "
      "= x : shared f16\n      ws[h.i, d.i] = w : shared f16\n      b[n, d.i] = sum[h.o, "
      "h.i](xs2 * ws) : reg f32 mma(m16n8k16, swap) warps(h.i/4)\n    }\n    y[n, d.i] = b * a : "
      "reg f32\n    store y -> y\n  }\n}\n"};
  expect_bulk(c);
  EXPECT_NE(run_case(c).cuda.find("h_o_2_full"), std::string::npos);
}

// What the emulator says of a kernel whose emitted text was changed.
std::string broken(const std::string& from, const std::string& to) {
  return run_changed(streaming("broken", 8, 512, 32, 64, 32, 3), from, to).failure;
}

bool complains(const std::string& from, const std::string& to, const std::string& about) {
  const std::string said = broken(from, to);
  EXPECT_NE(said.find(about), std::string::npos) << from << " -> " << to << ": " << said;
  return !said.empty();
}

TEST(EmitBulk, NeedsItsBarriersAndByteCounts) {
  EXPECT_EQ(broken("h_o_phase ^= 1;", "h_o_phase ^= 1;"), "");
  // Too few bytes, too many.
  EXPECT_TRUE(complains("_full + h_o_next, 5120)", "_full + h_o_next, 4096)", "bytes came"));
  EXPECT_TRUE(complains("_full + h_o_next, 5120)", "_full + h_o_next, 6144)", "deadlock"));
  // The wrong phase, no wait, no release, a barrier that nobody made.
  EXPECT_TRUE(
      complains("int h_o_stage = 0, h_o_phase = 0;", "int h_o_stage = 0, h_o_phase = 1;", ""));
  EXPECT_NE(broken("sd::mbarrier_wait(h_o_full + h_o_stage, h_o_phase);", ""), "");
  EXPECT_NE(broken("sd::mbarrier_wait(h_o_empty + h_o_next, h_o_next_phase);", ""), "");
  EXPECT_TRUE(
      complains("if (lane == 0) sd::mbarrier_arrive(h_o_empty + h_o_stage);", "", "deadlock"));
  EXPECT_TRUE(complains("sd::mbarrier_init(h_o_full + i, 1);", "", "never initialised"));
}

TEST(EmitBulk, IsRefusedWhereTheDeviceLacksIt) {
  const GenerateCase c = streaming("old", 8, 512, 32, 64, 32, 3);
  const Result<Program> program = parse_program(c.program, "p.sd", {});
  const Result<MuGraph> graph = parse_mugraph(c.graph, "p.mu", *program);
  const Result<Generated> generated = generate(*graph, *program, *find_device("a100"), {});
  ASSERT_FALSE(generated.ok());
  EXPECT_EQ(generated.error().code, ErrorCode::kUnsupported);
}

}  // namespace
}  // namespace sundog::codegen
