// NOLINT(sundog-mirror): what the tool as a whole answers to bad input.
// Each ends with exit code 2, one message that says where and what, nothing on standard output and
// nothing on the disk.
#include <sys/stat.h>
#include <unistd.h>

#include <cctype>
#include <chrono>

#include "tests/cli/tool_runner.h"

namespace sundog::cli {
namespace {

struct Bad {
  const char* what;
  const char* text;
  const char* message;  // part of the error
};

const Bad kBad[] = {
    {"syntax", "program p(n = 4) {\n  input x: f16[n]\n  output y: f16[n] = x +\n}\n", "x.sd:4"},
    {"unknown name", "program p(n = 4) {\n  input x: f16[n]\n  output y: f16[n] = x + zz\n}\n",
     "x.sd:3"},
    {"axis mismatch",
     "program p(n = 4, m = 5) {\n  input x: f16[n]\n  input z: f16[m]\n"
     "  output y: f16[n] = x + z\n}\n",
     "x.sd:4"},
    {"unknown type", "program p(n = 4) {\n  input x: f17[n]\n  output y: f16[n] = x\n}\n",
     "x.sd:2"},
    {"no output", "program p(n = 4) {\n  input x: f16[n]\n}\n", "output"},
    {"huge",
     "program p(n = 4000000000, m = 4000000000) {\n  input x: f16[n, m]\n"
     "  output y: f16[n, m] = x\n}\n",
     "x.sd"},
    {"negative", "program p(n = -4) {\n  input x: f16[n]\n  output y: f16[n] = x\n}\n", "x.sd"},
    {"gather", "program p(n = 4) {\n  input x: f16[n]\n  output y: f16[n] = gather(x, x)\n}\n",
     "gather"},
    {"empty", "", "x.sd"},
    {"no program", "hello, world\n", "x.sd"},
    {"µGraph", "ugraph g of p {\n}\n", "µGraph"},
};

class BadProgram : public testing::TestWithParam<Bad> {};

TEST_P(BadProgram, IsRefusedByEveryCommand) {
  const Scratch scratch;
  const std::string file = scratch.write("x.sd", GetParam().text);
  const std::vector<std::vector<std::string>> commands = {
      {"optimize", file, "--budget", "1s", "--out", scratch.path("out")}, {"verify", file, file}};
  for (const auto& command : commands) {
    const auto result = run_tool(command, 60);
    EXPECT_EQ(result.code, 2) << command[0] << ": " << result.err;
    EXPECT_EQ(result.out, "") << command[0];
    EXPECT_TRUE(contains(result.err, GetParam().message)) << result.err;
    EXPECT_TRUE(contains(result.err, "error: ")) << result.err;
    EXPECT_FALSE(contains(result.err, "internal error")) << result.err;
  }
  EXPECT_EQ(scratch.count(), 1) << "something was written";
}

INSTANTIATE_TEST_SUITE_P(All, BadProgram, testing::ValuesIn(kBad),
                         [](const testing::TestParamInfo<Bad>& test) {
                           std::string name;
                           for (const char c : std::string(test.param.what)) {
                             if (std::isalpha(static_cast<unsigned char>(c)) != 0) name += c;
                           }
                           return name + std::to_string(test.index);
                         });

void expect_refused(const ProcessResult& result, const std::string& part) {
  EXPECT_EQ(result.code, 2) << result.err;
  EXPECT_EQ(result.out, "");
  EXPECT_TRUE(contains(result.err, part)) << result.err;
}

TEST(BadFile, BinaryAndTruncated) {
  const Scratch scratch;
  const std::string garbage = scratch.write("x.sd", std::string("\x7f"
                                                                "ELF\0\1\2\3",
                                                                8));
  expect_refused(run_tool({"optimize", garbage, "--out", scratch.path("o")}), "binary");
  expect_refused(run_tool({"show", garbage}), "binary");
  const std::string stored = scratch.write("result.pb", std::string("\x0a\x05"
                                                                    "0.1",
                                                                    5));
  expect_refused(run_tool({"show", stored}), "result.pb");
  expect_refused(run_tool({"run", stored, "--on", "emulator"}), "cut short");
  expect_refused(run_tool({"run", scratch.write("empty.pb", ""), "--on", "emulator"}), "empty.pb");
}

TEST(BadFile, MissingFolderUnreadableTooLarge) {
  const Scratch scratch;
  expect_refused(run_tool({"optimize", scratch.path("none.sd")}), "No such file");
  expect_refused(run_tool({"optimize", scratch.path()}), "folder without a program");
  expect_refused(run_tool({"run", scratch.path(), "--on", "emulator"}), "holds no result");
  const std::string file = scratch.write("x.sd", kSmallProgram);
  expect_refused(run_tool({"show", file, "--input-bytes", "10"}), "larger than 10 bytes");
  expect_refused(run_tool({"show", "/dev/zero"}), "larger than");
  if (geteuid() != 0) {
    chmod(file.c_str(), 0);
    expect_refused(run_tool({"show", file}), "Permission denied");
  }
}

TEST(BadFile, AMugraphWithoutItsProgram) {
  const Scratch scratch;
  const std::string file = scratch.write("x.mu", "ugraph g of lost {\n}\n");
  expect_refused(run_tool({"emit", file}), "lost.sd");
  expect_refused(run_tool({"run", file, "--on", "emulator"}), "--program");
}

// Deep programs are read and searched on the stack that there should be, not the one there is.
TEST(BadFile, ASmallStackIsNoCrash) {
  const Scratch scratch;
  const std::string start = "program deep(n = 4) {\n  input x: f32[n]\n";
  std::string calls = start + "  output o: f32[n] = ", chain = start + "  a0[n] = x\n";
  for (int i = 0; i < 380; ++i) calls += "tanh(";
  calls += "x" + std::string(380, ')') + "\n}\n";
  for (int i = 1; i < 1200; ++i) {  // two levels each
    chain += "  a" + std::to_string(i) + "[n] = -a" + std::to_string(i - 1) + " * x\n";
  }
  chain += "  output o: f32[n] = a1199\n}\n";
  scratch.write("calls.sd", calls);
  scratch.write("chain.sd", chain);
  for (const char* file : {"calls.sd", "chain.sd"}) {
    for (const char* command : {"show '", "optimize --no-gpu --no-check --states 10 --out o '"}) {
      const auto result = run_shell("cd '" + scratch.path() + "'; ulimit -s 256; \"$TOOL\" " +
                                    command + file + "' >/dev/null");
      EXPECT_EQ(result.code, 0) << file << command;
    }
  }
}

TEST(BadUsage, EveryMistakeIsNamed) {
  const Scratch scratch;
  const std::string file = scratch.write("x.sd", kSmallProgram);
  expect_refused(run_tool({}), "no command");
  expect_refused(run_tool({"optimise", file}), "did you mean optimize?");
  expect_refused(run_tool({"optimize", file, "--budget", "soon"}), "--budget");
  expect_refused(run_tool({"optimize", file, "--target", "z80", "--out", scratch.path("o")}),
                 "z80");
  expect_refused(run_tool({"optimize", file, "-D", "nope=3", "--out", scratch.path("o")}), "nope");
  expect_refused(run_tool({"optimize", file, "-D", "n=0x10"}), "NAME=INTEGER");
  expect_refused(run_tool({"emit", file}), "optimize");
  expect_refused(run_tool({"show", file, "--dot", "--proto"}), "exclude");
  EXPECT_EQ(scratch.count(), 1);
}

TEST(BadOutput, AFolderThatCannotBeWrittenIsNoticedBeforeTheSearch) {
  const Scratch scratch;
  const std::string file = scratch.write("x.sd", kSmallProgram);
  const auto start = std::chrono::steady_clock::now();
  expect_refused(run_tool({"optimize", file, "--budget", "60s", "--out", "/proc/sundog"}), "/proc");
  expect_refused(run_tool({"optimize", file, "--budget", "60s", "--out", file}), "no folder");
  scratch.write("notes.txt", "keep me");
  expect_refused(run_tool({"optimize", file, "--budget", "60s", "--out", scratch.path()}),
                 "something else");
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  EXPECT_LT(seconds, 20);
  EXPECT_EQ(scratch.read("notes.txt"), "keep me");
}

TEST(BadOutput, AFullDiskIsAnErrorOfStandardOutputToo) {
  const Scratch scratch;
  const std::string file = scratch.write("x.sd", kSmallProgram);
  for (const std::string& command :
       {"show '" + file + "'", std::string("help"), std::string("version")}) {
    const auto result = run_shell("\"$TOOL\" " + command + " >/dev/full");
    EXPECT_EQ(result.code, 2) << command;
    EXPECT_TRUE(contains(result.err, "No space left")) << result.err;
  }
  expect_refused(run_tool({"show", file, "-o", "/dev/full"}), "No space left");
  // A reader that has gone away is no crash either.
  const auto closed = run_shell("set -o pipefail; \"$TOOL\" show '" + file + "' | true");
  EXPECT_TRUE(closed.code == 0 || closed.code == 2) << closed.code;
}

}  // namespace
}  // namespace sundog::cli
