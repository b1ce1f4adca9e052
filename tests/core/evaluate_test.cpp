#include "core/evaluate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

#include "core/evaluate_tape.h"
#include "core/interpret.h"
#include "core/resize.h"
#include "core/text.h"

namespace sundog {
namespace {

namespace fs = std::filesystem;

std::string read_file(const fs::path& path) {
  std::ifstream in(path);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

Program load(const fs::path& path, const std::map<std::string, int64_t>& defines = {}) {
  auto program = parse_program(read_file(path), path.string(), defines);
  EXPECT_TRUE(program.ok());
  return *program;
}

std::vector<TensorValues<double>> random_inputs(const Program& program, unsigned seed) {
  std::mt19937 rng(seed);
  std::normal_distribution<double> normal;
  std::vector<TensorValues<double>> inputs;
  for (const TensorDecl& t : program.inputs) {
    TensorValues<double> values{t.extents, std::vector<double>(element_count(t))};
    for (double& x : values.values) x = static_cast<float>(normal(rng));
    inputs.push_back(std::move(values));
  }
  return inputs;
}

std::vector<FloatTensor> as_floats(const std::vector<TensorValues<double>>& inputs, bool single) {
  std::vector<FloatTensor> tensors;
  for (const auto& input : inputs) {
    FloatTensor t;
    t.extents = input.extents;
    if (single) {
      t.f32.assign(input.values.begin(), input.values.end());
    } else {
      t.f64 = input.values;
    }
    tensors.push_back(std::move(t));
  }
  return tensors;
}

void expect_near(const std::vector<double>& actual, const std::vector<double>& expected,
                 double tolerance) {
  ASSERT_EQ(actual.size(), expected.size());
  double scale = 1e-30;
  for (const double x : expected) scale = std::max(scale, std::fabs(x));
  for (size_t i = 0; i < actual.size(); ++i) {
    ASSERT_LE(std::fabs(actual[i] - expected[i]), tolerance * scale) << i;
  }
}

std::vector<std::string> program_files() {
  std::vector<std::string> files;
  const fs::path root = fs::path(SUNDOG_SOURCE_DIR);
  for (const auto& entry : fs::directory_iterator(root / "benchmarks/programs")) {
    if (entry.path().extension() == ".sd") files.push_back(entry.path().stem().string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

class Programs : public testing::TestWithParam<std::string> {
 protected:
  Program small(int64_t least) const {
    const Program p =
        load(fs::path(SUNDOG_SOURCE_DIR) / "benchmarks/programs" / (GetParam() + ".sd"));
    return with_extents(p, small_extents(p, least));
  }
};

TEST_P(Programs, AgreeWithTheInterpreter) {
  for (const int64_t least : {2, 5, 11}) {
    const Program p = small(least);
    const auto inputs = random_inputs(p, 7);
    Float64 algebra({.round_stores = false});
    const auto expected = interpret(algebra, p, std::span<const TensorValues<double>>(inputs));
    ASSERT_TRUE(expected.ok()) << to_string(expected.error());
    for (const bool single : {false, true}) {
      const auto actual = evaluate(p, as_floats(inputs, single));
      ASSERT_TRUE(actual.ok()) << to_string(actual.error());
      for (size_t o = 0; o < actual->size(); ++o) {
        expect_near((*actual)[o], (*expected)[o].values, 1e-12);
      }
    }
    Evaluation f32;
    f32.precision = Precision::kF32;
    const auto rounded = evaluate(p, as_floats(inputs, false), f32);
    ASSERT_TRUE(rounded.ok());
    double change = 0;
    for (size_t o = 0; o < rounded->size(); ++o) {
      expect_near((*rounded)[o], (*expected)[o].values, 1e-3);
      for (size_t i = 0; i < (*rounded)[o].size(); ++i) {
        change += std::fabs((*rounded)[o][i] - (*expected)[o].values[i]);
      }
    }
    EXPECT_GT(change, 0);
  }
}

TEST_P(Programs, OfARegionAreTheSameThere) {
  const Program p = small(5);
  const auto inputs = as_floats(random_inputs(p, 8), false);
  const auto whole = evaluate(p, inputs);
  ASSERT_TRUE(whole.ok());
  AxisId axis = 0;
  ASSERT_FALSE(p.outputs[0].tensor.dims.empty());
  for (const IndexExpr& e : p.outputs[0].tensor.dims) {
    if (!e.axes.empty()) axis = e.axes[0].axis;
  }
  const int64_t extent = p.axes[axis].extent;
  ASSERT_GE(extent, 1);
  Evaluation part;
  part.region = {{axis, extent / 2, extent / 2 + 1}};
  const auto some = evaluate(p, inputs, part);
  ASSERT_TRUE(some.ok());
  int computed = 0;
  for (size_t i = 0; i < (*some)[0].size(); ++i) {
    if (std::isnan((*some)[0][i])) continue;
    ++computed;
    EXPECT_NEAR((*some)[0][i], (*whole)[0][i], 1e-12 * (1 + std::fabs((*whole)[0][i])));
  }
  EXPECT_EQ(computed * extent, static_cast<int64_t>((*some)[0].size()));
}

std::string program_name(const testing::TestParamInfo<std::string>& file) { return file.param; }

INSTANTIATE_TEST_SUITE_P(Evaluate, Programs, testing::ValuesIn(program_files()), program_name);

TEST(Evaluate, GuardedReadsAndReversal) {
  const auto p = parse_program(R"(
    program guarded(n = 9, i = 9) {
      input x: f32[n]
      a[i] = select(i < 1, 0, x[i - 1]) + x[size(i) - 1 - i]
      output y: f32[i] = a
    })",
                               "guarded.sd");
  ASSERT_TRUE(p.ok()) << to_string(p.error());
  const auto inputs = random_inputs(*p, 3);
  const auto y = evaluate(*p, as_floats(inputs, true));
  ASSERT_TRUE(y.ok());
  const auto& x = inputs[0].values;
  EXPECT_EQ((*y)[0][0], x[8]);
  for (size_t i = 1; i < 9; ++i) EXPECT_EQ((*y)[0][i], x[i - 1] + x[8 - i]);
}

// Where exp of the values alone would overflow, too.
TEST(Evaluate, LogsumexpIsTheLogarithmOfASumOfExponentials) {
  const auto p = parse_program(R"(
    program lse(n = 2, k = 3) {
      input x: f32[n, k]
      output y: f32[n] = logsumexp[k](x)
    })",
                               "lse.sd");
  ASSERT_TRUE(p.ok()) << to_string(p.error());
  FloatTensor x;
  x.extents = {2, 3};
  x.f64 = {0, std::log(2.0), std::log(5.0), 1000, 1000, -1000};
  const auto y = evaluate(*p, std::vector<FloatTensor>{x});
  ASSERT_TRUE(y.ok()) << to_string(y.error());
  EXPECT_NEAR((*y)[0][0], std::log(8.0), 1e-12);
  EXPECT_NEAR((*y)[0][1], 1000 + std::log(2.0), 1e-9);
}

TEST(Evaluate, RefusesOtherShapes) {
  const Program p =
      load(fs::path(SUNDOG_SOURCE_DIR) / "benchmarks/programs/softmax.sd", {{"n", 2}, {"k", 3}});
  FloatTensor wrong;
  wrong.extents = {2, 4};
  wrong.f64.resize(8);
  EXPECT_FALSE(evaluate(p, std::vector<FloatTensor>{wrong}).ok());
  EXPECT_FALSE(evaluate(p, std::vector<FloatTensor>{}).ok());
}

}  // namespace
}  // namespace sundog
