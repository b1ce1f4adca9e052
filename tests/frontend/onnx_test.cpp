#include "frontend/onnx.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "core/evaluate.h"
#include "core/text.h"
#include "frontend/onnx.pb.h"
#include "tests/frontend/onnx_model.h"

namespace sundog::frontend {
namespace {

// y = relu(layer_norm(x) w + b), its nodes back to front.
onnx::Model small_model() {
  onnx::Model model;
  onnx::Graph& graph = *model.mutable_graph();
  graph.set_name("block");
  add_value(graph.add_inputs(), "x", {"batch", "4"});
  add_value(graph.add_outputs(), "y", {"batch", "2"});
  add_floats(graph, "w", {4, 2}, {1, 0, 0, 1, 1, 1, 0.5, -1});
  add_floats(graph, "b", {2}, {0.5, 0.25});
  add_floats(graph, "g", {4}, {1, 2, 3, 4});
  add_floats(graph, "z", {4}, {0, 0, 0, 1});
  add_node(graph, "Relu", "last", {"s"}, "y");
  add_node(graph, "Add", "bias", {"p", "b"}, "s");
  add_node(graph, "MatMul", "product", {"n", "w"}, "p");
  onnx::Attribute& eps =
      *add_node(graph, "LayerNormalization", "norm", {"x", "g", "z"}, "n")->add_attributes();
  eps.set_name("epsilon");
  eps.set_number(0.5);
  return model;
}

TEST(Onnx, NodesMayStandInAnyOrder) {
  const Result<Graph> graph = graph_of_onnx(small_model().SerializeAsString(), {{"batch", 1}});
  ASSERT_TRUE(graph.ok()) << to_string(graph.error());
  const Result<Program> program = program_of(*graph);
  ASSERT_TRUE(program.ok()) << to_string(program.error());
  // Weights become inputs in the order in which nodes want them.
  ASSERT_EQ(program->inputs.size(), 5u);
  const double x[] = {1, 2, 3, 6};
  const std::map<std::string, std::vector<double>> values = {{"x", {1, 2, 3, 6}},
                                                             {"w", {1, 0, 0, 1, 1, 1, 0.5, -1}},
                                                             {"b", {0.5, 0.25}},
                                                             {"g", {1, 2, 3, 4}},
                                                             {"z", {0, 0, 0, 1}}};
  std::vector<FloatTensor> inputs;
  for (const TensorDecl& input : program->inputs) {
    inputs.push_back({input.extents, values.at(input.name), {}});
  }
  const auto outputs = evaluate(*program, inputs);
  ASSERT_TRUE(outputs.ok());
  double n[4], variance = 0;
  for (const double each : x) variance += (each - 3) * (each - 3) / 4;
  for (int i = 0; i < 4; ++i) n[i] = (x[i] - 3) / std::sqrt(variance + 0.5) * (i + 1) + (i == 3);
  EXPECT_NEAR((*outputs)[0][0], std::max(0.0, n[0] + n[2] + n[3] / 2 + 0.5), 1e-12);
  EXPECT_NEAR((*outputs)[0][1], std::max(0.0, n[1] + n[2] - n[3] + 0.25), 1e-12);
}

TEST(Onnx, EveryUnsupportedNodeIsListed) {
  onnx::Model model = small_model();
  onnx::Graph& graph = *model.mutable_graph();
  add_node(graph, "TopK", "pick", {"p"}, "top");
  add_node(graph, "Relu", "after", {"top"}, "lost");  // no fault of its own
  add_node(graph, "NonZero", "find", {"lost"}, "found");
  const Result<Graph> read = graph_of_onnx(model.SerializeAsString(), {{"batch", 3}});
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.error().code, ErrorCode::kUnsupported);
  EXPECT_EQ(read.error().message,
            "2 nodes have no form in a program: pick (TopK [3, 2]): the operator is not known; "
            "find (NonZero [?]): the operator is not known");
}

TEST(Onnx, ShapesMayBeOperands) {
  onnx::Model model;
  onnx::Graph& graph = *model.mutable_graph();
  add_value(graph.add_inputs(), "x", {"2", "6"});
  add_value(graph.add_outputs(), "y", {"3", "2", "1"});
  add_integers(graph, "shape", {0, 3, -1});
  add_integers(graph, "start", {-2});
  add_integers(graph, "end", {2147483647});
  add_integers(graph, "axis", {2});
  add_node(graph, "Reshape", "r", {"x", "shape"}, "a");
  add_node(graph, "Slice", "s", {"a", "start", "end", "axis"}, "b");
  onnx::Attribute& order = *add_node(graph, "Transpose", "t", {"b"}, "c")->add_attributes();
  order.set_name("perm");
  for (const int64_t d : {1, 0, 2}) order.add_integers(d);
  onnx::Node& sum = *add_node(graph, "ReduceSum", "u", {"c", "axis"}, "y");
  static_cast<void>(sum);
  const Result<Graph> read = graph_of_onnx(model.SerializeAsString(), {});
  ASSERT_TRUE(read.ok()) << to_string(read.error());
  const Result<std::string> text = program_text(*read);
  ASSERT_TRUE(text.ok()) << to_string(text.error());
  EXPECT_TRUE(parse_program(*text, "x").ok()) << *text;
}

TEST(Onnx, WhatIsMissingIsSaid) {
  const Result<Graph> unnamed = graph_of_onnx(small_model().SerializeAsString(), {});
  ASSERT_FALSE(unnamed.ok());
  EXPECT_NE(unnamed.error().message.find("dimension batch of x has no value"), std::string::npos);
  EXPECT_EQ(unnamed.error().hint, "-D batch=N gives it one");
  const Result<Graph> wrong =
      graph_of_onnx(small_model().SerializeAsString(), {{"batch", 1}, {"bacth", 1}});
  ASSERT_FALSE(wrong.ok());
  EXPECT_EQ(wrong.error().message, "the model has no dimension 'bacth', which -D sets");
  EXPECT_EQ(wrong.error().hint, "known here: batch");
  EXPECT_FALSE(graph_of_onnx("no model", {}).ok());
  EXPECT_FALSE(graph_of_onnx("", {}).ok());
  onnx::Model circle;
  add_node(*circle.mutable_graph(), "Relu", "a", {"q"}, "p");
  add_node(*circle.mutable_graph(), "Relu", "b", {"p"}, "q");
  const Result<Graph> read = graph_of_onnx(circle.SerializeAsString(), {});
  ASSERT_FALSE(read.ok());
  EXPECT_NE(read.error().message.find("part of a circle"), std::string::npos);
}

TEST(Onnx, NormalizationsPoolsAndLogarithmsAreWhatOnnxSays) {
  const std::vector<double> x = {1, 2, 3, 6, -1, 0, 2, 5};
  const std::map<std::string, std::vector<double>> values = {
      {"x", x}, {"s", {2, 3}}, {"b", {0.5, -1}}, {"m", {1, 2}}, {"v", {4, 0.25}}};
  const auto made = [&](const std::string& op, bool statistics, const std::vector<std::string>& y) {
    onnx::Model model;
    onnx::Graph& graph = *model.mutable_graph();
    add_value(graph.add_inputs(), "x", {"1", "2", "4"});
    std::vector<std::string> inputs = {"x"};
    if (statistics) {
      for (const char* name : {"s", "b", "m", "v"}) {
        add_value(graph.add_inputs(), name, {"2"});
        inputs.emplace_back(name);
      }
    }
    add_value(graph.add_outputs(), "y", y);
    add_node(graph, op, "it", inputs, "y");
    const Result<Graph> read = graph_of_onnx(model.SerializeAsString(), {});
    EXPECT_TRUE(read.ok()) << to_string(read.error());
    return read.ok() ? evaluated(*read, values) : std::vector<double>(8);
  };
  const std::vector<double> normal = made("BatchNormalization", true, {"1", "2", "4"});
  const std::vector<double> logs = made("LogSoftmax", false, {"1", "2", "4"});
  const std::vector<double> mean = made("GlobalAveragePool", false, {"1", "2", "1"});
  const std::vector<double> top = made("GlobalMaxPool", false, {"1", "2", "1"});
  for (size_t c = 0; c < 2; ++c) {
    double sum = 0, exps = 0;
    for (size_t i = 4 * c; i < 4 * c + 4; ++i) sum += x[i], exps += std::exp(x[i]);
    for (size_t i = 4 * c; i < 4 * c + 4; ++i) {
      const double scale = values.at("s")[c] / std::sqrt(values.at("v")[c] + 1e-5);
      EXPECT_NEAR(normal[i], (x[i] - values.at("m")[c]) * scale + values.at("b")[c], 1e-9);
      EXPECT_NEAR(logs[i], x[i] - std::log(exps), 1e-9);
    }
    EXPECT_NEAR(mean[c], sum / 4, 1e-12);
    EXPECT_EQ(top[c], x[4 * c + 3]);
  }
}

TEST(Onnx, TypesThatNoTensorHasAreNamed) {
  onnx::Model model = small_model();
  model.mutable_graph()->mutable_inputs(0)->mutable_type()->mutable_tensor()->set_element(7);
  const Result<Graph> read = graph_of_onnx(model.SerializeAsString(), {{"batch", 1}});
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.error().message, "x has the type int64");
}

TEST(Onnx, BatchDimensionsOfAProductAreBroadcast) {
  struct Case {
    std::vector<std::string> a, b, y;
  };
  const Case cases[] = {{{"1", "2", "3"}, {"4", "3", "2"}, {"4", "2", "2"}},
                        {{"4", "2", "3"}, {"1", "3", "2"}, {"4", "2", "2"}},
                        {{"1", "2", "3"}, {"1", "3", "2"}, {"1", "2", "2"}},
                        {{"2", "1", "2", "3"}, {"4", "3", "2"}, {"2", "4", "2", "2"}},
                        {{"2", "1", "2", "3"}, {"1", "4", "3", "2"}, {"2", "4", "2", "2"}},
                        {{"2", "3"}, {"5", "1", "3", "2"}, {"5", "1", "2", "2"}}};
  for (const Case& each : cases) {
    onnx::Model model;
    onnx::Graph& graph = *model.mutable_graph();
    add_value(graph.add_inputs(), "a", each.a);
    add_value(graph.add_inputs(), "b", each.b);
    add_value(graph.add_outputs(), "y", each.y);
    add_node(graph, "MatMul", "product", {"a", "b"}, "y");
    const Result<Graph> read = graph_of_onnx(model.SerializeAsString(), {});
    ASSERT_TRUE(read.ok()) << to_string(read.error());
    // numpy's matmul: index from the end, an extent of 1 repeats.
    const auto extents = [](const std::vector<std::string>& dims) {
      std::vector<int64_t> numbers(4 - dims.size(), 1);
      for (const std::string& dim : dims) numbers.push_back(std::stoll(dim));
      return numbers;
    };
    const std::vector<int64_t> ea = extents(each.a), eb = extents(each.b), ey = extents(each.y);
    const auto at = [](const std::vector<int64_t>& e, int64_t i, int64_t j, int64_t r, int64_t c) {
      return static_cast<size_t>(
          (((e[0] == 1 ? 0 : i) * e[1] + (e[1] == 1 ? 0 : j)) * e[2] + r) * e[3] + c);
    };
    std::vector<double> a, b, y;
    for (int64_t i = 0; i < ea[0] * ea[1] * 6; ++i) a.push_back(static_cast<double>(i % 7) - 2);
    for (int64_t i = 0; i < eb[0] * eb[1] * 6; ++i) b.push_back(static_cast<double>(i % 5) - 1);
    for (int64_t i = 0; i < ey[0]; ++i) {
      for (int64_t j = 0; j < ey[1]; ++j) {
        for (int64_t r = 0; r < 2; ++r) {
          for (int64_t c = 0; c < 2; ++c) {
            double sum = 0;
            for (int64_t k = 0; k < 3; ++k) sum += a[at(ea, i, j, r, k)] * b[at(eb, i, j, k, c)];
            y.push_back(sum);
          }
        }
      }
    }
    EXPECT_EQ(evaluated(*read, {{"a", a}, {"b", b}}), y);
  }
}

// A folder with a model whose weights lie in a file beside it.
class ExternalWeights : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "external_" +
              testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::create_directories(folder_ + "/data");
    onnx::Graph& graph = *model_.mutable_graph();
    add_value(graph.add_inputs(), "x", {"2", "2"});
    add_value(graph.add_outputs(), "y", {"2", "2"});
    add_external("w", {2, 2}, 1, "8", "16");
    add_external("shape", {2}, 7, "24", "16");
    add_node(graph, "MatMul", "product", {"x", "w"}, "p");
    add_node(graph, "Reshape", "same", {"p", "shape"}, "y");
    std::string bytes(40, '\0');
    const int64_t shape[] = {2, -1};
    std::memcpy(bytes.data() + 24, shape, sizeof shape);
    write("data/weights.bin", bytes);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  void add_external(const std::string& name, const std::vector<int64_t>& dims, int element,
                    const std::string& offset, const std::string& length) {
    onnx::Tensor& tensor = *model_.mutable_graph()->add_initializers();
    tensor.set_name(name);
    tensor.set_element(element);
    for (const int64_t dim : dims) tensor.add_dims(dim);
    tensor.set_location(1);
    for (const auto& [key, value] :
         {std::pair<std::string, std::string>{"location", "data/weights.bin"},
          {"offset", offset},
          {"length", length},
          {"checksum", "0"}}) {
      if (value.empty()) continue;
      tensor.add_external()->set_key(key);
      tensor.mutable_external(tensor.external_size() - 1)->set_value(value);
    }
  }
  void write(const std::string& name, const std::string& bytes) {
    std::ofstream(folder_ + "/" + name, std::ios::binary) << bytes;
  }
  Result<Graph> read() { return graph_of_onnx(model_.SerializeAsString(), {}, folder_); }
  std::string complaint() {
    const Result<Graph> graph = read();
    EXPECT_FALSE(graph.ok());
    return graph.ok() ? "" : graph.error().message;
  }

  onnx::Model model_;
  std::string folder_;
};

TEST_F(ExternalWeights, AreInputsAndSmallOnesAreNumbers) {
  const Result<Graph> graph = read();
  ASSERT_TRUE(graph.ok()) << to_string(graph.error());
  ASSERT_EQ(graph->inputs.size(), 2u);
  EXPECT_EQ(evaluated(*graph, {{"x", {1, 2, 3, 4}}, {"w", {1, 0, 1, 1}}}),
            (std::vector<double>{3, 2, 7, 4}));
}

TEST_F(ExternalWeights, MayLackALength) {
  model_.mutable_graph()->mutable_initializers()->RemoveLast();
  add_external("shape", {2}, 7, "24", "");
  EXPECT_TRUE(read().ok());
}

TEST_F(ExternalWeights, MissingAndShortFilesAreSaidForEachWeight) {
  std::filesystem::resize_file(folder_ + "/data/weights.bin", 39);
  std::string text = complaint();
  EXPECT_NE(text.find("a weight cannot be read: shape: its file "), std::string::npos) << text;
  EXPECT_NE(text.find("weights.bin ends after 39 bytes, it needs 16 from 24 on"), std::string::npos)
      << text;
  std::filesystem::remove(folder_ + "/data/weights.bin");
  text = complaint();
  EXPECT_NE(text.find("2 weights cannot be read: w: its file "), std::string::npos) << text;
  EXPECT_NE(text.find("No such file"), std::string::npos) << text;
}

TEST_F(ExternalWeights, AreLookedForBelowTheModelAlone) {
  for (const char* place : {"../weights.bin", "/etc/hostname", "data/../../x"}) {
    model_.mutable_graph()->mutable_initializers(0)->mutable_external(0)->set_value(place);
    EXPECT_NE(complaint().find("is not below the folder of the model"), std::string::npos) << place;
  }
  const Result<Graph> bytes = graph_of_onnx(model_.SerializeAsString(), {});
  ASSERT_FALSE(bytes.ok());
  EXPECT_NE(bytes.error().hint.find("by its path"), std::string::npos);
}

TEST_F(ExternalWeights, WrongEntriesAreSaid) {
  onnx::Tensor& w = *model_.mutable_graph()->mutable_initializers(0);
  w.mutable_external(1)->set_value("-8");
  EXPECT_NE(complaint().find("w: its offset in another file is '-8'"), std::string::npos);
  w.mutable_external(1)->set_value("8");
  w.mutable_external(2)->set_value("15");
  EXPECT_NE(complaint().find("it takes 16 bytes and has 15"), std::string::npos);
  w.clear_external();
  EXPECT_NE(complaint().find("another file that is not named"), std::string::npos);
}

TEST(Onnx, NoTruncationCrashes) {
  const std::string bytes = small_model().SerializeAsString();
  for (size_t size = 0; size < bytes.size(); ++size) {
    const Result<Graph> read = graph_of_onnx(bytes.substr(0, size), {{"batch", 2}});
    if (read.ok()) static_cast<void>(program_of(*read));
  }
}

}  // namespace
}  // namespace sundog::frontend
