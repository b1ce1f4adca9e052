#include "frontend/graph.h"

#include <gtest/gtest.h>

#include "core/evaluate.h"
#include "core/text.h"

namespace sundog::frontend {
namespace {

GraphTensor tensor(const std::string& name, std::vector<int64_t> extents) {
  return {name, DType::kF32, std::move(extents), {}, 0, 16};
}

GraphNode node(const std::string& name, const std::string& op, std::vector<std::string> inputs,
               std::vector<int64_t> integers = {}) {
  GraphNode made;
  made.name = name;
  made.op = op;
  made.inputs = std::move(inputs);
  made.integers = std::move(integers);
  return made;
}

GraphNode contraction(const std::string& name, std::vector<std::string> inputs,
                      const std::string& letters) {
  GraphNode made = node(name, "contract", std::move(inputs));
  made.text = letters;
  return made;
}

GraphNode constant(const std::string& name, const std::string& number) {
  GraphNode made = node(name, "constant", {});
  made.numbers = {number};
  return made;
}

std::string text_of(const Graph& graph) {
  const Result<std::string> text = program_text(graph);
  EXPECT_TRUE(text.ok()) << to_string(text.error());
  if (!text.ok()) return {};
  const Result<Program> program = parse_program(*text, "graph");
  EXPECT_TRUE(program.ok()) << *text << to_string(program.error());
  return *text;
}

// Element i of every input.
double element(int64_t i) { return static_cast<double>(7 * i % 5 - 2); }

std::vector<double> values_of(const Graph& graph) {
  const Result<Program> program = program_of(graph);
  EXPECT_TRUE(program.ok()) << to_string(program.error());
  if (!program.ok()) return {};
  std::vector<FloatTensor> inputs;
  for (const TensorDecl& input : program->inputs) {
    FloatTensor& each = inputs.emplace_back();
    each.extents = input.extents;
    for (int64_t i = 0; i < element_count(input); ++i) {
      each.f64.push_back(element(i));
    }
  }
  auto outputs = evaluate(*program, inputs);
  EXPECT_TRUE(outputs.ok());
  return outputs.ok() ? (*outputs)[0] : std::vector<double>();
}

std::string error_of(const Graph& graph) {
  const Result<std::string> text = program_text(graph);
  EXPECT_FALSE(text.ok()) << *text;
  return text.ok() ? "" : text.error().message;
}

TEST(Graph, ReductionsOfOneTensorShareAnAxis) {
  Graph graph;
  graph.name = "rms norm";
  graph.inputs = {tensor("x", {4, 8}), tensor("w", {8, 6})};
  graph.nodes = {node("xx", "mul", {"x", "x"}), node("s", "sum", {"xx"}, {1}),
                 node("r", "rsqrt", {"s"}), node("n", "mul", {"x", "r"}),
                 contraction("y", {"n", "w"}, "nh,hd->nd")};
  graph.outputs = {{"y", tensor("y", {4, 6})}};
  EXPECT_EQ(text_of(graph),
            "program rms_norm(a = 4, b = 8, c = 6) {\n"
            "  input x: f32[a, b]\n"
            "  input w: f32[b, c]\n"
            "  output y: f32[a, c] = sum[b]((x * rsqrt(sum[b]((x * x)))) * w)\n"
            "}\n");
}

TEST(Graph, AReshapeCutsAxesEverywhere) {
  Graph graph;
  graph.inputs = {tensor("x", {4, 12}), tensor("g", {12}), tensor("h", {3})};
  graph.nodes = {node("xg", "mul", {"x", "g"}), node("v", "reshape", {"xg"}, {4, 4, 3}),
                 node("y", "add", {"v", "h"}), node("z", "permute", {"y"}, {1, 0, 2})};
  graph.outputs = {{"z", tensor("z", {4, 4, 3})}};
  const std::string text = text_of(graph);
  EXPECT_NE(text.find("input x: f32[a, b, c]\n"), std::string::npos) << text;
  EXPECT_NE(text.find("input g: f32[b, c]\n"), std::string::npos) << text;
  EXPECT_NE(text.find("output z: f32[b, a, c]"), std::string::npos) << text;
}

TEST(Graph, WhatHasNoCommonRefinementIsNamed) {
  Graph graph;
  graph.inputs = {tensor("x", {3, 4})};
  graph.nodes = {node("y", "reshape", {"x"}, {2, 6})};
  graph.nodes[0].label = "aten.view at line 7";
  graph.outputs = {{"y", tensor("y", {2, 6})}};
  EXPECT_EQ(error_of(graph),
            "aten.view at line 7: a reshape of [3, 4] to [2, 6], which have no common refinement");
}

TEST(Graph, KeysOfSelfAttentionGetAnAxisOfTheirOwn) {
  Graph graph;
  graph.inputs = {tensor("x", {3, 2})};
  graph.nodes = {node("x2", "add", {"x", "x"}), contraction("s", {"x2", "x2"}, "qe,ke->qk"),
                 contraction("y", {"s", "x2"}, "qk,kf->qf")};
  graph.outputs = {{"y", tensor("y", {3, 2})}};
  // x = [[-2, 0], [2, -1], [1, -2]] doubled; s = x x^T; y = s x.
  const double x[3][2] = {{-4, 0}, {4, -2}, {2, -4}};
  std::vector<double> expected;
  for (const auto& q : x) {
    for (int f = 0; f < 2; ++f) {
      double sum = 0;
      for (const auto& k : x) sum += (q[0] * k[0] + q[1] * k[1]) * k[f];
      expected.push_back(sum);
    }
  }
  EXPECT_EQ(values_of(graph), expected);
}

TEST(Graph, AResidualOfASquareProductIsReadAlongItsResult) {
  // x + x w, both orders: the sum over the columns of x stays one.
  for (const bool product_first : {false, true}) {
    Graph graph;
    graph.inputs = {tensor("x", {3, 2}), tensor("w", {2, 2})};
    graph.nodes = {contraction("p", {"x", "w"}, "ij,jk->ik"),
                   node("y", "add",
                        product_first ? std::vector<std::string>{"p", "x"}
                                      : std::vector<std::string>{"x", "p"})};
    graph.outputs = {{"y", tensor("y", {3, 2})}};
    std::vector<double> expected;
    for (int i = 0; i < 3; ++i) {
      for (int k = 0; k < 2; ++k) {
        double sum = element(2 * i + k);
        for (int j = 0; j < 2; ++j) sum += element(2 * i + j) * element(2 * j + k);
        expected.push_back(sum);
      }
    }
    EXPECT_EQ(values_of(graph), expected);
  }
}

TEST(Graph, ATransposeAddedToItselfIsNoDiagonal) {
  Graph graph;
  graph.inputs = {tensor("x", {3, 3})};
  graph.nodes = {node("t", "permute", {"x"}, {1, 0}), node("y", "add", {"x", "t"})};
  graph.outputs = {{"y", tensor("y", {3, 3})}};
  EXPECT_EQ(values_of(graph), (std::vector<double>{-4, -1, 2, -1, 2, 0, 2, 0, -2}));
}

TEST(Graph, SlicesAndConcatenationsMove) {
  Graph graph;
  graph.inputs = {tensor("x", {2, 4})};
  graph.nodes = {node("a", "slice", {"x"}, {1, 0, 2, 1}), node("b", "slice", {"x"}, {1, 2, 2, 1}),
                 node("nb", "neg", {"b"}), node("r", "concat", {"nb", "a"}, {1}),
                 node("every", "slice", {"r"}, {1, 1, 2, 2})};
  graph.outputs = {{"r", tensor("r", {2, 4})}};
  // x = [[-2, 0, 2, -1], [1, -2, 0, 2]].
  EXPECT_EQ(values_of(graph), (std::vector<double>{-2, 1, -2, 0, -0.0, -2, 1, -2}));
  graph.outputs = {{"every", tensor("e", {2, 2})}};
  EXPECT_EQ(values_of(graph), (std::vector<double>{1, 0, -2, -2}));
}

TEST(Graph, MasksBecomeConditionsOfIndices) {
  Graph graph;
  graph.inputs = {tensor("s", {3, 3})};
  graph.nodes = {node("q", "iota", {}, {0, 3, 1}), node("k", "iota", {}, {1, 1, 3}),
                 node("c", "less_equal", {"k", "q"}), constant("low", "-inf"),
                 node("y", "where", {"c", "s", "low"})};
  graph.outputs = {{"y", tensor("y", {3, 3})}};
  const std::string text = text_of(graph);
  EXPECT_NE(text.find("select(b <= a, s, (-inf))"), std::string::npos) << text;
}

TEST(Graph, GroupedHeadsRepeatAndMerge) {
  Graph graph;  // 2 key heads for 4 query heads
  graph.inputs = {tensor("k", {2, 3}), tensor("q", {4, 3})};
  graph.nodes = {node("k1", "reshape", {"k"}, {2, 1, 3}), node("k2", "expand", {"k1"}, {2, 2, 3}),
                 node("k4", "reshape", {"k2"}, {4, 3}), contraction("y", {"q", "k4"}, "he,he->h")};
  graph.outputs = {{"y", tensor("y", {4})}};
  // k = [[-2, 0, 2], [-1, 1, -2]], q = [[-2, 0, 2], [-1, 1, -2], [0, 2, -1], [1, -2, 0]].
  EXPECT_EQ(values_of(graph), (std::vector<double>{8, -2, 4, -3}));
}

TEST(Graph, StridesFollowTheAxes) {
  Graph graph;
  graph.inputs = {{"x", DType::kF16, {4, 6}, {1, 8}, 2, 4}};
  graph.nodes = {node("y", "reshape", {"x"}, {4, 3, 2}), node("z", "sum", {"y"}, {1})};
  graph.outputs = {{"z", tensor("z", {4, 1, 2})}};
  const std::string text = text_of(graph);
  EXPECT_NE(text.find("x: f16[a, b, c] stride(1, 16, 8) offset 2 align 4"), std::string::npos)
      << text;
}

TEST(Graph, AxesThatAreAlwaysSideBySideAreOne) {
  Graph graph;  // heads behind attention, merged again for the product after it
  graph.inputs = {tensor("o", {2, 3, 4, 5}), tensor("w", {20, 6})};
  graph.nodes = {node("t", "reshape", {"o"}, {2, 3, 20}), node("f", "reshape", {"t"}, {6, 20}),
                 contraction("y", {"f", "w"}, "ij,jk->ik")};
  graph.outputs = {{"y", tensor("y", {6, 6})}};
  EXPECT_EQ(text_of(graph),
            "program graph(a = 6, b = 20, c = 6) {\n"
            "  input o: f32[a, b]\n"
            "  input w: f32[b, c]\n"
            "  output y: f32[a, c] = sum[b](o * w)\n"
            "}\n");
  // Not where memory has something between them: rows are one axis still, heads are none.
  graph.inputs[0].strides = {240, 80, 10, 1};
  EXPECT_NE(text_of(graph).find("o: f32[a, b, c] stride(80, 10, 1)"), std::string::npos);
  // Nor where one of them is summed over alone, or counted along.
  graph.inputs[0].strides = {};
  graph.nodes.push_back(node("m", "reduce_max", {"o"}, {2}));
  graph.outputs.push_back({"m", tensor("m", {2, 3, 1, 5})});
  EXPECT_NE(text_of(graph).find("o: f32[a, b, c]\n"), std::string::npos) << text_of(graph);
  graph.nodes.back() = node("i", "iota", {}, {2, 1, 1, 4, 1});
  graph.nodes.push_back(node("m", "mul", {"o", "i"}));
  graph.outputs.back() = {"m", tensor("m", {2, 3, 4, 5})};
  EXPECT_NE(text_of(graph).find("* index(b)"), std::string::npos) << text_of(graph);
}

TEST(Graph, WhatIsReadAlongOtherAxesHasAsManyThere) {
  Graph graph;  // x x^T over a last dimension of two: rows of both sides are [2, 3] or 6, alike
  graph.inputs = {tensor("x", {2, 3, 2})};
  graph.nodes = {node("x2", "add", {"x", "x"}), node("f", "reshape", {"x2"}, {6, 2}),
                 contraction("s", {"f", "f"}, "qe,ke->qk"), node("m", "sum", {"x2"}, {1})};
  graph.outputs = {{"s", tensor("s", {6, 6})}};
  EXPECT_EQ(values_of(graph).size(), 36u);
  graph.outputs.push_back({"m", tensor("m", {2, 1, 2})});
  EXPECT_EQ(values_of(graph).size(), 36u);
}

TEST(Graph, EqualPartsAreAnAxisOverThem) {
  Graph graph;  // rotary embedding: no literal but 0 and 1 is left
  graph.inputs = {tensor("x", {3, 8}), tensor("cos", {8}), tensor("sin", {8})};
  graph.nodes = {node("a", "slice", {"x"}, {1, 0, 4, 1}),
                 node("b", "slice", {"x"}, {1, 4, 4, 1}),
                 node("nb", "neg", {"b"}),
                 node("r", "concat", {"nb", "a"}, {1}),
                 node("xc", "mul", {"x", "cos"}),
                 node("rs", "mul", {"r", "sin"}),
                 node("y", "add", {"xc", "rs"})};
  graph.outputs = {{"y", tensor("y", {3, 8})}};
  const std::string text = text_of(graph);
  EXPECT_NE(text.find("x: f32[a, b, c]\n"), std::string::npos) << text;
  EXPECT_NE(text.find("select(b < 1, (-x[a, 1, c]), x[a, 0, c])"), std::string::npos) << text;
  std::vector<double> expected;
  const auto x = [&](int i, int j) { return element(i * 8 + j); };
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j < 8; ++j) {
      const double rotated = j < 4 ? -x(i, j + 4) : x(i, j - 4);
      expected.push_back(x(i, j) * element(j) + rotated * element(j));
    }
  }
  EXPECT_EQ(values_of(graph), expected);
  // Three parts, of which the last is taken; and a slice that is none, which leaves all as ranges.
  graph.inputs = {tensor("x", {3, 6})};
  graph.nodes = {node("y", "slice", {"x"}, {1, 4, 2, 1})};
  graph.outputs = {{"y", tensor("y", {3, 2})}};
  EXPECT_NE(text_of(graph).find("x[a, 2, c]"), std::string::npos) << text_of(graph);
  graph.nodes.push_back(node("z", "slice", {"x"}, {1, 1, 4, 1}));
  graph.outputs.push_back({"z", tensor("z", {3, 4})});
  EXPECT_NE(text_of(graph).find("x[a, c + 4]"), std::string::npos) << text_of(graph);
}

TEST(Graph, ContradictionsAreErrors) {
  Graph graph;
  graph.inputs = {tensor("x", {4, 6}), tensor("y", {5})};
  graph.outputs = {{"z", tensor("z", {4, 6})}};
  graph.nodes = {node("z", "add", {"x", "y"})};
  EXPECT_NE(error_of(graph).find("shapes do not fit"), std::string::npos);
  graph.nodes = {node("z", "add", {"x", "absent"})};
  EXPECT_NE(error_of(graph).find("no value absent"), std::string::npos);
  graph.nodes = {node("z", "cumsum", {"x"})};
  EXPECT_NE(error_of(graph).find("no operator cumsum"), std::string::npos);
  graph.nodes = {node("z", "slice", {"x"}, {1, 4, 3, 1})};
  EXPECT_NE(error_of(graph).find("leaves its dimension"), std::string::npos);
  graph.nodes = {contraction("z", {"x", "y"}, "ij,j->i")};
  EXPECT_NE(error_of(graph).find("are to be one"), std::string::npos);
  graph.nodes = {};
  EXPECT_NE(error_of(graph).find("lacks its output z"), std::string::npos);
}

TEST(Graph, BytesThatAreNoMessageAreAnError) {
  EXPECT_FALSE(parse_graph("\xff\xff").ok());
  EXPECT_TRUE(parse_graph("").ok());
}

}  // namespace
}  // namespace sundog::frontend
