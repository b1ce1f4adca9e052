#include "core/schedule/kernel_plan.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "core/schedule/access.h"
#include "core/schedule/kernel_scan.h"
#include "core/schedule/memory_plan.h"
#include "core/text.h"

namespace sundog {
namespace {

std::string slurp(const std::string& path) {
  std::ifstream file(std::string(SUNDOG_SOURCE_DIR) + "/" + path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

struct Source {
  Program program;
  MuGraph graph;
};

Source golden(const std::string& name) {
  const std::string text = slurp("tests/golden/" + name + ".mu");
  const auto reference = program_reference(text);
  SUNDOG_CHECK(reference.has_value());
  auto program = parse_program(slurp("tests/golden/" + reference->path), name, reference->defines);
  SUNDOG_CHECK(program.ok());
  auto graph = parse_mugraph(text, name, *program);
  SUNDOG_CHECK(graph.ok());
  return {std::move(*program), std::move(*graph)};
}

uint32_t id_of(const Kernel& kernel, const std::string& name) {
  for (uint32_t i = 0; i < kernel.computations.size(); ++i) {
    if (kernel.computations[i].name == name) return i;
  }
  SUNDOG_CHECK(false);
}

KernelPlan planned(const Source& source, size_t kernel = 0) {
  auto plan = plan_kernel(source.graph, source.graph.kernels[kernel]);
  SUNDOG_CHECK(plan.ok());
  return std::move(*plan);
}

TEST(KernelPlan, RmsNormStreamsAndCombinesOnce) {
  const Source source = golden("rms_norm");
  const Kernel& kernel = source.graph.kernels[0];
  const KernelPlan plan = planned(source);
  const auto& xs = plan.computations[id_of(kernel, "xs")];
  EXPECT_EQ(xs.kind, Realisation::kAsyncCopy);
  EXPECT_EQ(xs.async_bytes, 16);
  EXPECT_EQ(xs.shared->copies, 4);
  EXPECT_EQ(xs.shared->swizzle_mask, 7);
  const auto& acc = plan.computations[id_of(kernel, "acc")];
  EXPECT_EQ(acc.kind, Realisation::kMma);
  EXPECT_TRUE(acc.deferred);
  EXPECT_EQ(acc.combine.parts(), 8);
  EXPECT_TRUE(acc.combine.redistribute);
  // The scratch memory takes over what the operands leave.
  EXPECT_LT(acc.combine.scratch->offset, xs.shared->offset + xs.shared->bytes());
  EXPECT_EQ(plan.shared_bytes, 81920);
}

TEST(KernelPlan, AttentionKeepsItsProbabilitiesInRegisters) {
  const Source source = golden("gqa_safe");
  const Kernel& kernel = source.graph.kernels[0];
  const KernelPlan plan = planned(source);
  const auto& o = plan.computations[id_of(kernel, "o")];
  EXPECT_TRUE(o.mma->a_in_registers);
  EXPECT_FALSE(o.mma->b_in_registers);
  EXPECT_TRUE(o.deferred);
  const auto& p = plan.computations[id_of(kernel, "p")];
  EXPECT_FALSE(p.shared.has_value());
  EXPECT_EQ(vector_mode(p.layout).extent, 2);
  const auto& m = plan.computations[id_of(kernel, "m")];
  EXPECT_FALSE(m.deferred);  // read inside its loop
  EXPECT_EQ(m.combine.lanes, 3u);
}

// What a product reads from registers is computed where it wants it, whatever reads the tile first.
TEST(KernelPlan, OperandsInRegistersAreFragments) {
  auto program = parse_program(
      "program p(n = 8, h = 1024, d = 64) {\n  input x: f16[n, h]\n  input g: f16[h]\n"
      "  input w: f16[h, d]\n  output y: f32[n, d] = sum[h](x * g * w) / sum[h](x * x)\n}\n",
      "p.sd", {});
  ASSERT_TRUE(program.ok());
  auto graph = parse_mugraph(
      "ugraph u of p {\n  kernel k0 grid(d.o) warps(4) {\n    split h = h.o * h.i(128)\n"
      "    split d = d.o * d.i(32)\n    loop h.o stages(3) bulk {\n"
      "      xs[n, h.i] = x : shared f16\n      gs[h.i] = g : shared f16\n"
      "      ws[h.i, d.i] = w : shared f16\n      xr[n, h.i] = xs : reg f16\n"
      "      q[n] = sum[h.o, h.i](xr * xr) : reg f32\n      t[n, h.i] = xr * gs : reg f16\n"
      "      a[n, d.i] = sum[h.o, h.i](t * ws) : reg f32 mma(m16n8k16, swap) warps(h.i/4)\n    }\n"
      "    o[n, d.i] = a / q : reg f32\n    store o -> y\n  }\n}\n",
      "u.mu", *program);
  ASSERT_TRUE(graph.ok()) << to_string(graph.error());
  const Source source{std::move(*program), std::move(*graph)};
  const Kernel& kernel = source.graph.kernels[0];
  const KernelPlan plan = planned(source);
  const auto of = [&](const char* name) { return plan.computations[id_of(kernel, name)]; };
  ASSERT_TRUE(of("a").mma.has_value());
  EXPECT_TRUE(of("a").mma->b_in_registers);
  EXPECT_FALSE(of("t").shared.has_value());
  EXPECT_FALSE(of("xr").shared.has_value());
  EXPECT_EQ(of("xr").layout, of("t").layout);
  EXPECT_EQ(of("q").combine.lanes, 3u);  // four lanes share a row
  EXPECT_TRUE(of("q").deferred);
  ASSERT_TRUE(of("gs").bulk.has_value());
  EXPECT_GE(of("gs").bulk->dims.size(), 2u);
}

// Across K two columns of bytes come together, if a warp has whole words of them; along K and in
// words that are not whole they do not.
TEST(KernelPlan, ColumnsOfBytesAlternateBetweenAtoms) {
  const auto product = [](const std::string& columns, const std::string& axes) {
    const std::string sizes = "(m = 16, n = " + columns + ", k = 64)";
    auto program = parse_program("program p" + sizes + " {\n input A: f16[m, k]\n input B: i8[" +
                                     axes + "]\n output C: f32[m, n] = sum[k](A * B)\n}",
                                 "p", {});
    SUNDOG_CHECK(program.ok());
    auto graph = parse_mugraph(
        "ugraph g of p {\n kernel k0 grid() warps(2) {\n as[m, k] = A : shared f16\n bs[" + axes +
            "] = B : shared i8\n c[m, n] = sum[k](as * bs) : reg f32 mma(m16n8k16)\n"
            " store c -> C\n }\n}",
        "g", *program);
    SUNDOG_CHECK(graph.ok());
    const Source source{std::move(*program), std::move(*graph)};
    const auto mma = planned(source).computations[2].mma;
    SUNDOG_CHECK(mma.has_value());
    EXPECT_EQ(mma->dtype, DType::kF16);
    return *mma;
  };
  EXPECT_TRUE(product("32", "k, n").b_interleaved);
  EXPECT_FALSE(product("32", "k, n").a_interleaved);
  EXPECT_FALSE(product("32", "n, k").b_interleaved);
  EXPECT_FALSE(product("16", "k, n").b_interleaved) << "each warp has eight columns";
}

TEST(KernelPlan, RowsAreHeldInVectors) {
  const Source source = golden("softmax");
  const Kernel& kernel = source.graph.kernels[0];
  const KernelPlan plan = planned(source);
  const auto& xs = plan.computations[id_of(kernel, "xs")];
  EXPECT_EQ(vector_mode(xs.layout).extent, 8);
  EXPECT_EQ(slots(xs.layout), 16);
  EXPECT_FALSE(xs.shared.has_value());
  EXPECT_TRUE(plan.stores[0].from_registers);
}

// The parts of an attention: each warp has all parts of its sums, so that their maximum, weights
// and total stay in its registers.
TEST(KernelPlan, PartsAreJoinedWithoutSharedMemory) {
  auto program = parse_program(
      "program p(s = 8, q = 64, f = 64) { input m: f32[s, q] input l: f32[s, q]\n"
      "input x: f32[s, q, f]  w[s, q] = exp(m - max[s](m))\n"
      "output y: f16[q, f] = sum[s](w * x) / sum[s](w * l) }",
      "p", {});
  ASSERT_TRUE(program.ok());
  auto graph = parse_mugraph(R"(ugraph u of p { kernel k0 grid(q.o) warps(8) {
      split q = q.o * q.i(16)
      ms[s, q.i] = m : reg f32
      xs[s, q.i, f] = x : reg f32
      ls[s, q.i] = l : reg f32
      most[q.i] = max[s](ms) : reg f32
      w[q.i, s] = exp(ms - most) : reg f32
      sums[q.i, f] = sum[s](w * xs) : reg f32
      total[q.i] = sum[s](w * ls) : reg f32
      o[q.i, f] = sums / total : reg f32
      store o -> y } })",
                             "u", *program);
  ASSERT_TRUE(graph.ok());
  const Source source{std::move(*program), std::move(*graph)};
  const Kernel& kernel = source.graph.kernels[0];
  const KernelPlan plan = planned(source);
  EXPECT_EQ(plan.shared_bytes, 0);
  const ComputationPlan& most = plan.computations[id_of(kernel, "most")];
  EXPECT_TRUE(most.combine.warps.empty());
  EXPECT_EQ(slots(most.iteration), 8);
  EXPECT_EQ(slots(plan.computations[id_of(kernel, "xs")].layout), 32);
}

// Tiles whose lives overlap share no byte, in any kernel at hand.
TEST(KernelPlan, LivingTilesDoNotOverlap) {
  for (const char* name : {"rms_norm", "gated_mlp", "lora", "gqa_safe", "softmax", "layer_norm"}) {
    const Source source = golden(name);
    for (size_t k = 0; k < source.graph.kernels.size(); ++k) {
      const KernelPlan plan = planned(source, k);
      std::vector<const SharedTile*> tiles;
      for (const auto& c : plan.computations) {
        if (c.shared) tiles.push_back(&*c.shared);
        if (c.combine.scratch) tiles.push_back(&*c.combine.scratch);
      }
      for (const SharedTile* a : tiles) {
        EXPECT_LE(a->offset + a->bytes(), plan.shared_bytes);
        for (const SharedTile* b : tiles) {
          if (a == b || a->last < b->first || b->last < a->first) continue;
          EXPECT_TRUE(a->offset + a->bytes() <= b->offset || b->offset + b->bytes() <= a->offset);
        }
      }
    }
  }
}

// Eight rows of 16 bytes below one another lie in different banks, for every row length.
TEST(KernelPlan, SwizzledRowsLieInDifferentBanks) {
  for (int width = 8; width <= 272; width += 8) {
    const auto program = parse_program(
        "program p(n = 32, k = 64, d = " + std::to_string(width) +
            ") { input x: f16[n, k] input w: f16[k, d] output y: f16[n, d] = sum[k](x * w) }",
        "p.sd");
    ASSERT_TRUE(program.ok());
    const auto graph = parse_mugraph(R"(ugraph u of p { kernel k0 grid() warps(1) {
        xs[n, k] = x : shared f16
        ws[k, d] = w : shared f16
        o[n, d] = sum[k](xs * ws) : reg f32 mma(m16n8k16)
        store o -> y } })",
                                     "u.mu", *program);
    ASSERT_TRUE(graph.ok()) << to_string(graph.error());
    const auto plan = plan_kernel(*graph, graph->kernels[0]);
    ASSERT_TRUE(plan.ok());
    const SharedTile& tile = *plan->computations[id_of(graph->kernels[0], "ws")].shared;
    const int64_t words = tile.pitch * 2 / 16;
    for (int64_t first = 0; first < 64; first += 8) {
      for (int64_t word = 0; word < width / 8; ++word) {
        uint32_t banks = 0;
        for (int64_t r = first; r < first + 8; ++r) {
          const int64_t at = word ^ (r >> tile.swizzle_shift & tile.swizzle_mask);
          ASSERT_LT(at, words);
          banks |= 1u << ((r * words + at) % 8);
        }
        ASSERT_EQ(banks, 255u) << width;
      }
    }
  }
}

TEST(KernelPlan, FitsNamesBothNumbers) {
  const Source source = golden("gated_mlp");
  const KernelPlan plan = planned(source);
  Device small = *find_device("a100");
  EXPECT_TRUE(fits(source.graph.kernels[0], plan, small).ok());
  small.shared_per_block = 1000;
  const Status status = fits(source.graph.kernels[0], plan, small);
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.error().message.find(std::to_string(plan.shared_bytes)), std::string::npos);
  EXPECT_NE(status.error().message.find("1000"), std::string::npos);
}

TEST(KernelPlan, ScanFindsReadersAndLives) {
  const Source source = golden("rms_norm");
  const Kernel& kernel = source.graph.kernels[0];
  const KernelScan found = scan(kernel);
  ASSERT_EQ(found.loops.size(), 1u);
  const uint32_t xs = id_of(kernel, "xs"), o = id_of(kernel, "o");
  EXPECT_EQ(found.readers[xs].size(), 2u);
  EXPECT_GT(found.computations[o].position, found.loops[0].last);
  // What is defined before a loop and used in it lives to the loop's end.
  EXPECT_EQ(found.lives_until({0, {}}, found.computations[xs]), found.loops[0].last);
  EXPECT_EQ(found.lives_until(found.computations[xs], found.computations[id_of(kernel, "ss")]),
            found.computations[id_of(kernel, "ss")].position);
}

TEST(KernelPlan, VectorsNeedContiguityAndAlignment) {
  const auto width_of = [](const std::string& input, const std::string& split) {
    const auto program = parse_program(
        "program p(n = 8, h = 64) { input x: f16[n, h]" + input + " output y: f16[n, h] = 2 * x }",
        "p.sd");
    SUNDOG_CHECK(program.ok());
    const auto graph =
        parse_mugraph("ugraph u of p { kernel k0 grid(n, h.o) warps(1) { split h = h.o * " + split +
                          " xs[h.i] = x : reg f16 o[h.i] = 2 * xs : reg f32 " + "store o -> y } }",
                      "u.mu", *program);
    SUNDOG_CHECK(graph.ok());
    const Kernel& kernel = graph->kernels[0];
    const auto& load = std::get<InputTerm>(kernel.terms[kernel.computations[0].value]);
    const AxisId f = kernel.computations[0].axes[0];
    return vector_width(*graph, kernel, 0, load.index, {}, f, 8);
  };
  EXPECT_EQ(width_of("", "h.i(32)"), 8);
  EXPECT_EQ(width_of("", "h.i(4)"), 4);
  EXPECT_EQ(width_of("", "h.i(3)"), 1);
  EXPECT_EQ(width_of(" align 4", "h.i(32)"), 2);
  EXPECT_EQ(width_of(" stride(66, 1)", "h.i(32)"), 2);
  EXPECT_EQ(width_of(" stride(1, 8)", "h.i(32)"), 1);
}

}  // namespace
}  // namespace sundog
