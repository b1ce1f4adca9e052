#include <gtest/gtest.h>

#include <functional>

#include "core/mugraph.h"
#include "tests/core/examples.h"

namespace sundog {
namespace {

using namespace examples;

struct Breach {
  const char* message;
  std::function<void(Program&)> change;
};

std::vector<Breach> breaches() {
  const auto expression = [](Program& p) -> IndexExpr& { return p.outputs[0].tensor.dims[1]; };
  return {
      {"at most 64 are supported",
       [](Program& p) {
         while (p.axes.size() < 65) p.axes.push_back({"a" + std::to_string(p.axes.size()), 1});
       }},
      {"axis 'h' has a negative extent", [](Program& p) { p.axes[1].extent = -1; }},
      {"axis 'n' is declared twice", [](Program& p) { p.axes[2].name = "n"; }},
      {"multiply to 16, not to its extent 17",
       [](Program& p) {
         p.splits = {{"m", 17, {1, 0}}};
       }},
      {"two tensors are called 'X'", [](Program& p) { p.inputs[1].name = "X"; }},
      {"two tensors are called 'W'", [](Program& p) { p.outputs[0].tensor.name = "W"; }},
      {"tensor 'X' has 2 dimensions but 1 extents",
       [](Program& p) { p.inputs[0].extents.pop_back(); }},
      {"has 1 strides for 2 dimensions", [](Program& p) { p.inputs[0].strides = {1}; }},
      {"has a negative stride",
       [](Program& p) {
         p.inputs[0].strides = {8, -1};
       }},
      {"has a negative offset", [](Program& p) { p.inputs[0].offset = -1; }},
      {"power of two", [](Program& p) { p.inputs[0].alignment = 12; }},
      {"its declared range is empty",
       [](Program& p) {
         p.inputs[0].low = Number(1);
         p.inputs[0].high = Number(0);
       }},
      {"tensor 'X' uses an axis that the program does not have",
       [](Program& p) { p.inputs[0].dims[0] = at(40); }},
      {"a term reads an unknown input", [](Program& p) { p.terms.input(9, {}); }},
      {"input 'X' has 2 dimensions and is read with 1",
       [](Program& p) { p.terms.input(0, {at(0)}); }},
      {"a program reads a computation", [](Program& p) { p.terms.local(0, {}); }},
      {"size() uses an axis", [](Program& p) { p.terms.size(30); }},
      {"an index uses an axis", [](Program& p) { p.terms.push(IndexTerm{at(30)}); }},
      {"operator add has 1 operands instead of 2",
       [](Program& p) { p.terms.apply(op::Add{}, {0}); }},
      {"a reduction runs over no axis",
       [](Program& p) { p.terms.reduce(ReduceKind::kSum, {}, 0); }},
      {"a reduction uses an axis",
       [](Program& p) { p.terms.reduce(ReduceKind::kSum, AxisSet::of(33), 0); }},
      {"the condition of a select uses an axis",
       [](Program& p) {
         p.terms.push(SelectTerm{{at(33), Relation::kLess}, 0, 0});
       }},
      {"the program has no output", [](Program& p) { p.outputs.clear(); }},
      {"output 'O' has no value", [](Program& p) { p.outputs[0].value = 999; }},
      {"output 'O' depends on axis 'h', which is none of its dimensions",
       [](Program& p) { p.outputs[0].value = read(p, 0); }},
      {"uses an axis in two dimensions",
       [=](Program& p) {
         expression(p) = at(0);
         p.outputs[0].tensor.extents[1] = 2;
       }},
      {"is shifted", [=](Program& p) { expression(p) = at(2) + IndexExpr::of_constant(1); }},
      {"do not run over its extent 3 exactly once", [=](Program& p) { expression(p) = at(2) * 2; }},
      {"an output cannot",
       [](Program& p) {
         p.outputs[0].tensor.strides = {0, 1};
       }},
      {"definition 'r' has no value",
       [](Program& p) {
         p.definitions = {{"r", 999, {}, {}}};
       }},
  };
}

TEST(CheckProgramTest, EveryRuleIsEnforced) {
  ASSERT_TRUE(check(rms_norm(2, 8, 3)).ok());
  for (const Breach& breach : breaches()) {
    Program p = rms_norm(2, 8, 3);
    breach.change(p);
    const Status status = check(p);
    ASSERT_FALSE(status.ok()) << breach.message;
    const std::string text = status.error().message + " " + status.error().hint;
    EXPECT_NE(text.find(breach.message), std::string::npos) << breach.message << "\n" << text;
  }
}

TEST(CheckProgramTest, SplitDimensionsAreExact) {
  Program p = rms_norm(2, 8, 3);
  p.axes.push_back({"e", 4});
  p.outputs[0].tensor.dims[1] = at(2) * 4 + at(3);
  p.outputs[0].tensor.extents[1] = 12;
  EXPECT_TRUE(check(p).ok());
  p.outputs[0].tensor.dims[1] = at(2) + at(3) * 3;
  EXPECT_TRUE(check(p).ok());
  p.outputs[0].tensor.dims[1] = at(2) * 3 + at(3);
  EXPECT_FALSE(check(p).ok());
}

}  // namespace
}  // namespace sundog
