// The forms of µGraphs have the values that running them gives, right or wrong ones alike: mutants
// are as good a test of the rules as what they were made from.
#include "verify/symbolic_mugraph.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/float_algebra.h"
#include "tests/sanitized.h"
#include "tests/verify/form_value.h"
#include "tests/verify/pairs.h"
#include "verify/float_inputs.h"
#include "verify/implication.h"
#include "verify/mutate.h"

namespace sundog::verify {
namespace {

struct Counts {
  int compared = 0, outside = 0;
};

// Elements of the outputs by running and by form; what the rules do not reach is counted.
void compare(const Program& program, const MuGraph& graph, const std::string& what,
             Counts* counts) {
  const auto inputs = float_inputs(program, InputKind::kOrdinary, 7);
  Float64 floats({.round_stores = false});
  const auto run = interpret(floats, graph, program, std::span<const TensorValues<double>>(inputs));
  Forms forms;
  SymbolicAlgebra algebra(forms, Rounding::kWide);
  const AxisSymbols symbols = axis_symbols(forms, program, false);
  Implications implications;
  const SymbolicMuGraph result = symbolic_mugraph(algebra, graph, program, symbols, implications);
  if (forms.failure() || !run.ok()) {
    ++counts->outside;
    return;
  }
  FactorExtents extents = implications.extents;
  for (AxisId a = 0; a < program.axes.size(); ++a) {
    extents[symbols.domains[a]] = program.axes[a].extent;
  }
  FormValue value(forms, extents, inputs);
  for (size_t o = 0; o < result.outputs.size(); ++o) {
    const TensorDecl& tensor = program.outputs[o].tensor;
    const std::vector<double>& expected = (*run)[o].values;
    const size_t step = std::max<size_t>(1, expected.size() / 7);
    for (size_t i = 0; i < expected.size(); i += step) {
      int64_t rest = static_cast<int64_t>(i);
      for (size_t d = tensor.dims.size(); d-- > 0;) {
        AxisId axis = 0;
        ASSERT_TRUE(tensor.dims[d].is_axis(&axis));
        value.set(symbols.variables[axis], rest % tensor.extents[d]);
        rest /= tensor.extents[d];
      }
      const double form = value.form(result.outputs[o].form);
      if (value.unknown || !std::isfinite(expected[i]) || !std::isfinite(form)) {
        ++counts->outside;
        return;
      }
      EXPECT_NEAR(form, expected[i], 1e-7 * (1 + std::fabs(expected[i])))
          << what << ", output " << tensor.name << ", element " << i << "\n"
          << forms.text(result.outputs[o].form);
      ++counts->compared;
    }
  }
}

bool is_small(const Program& program) {
  double elements = 1;
  for (const Axis& axis : program.axes) elements *= static_cast<double>(axis.extent);
  return elements < 1e5;
}

TEST(SymbolicMuGraph, FormsHaveTheValuesOfRunning) {
  constexpr uint64_t kSeeds = kSanitized ? 9 : 45;
  Counts right, mutants;
  for (const std::string& file : pair_files({".equal.mu", ".differ.mu"})) {
    const std::string text = read_file(pairs_folder() / file);
    const auto program = program_of(text);
    ASSERT_TRUE(program.ok());
    if (!is_small(*program)) continue;
    const auto graph = parse_mugraph(text, file, *program);
    ASSERT_TRUE(graph.ok());
    compare(*program, *graph, file, &right);
    for (uint64_t seed = 0; seed < kSeeds; ++seed) {
      if (const auto mutant = mutate(*graph, *program, seed)) {
        compare(*program, mutant->graph, file + ": " + mutant->what, &mutants);
      }
    }
  }
  EXPECT_GE(right.compared, 60);
  EXPECT_GE(mutants.compared, kSanitized ? 100 : 800);
  RecordProperty("mutants_outside", mutants.outside);
}

}  // namespace
}  // namespace sundog::verify
