#include "core/interpret.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "core/field.h"
#include "core/float_algebra.h"
#include "core/text.h"
#include "tests/core/examples.h"

namespace sundog {
namespace {

using namespace examples;

template <class V>
using Inputs = std::vector<TensorValues<V>>;

template <class A, class V>
auto run(A& a, const Program& p, const Inputs<V>& in) {
  return interpret(a, p, std::span<const TensorValues<V>>(in));
}
template <class A, class V>
auto run(A& a, const MuGraph& g, const Program& p, const Inputs<V>& in) {
  return interpret(a, g, p, std::span<const TensorValues<V>>(in));
}

Inputs<FieldImage::Value> field_inputs(const Program& p, FieldImage& field) {
  Inputs<FieldImage::Value> result;
  uint64_t key = 0;
  for (const TensorDecl& input : p.inputs) {
    TensorValues<FieldImage::Value> values{input.extents, {}};
    for (int64_t i = 0; i < element_count(input); ++i) values.values.push_back(field.random(key++));
    result.push_back(std::move(values));
  }
  return result;
}

// Whether the µGraph gives the program's results, on random doubles and in the field.
testing::AssertionResult agrees(const MuGraph& g, const Program& p) {
  if (Status s = check(g, p); !s.ok()) return testing::AssertionFailure() << s.error().message;
  Float64 a;
  const Inputs<double> in = random_inputs(p, 1);
  const auto expected = run(a, p, in), got = run(a, g, p, in);
  if (!expected.ok()) return testing::AssertionFailure() << expected.error().message;
  if (!got.ok()) return testing::AssertionFailure() << got.error().message;
  FieldImage field(3);
  const auto images = field_inputs(p, field);
  const auto exact = run(field, p, images), image = run(field, g, p, images);
  if (!exact.ok()) return testing::AssertionFailure() << exact.error().message;
  if (!image.ok()) return testing::AssertionFailure() << image.error().message;
  for (size_t o = 0; o < expected->size(); ++o) {
    for (size_t i = 0; i < (*expected)[o].values.size(); ++i) {
      const double x = (*expected)[o].values[i], y = (*got)[o].values[i];
      if (!(std::fabs(x - y) <= 1e-12 * (1 + std::fabs(x)))) {
        return testing::AssertionFailure() << "element " << i << ": " << y << " for " << x;
      }
      if (!((*exact)[o].values[i] == (*image)[o].values[i])) {
        return testing::AssertionFailure() << "element " << i << " differs in the field";
      }
    }
  }
  return testing::AssertionSuccess();
}

std::string error_of(const MuGraph& g, const Program& p) {
  Float64 a;
  const auto result = run(a, g, p, random_inputs(p, 1));
  return result.ok() ? "" : result.error().message;
}

TEST(InterpretTest, AProgramIsItsFormula) {
  const Program p = rms_norm(3, 5, 4);
  const Inputs<double> in = random_inputs(p, 2);
  Float64 a;
  const auto result = run(a, p, in);
  ASSERT_TRUE(result.ok());
  for (int64_t n = 0; n < 3; ++n) {
    for (int64_t d = 0; d < 4; ++d) {
      double squares = 0, dot = 0;
      for (int64_t h = 0; h < 5; ++h) {
        const double x = in[0].values[static_cast<size_t>(n * 5 + h)];
        squares += x * x;
        dot += x * in[1].values[static_cast<size_t>(h * 4 + d)];
      }
      EXPECT_NEAR((*result)[0].values[static_cast<size_t>(n * 4 + d)],
                  dot / std::sqrt(squares / 5 + 0.5), 1e-12);
    }
  }
}

TEST(InterpretTest, LargeBoxesAreCutIntoChunks) {
  const Program p = rms_norm(7, 5000, 3);
  EXPECT_TRUE(agrees(fused_rms_norm(p, 128, 2), p));
}

TEST(InterpretTest, FusedAndSplitSchedulesAgree) {
  for (const int64_t h : {8, 12, 13, 31}) {
    const Program p = rms_norm(3, h, 7);
    EXPECT_TRUE(agrees(fused_rms_norm(p, 4, 3), p)) << h;
    EXPECT_TRUE(agrees(fused_rms_norm(p, 1, 7), p)) << h;
    EXPECT_TRUE(agrees(split_rms_norm(p, 2, 4, 3), p)) << h;
    EXPECT_TRUE(agrees(split_rms_norm(p, 9, 4, 2), p)) << h;  // whole parts are absent
  }
}

TEST(InterpretTest, OnlineSoftmaxAgrees) {
  for (const int64_t k : {6, 7, 11}) {
    const Program p = attention(5, k, 3);
    EXPECT_TRUE(agrees(online_attention(p, 2, 3), p)) << k;
    EXPECT_TRUE(agrees(online_attention(p, 5, 1), p)) << k;
  }
}

// Each change of a right µGraph must be noticed, by an error or by other values.
void expect_wrong(MuGraph g, const Program& p, const std::function<void(Kernel&)>& change) {
  ASSERT_TRUE(agrees(g, p));
  change(g.kernels[0]);
  EXPECT_FALSE(agrees(g, p));
}

TEST(InterpretTest, WrongAccumulatorsAreNoticed) {
  const Program p = attention(5, 7, 3);
  const MuGraph g = online_attention(p, 2, 3);
  expect_wrong(g, p, [](Kernel& k) { k.computations[3].rescale = kNone; });
  expect_wrong(g, p, [](Kernel& k) { k.computations[4].rescale = kNone; });
  // The maximum of the tile instead of the running one.
  expect_wrong(g, p, [](Kernel& k) {
    k.computations[1].value = k.terms.reduce(ReduceKind::kMax, AxisSet::of(3), local(k, 0));
    k.computations[3].rescale = k.computations[4].rescale = kNone;
  });
  const Program q = rms_norm(3, 13, 7);
  // Reads the running sum of squares inside the loop.
  expect_wrong(fused_rms_norm(q, 4, 3), q, [](Kernel& k) {
    const TermId w = k.terms.apply(op::Mul{}, {local(k, 1), local(k, 2)});
    k.computations[3].value = sum(k, {1, 2}, k.terms.apply(op::Mul{}, {local(k, 0), w}));
  });
}

TEST(InterpretTest, SharedAccumulatorsAdd) {
  // O[n, d] = sum[h](X W) + sum[h](X W), the second into the first, in a loop of its own.
  Program p = rms_norm(3, 7, 5);
  TermGraph& t = p.terms;
  const TermId dot =
      t.reduce(ReduceKind::kSum, AxisSet::of(1), t.apply(op::Mul{}, {read(p, 0), read(p, 1)}));
  p.outputs[0].value = t.apply(op::Add{}, {dot, dot});
  MuGraph g = empty_graph(p);
  Kernel k;
  k.name = "shared";
  split(g, k, 0, {"n"}, {0});
  split(g, k, 1, {"h.o", "h.i"}, {0, 2});
  split(g, k, 2, {"d"}, {0});
  const TermId product = k.terms.apply(op::Mul{}, {load(g, k, 0), load(g, k, 1)});
  const uint32_t first = add(k, "first", {0, 3}, sum(k, {1, 2}, product));
  const uint32_t second = add(k, "second", {0, 3}, sum(k, {1, 2}, product));
  k.computations[second].accumulate_into = first;
  Loop loop, again;
  loop.factor = again.factor = 1;
  loop.body = {compute(first)};
  again.body = {compute(second)};
  k.body = {{loop}, {again}, store(g, k, first, 2)};
  g.kernels = {k};
  EXPECT_TRUE(agrees(g, p));
  g.kernels[0].body.erase(g.kernels[0].body.begin() + 1);
  g.kernels[0].computations.pop_back();
  EXPECT_FALSE(agrees(g, p));
}

TEST(InterpretTest, TrimmedLoopsSkipWhatIsMasked) {
  // O[q, f] = sum[k](select(k <= q, S, 0) * V): tiles above the diagonal are not run.
  Program p = attention(6, 6, 3);
  TermGraph& t = p.terms;
  const IndexCondition below{at(1) - at(0), Relation::kLessEqual};
  const TermId masked = t.push(SelectTerm{below, read(p, 0), t.constant(Number(0))});
  p.outputs[0].value =
      t.reduce(ReduceKind::kSum, AxisSet::of(1), t.apply(op::Mul{}, {masked, read(p, 1)}));
  MuGraph g = empty_graph(p);
  Kernel k;
  k.name = "causal";
  split(g, k, 0, {"q.o", "q.i"}, {0, 2});
  split(g, k, 1, {"k.o", "k.i"}, {0, 2});
  split(g, k, 2, {"f"}, {0});
  k.grid = {0};
  const IndexCondition tile_below{axis_index(k, 1) - axis_index(k, 0), Relation::kLessEqual};
  const TermId s = k.terms.push(SelectTerm{tile_below, load(g, k, 0), k.terms.constant(Number(0))});
  const uint32_t o =
      add(k, "o", {1, 4}, sum(k, {2, 3}, k.terms.apply(op::Mul{}, {s, load(g, k, 1)})));
  Loop loop;
  loop.factor = 2;
  loop.trim = {{at(2) * 2 - at(0) * 2 - IndexExpr::of_constant(1), Relation::kLessEqual}};
  loop.body = {compute(o)};
  k.body = {{loop}, store(g, k, o, 2)};
  g.kernels = {k};
  EXPECT_TRUE(agrees(g, p));
  std::get<Loop>(g.kernels[0].body[0].node).trim[0].relation = Relation::kLess;
  EXPECT_TRUE(agrees(g, p));  // 2 k.o < 2 q.o + 1 is the same
  std::get<Loop>(g.kernels[0].body[0].node).trim[0].expr = at(2) - at(0);
  EXPECT_FALSE(agrees(g, p));  // k.o < q.o loses the diagonal
}

TEST(InterpretTest, EveryElementIsWrittenOnce) {
  const Program p = rms_norm(3, 8, 6);
  MuGraph twice = fused_rms_norm(p, 4, 3);
  twice.kernels[0].body.push_back(twice.kernels[0].body.back());
  EXPECT_NE(error_of(twice, p).find("writes element [0, 0] a second time"), std::string::npos)
      << error_of(twice, p);
  MuGraph shifted = fused_rms_norm(p, 4, 3);
  auto& store = std::get<Store>(shifted.kernels[0].body.back().node);
  store.index[1] = store.index[1] + IndexExpr::of_constant(1);
  EXPECT_NE(error_of(shifted, p).find("leaves the tensor"), std::string::npos);
  MuGraph missing = fused_rms_norm(p, 4, 3);
  Kernel& k = missing.kernels[0];
  k.factors[0].extent = 4;  // n is ragged now, and the store skips what is absent
  EXPECT_EQ(error_of(missing, p), "");
  std::get<Store>(k.body.back().node).index[0] = at(0) * 2;
  EXPECT_NE(error_of(missing, p), "");
}

TEST(InterpretTest, AnOutputThatNoBlockWritesIsAnError) {
  const Program p = rms_norm(3, 8, 6);
  MuGraph g = fused_rms_norm(p, 4, 3);
  Kernel& k = g.kernels[0];
  // The last step inside a loop over one of the output's factors, of which one value is left out.
  k.grid = {};
  Loop over_d;
  over_d.factor = 3;
  over_d.body = k.body;
  k.body = {{over_d}};
  EXPECT_TRUE(agrees(g, p));
  std::get<Loop>(k.body[0].node).trim = {{at(3) - IndexExpr::of_constant(1), Relation::kLess}};
  EXPECT_EQ(error_of(g, p), "element [0, 3] of output 'O' is never written");
}

TEST(InterpretTest, ReadsOutOfRangeCountOnlyWhereTheyReachAResult) {
  // y[i] = select(i < 3, x[i], z[i - 3]): a concatenation.
  Program p;
  p.name = "concat";
  p.axes = {{"i", 5}, {"a", 3}, {"b", 2}};
  p.inputs = {tensor(p.axes, "x", {1}), tensor(p.axes, "z", {2})};
  TermGraph& t = p.terms;
  const IndexExpr shifted = at(0) - IndexExpr::of_constant(3);
  const TermId x = t.input(0, {at(0)}), z = t.input(1, {shifted});
  p.outputs = {{tensor(p.axes, "y", {0}),
                t.push(SelectTerm{{shifted, Relation::kLess}, t.apply(op::Exp{}, {x}), z})}};
  Float64 a;
  const Inputs<double> in = {{{3}, {1, 2, 3}}, {{2}, {4, 5}}};
  const auto result = run(a, p, in);
  ASSERT_TRUE(result.ok()) << result.error().message;
  EXPECT_EQ((*result)[0].values,
            (std::vector<double>{std::exp(1), std::exp(2), std::exp(3), 4, 5}));
  p.outputs[0].value = t.push(SelectTerm{
      {shifted - IndexExpr::of_constant(1), Relation::kLess}, t.apply(op::Exp{}, {x}), z});
  const auto bad = run(a, p, in);
  ASSERT_FALSE(bad.ok());
  EXPECT_NE(bad.error().message.find("element [3] of output 'y'"), std::string::npos);
}

TEST(InterpretTest, ComparisonsPassOnOnlyTheBranchTaken) {
  Program p;
  p.name = "where";
  p.axes = {{"i", 4}};
  p.inputs = {tensor(p.axes, "x", {0})};
  TermGraph& t = p.terms;
  const TermId x = read(p, 0), zero = t.constant(Number(0));
  p.outputs = {{tensor(p.axes, "y", {0}),
                t.push(CompareTerm{Relation::kLess, x, zero, t.apply(op::Neg{}, {x}), x})}};
  Float64 a;
  const auto result = run(a, p, Inputs<double>{{{4}, {-1, 2, -3, 0}}});
  EXPECT_EQ((*result)[0].values, (std::vector<double>{1, 2, 3, 0}));
}

TEST(InterpretTest, EmptyAxes) {
  const Program no_h = rms_norm(2, 0, 3);
  Float64 a;
  auto result = run(a, no_h, random_inputs(no_h, 1));
  ASSERT_TRUE(result.ok()) << result.error().message;
  for (double value : (*result)[0].values) EXPECT_EQ(value, 0);
  const Program no_n = rms_norm(0, 4, 3);
  result = run(a, no_n, random_inputs(no_n, 1));
  ASSERT_TRUE(result.ok()) << result.error().message;
  EXPECT_TRUE((*result)[0].values.empty());
  EXPECT_TRUE(agrees(fused_rms_norm(no_n, 2, 2), no_n));
  Program max = attention(2, 0, 3);
  max.outputs[0].tensor = tensor(max.axes, "M", {0});
  max.outputs[0].value = max.terms.reduce(ReduceKind::kMax, AxisSet::of(1), read(max, 0));
  result = run(a, max, random_inputs(max, 1));
  EXPECT_EQ((*result)[0].values[0], -std::numeric_limits<double>::infinity());
}

TEST(InterpretTest, ASumOverAnAxisThatTheOperandLacksCounts) {
  Program p = rms_norm(2, 5, 3);
  p.outputs[0].value =
      p.terms.reduce(ReduceKind::kSum, AxisSet::of(1), p.terms.constant(Number(2)));
  Float64 a;
  const auto result = run(a, p, random_inputs(p, 1));
  for (double value : (*result)[0].values) EXPECT_EQ(value, 10);
  MuGraph g = empty_graph(p);
  Kernel k;
  k.name = "count";
  split(g, k, 0, {"n"}, {0});
  split(g, k, 1, {"h.o", "h.i"}, {0, 2});
  split(g, k, 2, {"d"}, {0});
  const uint32_t c = add(k, "c", {0, 3}, sum(k, {1, 2}, k.terms.constant(Number(2))));
  Loop loop;
  loop.factor = 1;
  loop.body = {compute(c)};
  k.body = {{loop}, store(g, k, c, 2)};
  g.kernels = {k};
  EXPECT_TRUE(agrees(g, p));  // six index pairs, of which five are present
}

TEST(InterpretTest, NarrowStorageRounds) {
  const Program p = rms_norm(3, 16, 6);
  const Inputs<double> in = random_inputs(p, 4);
  Float64 rounding, wide({.round_stores = false});
  const MuGraph narrow = fused_rms_norm(p, 4, 3, DType::kF16);
  const auto rounded = run(rounding, narrow, p, in);
  const auto exact = run(wide, narrow, p, in);
  const auto program = run(wide, p, in);
  double error = 0, none = 0;
  for (size_t i = 0; i < (*rounded)[0].values.size(); ++i) {
    error = std::max(error, std::fabs((*rounded)[0].values[i] - (*program)[0].values[i]));
    none = std::max(none, std::fabs((*exact)[0].values[i] - (*program)[0].values[i]));
  }
  EXPECT_LT(none, 1e-13);
  EXPECT_GT(error, 1e-6);
  EXPECT_LT(error, 1e-1);
}

TEST(InterpretTest, InputsOfAnotherShapeAreRefused) {
  const Program p = rms_norm(2, 4, 3);
  Float64 a;
  Inputs<double> in = random_inputs(p, 1);
  in[1].extents = {3, 4};
  EXPECT_FALSE(run(a, p, in).ok());
  in.pop_back();
  EXPECT_FALSE(run(a, p, in).ok());
}

TEST(InterpretTest, AnAlgebraThatGivesUpIsALimit) {
  const Program p = rms_norm(2, 4, 3);
  FieldImage field(1);
  (void)field.div(field.random(1), field.constant(Number(0)));
  const auto result = run(field, p, field_inputs(p, field));
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, ErrorCode::kLimit);
}

// Gives up once it has been told of so many elements, whether or not they took an operation.
struct Impatient : Float64 {
  uint64_t most = 0, seen = 0;
  void looked_at(uint64_t elements) { seen += elements; }
  std::optional<std::string> failure() const {
    return seen > most ? std::optional<std::string>("too slow") : std::nullopt;
  }
};

TEST(InterpretTest, AnAlgebraMayGiveUpInsideOfAStatement) {
  const Program p = *parse_program(
      "program p(n = 2000) { input x: f32[n] input y: f32[n] "
      "output o: f32[] = sum[n](x * y) }",
      "p.sd", {});
  // Nearly all of the tile lies outside of the tensors, and takes no operation.
  const MuGraph g = *parse_mugraph(
      "ugraph g of p { kernel k grid() warps(1) { "
      "split n = n.o(30) * n.i(2000) "
      "t[] = sum[n.o, n.i](x * y) : reg f32 store t -> o } }",
      "g.mu", p);
  const Inputs<double> in = random_inputs(p, 1);
  Impatient a;
  a.most = 1000;
  EXPECT_EQ(run(a, p, in).error().code, ErrorCode::kLimit);
  EXPECT_LE(a.seen, 4096u);
  a.seen = 0;
  a.most = 10000;
  EXPECT_EQ(run(a, g, p, in).error().code, ErrorCode::kLimit);
  EXPECT_LE(a.seen, 20000u);
  a.seen = 0;
  a.most = 100000;
  EXPECT_TRUE(run(a, g, p, in).ok());
  EXPECT_GE(a.seen, 60000u);
}

}  // namespace
}  // namespace sundog
