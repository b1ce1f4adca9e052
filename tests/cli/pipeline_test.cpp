// Sizes that no tile divides, none at all, and more than a grid's second axis holds: each program
// of the list ends in a right kernel or in a reason.
#include <cstdlib>

#include "core/text.h"
#include "search/superoptimize.h"
#include "tests/cli/json_reader.h"
#include "tests/cli/tool_runner.h"

namespace sundog::cli {
namespace {

struct SizesCase {
  const char* program;
  std::vector<const char*> defines;
};

ProcessResult optimize(const SizesCase& c, const Scratch& scratch) {
  std::vector<std::string> arguments = {
      "optimize", std::string(SUNDOG_SOURCE_DIR) + "/benchmarks/programs/" + c.program + ".sd",
      "--target", "h200",
      "--states", "3000",
      "--top",    "2",
      "--no-gpu", "--json",
      "--out",    scratch.path("out")};
  for (const char* define : c.defines) {
    arguments.push_back("-D");
    arguments.push_back(define);
  }
  return run_tool(arguments);
}

class OddSizesSlow : public testing::TestWithParam<SizesCase> {};

TEST_P(OddSizesSlow, EndInARightKernel) {
  const Scratch scratch;
  const ProcessResult run = optimize(GetParam(), scratch);
  ASSERT_EQ(run.code, 0) << run.err;
  const JsonValue best = parse_json(run.out)["best"];
  EXPECT_EQ(best["verdict"]["answer"].text, "equivalent");
  EXPECT_TRUE(contains(best["verdict"]["kernel_check"].text, "passed"));
  EXPECT_LE(best["predicted_us"].number, best["unfused_predicted_us"].number);
}

std::string case_name(const testing::TestParamInfo<SizesCase>& info) {
  std::string name = info.param.program;
  for (const char* define : info.param.defines) name += std::string("_") + define;
  std::erase(name, '=');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Ragged, OddSizesSlow,
                         testing::Values(SizesCase{"rms_norm", {"n=3", "h=2560", "d=4095"}},
                                         SizesCase{"rms_norm", {"n=7", "h=127", "d=48"}},
                                         SizesCase{"gated_mlp", {"n=7", "h=4100", "d=48"}},
                                         SizesCase{"lora", {"n=3", "h=127", "d=4095"}},
                                         SizesCase{"gqa_safe", {"g=3", "q=7", "k=509"}},
                                         SizesCase{"gqa", {"g=1", "q=33", "k=257"}},
                                         SizesCase{"qk_norm_safe", {"g=1", "q=7", "k=257"}},
                                         SizesCase{"n_trans", {"n=3", "h=4100"}},
                                         SizesCase{"layer_norm", {"n=3", "h=127"}},
                                         SizesCase{"softmax", {"n=7", "k=509"}},
                                         SizesCase{"add_rms_norm", {"n=7", "h=2560"}},
                                         SizesCase{"swiglu_down", {"n=7", "f=4100", "d=48"}},
                                         SizesCase{"attention_prefill_causal", {"g=3", "q=127"}},
                                         SizesCase{"gemm", {"m=127", "n=257", "k=509"}}),
                         case_name);

INSTANTIATE_TEST_SUITE_P(
    Empty, OddSizesSlow,
    testing::Values(SizesCase{"rms_norm", {"n=0"}}, SizesCase{"gated_mlp", {"n=2", "h=0", "d=64"}},
                    SizesCase{"lora", {"n=2", "r=0"}}, SizesCase{"gqa_safe", {"g=0"}},
                    SizesCase{"gqa_safe", {"g=1", "f=0"}}, SizesCase{"softmax", {"n=3", "k=0"}},
                    SizesCase{"layer_norm", {"n=0"}}),
    case_name);

INSTANTIATE_TEST_SUITE_P(ManyRows, OddSizesSlow,
                         testing::Values(SizesCase{"rms_norm", {"n=65537", "h=128", "d=64"}},
                                         SizesCase{"lora", {"n=65537", "h=128", "d=64"}},
                                         SizesCase{"softmax", {"n=65537", "k=128"}},
                                         SizesCase{"gqa_safe", {"g=65537", "q=4", "k=64"}}),
                         case_name);

// Linear attention with exp features: no maximum may be taken off, and the numbers of bf16 have the
// range that exps without one need.
TEST(PipelineTest, LinearAttentionIsFusedAndProved) {
  for (const char* dtype : {"f16", "bf16"}) {
    for (const bool causal : {false, true}) {
      if (causal && dtype == std::string("f16")) continue;  // a library's product in f32 is better
      const Scratch scratch;
      const std::string t = dtype;
      const std::string text =
          "program p(g = 4, q = 128, k = q, e = 32, f = 32) {\n  input Q: " + t +
          "[g, q, e]\n  input K: " + t + "[g, k, e]\n  input V: " + t + "[g, k, f]\n" +
          "  s[g, q, k] = sum[e](exp(Q) * exp(K))\n" +
          (causal ? "  m[g, q, k] = select(k <= q, s, 0)\n" : "  m[g, q, k] = s\n") +
          "  output O: " + t + "[g, q, f] = sum[k](m * V) / sum[k](m)\n}\n";
      const ProcessResult run =
          run_tool({"optimize", scratch.write("p.sd", text), "--target", "h200", "--states", "3000",
                    "--top", "2", "--no-gpu", "--json", "--out", scratch.path("out")});
      ASSERT_EQ(run.code, 0) << run.err;
      const JsonValue best = parse_json(run.out)["best"];
      EXPECT_TRUE(best["fused"].truth) << text;
      EXPECT_EQ(best["verdict"]["answer"].text, "equivalent");
      EXPECT_TRUE(best["verdict"]["proof"].text.starts_with("proved")) << run.out;
      EXPECT_TRUE(contains(best["verdict"]["kernel_check"].text, "passed")) << run.out;
    }
  }
}

// What search offers for the blocks of a cluster is emitted, right on the emulator, and refused by
// name where there are no clusters.
TEST(PipelineTest, ClustersThatSearchOffersRun) {
  const Scratch scratch;
  const std::string text =
      "program p(n = 8, h = 2048, d = 96) {\n  input X: f16[n, h]\n  input W: f16[h, d]\n"
      "  output O: f16[n, d] = sum[h](X * W) * rsqrt(mean[h](X * X) + 1)\n}\n";
  scratch.write("p.sd", text);
  const Result<Program> program = parse_program(text, "p.sd");
  ASSERT_TRUE(program.ok());
  search::SearchOptions options;
  options.max_states = 3000;
  options.top_k = 200;
  search::SearchSpace space;
  space.cluster = true;
  const auto report = search::superoptimize(*program, *find_device("h200"), space, options);
  ASSERT_TRUE(report.ok());
  int found = 0;
  for (const search::Candidate& c : report->candidates) {
    if (c.graph.kernels.back().via != Via::kCluster || ++found > 3) continue;
    const std::string file = scratch.write("g.mu", "# program: p.sd\n" + print(c.graph, *program));
    const ProcessResult run = run_tool({"run", file, "--on", "emulator", "--target", "h200"});
    EXPECT_EQ(run.code, 0) << run.out << run.err << print(c.graph, *program);
    EXPECT_EQ(run_tool({"show", file, "--cost", "--target", "h200"}).code, 0);
    for (const std::vector<std::string>& refused :
         {std::vector<std::string>{"emit", file, "--target", "a100", "-o", scratch.path("g.cu")},
          {"show", file, "--cost", "--target", "a100"}}) {
      const ProcessResult old = run_tool(refused);
      EXPECT_EQ(old.code, 2) << old.out << old.err;
      EXPECT_TRUE(contains(old.err, "is run by the blocks of a cluster; a100 is sm_80")) << old.err;
    }
    EXPECT_EQ(run_tool({"show", file, "--target", "a100"}).code, 0);
  }
  EXPECT_GT(found, 0);
}

// One product over heads and their width: no candidate is as fast as the program as it is written.
TEST(PipelineTest, TheUnfusedProgramIsPickedWhereItIsTheFastest) {
  const Scratch scratch;
  const ProcessResult run = optimize({"linear_heads", {}}, scratch);
  ASSERT_EQ(run.code, 0) << run.err;
  const JsonValue json = parse_json(run.out);
  const double us = json["best"]["predicted_us"].number;
  EXPECT_LE(us, json["best"]["unfused_predicted_us"].number);
  for (const JsonValue& candidate : json["candidates"].items) {
    EXPECT_LE(us, candidate["predicted_us"].number);
  }
}

TEST(OddSizes, WhatHasNoValueIsUnknown) {
  const Scratch scratch;
  const ProcessResult run = optimize({"gqa_safe", {"g=1", "q=8", "k=0"}}, scratch);
  EXPECT_EQ(run.code, 3) << run.err;
  EXPECT_TRUE(contains(run.err, "division by zero")) << run.err;
  EXPECT_TRUE(contains(run.err, "an axis is empty")) << run.err;
  EXPECT_FALSE(std::filesystem::exists(scratch.path("out")));
}

TEST(OddSizes, WhatNoDeviceHoldsIsRefused) {
  const Scratch scratch;
  const ProcessResult run = optimize({"softmax", {"n=1000000000", "k=1000000000"}}, scratch);
  EXPECT_EQ(run.code, 2) << run.err;
  EXPECT_TRUE(contains(run.err, "4e+09 GB, and h200 has 151 GB")) << run.err;
}

// Guards are ints: of more elements none would hold.
TEST(OddSizes, MoreIndicesThanAnIntHoldsAreRefused) {
  const Scratch scratch;
  const std::string file = scratch.write("long.sd", R"(program long_row(n = 5000000001) {
  input X: f16[n]
  output O: f16[n] = X * 2
}
)");
  const ProcessResult run =
      run_tool({"optimize", file, "--no-gpu", "--states", "100", "--out", scratch.path("out")});
  EXPECT_EQ(run.code, 2) << run.err;
  EXPECT_TRUE(contains(run.err, "long.sd:1:18: error: axis 'n' has 5000000001 indices")) << run.err;
}

// A window of hundreds pins its axes at thousands, which no exact test can take: it moves.
TEST(WindowsSlow, OfHundredsAreFusedAndProved) {
  const Scratch scratch;
  const std::string attention = scratch.write(
      "sliding.sd", R"(program sliding(g = 2, q = 4096, k = q, e = 64, f = e, w = 1024) {
  input Q: f16[g, q, e]
  input K: f16[g, k, e]
  input V: f16[g, k, f]
  s[g, q, k] = select(k <= q, select(k > q - w, sum[e](Q * K) / 8, -inf), -inf)
  p[g, q, k] = exp(s - max[k](s))
  output O: f16[g, q, f] = sum[k](p * V) / sum[k](p)
}
)");
  const std::string band =
      scratch.write("banded.sd", R"(program banded(i = 4096, k = i, j = 256, w = 256) {
  input A: f16[i, k]
  input B: f16[k, j]
  output C: f16[i, j] = sum[k](select(k <= i + w, select(i <= k + w, A, 0), 0) * B)
}
)");
  for (const std::string& program : {attention, band}) {
    const std::string out = scratch.path("out");
    const ProcessResult run = run_tool({"optimize", program, "--target", "h200", "--no-gpu",
                                        "--states", "20000", "--out", out, "--json"});
    ASSERT_EQ(run.code, 0) << run.err;
    const JsonValue best = parse_json(run.out)["best"];
    const std::string check = best["verdict"]["kernel_check"].text;
    if (program == attention) {
      EXPECT_TRUE(best["fused"].truth) << run.out;
      EXPECT_TRUE(contains(check, "1024 as ")) << "at a moved window: " << check;
    }
    EXPECT_LT(best["predicted_us"].number, 0.2 * best["unfused_predicted_us"].number);
    EXPECT_EQ(best["verdict"]["answer"].text, "equivalent");
    EXPECT_TRUE(contains(best["verdict"]["proof"].text, "proved for all sizes"));
    EXPECT_TRUE(contains(check, "passed")) << run.out;
    EXPECT_EQ(run_tool({"verify", program, out}).code, 0);
  }
}

}  // namespace
}  // namespace sundog::cli
