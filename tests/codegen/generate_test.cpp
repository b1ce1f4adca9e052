#include "codegen/generate.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "core/device.h"
#include "core/text.h"
#include "tests/codegen/generate_cases.h"

namespace sundog::codegen {
namespace {

namespace fs = std::filesystem;

std::string slurp(const fs::path& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

struct Source {
  Program program;
  MuGraph graph;
};

Source read(const std::string& program_text, const std::string& graph_text,
            const std::map<std::string, int64_t>& defines = {}) {
  auto program = parse_program(program_text, "test.sd", defines);
  EXPECT_TRUE(program.ok()) << to_string(program.error());
  if (!program.ok()) return {};
  auto graph = parse_mugraph(graph_text, "test.mu", *program);
  EXPECT_TRUE(graph.ok()) << to_string(graph.error());
  if (!graph.ok()) return {};
  return {std::move(*program), std::move(*graph)};
}

Result<Generated> emitted(const Source& source, const char* device = "h200") {
  const Status status = check(source.graph, source.program);
  EXPECT_TRUE(status.ok()) << to_string(status.error());
  return generate(source.graph, source.program, *find_device(device), {});
}

fs::path golden_folder() { return fs::path(SUNDOG_SOURCE_DIR) / "tests/golden"; }

Source golden_source(const std::string& name, const std::map<std::string, int64_t>& sizes = {}) {
  const fs::path path = golden_folder() / (name + ".mu");
  const std::string graph = slurp(path);
  auto reference = program_reference(graph);
  EXPECT_TRUE(reference.has_value()) << path;
  if (!reference) return {};
  for (const auto& [key, value] : sizes) reference->defines[key] = value;
  return read(slurp(path.parent_path() / reference->path), graph, reference->defines);
}

// Kernels and launcher, without what every file has at its top.
std::string kernels_of(const std::string& cuda) {
  return cuda.substr(cuda.find("extern \"C\" __global__"));
}

// --- golden files: SUNDOG_UPDATE_GOLDEN=1 accepts what is emitted now

class GenerateGolden : public testing::TestWithParam<const char*> {};

TEST_P(GenerateGolden, IsAsItWas) {
  const Result<Generated> generated = emitted(golden_source(GetParam()));
  ASSERT_TRUE(generated.ok()) << to_string(generated.error());
  const fs::path path = golden_folder() / (std::string(GetParam()) + ".cu");
  const std::string text = kernels_of(generated->cuda);
  if (std::getenv("SUNDOG_UPDATE_GOLDEN") != nullptr) std::ofstream(path) << text;
  EXPECT_EQ(text, slurp(path)) << "if this is wanted: SUNDOG_UPDATE_GOLDEN=1";
}

INSTANTIATE_TEST_SUITE_P(Files, GenerateGolden,
                         testing::Values("rms_norm", "gated_mlp", "lora", "gqa_safe", "softmax",
                                         "layer_norm", "n_trans", "gqa_cluster", "rms_norm_cluster",
                                         "linear_w8a16"),
                         [](const auto& test) { return std::string(test.param); });

// The same schedules at sizes that the emulator runs in a moment, some of them odd.
struct SmallCase {
  const char* file;
  std::map<std::string, int64_t> sizes;
};

class GenerateSmall : public testing::TestWithParam<SmallCase> {};

TEST_P(GenerateSmall, AgreesWithTheProgram) {
  const Source source = golden_source(GetParam().file, GetParam().sizes);
  expect_right({GetParam().file, print(source.program), print(source.graph, source.program)});
}

INSTANTIATE_TEST_SUITE_P(
    Files, GenerateSmall,
    testing::Values(SmallCase{"rms_norm", {{"n", 16}, {"h", 512}, {"d", 96}}},
                    SmallCase{"rms_norm", {{"n", 3}, {"h", 127}, {"d", 48}}},
                    SmallCase{"rms_norm", {{"n", 7}, {"h", 260}, {"d", 255}}},
                    SmallCase{"gated_mlp", {{"n", 8}, {"h", 384}, {"d", 64}}},
                    SmallCase{"gated_mlp", {{"n", 1}, {"h", 200}, {"d", 41}}},
                    SmallCase{"lora", {{"n", 16}, {"h", 256}, {"d", 64}, {"r", 16}}},
                    SmallCase{"lora", {{"n", 5}, {"h", 72}, {"d", 47}, {"r", 7}}},
                    SmallCase{"gqa_safe", {{"g", 2}, {"q", 64}, {"k", 4096}, {"e", 64}}},
                    SmallCase{"gqa_safe", {{"g", 1}, {"q", 70}, {"k", 509}, {"e", 24}}},
                    SmallCase{"gqa_cluster", {{"g", 2}, {"q", 64}, {"k", 1024}, {"e", 64}}},
                    SmallCase{"gqa_cluster", {{"g", 1}, {"q", 70}, {"k", 509}, {"e", 24}}},
                    SmallCase{"rms_norm_cluster", {{"n", 16}, {"h", 512}, {"d", 128}}},
                    SmallCase{"rms_norm_cluster", {{"n", 3}, {"h", 260}, {"d", 255}}},
                    SmallCase{"linear_w8a16", {{"n", 16}, {"h", 768}, {"d", 96}}},
                    SmallCase{"linear_w8a16", {{"n", 3}, {"h", 100}, {"d", 55}}},
                    SmallCase{"softmax", {{"n", 3}, {"k", 257}}},
                    SmallCase{"softmax", {{"n", 2}, {"k", 4096}}},
                    SmallCase{"layer_norm", {{"n", 3}, {"h", 127}}},
                    SmallCase{"layer_norm", {{"n", 2}, {"h", 4100}}},
                    SmallCase{"n_trans", {{"n", 3}, {"h", 2560}}},
                    SmallCase{"n_trans", {{"n", 1}, {"h", 4095}}}),
    [](const auto& test) {
      std::string name = test.param.file;
      for (const auto& [key, value] : test.param.sizes) name += "_" + key + std::to_string(value);
      return name;
    });

// --- the rest of the contract

constexpr char kScale[] = R"(program scale(n = 4, h = 40) {
  input x: f16[n, h]
  output y: f16[n, h] = 2 * x
})";
constexpr char kScaleGraph[] = R"(ugraph scale_rows of scale {
  kernel k0 grid(n) warps(2) {
    xs[h] = x : reg f16
    o[h] = 2 * xs : reg f32
    store o -> y
  }
})";

TEST(Generate, IsDeterministicAndPlansWhatItEmits) {
  const Source source = read(kScale, kScaleGraph);
  const auto one = emitted(source), two = emitted(source);
  ASSERT_TRUE(one.ok());
  EXPECT_EQ(one->cuda, two->cuda);
  const LaunchPlan& plan = one->plan;
  EXPECT_EQ(plan.name, "scale_rows");
  ASSERT_EQ(plan.kernels.size(), 1u);
  EXPECT_EQ(plan.kernels[0].name, "scale_rows_k0");
  EXPECT_EQ(plan.kernels[0].grid[0], 4);
  EXPECT_EQ(plan.kernels[0].block, 64);
  ASSERT_EQ(plan.kernels[0].arguments.size(), 2u);
  EXPECT_EQ(plan.kernels[0].arguments[1].kind, PlanArgument::Kind::kOutput);
  EXPECT_NE(one->cuda.find("extern \"C\" int scale_rows("), std::string::npos);
  EXPECT_NE(one->cuda.find("scale_rows_workspace_bytes()"), std::string::npos);
}

TEST(Generate, CommentsTheHeaderLineByLine) {
  const Source source = read(kScale, kScaleGraph);
  GenerateOptions options;
  options.header_comment = "first\nends in a backslash \\\n\nlast";
  options.name = "1 odd name";
  const auto generated = generate(source.graph, source.program, *find_device("a100"), options);
  ASSERT_TRUE(generated.ok());
  EXPECT_NE(generated->cuda.find("// first\n// ends in a backslash \\.\n//\n// last\n"),
            std::string::npos);
  EXPECT_EQ(generated->plan.name, "x1_odd_name");
  EXPECT_NE(generated->cuda.find("compute_80,code=sm_80"), std::string::npos);
}

TEST(Generate, LaunchesNothingForEmptyOutputs) {
  const auto generated = emitted(read(kScale, kScaleGraph, {{"n", 0}}));
  ASSERT_TRUE(generated.ok());
  EXPECT_TRUE(generated->plan.kernels.empty());
  expect_right({"empty_rows",
                "program scale(n = 4, h = 0) { input x: f16[n, h] output y: f16[n, h] = 2 * x }",
                kScaleGraph});
}

TEST(Generate, SumsOverNothingAreZero) {
  expect_right({"empty_sum",
                "program p(n = 3, h = 0) { input x: f16[n, h] input w: f16[n]\n"
                "output y: f32[n] = sum[h](x) + w }",
                R"(ugraph u of p { kernel k0 grid() warps(1) {
                  xs[n, h] = x : shared f16
                  s[n] = sum[h](xs) : reg f32
                  o[n] = s + w : reg f32
                  store o -> y } })"});
}

TEST(Generate, RefusesWhatDoesNotFitWithTheNumbers) {
  const Source source =
      read("program p(n = 512, h = 512) { input x: f16[n, h] output y: f16[n, h] = 2 * x }",
           R"(ugraph u of p { kernel k0 grid() warps(8) {
        xs[n, h] = x : shared f16
        o[n, h] = 2 * xs : shared f16
        store o -> y } })");
  const auto generated = emitted(source);
  ASSERT_FALSE(generated.ok());
  EXPECT_EQ(generated.error().code, ErrorCode::kUnsupported);
  EXPECT_NE(generated.error().message.find("1056768 bytes of shared memory"), std::string::npos)
      << generated.error().message;
  EXPECT_NE(generated.error().message.find("232448"), std::string::npos);
}

// Guards compare ints, so an axis must fit one together with the padding of its last tile.
TEST(Generate, RefusesAxesThatNoIntIndexes) {
  EXPECT_TRUE(emitted(read(kScale, kScaleGraph, {{"n", 1 << 30}})).ok());
  for (const int64_t n : {(int64_t{1} << 31) - 5, int64_t{5000000001}}) {
    const auto generated = emitted(read(kScale, kScaleGraph, {{"n", n}}));
    ASSERT_FALSE(generated.ok()) << n;
    EXPECT_EQ(generated.error().code, ErrorCode::kUnsupported);
  }
}

TEST(Generate, UsesWideOffsetsWhereTensorsNeedThem) {
  const char* program =
      "program p(n = 70000, h = 40000) { input x: f16[n, h]\n"
      "output y: f32[n] = sum[h](x) }";
  const char* graph = R"(ugraph u of p { kernel k0 grid(n) warps(4) {
    split h = h.o * h.i(1024)
    loop h.o { xs[h.i] = x : reg f16
      s[] = sum[h.o, h.i](xs) : reg f32 }
    store s -> y } })";
  const auto wide = emitted(read(program, graph));
  ASSERT_TRUE(wide.ok());
  EXPECT_NE(kernels_of(wide->cuda).find("static_cast<int64_t>(n) * 40000"), std::string::npos);
  const auto narrow = emitted(read(program, graph, {{"n", 70}}));
  ASSERT_TRUE(narrow.ok());
  EXPECT_EQ(kernels_of(narrow->cuda).find("int64_t"), std::string::npos);
}

TEST(Generate, TakesAnyNumberOfBlocksInOneDimension) {
  const auto generated = emitted(read(kScale, kScaleGraph, {{"n", 65537}}));
  ASSERT_TRUE(generated.ok());
  EXPECT_EQ(generated->plan.kernels[0].grid[0], 65537);
}

// A loop over column tiles around a pipelined loop over k; the outer one loads ahead as well.
TEST(Generate, NestsPipelinedLoops) {
  expect_right({"nested",
                "program p(n = 20, d = 40, k = 70) { input x: f16[n, k] input w: f16[k, d]\n"
                "input c: f16[d] output y: f16[n, d] = sum[k](x * w) + c }",
                R"(ugraph u of p { kernel k0 grid(n.o) warps(2) {
                  split n = n.o * n.i(16)  split d = d.o * d.i(16)  split k = k.o * k.i(16)
                  loop d.o stages(2) {
                    cs[d.i] = c : shared f16
                    loop k.o stages(3) {
                      xs[n.i, k.i] = x : shared f16
                      ws[k.i, d.i] = w : shared f16
                      acc[n.i, d.i] = sum[k.o, k.i](xs * ws) : reg f32 mma(m16n8k16)
                    }
                    o[n.i, d.i] = acc + cs : reg f32
                    store o -> y
                  } } })"});
}

// One accumulator over two loops, another over the inner one only, read by the first's loop.
TEST(Generate, AccumulatesOverTwoLoops) {
  expect_right({"two_loops",
                "program p(n = 9, a = 6, k = 33) { input x: f32[n, a, k] input w: f32[a]\n"
                "output y: f32[n] = sum[a](w * sum[k](x)) + max[a, k](x) }",
                R"(ugraph u of p { kernel k0 grid() warps(2) {
                  split k = k.o * k.i(8)
                  loop a stages(2) {
                    loop k.o stages(2) {
                      xs[n, k.i] = x : shared f32
                      part[n] = sum[k.o, k.i](xs) : reg f32
                      top[n] = max[a, k.o, k.i](xs) : reg f32
                    }
                    total[n] = sum[a](part * w) : reg f32
                  }
                  o[n] = total + top : reg f32
                  store o -> y } })"});
}

TEST(Generate, TrimsLoopsByAnyCondition) {
  const char* conditions[] = {"k.o <= 2 * n.o", "3 - k.o > n.o", "k.o == n.o",
                              "k.o != n.o",     "2 * k.o < 3",   "3 * k.o >= 4 * n.o - 1"};
  for (const std::string condition : conditions) {
    expect_right(
        {condition,
         "program p(n.o = 4, n.i = 3, k.o = 5, k.i = 8) { input x: f16[n.o, n.i, k.o, k.i]\n"
         "output y: f32[n.o, n.i] = sum[k.o, k.i](select(" +
             condition + ", x, 0)) }",
         "ugraph u of p { kernel k0 grid(n.o) warps(1) { loop k.o stages(3) trim(" + condition +
             ") { xs[n.i, k.i] = x : shared f16\n s[n.i] = sum[k.o, k.i](xs) : reg f32 }\n"
             "store s -> y } }"});
  }
}

// However a tile is written and read, its banks are seldom asked for two words at once.
TEST(Generate, TouchesSharedMemoryWithoutConflicts) {
  const GenerateCase cases[] = {
      {"pairs_read_in_fours",
       "program p(n = 1, h = 128, d = 64, r = 16) { input X: f16[n, h] input W: f16[h, d]\n"
       "input A: f16[h, r] input B: f16[r, d]\n"
       "output y: f16[n, d] = sum[h](X * W) + sum[h](X * sum[r](A * B)) }",
       R"(ugraph u of p { kernel k0 grid(d.o) warps(8) {
         split d = d.o * d.i(32)
         bs[r, d.i] = B : shared f16
         as[h, r] = A : shared f16
         xs[n, h] = X : shared f16
         ws[h, d.i] = W : reg f16
         t[h, d.i] = sum[r](as * bs) : reg f32 mma(m64n8k16) warps(h/8)
         o[n, d.i] = sum[h](xs * ws + t * xs) : reg f32
         store o -> y } })"},
      {"an_addend_of_accumulators",
       "program p(q = 64, k = 100, e = 64) { input x: f16[q, e] input w: f16[k, e]\n"
       "input b: f16[q, k] output y: f32[q, k] = sum[e](x * w) + b }",
       R"(ugraph u of p { kernel k0 grid(k.o) warps(4) {
         split k = k.o * k.i(64)
         xs[q, e] = x : shared f16
         ws[k.i, e] = w : shared f16
         bs[q, k.i] = b : shared f16
         t[q, k.i] = sum[e](xs * ws) : reg f32 mma(m64n8k16) warps(q/4)
         o[q, k.i] = t + bs : reg f32
         store o -> y } })"},
      {"rows_made_for_products",
       "program p(q = 64, k = 64, e = 64) { input x: f16[q, e] input w: f16[k, e]\n"
       "output y: f32[q, k] = sum[e](x * rsqrt(mean[e](x * x)) * w) }",
       R"(ugraph u of p { kernel k0 grid() warps(4) {
         xs[q, e] = x : reg f16
         ws[k, e] = w : shared f16
         r[q] = sum[e](xs * xs) : reg f32
         t[q, e] = rsqrt(r / size(e)) * xs : shared f16
         o[q, k] = sum[e](t * ws) : reg f32 mma(m64n8k16) warps(q/4)
         store o -> y } })"},
      {"a_few_rows",
       "program p(n = 2, h = 1024, d = 128) { input x: f16[n, h] input w: f16[h, d]\n"
       "output y: f32[n, d] = sum[h](x * w) }",
       R"(ugraph u of p { kernel k0 grid(d.o) warps(4) {
         split h = h.o * h.i(256)  split d = d.o * d.i(64)
         loop h.o stages(3) bulk {
           xs[n, h.i] = x : shared f16
           ws[h.i, d.i] = w : shared f16
           o[n, d.i] = sum[h.o, h.i](xs * ws) : reg f32 mma(m16n8k16, swap) warps(h.i/4) }
         store o -> y } })"},
      {"factors_of_two_widths",
       "program p(n = 8, h = 512, d = 64) { input x: f16[n, h] input g: f32[n, h]\n"
       "input w: f16[h, d] output y: f32[n, d] = sum[h](x * g * w) }",
       R"(ugraph u of p { kernel k0 grid() warps(8) {
         split h = h.o * h.i(256)
         loop h.o stages(2) bulk {
           xs[n, h.i] = x : shared f16
           gs[n, h.i] = g : shared f32
           ws[h.i, d] = w : shared f16
           t[n, h.i] = xs * gs : shared f16
           o[n, d] = sum[h.o, h.i](t * ws) : reg f32 mma(m16n8k16, swap) warps(h.i/8) }
         store o -> y } })"}};
  for (const GenerateCase& c : cases) {
    const GenerateOutcome outcome = run_case(c);
    EXPECT_TRUE(outcome.passed) << c.name << ": " << outcome.failure;
    EXPECT_LT(outcome.conflicts, 0.05) << c.name;
  }
}

// A load passes by L1 if no other thread and no other load reads the element.
TEST(Generate, StreamsWhatIsReadOnce) {
  const char* program =
      "program p(n = 8, h = 512) { input x: f16[n, h] input w: f16[h]\n"
      "output y: f32[n, h] = x * w }";
  const auto scaled = emitted(read(program, R"(ugraph u of p { kernel k0 grid(n) warps(2) {
      xs[h] = x : reg f16
      ws[h] = w : reg f16
      o[h] = xs * ws : reg f32
      store o -> y } })"));
  ASSERT_TRUE(scaled.ok());
  const std::string text = kernels_of(scaled->cuda);
  EXPECT_NE(text.find("load_stream(in_1[0], x"), std::string::npos) << text;
  EXPECT_EQ(text.find("load_global(in_1[0], x"), std::string::npos);
  EXPECT_NE(text.find(", w + "), std::string::npos);
  EXPECT_EQ(text.find("load_stream", text.find("ws[h]")), std::string::npos) << text;
  const auto twice =
      emitted(read("program p(n = 8, h = 512) { input x: f16[n, h]\n"
                   "output y: f32[n, h] = x - max[h](x) }",
                   R"(ugraph u of p { kernel k0 grid(n) warps(2) {
      xs[h] = x : reg f16
      m[] = max[h](xs) : reg f32
      again[h] = x : reg f16
      o[h] = again - m : reg f32
      store o -> y } })"));
  ASSERT_TRUE(twice.ok());
  EXPECT_EQ(kernels_of(twice->cuda).find("load_stream"), std::string::npos);
}

// Outputs of half the L2 and more go past it, but for those that a later kernel reads.
TEST(Generate, OutputsThatTheCacheCannotKeepPassByIt) {
  const auto text_of = [](int n, bool read_again) {
    const std::string program = "program p(n = " + std::to_string(n) +
                                ", h = 4096) { input x: f16[n, h]\nv[n, h] = x * 2\n"
                                "output y: f16[n, h] = v\n"
                                "output z: f16[n, h] = v + 1 }";
    const std::string second = read_again ? "ys[h] = y : reg f16" : "ys[h] = x * 2 : reg f16";
    const auto made = emitted(read(program.c_str(), (R"(ugraph u of p {
      kernel k0 grid(n) warps(4) { xs[h] = x : reg f16  o[h] = xs * 2 : reg f16  store o -> y }
      kernel k1 grid(n) warps(4) { )" + second +
                                                     R"(  o[h] = ys + 1 : reg f16  store o -> z }
    })")
                                                        .c_str()));
    EXPECT_TRUE(made.ok());
    return made.ok() ? kernels_of(made->cuda) : "";
  };
  const auto stores = [](const std::string& text, const std::string& call) {
    size_t count = 0;
    for (size_t at = text.find(call); at != std::string::npos; at = text.find(call, at + 1))
      ++count;
    return count;
  };
  EXPECT_EQ(stores(text_of(4096, false), "sd::store_stream("), 2u);
  EXPECT_EQ(stores(text_of(4096, true), "sd::store_stream("), 1u);
  EXPECT_EQ(stores(text_of(256, false), "sd::store_stream("), 0u);
  EXPECT_EQ(stores(text_of(256, false), "sd::store_global("), 2u);
}

// A branch keeps the assembler from moving one of several loads behind the use of another.
TEST(Generate, LoadsThatStandTogetherAreIssuedTogether) {
  const char* program =
      "program p(n = 8, h = 512) { input x: f16[n, h] input w: f16[h]\n"
      "output y: f32[n, h] = x * w - max[h](x) }";
  const auto kernel = [&](const std::string& first, const std::string& later, int warps) {
    const auto made =
        emitted(read(program, "ugraph u of p { kernel k0 grid(n) warps(" + std::to_string(warps) +
                                  ") {\n" + first + "m[] = max[h](xs) : reg f32\n" + later +
                                  "o[h] = xs * ws - m : reg f32\nstore o -> y } }"));
    EXPECT_TRUE(made.ok());
    return made.ok() ? kernels_of(made->cuda) : "";
  };
  const std::string xs = "xs[h] = x : reg f16\n", ws = "ws[h] = w : reg f16\n";
  const std::string issued = "sd::loads_issued();";
  const std::string together = kernel(xs + ws, "", 2);
  const size_t at = together.find(issued);
  ASSERT_NE(at, std::string::npos) << together;
  EXPECT_LT(together.find("// ws[h] = w"), at);
  EXPECT_LT(at, together.find("// m[] = max"));
  EXPECT_EQ(together.find(issued, at + 1), std::string::npos);
  // A load at a time, of one vector a thread; of two.
  EXPECT_EQ(kernel(xs, ws, 2).find(issued), std::string::npos);
  EXPECT_NE(kernel(xs, ws, 1).find(issued), std::string::npos);
}

// Names of the program that mean something in CUDA C++, or in the text around.
TEST(Generate, KeepsClearOfReservedNames) {
  expect_right({"names",
                "program p(int = 3, lane = 20) { input float: f16[int, lane] input sd: f32[lane]\n"
                "output v: f16[int, lane] = float * sd }",
                R"(ugraph tid of p { kernel warp grid(int) warps(1) {
                  row[lane] = float : shared f16
                  vec[lane] = row * sd : shared f32
                  store vec -> v } })"});
}

}  // namespace
}  // namespace sundog::codegen
