#include "cli/load.h"

#include <gtest/gtest.h>

#include "core/text.h"
#include "tests/cli/scratch.h"

namespace sundog::cli {
namespace {

constexpr char kProgram[] = R"(program twice(n = 64) {
  input x: f32[n]
  output y: f32[n] = 2 * x
}
)";
constexpr char kGraph[] = R"(ugraph one of twice {
  kernel k grid(n.o) warps(1) {
    split n = n.o * n.i(32)
    v[n.i] = x : reg f32
    w[n.i] = 2 * v : reg f32
    store w -> y
  }
}
)";

Invocation invocation(std::vector<std::string> more = {}) {
  std::vector<std::string> arguments = {"emit", "file"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  Result<Invocation> parsed =
      parse_invocation(arguments, [](const std::string&) { return std::optional<std::string>(); });
  SUNDOG_CHECK(parsed.ok());
  return std::move(*parsed);
}

int64_t extent(const Result<Candidate>& candidate) {
  return candidate.ok() ? candidate->program.axes[0].extent : -1;
}

TEST(Load, AMugraphFindsItsProgramByName) {
  const Scratch scratch;
  scratch.write("twice.sd", kProgram);
  const std::string file = scratch.write("any.mu", kGraph);
  EXPECT_EQ(extent(load_mugraph(file, invocation())), 64);
  EXPECT_EQ(extent(load_mugraph(file, invocation({"-D", "n=96"}))), 96);
}

TEST(Load, TheFirstLineNamesAnotherFileAndItsSizes) {
  const Scratch scratch;
  scratch.write("twice.sd", "not this one");
  scratch.write("other.sd", kProgram);
  const std::string file =
      scratch.write("any.mu", std::string("# program: other.sd n=128\n") + kGraph);
  EXPECT_EQ(extent(load_mugraph(file, invocation())), 128);
  EXPECT_EQ(extent(load_mugraph(file, invocation({"-D", "n=96"}))), 96) << "-D wins";
}

TEST(Load, TheOptionNamesTheProgramOverAll) {
  const Scratch scratch;
  scratch.write("twice.sd", "not this one");
  const std::string file = scratch.write("any.mu", kGraph);
  const std::string program = scratch.write("mine.sd", kProgram);
  EXPECT_FALSE(load_mugraph(file, invocation()).ok());
  EXPECT_EQ(extent(load_mugraph(file, invocation({"--program", program}))), 64);
}

// A result is for its own sizes: no -D or --program is passed over in silence.
TEST(Load, AResultIsTakenAsItWasMade) {
  const Scratch scratch;
  StoredResult stored;
  stored.version = "0.1.0";
  stored.program = *parse_program(kProgram, "twice.sd", {});
  stored.target = "h200";
  stored.plan.name = "twice";
  stored.plan.inputs = {{"x", DType::kF32, 64, 256}};
  stored.plan.outputs = {{"y", DType::kF32, 64, 256}};
  stored.plan.kernels = {{"k", {2, 1, 1}, 32, 0, {{codegen::PlanArgument::Kind::kInput, 0, 0}}}};
  stored.cuda = "// text";
  StoredCandidate candidate;
  candidate.graph = *parse_mugraph(kGraph, "one.mu", stored.program);
  stored.report.candidates.push_back(std::move(candidate));
  const std::string file = scratch.write("result.pb", serialize(stored));
  EXPECT_TRUE(load_result_as_made(file, invocation()).ok());
  EXPECT_TRUE(load_result_as_made(file, invocation({"-D", "n=64"})).ok());
  const auto complaint = [&](const std::vector<std::string>& options) {
    const auto result = load_result_as_made(file, invocation(options));
    return result.ok() ? "" : to_string(result.error());
  };
  EXPECT_NE(complaint({"-D", "n=96"}).find("is a result for n=64, not n=96"), std::string::npos);
  EXPECT_NE(complaint({"-D", "n=96"}).find("-D n=96 --from " + file), std::string::npos);
  EXPECT_NE(complaint({"-D", "m=64"}).find("no parameter 'm'"), std::string::npos);
  EXPECT_NE(complaint({"--program", "other.sd"}).find("--program"), std::string::npos);
  EXPECT_TRUE(load_result(file, invocation({"-D", "n=96"})).ok()) << "--from has sizes anew";
}

TEST(Load, AFolderIsAResult) {
  const Scratch scratch;
  scratch.write("program.sd", kProgram);
  scratch.write("best.mu", kGraph);
  EXPECT_EQ(extent(load_mugraph(scratch.path(), invocation())), 64);
  EXPECT_TRUE(load_program(scratch.path(), invocation()).ok());
  EXPECT_FALSE(load_result(scratch.path(), invocation()).ok()) << "result.pb is missing";
}

// The readers of bytes do not know where these came from; the message does.
TEST(Load, ErrorsInBytesNameTheFile) {
  const Scratch scratch;
  const std::string bytes("\0\1\xff\xfe", 4);
  for (const char* name : {"a.onnx", "a.pb"}) {
    const std::string file = scratch.write(name, bytes);
    const Result<Program> program = load_program(file, invocation());
    ASSERT_FALSE(program.ok());
    EXPECT_EQ(to_string(program.error()).find(file + ": error: "), 0u)
        << to_string(program.error());
  }
  const Result<Program> program = parse_program(kProgram, "twice.sd");
  ASSERT_TRUE(program.ok());
  const std::string file = scratch.path("a.pb");
  const Result<LoadedGraph> graph = load_mugraph_of(file, *program, invocation());
  ASSERT_FALSE(graph.ok());
  EXPECT_EQ(to_string(graph.error()).find(file + ": error: "), 0u) << to_string(graph.error());
}

}  // namespace
}  // namespace sundog::cli
