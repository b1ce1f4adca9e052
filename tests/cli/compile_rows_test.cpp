#include "cli/compile_rows.h"

#include <gtest/gtest.h>

#include <string>

#include "codegen/generate.h"
#include "core/device.h"
#include "core/text.h"
#include "search/machine.h"
#include "search/sizes.h"

namespace sundog::cli {
namespace {

constexpr const char* kProgram = R"(
program p(n = 4096, h = 4096) {
  input x: f32[n, h]
  output y: f32[n, h] = x - max[h](x)
})";

// One row a block of four warps, or two of eight.
Row row_of(const Program& program, int warps) {
  const bool two = warps == 8;
  const std::string rows = two ? "n.i" : "", cut = two ? "    split n = n.o * n.i(2)\n" : "";
  const std::string text = "ugraph p of p {\n  kernel k grid(" + std::string(two ? "n.o" : "n") +
                           ") warps(" + std::to_string(warps) + ") {\n" + cut + "    xs[" +
                           (two ? "n.i, " : "") + "h] = x : reg f32\n    m[" + rows +
                           "] = max[h](xs) : reg f32\n    y[" + (two ? "n.i, " : "") +
                           "h] = xs - m : reg f32\n    store y -> y\n  }\n}\n";
  Result<MuGraph> graph = parse_mugraph(text, "p.mu", program);
  EXPECT_TRUE(graph.ok()) << (graph.ok() ? "" : to_string(graph.error()));
  Row row;
  row.candidate.graph = std::move(*graph);
  row.candidate.structure = std::to_string(warps);
  row.candidate.predicted_us =
      search::predict(row.candidate.graph, search::machine_of(*find_device("h200")));
  Result<codegen::Generated> generated =
      codegen::generate(row.candidate.graph, program, *find_device("h200"), {});
  EXPECT_TRUE(generated.ok());
  row.generated = std::move(*generated);
  return row;
}

// Four warps, and eight, which are said to take a tenth longer.
std::vector<Row> two_rows(const Program& program) {
  std::vector<Row> rows;
  rows.push_back(row_of(program, 4));
  rows.push_back(row_of(program, 8));
  rows[1].candidate.predicted_us = 1.1 * rows[0].candidate.predicted_us;
  return rows;
}

// A compiler that counts these registers and spills in the kernels of 4 warps, and few in others.
std::function<void(Row&)> compiler(int registers, int64_t spilled, int& calls) {
  return [=, &calls](Row& row) {
    ++calls;
    const bool narrow = row.candidate.structure == "4";
    row.compiler = "test";
    row.resources = {{row.generated->plan.kernels[0].name, narrow ? registers : 24,
                      narrow ? spilled : 0, narrow ? spilled : 0, 0, 0}};
  };
}

std::vector<std::string> order(int registers, int64_t spilled, int& calls) {
  const Result<Program> program = parse_program(kProgram, "p.sd", {});
  std::vector<Row> rows = two_rows(*program);
  rank_by_compiler(rows, *find_device("h200"), compiler(registers, spilled, calls));
  std::vector<std::string> names;
  for (const Row& row : rows) names.push_back(row.candidate.structure);
  return names;
}

TEST(CompileRows, TheFirstStaysFirstWhereTheCompilerAgrees) {
  int calls = 0;
  EXPECT_EQ(order(24, 0, calls), (std::vector<std::string>{"4", "8"}));
  EXPECT_EQ(calls, 1);
}

TEST(CompileRows, SpillsPutARowBehindTheNext) {
  int calls = 0;
  EXPECT_EQ(order(24, 2000, calls), (std::vector<std::string>{"8", "4"}));
  EXPECT_EQ(calls, 2);
}

// Two blocks that read 2 KB each do not keep the memory busy.
TEST(CompileRows, RegistersThatLeaveAnSmFewBlocksTakeTime) {
  std::string text = kProgram;
  text.replace(text.find("h = 4096"), 8, "h = 512");
  const Result<Program> program = parse_program(text, "p.sd", {});
  std::vector<Row> rows;
  rows.push_back(row_of(*program, 4));
  const double before = rows[0].candidate.predicted_us;
  int calls = 0;
  rank_by_compiler(rows, *find_device("h200"), compiler(255, 0, calls));
  EXPECT_GT(rows[0].candidate.predicted_us, 1.02 * before);
}

TEST(CompileRows, WithoutACompilerNothingMoves) {
  const Result<Program> program = parse_program(kProgram, "p.sd", {});
  std::vector<Row> rows = two_rows(*program);
  int calls = 0;
  rank_by_compiler(rows, *find_device("h200"), [&](Row&) { ++calls; });
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(rows[0].candidate.structure, "4");
}

TEST(CompileRows, ARowThatTheCompilerRefusesIsPassedOver) {
  const Result<Program> program = parse_program(kProgram, "p.sd", {});
  std::vector<Row> rows = two_rows(*program);
  rank_by_compiler(rows, *find_device("h200"), [&](Row& row) {
    row.compiler = "test";
    if (row.candidate.structure == "4") row.dropped = "compiler: no";
  });
  EXPECT_FALSE(rows[0].dropped.empty());
  EXPECT_EQ(rows[1].compiler, "test");
}

}  // namespace
}  // namespace sundog::cli
