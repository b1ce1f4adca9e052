// From a program file to a result on the disk and back, by the tool itself.
#include <signal.h>

#include <thread>

#include "cli/commands.h"
#include "tests/cli/json_reader.h"
#include "tests/cli/tool_runner.h"

namespace sundog::cli {
namespace {

std::vector<std::string> command(const Scratch& scratch, std::vector<std::string> more = {}) {
  std::vector<std::string> arguments = {
      "optimize",         scratch.write("row_norm.sd", kSmallProgram),
      "--target",         "h200",
      "--budget",         "2s",
      "--no-gpu",         "--out",
      scratch.path("out")};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

// One result for all tests that only look at it.
class Optimized : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    scratch_ = new Scratch;
    json_ = new ProcessResult(run_tool(command(*scratch_, {"--json"})));
  }
  static void TearDownTestSuite() {
    delete scratch_;
    delete json_;
  }
  static Scratch* scratch_;
  static ProcessResult* json_;
};
Scratch* Optimized::scratch_ = nullptr;
ProcessResult* Optimized::json_ = nullptr;

TEST_F(Optimized, JsonHasEveryField) {
  ASSERT_EQ(json_->code, 0) << json_->err;
  EXPECT_EQ(json_->err, "") << "progress belongs on a terminal only";
  const JsonValue json = parse_json(json_->out);
  EXPECT_EQ(json["program"].text, "row_norm");
  EXPECT_EQ(json["target"].text, "h200");
  const JsonValue& best = json["best"];
  EXPECT_GE(best["kernels"].number, 1);
  EXPECT_EQ(best["fused"].kind, JsonValue::kBool);
  EXPECT_GT(best["predicted_us"].number, 0);
  EXPECT_GE(best["unfused_predicted_us"].number, best["predicted_us"].number);
  EXPECT_EQ(best["measured_us"].kind, JsonValue::kNull);
  EXPECT_GT(best["max_rel_error"].number, 0);
  EXPECT_LT(best["max_rel_error"].number, 1e-2);
  EXPECT_FALSE(best["structure"].text.empty());
  const JsonValue& verdict = best["verdict"];
  EXPECT_GE(verdict["field"]["rounds"].number, 1);
  EXPECT_LE(verdict["field"]["error_bound"].number, 0x1p-60);
  EXPECT_GT(verdict["field"]["error_bound"].number, 0);
  EXPECT_TRUE(verdict["proof"].text.starts_with("proved")) << verdict["proof"].text;
  EXPECT_TRUE(contains(verdict["proof"].text, "emitted kernels")) << verdict["proof"].text;
  EXPECT_EQ(verdict["numerics"].text, "passed");
  EXPECT_TRUE(contains(verdict["kernel_check"].text, "passed")) << verdict["kernel_check"].text;
  const JsonValue& search = json["search"];
  EXPECT_GT(search["states"].number, 0);
  EXPECT_GT(search["seconds"].number, 0);
  EXPECT_FALSE(search["stop_reason"].text.empty());
  EXPECT_GT(search["bound_us"].number, 0);
  EXPECT_GE(search["gap"].number, 0);
  EXPECT_EQ(search["optimal"].truth, search["gap"].number <= 1e-9);
  for (const char* count : {"structures", "kernels_priced", "terms", "rounds", "rejected"}) {
    EXPECT_EQ(search[count].kind, JsonValue::kNumber) << count;
  }
  EXPECT_EQ(search["pruned"].kind, JsonValue::kObject);
  EXPECT_EQ(search["kept_undecided"].kind, JsonValue::kNumber);
  for (const char* file : {"cuda", "mugraph", "program", "result", "report"}) {
    EXPECT_TRUE(std::filesystem::exists(json["files"][file].text)) << file;
  }
  EXPECT_TRUE(contains(json["timing"].text, "not timed"));
}

TEST_F(Optimized, TheFilesAreWhole) {
  EXPECT_EQ(scratch_->count("out"), 5);
  EXPECT_TRUE(contains(scratch_->read("out/best.cu"), "__global__"));
  EXPECT_TRUE(contains(scratch_->read("out/best.mu"), "ugraph"));
  EXPECT_TRUE(contains(scratch_->read("out/program.sd"), "program row_norm"));
  const std::string page = scratch_->read("out/report.html");
  EXPECT_TRUE(contains(page, "<svg") && contains(page, "</html>"));
  EXPECT_FALSE(contains(page, "http://") && contains(page, "src="))
      << "it needs nothing from outside";
}

TEST_F(Optimized, TheResultVerifiesRunsAndShows) {
  const std::string folder = scratch_->path("out");
  const std::string program = folder + "/program.sd", graph = folder + "/best.mu";
  EXPECT_EQ(run_tool({"verify", program, graph}).code, 0);
  EXPECT_EQ(run_tool({"verify", program, folder}).code, 0);
  const auto run = run_tool({"run", folder, "--on", "emulator", "--json"});
  EXPECT_EQ(run.code, 0) << run.err << run.out;
  EXPECT_TRUE(parse_json(run.out)["passed"].truth);
  EXPECT_EQ(run_tool({"run", graph, "--on", "emulator"}).code, 0);
  EXPECT_TRUE(contains(run_tool({"show", folder}).out, "ugraph"));
  EXPECT_TRUE(contains(run_tool({"show", "--dot", graph}).out, "digraph"));
  EXPECT_TRUE(contains(run_tool({"emit", graph}).out, "__global__"));
  EXPECT_TRUE(contains(run_tool({"show", folder, "--candidate", "0"}).out, "ugraph"));
  const auto costs = run_tool({"show", graph, "--cost", "--target", "h200"});
  EXPECT_TRUE(contains(costs.out, "predicted") && contains(costs.out, "tensor")) << costs.out;
  EXPECT_EQ(run_tool({"show", folder, "--candidate", "1000"}).code, 2);
  const auto stored = run_tool({"show", "--proto", folder + "/result.pb"});
  EXPECT_EQ(stored.out, scratch_->read("out/result.pb"));
}

TEST_F(Optimized, TheEvidenceHoldsUntilSomethingIsChanged) {
  const std::string folder = scratch_->path("out");
  const auto right = run_tool({"verify", "--evidence", folder, "--json"});
  EXPECT_EQ(right.code, 0) << right.out << right.err;
  EXPECT_TRUE(parse_json(right.out)["holds"].truth);
  const auto with = [&](const std::string& file, const std::string& was, const std::string& is) {
    const std::string before = scratch_->read("out/" + file);
    std::string after = before;
    const size_t at = after.find(was);
    EXPECT_NE(at, std::string::npos) << file;
    if (at != std::string::npos) after.replace(at, was.size(), is);
    scratch_->write("out/" + file, after);
    const auto result = run_tool({"verify", "--evidence", folder});
    scratch_->write("out/" + file, before);
    return result;
  };
  const auto cuda = with("best.cu", "extern \"C\" __global__", "extern \"C\"  __global__");
  EXPECT_EQ(cuda.code, 1);
  EXPECT_TRUE(contains(cuda.out, "FAILS   best.cu")) << cuda.out;
  EXPECT_EQ(with("program.sd", "1e-6", "1e-5").code, 1);
  // The header is evidence, too: the text of result.pb must follow from the rest of it.
  const auto claim = with("result.pb", "verified: equivalent", "verified: Equivalent");
  EXPECT_EQ(claim.code, 1) << claim.err;
  EXPECT_EQ(run_tool({"verify", "--evidence", folder + "/best.mu"}).code, 2);
  EXPECT_EQ(run_tool({"verify", folder}).code, 2) << "an operand is missing";
}

TEST(Optimize, AResultMaySayLessThanIsShownAndNotMore) {
  const Scratch scratch;
  const std::string folder = scratch.path("out");
  ASSERT_EQ(run_tool(command(scratch, {"--no-check", "--prove-time", "0.0001s"})).code, 0);
  const auto less = run_tool({"verify", "--evidence", folder});
  EXPECT_EQ(less.code, 0) << less.out;
  EXPECT_TRUE(contains(less.out, "(the result says less: undecided: ")) << less.out;
  ASSERT_EQ(run_tool(command(scratch, {"--no-check"})).code, 0);
  const auto more = run_tool({"verify", "--evidence", folder, "--prove-time", "0.0001s"});
  EXPECT_EQ(more.code, 1);
  EXPECT_TRUE(contains(more.out, ": the result claims more: ")) << more.out;
}

TEST_F(Optimized, TheLineAtTheEndUsesTheResultWithoutSearching) {
  const auto first = run_tool(command(*scratch_));
  ASSERT_EQ(first.code, 0) << first.err;
  const size_t at = first.out.rfind("next time: sundog ");
  ASSERT_NE(at, std::string::npos) << first.out;
  const std::string line = first.out.substr(at + 18);
  const auto again = run_shell("\"$TOOL\" " + line.substr(0, line.size() - 1) + " --no-gpu --json");
  ASSERT_EQ(again.code, 0) << again.err;
  const JsonValue json = parse_json(again.out);
  EXPECT_TRUE(contains(json["search"]["stop_reason"].text, "earlier result"));
  EXPECT_EQ(json["best"]["structure"].text, parse_json(json_->out)["best"]["structure"].text);
}

TEST_F(Optimized, AWrongMugraphIsDifferent) {
  // The same kernels for a program that lacks the epsilon by far.
  std::string other = scratch_->read("out/program.sd");
  const size_t at = other.find("1e-6");
  ASSERT_NE(at, std::string::npos);
  other.replace(at, 4, "1e-1");
  const std::string file = scratch_->write("other.sd", other);
  const auto result = run_tool({"verify", file, scratch_->path("out/best.mu"), "--json"});
  EXPECT_EQ(result.code, 1) << result.out << result.err;
  EXPECT_EQ(parse_json(result.out)["answer"].text, "different");
}

TEST(Optimize, AWrongCandidateIsDroppedAndTheReasonGiven) {
  const Scratch scratch;
  const std::string wrong = scratch.write("wrong.mu", R"(ugraph wrong of row_norm {
  kernel k grid(n) warps(1) {
    xs[h] = x : reg f16
    s[] = sum[h](xs * xs) : reg f32
    o[h] = xs * rsqrt(s / size(h) + 1e-2) : reg f32
    store o -> y
  }
}
)");
  const auto result = run_tool(command(scratch, {"--from", wrong, "--json"}));
  ASSERT_EQ(result.code, 0) << result.err;
  const JsonValue json = parse_json(result.out);
  int wrong_ones = 0;
  for (const JsonValue& candidate : json["candidates"].items) {
    if (candidate["dropped"].kind == JsonValue::kNull) continue;
    wrong_ones += contains(candidate["dropped"].text, "verification");
    EXPECT_FALSE(candidate["best"].truth);
  }
  EXPECT_EQ(wrong_ones, 1);
  EXPECT_EQ(json["best"]["verdict"]["answer"].text, "equivalent");
}

TEST(Optimize, ARightCandidateThatIsGivenIsKept) {
  const Scratch scratch;
  const std::string right = scratch.write("right.mu", R"(ugraph right of row_norm {
  kernel k grid(n) warps(1) {
    xs[h] = x : reg f16
    s[] = sum[h](xs * xs) : reg f32
    o[h] = xs * rsqrt(s / size(h) + 1e-6) : reg f32
    store o -> y
  }
}
)");
  const auto result = run_tool(command(scratch, {"--from", right, "--json"}));
  ASSERT_EQ(result.code, 0) << result.err;
  const JsonValue json = parse_json(result.out);
  int given = 0;
  for (const JsonValue& candidate : json["candidates"].items) {
    if (!contains(candidate["structure"].text, "k[64 blocks, 1 warp]")) continue;
    ++given;
    EXPECT_EQ(candidate["dropped"].kind, JsonValue::kNull) << candidate["dropped"].text;
    EXPECT_GT(candidate["predicted_us"].number, 0);
  }
  EXPECT_EQ(given, 1) << result.out;
}

TEST(Optimize, AResultServesOtherSizesAndDevicesWithoutASearch) {
  const Scratch scratch;
  ASSERT_EQ(run_tool(command(scratch)).code, 0);
  const std::string program = scratch.path("row_norm.sd"), first = scratch.path("out");
  const auto again = [&](const std::string& device, const std::string& sizes) {
    return run_tool({"optimize", program, "--target", device, "-D", sizes, "--no-gpu", "--from",
                     first, "--out", scratch.path("other"), "--json"});
  };
  for (const auto& [device, sizes] : {std::pair{"h200", "n=333"}, std::pair{"a100", "h=1000"}}) {
    const auto result = again(device, sizes);
    ASSERT_EQ(result.code, 0) << result.err;
    const JsonValue json = parse_json(result.out);
    EXPECT_EQ(json["search"]["states"].number, 0);
    EXPECT_TRUE(contains(json["search"]["stop_reason"].text, "not searched"));
    EXPECT_EQ(json["best"]["verdict"]["answer"].text, "equivalent");
    EXPECT_EQ(json["best"]["kernels"].number, 1);
    EXPECT_GE(json["best"]["unfused_predicted_us"].number, json["best"]["predicted_us"].number);
  }
  const auto too_long = again("h200", "h=30000000");
  EXPECT_EQ(too_long.code, 2);
  EXPECT_TRUE(contains(too_long.err, "fit")) << too_long.err;
}

TEST(Optimize, AResultThatCannotBeWrittenLeavesTheOldOne) {
  const Scratch scratch;
  ASSERT_EQ(run_tool(command(scratch)).code, 0);
  const std::string before = scratch.read("out/result.pb");
  const auto limited = run_shell("ulimit -f 1; \"$TOOL\" optimize '" + scratch.path("row_norm.sd") +
                                 "' --budget 1s --no-gpu --no-check --target h200 --out '" +
                                 scratch.path("out") + "'");
  EXPECT_EQ(limited.code, 2) << limited.err;
  EXPECT_TRUE(contains(limited.err, "File too large")) << limited.err;
  EXPECT_EQ(scratch.read("out/result.pb"), before);
  EXPECT_EQ(scratch.count(), 2) << "no unfinished folder is left";
}

TEST(Optimize, AnInterruptEndsWithAWholeResult) {
  const Scratch scratch;
  const std::string script = "\"$TOOL\" optimize '" + scratch.write("row_norm.sd", kSmallProgram) +
                             "' --budget 60s --no-gpu --target h200 --out '" + scratch.path("out") +
                             "' --json & pid=$!; sleep 1; kill -INT $pid; wait $pid";
  const auto result = run_shell(script);
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(scratch.count("out"), 5);
  EXPECT_EQ(scratch.count(), 2);
}

TEST(Optimize, ASecondInterruptEndsAtOnceWithNothingWritten) {
  const Scratch scratch;
  const std::string script = "\"$TOOL\" optimize '" + scratch.write("row_norm.sd", kSmallProgram) +
                             "' --budget 60s --no-gpu --target h200 --out '" + scratch.path("out") +
                             "' & pid=$!; sleep 0.1; kill -INT $pid; kill -INT $pid; wait $pid";
  const auto result = run_shell(script);
  if (result.code == 0) {
    EXPECT_EQ(scratch.count("out"), 5) << "it was quicker than the second signal";
  } else {
    EXPECT_EQ(result.code, 128 + SIGINT);
    EXPECT_EQ(scratch.count(), 1);
  }
}

TEST(Optimize, WhereThereIsNoBestSoFarTheFirstInterruptEndsAtOnce) {
  const Scratch scratch;
  const std::string pipe = scratch.path("pipe");
  // A program that never comes.
  const auto result = run_shell(
      "mkfifo '" + pipe + "'; (sleep 60 > '" + pipe + "') & writer=$!; \"$TOOL\" verify '" + pipe +
      "' '" + pipe +
      "' & pid=$!; sleep 0.3; kill -INT $pid; wait $pid; code=$?; kill $writer; exit $code");
  EXPECT_EQ(result.code, 128 + SIGINT) << result.err;
  EXPECT_FALSE(contains(result.err, "best found so far"));
}

// glibc's arenas alone would take more for 16 threads.
TEST(Optimize, ALimitOnAddressSpaceEndsInAnAnswer) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "the sanitizer's shadow alone takes more";
#endif
  const Scratch scratch;
  const auto result = run_shell("ulimit -v 524288; \"$TOOL\" optimize '" SUNDOG_SOURCE_DIR
                                "/benchmarks/programs/gqa_safe.sd' --states 5000 --threads 16 "
                                "--no-gpu --target h200 --json --out '" +
                                scratch.path("out") + "'");
  ASSERT_EQ(result.code, 0) << result.err;
  const JsonValue json = parse_json(result.out);
  EXPECT_EQ(json["search"]["stop_reason"].text, "states");
  EXPECT_EQ(json["best"]["verdict"]["answer"].text, "equivalent");
  EXPECT_LT(json["best"]["predicted_us"].number, json["best"]["unfused_predicted_us"].number);
  EXPECT_LT(json["search"]["seconds"].number, 10) << "no allocation is tried in vain";
  // With less than any compiler takes, and then with less than the tool itself needs to start.
  for (const char* limit : {"120000", "20000"}) {
    const auto tight = run_shell(
        std::string("ulimit -v ") + limit +
        "; \"$TOOL\" optimize '" SUNDOG_SOURCE_DIR
        "/benchmarks/programs/gqa_safe.sd' --states 5000 --no-gpu --target h200 --json --out '" +
        scratch.path("tight") + "'");
    EXPECT_TRUE(tight.code == 0 || tight.code == 3 || tight.code == 127)
        << limit << ": " << tight.code << tight.err;
    if (tight.code == 0) {
      EXPECT_EQ(parse_json(tight.out)["best"]["verdict"]["answer"].text, "equivalent");
    }
  }
}

TEST(Optimize, ASearchThatIsKilledGoesOnToTheSameAnswer) {
  const auto result = run_shell("EVERY=100ms bash '" SUNDOG_SOURCE_DIR
                                "/tests/cli/kill_and_resume.sh' \"$TOOL\" '" SUNDOG_SOURCE_DIR
                                "/benchmarks/programs/gqa_safe.sd' 20000 4");
  EXPECT_EQ(result.code, 0) << result.out << result.err;
  EXPECT_TRUE(contains(result.out, "4: ")) << result.out;
}

TEST(Optimize, OneSeedAndOneBudgetInStatesGiveOneResult) {
  const Scratch scratch;
  std::string structures[2];
  for (int i = 0; i < 2; ++i) {
    const auto result =
        run_tool({"optimize", scratch.write("row_norm.sd", kSmallProgram), "--target", "h200",
                  "--states", "2000", "--threads", i == 0 ? "1" : "2", "--no-gpu", "--no-check",
                  "--json", "--out", scratch.path("out")});
    ASSERT_EQ(result.code, 0) << result.err;
    structures[i] = parse_json(result.out)["best"]["structure"].text;
  }
  EXPECT_EQ(structures[0], structures[1]);
}

// What a longer search prefers may be refused for its numbers: what a shorter one found is kept.
TEST(OptimizeSlow, ALongerSearchEndsWithNothingWorse) {
  const Scratch scratch;
  const std::string program =
      scratch.write("qkv.sd", R"(program qkv(b = 8, h = 4096, g = 32, p = 2, e = 64, l = 8) {
  input X: bf16[b, h]
  input w: bf16[h]
  input Wq: bf16[g, p, e, h]
  input Wk: bf16[l, p, e, h]
  input Wv: bf16[l, p, e, h]
  input C: bf16[b, p, e]
  input S: bf16[b, p, e]
  x[b, h] = cast(X, f32)
  n[b, h] = cast(x * rsqrt(mean[h](x * x) + 1e-6), bf16)
  y[b, h] = cast(n * w, bf16)
  q[b, g, p, e] = cast(sum[h](y * Wq), bf16)
  k[b, l, p, e] = cast(sum[h](y * Wk), bf16)
  output V: bf16[b, l, p, e] = sum[h](y * Wv)
  output Q: bf16[b, g, p, e] = cast(q * C, bf16) + cast(select(p < 1, -q[b, g, 1 - p, e], q[b, g, 1 - p, e]) * S, bf16)
  output K: bf16[b, l, p, e] = cast(k * C, bf16) + cast(select(p < 1, -k[b, l, 1 - p, e], k[b, l, 1 - p, e]) * S, bf16)
}
)");
  double before = 1e30;
  for (const char* states : {"500", "20000"}) {
    const auto found = run_tool({"optimize", program, "--target", "h200", "--states", states,
                                 "--no-gpu", "--no-check", "--prove-time", "0", "--json", "--out",
                                 scratch.path(std::string("after") + states)});
    ASSERT_EQ(found.code, 0) << found.err;
    const double us = parse_json(found.out)["best"]["predicted_us"].number;
    EXPECT_LE(us, before * 1.001) << states;
    before = us;
  }
}

TEST(Optimize, ALargeProductIsALibrarysAndIsVerifiedRunAndStoredAsSuch) {
  const Scratch scratch;
  const std::string program = scratch.write(
      "gemm.sd",
      "program gemm(m = 4096, k = 4096, n = 4096) {\n  input a: bf16[m, k]\n  input b: bf16[k, n]\n"
      "  output c: bf16[m, n] = sum[k](a * b)\n}\n");
  const std::string folder = scratch.path("gemm");
  const std::string space = scratch.write("own.textproto", "library_gemm: false\n");
  const auto found = run_tool({"optimize", program, "--target", "h200", "--states", "2000",
                               "--no-gpu", "--json", "--out", folder});
  ASSERT_EQ(found.code, 0) << found.err;
  const JsonValue best = parse_json(found.out)["best"];
  EXPECT_TRUE(contains(best["structure"].text, "library gemm")) << best["structure"].text;
  const JsonValue& verdict = best["verdict"];
  EXPECT_LE(verdict["field"]["error_bound"].number, 0x1p-60);
  EXPECT_TRUE(verdict["proof"].text.starts_with("proved")) << verdict["proof"].text;
  EXPECT_TRUE(contains(verdict["kernel_check"].text, "passed in the emulator"));
  EXPECT_TRUE(contains(verdict["kernel_check"].text, "equal in"))
      << verdict["kernel_check"].text << ": residues";
  EXPECT_TRUE(contains(scratch.read("gemm/best.cu"), "#include <cublas_v2.h>"));
  EXPECT_TRUE(contains(scratch.read("gemm/best.mu"), "library(gemm)"));
  EXPECT_EQ(run_tool({"verify", "--evidence", folder}).code, 0);
  EXPECT_EQ(run_tool({"verify", program, folder + "/best.mu"}).code, 0);
  const auto run = run_tool({"run", folder, "--on", "emulator"});
  EXPECT_EQ(run.code, 0) << run.err << run.out;
  EXPECT_TRUE(contains(run_tool({"show", "--cost", folder}).out, "predicted"));
  EXPECT_TRUE(contains(run_tool({"show", "--dot", folder}).out, "library gemm"));

  const auto own =
      run_tool({"optimize", program, "--target", "h200", "--states", "2000", "--no-gpu",
                "--no-check", "--space", space, "--json", "--out", scratch.path("own")});
  ASSERT_EQ(own.code, 0) << own.err;
  EXPECT_FALSE(contains(parse_json(own.out)["best"]["structure"].text, "library"));
}

}  // namespace
}  // namespace sundog::cli
