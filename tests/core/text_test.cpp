#include "core/text.h"

#include <gtest/gtest.h>

#include <random>

namespace sundog {
namespace {

Program read(std::string_view text, const std::map<std::string, int64_t>& defines = {}) {
  auto program = parse_program(text, "t.sd", defines);
  EXPECT_TRUE(program.ok()) << to_string(program.error());
  return program.ok() ? *program : Program();
}

std::string error_of(std::string_view text, const std::map<std::string, int64_t>& defines = {}) {
  const auto program = parse_program(text, "t.sd", defines);
  return program.ok() ? "" : to_string(program.error());
}

// The printed form of one output expression over x[n, m], y[m] and s[n] = sum[m](x).
std::string expression(const std::string& text) {
  const Program program = read(
      "program p(n = 4, m = 6) { input x: f16[n, m] input y: f16[m] s[n] = sum[m](x)"
      " output o: f32[n, m] = " +
      text + " }");
  const std::string printed = print(program);
  const Program again = read(printed);
  EXPECT_EQ(again, program) << printed;
  const size_t start = printed.find(" = ", printed.find("output o")) + 3;
  return printed.substr(start, printed.find('\n', start) - start);
}

constexpr const char* kEverything = R"(
program all(b = 2, n = 2 * b, m = 6, c = n + m - (b - 1), q = 8, w = 3) {
  split q = q.o * q.i(4); split m = m.o(2) * m.i(3)
  input x: f16[n, m] stride(m, 1) offset 3 align 32 in [-1, inf]
  input y: bf16[q, m] in [0.5, 2e3]
  input z: f32[c]
  let twice[n, m] = 2 * x
  s[n] = sum[m](twice - ratio(1, 3) * x ^ 2)
  t[m] = min[n](x - s / -3 - (2 - 1e-6))
  u[m, n] = x * s[size(n) - 1 - n]
  v[n] = sum[m](u * select(m.i + 1 < 3, x[n, m.o * 3 + m.i + 1], index(m.i - 1)))
  top[m] = sum[q](y * softmax[q](softmax[q](y))) + max[n](v)
  o[n, m] = select(x > 0, x, -inf) - select(value(size(n)) < 4, 1, 2) - -(3) / top
  window[n] = sum[w](z[n + w] * z[size(c) - 1 - n])
  output o: f32[n, m]
  output r: f16[q, m] stride(24, 1) align 2 = var[m](y) * y - clamp(y, -1, 5) + cast(exp(y), f16)
  output e: f32[n] = window * 2
}
)";

TEST(Text, PrecedenceSurvives) {
  EXPECT_EQ(expression("x - (y - x)"), "x - (y - x)");
  EXPECT_EQ(expression("(x - y) - x"), "x - y - x");
  EXPECT_EQ(expression("x / (y * x)"), "x / (y * x)");
  EXPECT_EQ(expression("(x + y) * -y"), "(x + y) * -y");
  EXPECT_EQ(expression("-(x + y) * y"), "-(x + y) * y");
  EXPECT_EQ(expression("-x ^ 2"), "-pow(x, 2)");
  EXPECT_EQ(expression("x * -3"), "x * -3");
  EXPECT_EQ(expression("-(3) * x"), "-(3) * x");  // an operator, unlike -3
  EXPECT_EQ(expression("--x"), "--x");
  EXPECT_EQ(expression("x * ratio(2, 6)"), "x * ratio(1, 3)");
  EXPECT_EQ(expression("max(x, -inf)"), "max(x, -inf)");
}

TEST(Text, DefinitionsOfTheLanguageExpand) {
  EXPECT_EQ(expression("mean[n, m](x) + x"), "sum[n, m](x) / (size(n) * size(m)) + x");
  EXPECT_EQ(expression("rms[m](x, 1e-6)"), "x * rsqrt(sum[m](x * x) / size(m) + 1e-6)");
  EXPECT_EQ(expression("min[m](x) * y"), "-max[m](-x) * y");
}

TEST(Text, IndicesResolveByScope) {
  const char* start = "program p(n = 4, m = 4, k = 2) { input x: f16[n] ";
  // Both n and m have an index; k is no axis of anything, so it is a number.
  const Program program =
      read(std::string(start) + "output o: f32[n, m] = select(n + m < k, x[n], x[m]) }");
  EXPECT_NE(print(program).find("= select(n + m < 2, x, x[m])"), std::string::npos)
      << print(program);
  // n is neither on the left nor bound.
  EXPECT_NE(print(read(std::string(start) + "output o: f32[m] = x[n - 1 - m] }"))
                .find("x[size(n) - m - 1]"),
            std::string::npos);
}

TEST(Text, EveryPartOfAProgramRoundTrips) {
  const Program program = read(kEverything);
  const std::string text = print(program);
  EXPECT_EQ(read(text), program) << text;
  EXPECT_EQ(renumbered(program), program);
  ASSERT_EQ(program.inputs.size(), 3u);
  EXPECT_EQ(program.inputs[0].strides, (std::vector<int64_t>{6, 1}));
  EXPECT_EQ(program.inputs[0].offset, 3);
  EXPECT_EQ(program.inputs[0].alignment, 32);
  EXPECT_EQ(program.inputs[0].low, Number(-1));
  EXPECT_FALSE(program.inputs[0].high.has_value());
  EXPECT_EQ(program.definitions.size(), 7u);  // without the let
}

TEST(Text, SubstitutionRenamesBoundAxes) {
  const Program program = read(
      "program p(n = 4, m = 4) { input x: f16[n, m] s[n] = sum[m](x) output o: f32[m] = s[m] }");
  ASSERT_EQ(program.axes.size(), 3u);
  EXPECT_EQ(program.axes[2].name, "m'");
  EXPECT_NE(print(program).find("output o: f32[m] = sum[m'](x[m, m'])"), std::string::npos)
      << print(program);
  EXPECT_EQ(read(print(program)), program);
}

TEST(Text, DefinesReplaceValues) {
  const char* text =
      "program p(b, n = 2 * b, h = 4) { input x: f16[n, h] output o: f32[n] = sum[h](x) }";
  const Program program = read(text, {{"b", 3}});
  EXPECT_EQ(extents(program), (std::vector<int64_t>{6, 4}));
  EXPECT_EQ(program.parameters[1].expression, "2 * b");
  EXPECT_EQ(extents(read(text, {{"b", 3}, {"n", 5}})), (std::vector<int64_t>{5, 4}));
  EXPECT_NE(error_of(text).find("parameter 'b' has no value"), std::string::npos);
  EXPECT_NE(error_of(text, {{"b", 1}, {"hh", 2}}).find("did you mean 'h'?"), std::string::npos);
  EXPECT_EQ(read(print(program)), program);
}

TEST(Text, ExpressionsThatNoLongerHoldAreNotPrinted) {
  Program program =
      read("program p(b = 2, n = 2 * b) { input x: f16[n] output o: f16[n] = x + 1 }");
  program.parameters[1].value = 5;
  program.axes[0].extent = 5;
  EXPECT_NE(print(program).find("p(b = 2, n = 5)"), std::string::npos) << print(program);
}

TEST(Text, Warns) {
  std::vector<Error> warnings;
  const auto program = parse_program(
      "program p(n = 4, m = 2) {\n input x: f16[n]\n input u: f16[n]\n a[n] = x\n"
      " b[n, m] = x\n output o: f16[n] = x\n output b: f16[n, m]\n}",
      "t.sd", {}, &warnings);
  ASSERT_TRUE(program.ok());
  std::vector<int> lines;
  for (const Error& warning : warnings) lines.push_back(warning.position->line);
  EXPECT_EQ(lines, (std::vector<int>{5, 7, 3, 4}));
}

TEST(Text, WarnsOfNumbersThatF32LacksButNotOfInfinity) {
  std::vector<Error> warnings;
  const auto program = parse_program(
      "program p(n = 4) {\n input x: f16[n]\n a[n] = max(x, -1e39)\n b[n] = a + 1e-46\n"
      " c[n] = max(b, -inf) + 1e38 + 1e-45 + 0\n output o: f16[n] = c * 1e400\n}",
      "t.sd", {}, &warnings);
  ASSERT_TRUE(program.ok());
  std::vector<std::string> told;
  for (const Error& warning : warnings) {
    told.push_back(std::to_string(warning.position->line) + " " + warning.message.substr(0, 21));
  }
  EXPECT_EQ(told, (std::vector<std::string>{"3 this number is infini", "4 this number is 0 in f",
                                            "6 this number is infini"}));
}

TEST(Text, SharedTermsArePrintedOnce) {
  std::string nested = "x";
  for (int i = 0; i < 12; ++i) nested = "softmax[m](" + nested + ")";
  const Program program =
      read("program p(n = 2, m = 3) { input x: f16[n, m] output o: f16[n, m] = " + nested + " }");
  const std::string text = print(program);
  EXPECT_LT(text.size(), 2000u) << text;
  EXPECT_EQ(read(text), program);
  EXPECT_LE(print_term(program, program.outputs[0].value).size(), 2000u);
}

// A flat sum is not nested, and keeps its order.
TEST(Text, LongChainsAreRead) {
  std::string text = "program p(n = 2) { input x: f16[n] output o: f16[n] = x";
  for (int i = 1; i < 1500; ++i) text += (i % 2 == 0 ? " + x * " : " - x * ") + std::to_string(i);
  const Program program = read(text + " }");
  EXPECT_EQ(read(print(program)), program);
}

TEST(Text, DepthIsLimitedNotTheStack) {
  const std::string start = "program p(n = 2) { input x: f16[n] output o: f16[n] = ";
  for (const char* open : {"(", "-", "exp(", "x[", "sum[n](", "x ^ ", "max(x, "}) {
    std::string text = start;
    for (int i = 0; i < 100'000; ++i) text += open;
    EXPECT_NE(error_of(text).find("nested deeper"), std::string::npos) << open;
  }
  std::string chain = start + "x";
  for (int i = 0; i < 100'000; ++i) chain += " + x";
  EXPECT_NE(error_of(chain + " }").find("a chain of more than 3000 operators"), std::string::npos);
  std::string definitions = "program p(n = 2) { input x: f16[n] a0[n] = x\n";
  for (int i = 0; i < 20'000; ++i) {
    definitions += "a" + std::to_string(i + 1) + "[n] = exp(a" + std::to_string(i) + ")\n";
  }
  const std::string error = error_of(definitions + "output o: f16[n] = a20000 }");
  EXPECT_NE(error.find("nested deeper"), std::string::npos);
  EXPECT_NE(error.find(":3001:1: "), std::string::npos) << error;
}

TEST(Text, AtMost64Axes) {
  std::string parameters, dims;
  for (int i = 0; i < 65; ++i) {
    parameters += (i > 0 ? ", a" : "a") + std::to_string(i) + " = 1";
    dims += (i > 0 ? ", a" : "a") + std::to_string(i);
  }
  EXPECT_NE(error_of("program p(" + parameters + ") { input x: f16[" + dims + "] output o: f16[" +
                     dims + "] = x }")
                .find("more than 64 axes"),
            std::string::npos);
}

TEST(Text, IndicesOfIndicesCannotOverflow) {
  std::string text = "program p(n = 1) { input x: f16[n] a0[n] = x\n";
  for (int i = 0; i < 10; ++i) {
    text += "a" + std::to_string(i + 1) + "[n] = select(n < 0, a" + std::to_string(i) +
            "[1000000 * n], 0)\n";
  }
  EXPECT_NE(error_of(text + "output o: f16[n] = a10 }").find("grow too large"), std::string::npos);
}

// Random edits of valid text are either read, and then round trip, or refused with a position.
TEST(Text, MutatedTextIsReadOrRefused) {
  std::mt19937 random(1);
  const std::string original = kEverything;
  const std::string pieces[] = {"(", ")",    "[",    "]",          "m",       "n",   "sum",
                                "*", "-",    "0",    "9999999999", "select(", "inf", "'",
                                ".", "\xff", "let ", "split ",     "=",       ","};
  int accepted = 0;
  for (int round = 0; round < 4000; ++round) {
    std::string text = original;
    for (unsigned edits = 1 + random() % 3; edits > 0; --edits) {
      const size_t at = random() % text.size();
      if (random() % 2 == 0) text.erase(at, 1 + random() % 4);
      text.insert(std::min(at, text.size()), pieces[random() % std::size(pieces)]);
    }
    const auto program = parse_program(text, "t.sd");
    if (!program.ok()) {
      EXPECT_TRUE(program.error().position.has_value()) << text;
      continue;
    }
    ++accepted;
    const auto again = parse_program(print(*program), "t.sd");
    ASSERT_TRUE(again.ok()) << text << "\n" << print(*program) << to_string(again.error());
    EXPECT_EQ(*again, *program) << text << "\n" << print(*program);
  }
  EXPECT_GT(accepted, 20);
}

TEST(Text, ReferencesToPrograms) {
  const auto reference = program_reference("# program: ../a.sd b=2 n=-1\nugraph");
  ASSERT_TRUE(reference.has_value());
  EXPECT_EQ(reference->path, "../a.sd");
  EXPECT_EQ(reference->defines, (std::map<std::string, int64_t>{{"b", 2}, {"n", -1}}));
  EXPECT_EQ(program_reference("# program: a.sd")->path, "a.sd");
  EXPECT_FALSE(program_reference("ugraph g of p").has_value());
  EXPECT_FALSE(program_reference("# program:   \n").has_value());
  EXPECT_FALSE(program_reference("# program: a.sd b=x").has_value());
}

TEST(Text, Names) {
  for (const char* good : {"x", "_a1", "q.o", "k'", "k'.o", "A.b.c"}) EXPECT_TRUE(is_name(good));
  for (const char* bad : {"", "1a", "a.", "a..b", "a b", "inf", ".a", "a-b"}) {
    EXPECT_FALSE(is_name(bad)) << bad;
  }
}

constexpr const char* kGraph = R"(ugraph g of p {
  axis part' = m.s of k0
  tensor parts: f32[part', n] stride(8, 1) align 64
  kernel k0 grid(n.o, m.s) warps(8) factors(m.s, m.o, m.i, n.o, n.i) {
    split n = n.o * n.i(2)
    split m = m.s(2) * m.o(2) * m.i(2)
    loop m.o stages(3) bulk trim(m.s + 2 * m.o < size(m)) {
      x[n.i, m.i] = @x[2 * n.o + n.i, m] : shared f16 warps(n.i/2, m.i/2)
      y[n.i] = sum[m.o, m.i](x * select(value(size(m)) < 3, x, index(m.i - 1))) : reg f32
      z[n.i] = sum[m.o, m.i](x) : reg f32 into y
    }
    store y -> parts
  }
  kernel k1 grid(n) warps(1) {
    let t1[part'] = exp(parts * parts)
    all[] = sum[part'](log(t1) / t1) : reg f32
    store all -> o[n]
  }
}
)";
constexpr const char* kGraphProgram =
    "program p(n = 4, m = 6) { input x: f16[n, m] output o: f32[n] = sum[m](x) }";

TEST(Text, EveryPartOfAMuGraphRoundTrips) {
  const Program program = read(kGraphProgram);
  const auto graph = parse_mugraph(kGraph, "t.mu", program);
  ASSERT_TRUE(graph.ok()) << to_string(graph.error());
  const std::string text = print(*graph, program);
  const auto again = parse_mugraph(text, "t.mu", program);
  ASSERT_TRUE(again.ok()) << to_string(again.error()) << text;
  EXPECT_EQ(*again, *graph) << text;
  EXPECT_EQ(renumbered(*graph), *graph);
  EXPECT_EQ(graph->kernels[0].factors[0].name, "m.s");
  EXPECT_EQ(graph->axes[2].kernel, 0u);
  EXPECT_EQ(graph->axes[2].factor, 0u);
  EXPECT_EQ(graph->tensors[2].decl.strides, (std::vector<int64_t>{8, 1}));
  EXPECT_NE(text.find("x[n.i, m.i] = @x : shared f16 warps(n.i/2, m.i/2)"), std::string::npos)
      << text;
  EXPECT_NE(text.find("value(size(m)) < 3"), std::string::npos) << text;
  EXPECT_EQ(print_term(*graph, 1, graph->kernels[1].computations[0].value).find("sum[part'](log("),
            0u);
}

TEST(Text, StoredAxesFollow) {
  const Program program = read(kGraphProgram);
  const auto graph = parse_mugraph(
      "ugraph g of p { kernel a grid(n.o, m.s) { split n = n.o * n.i(2) split m = m.s(2) * m.i"
      "  y[n.i] = sum[m.i](x) : reg f32 store y -> parts : f32 }"
      " kernel b grid(n) { all[] = sum[m.s](parts) : reg f32 store all -> o } }",
      "t.mu", program);
  ASSERT_TRUE(graph.ok()) << to_string(graph.error());
  EXPECT_EQ(graph->tensors[2].decl.dim_names, (std::vector<std::string>{"m.s", "n"}));
  EXPECT_EQ(graph->tensors[2].decl.extents, (std::vector<int64_t>{2, 4}));
}

TEST(Text, MutatedMuGraphsAreReadOrRefused) {
  const Program program = read(kGraphProgram);
  std::mt19937 random(2);
  const std::string original = kGraph;
  const std::string pieces[] = {"(",     ")",    "[",      "]",  "m.s",     "n",   "sum",
                                "*",     "-",    "0",      "99", "select(", "m.o", "'",
                                "loop ", "\xff", "store ", "x",  "=",       ","};
  int accepted = 0;
  for (int round = 0; round < 6000; ++round) {
    std::string text = original;
    for (unsigned edits = 1 + random() % 2; edits > 0; --edits) {
      const size_t at = random() % text.size();
      if (random() % 2 == 0) text.erase(at, 1 + random() % 4);
      text.insert(std::min(at, text.size()), pieces[random() % std::size(pieces)]);
    }
    const auto graph = parse_mugraph(text, "t.mu", program);
    if (!graph.ok()) {
      EXPECT_TRUE(graph.error().position.has_value()) << text;
      continue;
    }
    ++accepted;
    const auto again = parse_mugraph(print(*graph, program), "t.mu", program);
    ASSERT_TRUE(again.ok()) << text << "\n" << print(*graph, program) << to_string(again.error());
    EXPECT_EQ(*again, *graph) << text << "\n" << print(*graph, program);
  }
  EXPECT_GT(accepted, 20);
}

}  // namespace
}  // namespace sundog
