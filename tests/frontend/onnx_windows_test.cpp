#include <cmath>
#include <limits>
#include <numeric>

#include "core/text.h"
#include "frontend/onnx.h"
#include "tests/frontend/onnx_model.h"

namespace sundog::frontend {
namespace {

struct Case {
  const char* what;
  int64_t n, c, h, w;  // the tensor
  int64_t o, r, s;     // channels out, the window
  int64_t groups = 1;
  int64_t strides[2] = {1, 1}, spread[2] = {1, 1};
  int64_t pads[4] = {0, 0, 0, 0};  // top, left, bottom, right
  bool round_up = false, count_margin = false;
};

const Case kCases[] = {
    {"a margin", 2, 3, 5, 4, 4, 3, 3, 1, {1, 1}, {1, 1}, {1, 1, 1, 1}},
    {"strides", 1, 2, 7, 6, 3, 3, 2, 1, {2, 3}, {1, 1}, {1, 0, 1, 1}},
    {"dilations", 1, 2, 7, 7, 2, 3, 2, 1, {1, 2}, {2, 3}, {2, 0, 1, 1}},
    {"depthwise", 2, 4, 5, 5, 4, 3, 3, 4, {1, 1}, {1, 1}, {1, 1, 1, 1}},
    {"groups", 1, 4, 4, 4, 6, 2, 2, 2, {1, 1}, {1, 1}, {0, 0, 0, 0}},
    {"one by one", 2, 3, 4, 4, 5, 1, 1},
    {"one by one with strides", 1, 3, 5, 4, 2, 1, 1, 1, {2, 2}},
    {"the whole tensor", 1, 3, 4, 4, 2, 4, 4},
    {"patches", 2, 3, 8, 6, 2, 4, 3, 1, {4, 3}},
    {"one column", 1, 2, 6, 1, 2, 3, 1, 1, {1, 1}, {1, 1}, {1, 0, 1, 0}},
    {"rounded up", 1, 2, 6, 5, 2, 3, 2, 1, {2, 2}, {1, 1}, {0, 0, 0, 0}, true},
    {"a margin that counts", 1, 2, 6, 5, 2, 3, 3, 1, {2, 2}, {1, 1}, {1, 1, 1, 0}, true, true}};

int64_t places(const Case& each, int d) {
  const int64_t extent = d == 0 ? each.h : each.w, window = d == 0 ? each.r : each.s;
  const int64_t before = each.pads[d], after = each.pads[d + 2], stride = each.strides[d];
  int64_t count = 0;
  for (int64_t at = -before;; at += stride, ++count) {
    const int64_t end = at + (window - 1) * each.spread[d];
    const bool fits = each.round_up ? end - stride + 1 <= extent - 1 + after && at < extent
                                    : end <= extent - 1 + after;
    if (!fits) return count;
  }
}

std::vector<double> numbers(int64_t count, double shift) {
  std::vector<double> values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<double>((i * 7 + 3) % 11) / 4 - shift;
  }
  return values;
}

void add_integers_to(onnx::Node& node, const char* name, const std::vector<int64_t>& values) {
  onnx::Attribute& made = *node.add_attributes();
  made.set_name(name);
  for (const int64_t value : values) made.add_integers(value);
}

void add_integer_to(onnx::Node& node, const char* name, int64_t value) {
  onnx::Attribute& made = *node.add_attributes();
  made.set_name(name);
  made.set_integer(value);
}

// What of the tensor each element of the window at (p, q) meets; none outside.
template <class F>
void for_each_met(const Case& each, int64_t p, int64_t q, const F& f) {
  for (int64_t u = 0; u < each.r; ++u) {
    for (int64_t v = 0; v < each.s; ++v) {
      const int64_t y = p * each.strides[0] + u * each.spread[0] - each.pads[0];
      const int64_t x = q * each.strides[1] + v * each.spread[1] - each.pads[1];
      const bool inside = y >= 0 && y < each.h && x >= 0 && x < each.w;
      const bool in_margin = y >= -each.pads[0] && y < each.h + each.pads[2] &&
                             x >= -each.pads[1] && x < each.w + each.pads[3];
      f(u * each.s + v, inside ? y * each.w + x : -1, in_margin);
    }
  }
}

std::string text(int64_t value) { return std::to_string(value); }

onnx::Model model_of(const Case& each, const std::string& op, int64_t channels_out) {
  onnx::Model model;
  onnx::Graph& graph = *model.mutable_graph();
  add_value(graph.add_inputs(), "x", {text(each.n), text(each.c), text(each.h), text(each.w)});
  add_value(graph.add_outputs(), "y",
            {text(each.n), text(channels_out), text(places(each, 0)), text(places(each, 1))});
  std::vector<std::string> inputs = {"x"};
  if (op == "Conv") {
    add_value(graph.add_inputs(), "w",
              {text(each.o), text(each.c / each.groups), text(each.r), text(each.s)});
    add_value(graph.add_inputs(), "b", {text(each.o)});
    inputs = {"x", "w", "b"};
  }
  onnx::Node& node = *add_node(graph, op, "it", inputs, "y");
  add_integers_to(node, "strides", {each.strides[0], each.strides[1]});
  add_integers_to(node, "dilations", {each.spread[0], each.spread[1]});
  add_integers_to(node, "pads", {each.pads[0], each.pads[1], each.pads[2], each.pads[3]});
  add_integers_to(node, "kernel_shape", {each.r, each.s});
  if (op == "Conv") add_integer_to(node, "group", each.groups);
  if (op != "Conv") add_integer_to(node, "ceil_mode", each.round_up ? 1 : 0);
  if (op == "AveragePool") add_integer_to(node, "count_include_pad", each.count_margin ? 1 : 0);
  return model;
}

TEST(OnnxWindows, ConvolutionsAreWhatOnnxSays) {
  for (const Case& each : kCases) {
    SCOPED_TRACE(each.what);
    if (each.round_up) continue;
    const Result<Graph> read =
        graph_of_onnx(model_of(each, "Conv", each.o).SerializeAsString(), {});
    ASSERT_TRUE(read.ok()) << to_string(read.error());
    const int64_t in = each.c / each.groups, out = each.o / each.groups;
    const std::vector<double> x = numbers(each.n * each.c * each.h * each.w, 1),
                              w = numbers(each.o * in * each.r * each.s, 0.5),
                              b = numbers(each.o, 0);
    const std::vector<double> y = evaluated(*read, {{"x", x}, {"w", w}, {"b", b}});
    const int64_t rows = places(each, 0), columns = places(each, 1);
    ASSERT_EQ(static_cast<int64_t>(y.size()), each.n * each.o * rows * columns);
    for (int64_t i = 0; i < static_cast<int64_t>(y.size()); ++i) {
      const int64_t q = i % columns, p = i / columns % rows, o = i / columns / rows % each.o,
                    n = i / columns / rows / each.o;
      double sum = b[static_cast<size_t>(o)];
      for (int64_t c = 0; c < in; ++c) {
        const int64_t plane = n * each.c + o / out * in + c;
        for_each_met(each, p, q, [&](int64_t element, int64_t at, bool) {
          if (at < 0) return;
          sum += x[static_cast<size_t>(plane * each.h * each.w + at)] *
                 w[static_cast<size_t>((o * in + c) * each.r * each.s + element)];
        });
      }
      ASSERT_NEAR(y[static_cast<size_t>(i)], sum, 1e-9) << i;
    }
  }
}

TEST(OnnxWindows, PoolsAreWhatOnnxSays) {
  for (const Case& each : kCases) {
    for (const std::string op : {"MaxPool", "AveragePool"}) {
      SCOPED_TRACE(op + " " + each.what);
      const Result<Graph> read = graph_of_onnx(model_of(each, op, each.c).SerializeAsString(), {});
      ASSERT_TRUE(read.ok()) << to_string(read.error());
      // All below zero: a margin of zeros would be the maximum.
      const std::vector<double> x = numbers(each.n * each.c * each.h * each.w, 9);
      const std::vector<double> y = evaluated(*read, {{"x", x}});
      const int64_t rows = places(each, 0), columns = places(each, 1);
      ASSERT_EQ(static_cast<int64_t>(y.size()), each.n * each.c * rows * columns);
      for (int64_t i = 0; i < static_cast<int64_t>(y.size()); ++i) {
        const int64_t plane = i / columns / rows;
        double top = -std::numeric_limits<double>::infinity(), sum = 0, count = 0;
        for_each_met(each, i / columns % rows, i % columns, [&](int64_t, int64_t at, bool margin) {
          if (at >= 0 || (each.count_margin && margin)) ++count;
          if (at < 0) return;
          const double value = x[static_cast<size_t>(plane * each.h * each.w + at)];
          top = std::max(top, value);
          sum += value;
        });
        ASSERT_NEAR(y[static_cast<size_t>(i)], op == "MaxPool" ? top : sum / count, 1e-9) << i;
      }
    }
  }
}

// The ones whose margin the format computes: as many places as strides, the odd element behind or
// in front.
TEST(OnnxWindows, MarginsMayBeSaidByName) {
  for (const bool upper : {true, false}) {
    onnx::Model model;
    onnx::Graph& graph = *model.mutable_graph();
    add_value(graph.add_inputs(), "x", {"1", "1", "4"});
    add_value(graph.add_outputs(), "y", {"1", "1", "2"});
    add_floats(graph, "w", {1, 1, 3}, {1, 10, 100});
    onnx::Node& node = *add_node(graph, "Conv", "it", {"x", "w"}, "y");
    add_integers_to(node, "strides", {2});
    onnx::Attribute& padding = *node.add_attributes();
    padding.set_name("auto_pad");
    padding.set_text(upper ? "SAME_UPPER" : "SAME_LOWER");
    const Result<Graph> read = graph_of_onnx(model.SerializeAsString(), {});
    ASSERT_TRUE(read.ok()) << to_string(read.error());
    const std::vector<double> y = evaluated(*read, {{"x", {1, 2, 3, 4}}, {"w", {1, 10, 100}}});
    EXPECT_EQ(y, upper ? (std::vector<double>{321, 43}) : (std::vector<double>{210, 432}));
  }
}

// A window of one element that takes every place is no window: the axes stay those of the tensor,
// so that a 1 x 1 convolution is the matrix product that it is.
TEST(OnnxWindows, AOneByOneConvolutionIsAProduct) {
  const Result<Graph> read = graph_of_onnx(model_of(kCases[5], "Conv", 5).SerializeAsString(), {});
  ASSERT_TRUE(read.ok());
  const Result<std::string> program = program_text(*read);
  ASSERT_TRUE(program.ok());
  EXPECT_EQ(*program,
            "program model(a = 2, c = 3, d = 16, e = 5) {\n"
            "  input x: f32[a, c, d]\n"
            "  input w: f32[e, c]\n"
            "  input b: f32[e]\n"
            "  output y: f32[a, e, d] = (sum[c](x * w) + b)\n"
            "}\n");
}

TEST(OnnxWindows, PatchesArePartsOfTheirDimensions) {
  const Case patches{"", 1, 3, 8, 6, 2, 4, 3, 1, {4, 3}};
  const Result<Graph> read = graph_of_onnx(model_of(patches, "Conv", 2).SerializeAsString(), {});
  ASSERT_TRUE(read.ok());
  const Result<std::string> program = program_text(*read);
  ASSERT_TRUE(program.ok());
  EXPECT_NE(program->find("input x: f32[a, c, d, e, f]"), std::string::npos) << *program;
  EXPECT_EQ(program->find("x["), std::string::npos) << *program;
}

TEST(OnnxWindows, WhatIsNoWindowIsSaid) {
  const auto said = [](Case each, const std::string& op) {
    const Result<Graph> read =
        graph_of_onnx(model_of(each, op, op == "Conv" ? each.o : each.c).SerializeAsString(), {});
    return read.ok() ? std::string("read") : read.error().message;
  };
  const auto contains = [](const std::string& message, const std::string& part) {
    return message.find(part) != std::string::npos;
  };
  Case large{"", 1, 2, 3, 3, 2, 4, 4};
  EXPECT_TRUE(contains(said(large, "Conv"), "its window is larger than the tensor"));
  EXPECT_TRUE(contains(said({"", 1, 2, 3, 3, 2, 2, 2, 2}, "Conv"), "read"));
  EXPECT_TRUE(contains(said({"", 1, 3, 3, 3, 2, 2, 2, 2}, "Conv"), "its channels are others"));
  EXPECT_TRUE(contains(said({"", 1, 2, 3, 3, 2, 2, 2, 1, {1, 1}, {1, 1}, {2, 0, 0, 0}}, "MaxPool"),
                       "a window in the margin alone"));
  onnx::Model model = model_of(kCases[0], "MaxPool", 3);
  onnx::Node& node = *model.mutable_graph()->mutable_nodes(0);
  node.add_outputs("places");
  const Result<Graph> read = graph_of_onnx(model.SerializeAsString(), {});
  ASSERT_FALSE(read.ok());
  EXPECT_TRUE(contains(read.error().message, "the places of maxima")) << read.error().message;
  for (onnx::Attribute& each : *node.mutable_attributes()) {
    if (each.name() == "strides") each.set_integers(0, 0);
  }
  node.mutable_outputs()->RemoveLast();
  const Result<Graph> standing = graph_of_onnx(model.SerializeAsString(), {});
  ASSERT_FALSE(standing.ok());
  EXPECT_TRUE(contains(standing.error().message, "its window is none"));
}

}  // namespace
}  // namespace sundog::frontend
