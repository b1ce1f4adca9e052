#include "core/resize.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "core/float_algebra.h"
#include "core/resize_index.h"
#include "core/text.h"
#include "tests/core/examples.h"

namespace sundog {
namespace {

using namespace examples;

testing::AssertionResult agrees(const MuGraph& g, const Program& p) {
  if (Status s = check(g, p); !s.ok()) return testing::AssertionFailure() << s.error().message;
  Float64 a;
  const auto in = random_inputs(p, 1);
  const std::span<const TensorValues<double>> span(in);
  const auto expected = interpret(a, p, span), got = interpret(a, g, p, span);
  if (!expected.ok()) return testing::AssertionFailure() << expected.error().message;
  if (!got.ok()) return testing::AssertionFailure() << got.error().message;
  for (size_t i = 0; i < (*expected)[0].values.size(); ++i) {
    const double x = (*expected)[0].values[i], y = (*got)[0].values[i];
    if (!(std::fabs(x - y) <= 1e-11 * (1 + std::fabs(x)))) {
      return testing::AssertionFailure() << "element " << i << ": " << y << " for " << x;
    }
  }
  return testing::AssertionSuccess();
}

TEST(ResizeTest, AProgramAtOtherExtentsIsTheProgramWrittenSo) {
  EXPECT_EQ(with_extents(rms_norm(16, 4096, 6144), {2, 3, 5}), rms_norm(2, 3, 5));
  const Program p = attention(4, 6, 3);
  EXPECT_EQ(with_extents(p, extents(p)), p);
}

TEST(ResizeTest, FreeAxesGetDistinctPrimes) {
  EXPECT_EQ(small_extents(rms_norm(16, 4096, 6144)), (std::vector<int64_t>{2, 3, 5}));
  EXPECT_EQ(small_extents(rms_norm(1, 4096, 4)), (std::vector<int64_t>{1, 2, 3}));
  EXPECT_EQ(small_extents(rms_norm(16, 0, 6144), 4), (std::vector<int64_t>{5, 0, 7}));
}

// O[i, j] = sum[h](X[i, h] * X[j, h]): i and j index one dimension.
Program gram(int64_t i, int64_t j) {
  Program p;
  p.name = "gram";
  p.axes = {{"i", i}, {"h", 9}, {"j", j}};
  p.inputs = {tensor(p.axes, "X", {0, 1})};
  const TermId product = p.terms.apply(
      op::Mul{}, {p.terms.input(0, {at(0), at(1)}), p.terms.input(0, {at(2), at(1)})});
  p.outputs = {
      {tensor(p.axes, "O", {0, 2}), p.terms.reduce(ReduceKind::kSum, AxisSet::of(1), product)}};
  return p;
}

TEST(ResizeTest, AxesOfOneDimensionAreTied) {
  const AxisClasses tied = axis_classes(gram(12, 12));
  EXPECT_EQ(tied.class_of[0], tied.class_of[2]);
  EXPECT_NE(tied.class_of[0], tied.class_of[1]);
  EXPECT_EQ(small_extents(gram(12, 12)), (std::vector<int64_t>{2, 3, 2}));
  // A part of the rows: how it relates to the whole is not known, so both stay.
  EXPECT_EQ(small_extents(gram(12, 7)), (std::vector<int64_t>{12, 2, 7}));
}

TEST(ResizeTest, LiteralsPin) {
  Program p;
  p.name = "window";
  p.axes = {{"i", 20}, {"w", 4}, {"n", 23}, {"f", 50}};
  p.inputs = {tensor(p.axes, "x", {2, 3})};
  const TermId x = p.terms.input(0, {at(0) + at(1), at(3)});
  p.outputs = {{tensor(p.axes, "y", {0, 3}), p.terms.reduce(ReduceKind::kSum, AxisSet::of(1), x)}};
  ASSERT_TRUE(check(p).ok());
  EXPECT_EQ(small_extents(p), (std::vector<int64_t>{20, 4, 23, 2}));

  // Or all but the window follow: n = i + w - 1, for n = 2 * i + 3 read at 2 * i + w likewise.
  const AxisClasses windowed = axis_classes(p, LiteralPolicy::kFollow);
  EXPECT_EQ(windowed.pinned, (std::vector<uint8_t>{0, 1, 0, 0}));
  EXPECT_EQ(windowed.class_of[2], 0U);
  EXPECT_EQ(windowed.forms[2].at(5), 8);
  Program strided = p;
  strided.axes[2].extent = 43;
  strided.inputs = {tensor(strided.axes, "x", {2, 3})};
  strided.terms = TermGraph();
  const TermId far = strided.terms.input(0, {at(0) * 2 + at(1), at(3)});
  strided.outputs[0].value = strided.terms.reduce(ReduceKind::kSum, AxisSet::of(1), far);
  ASSERT_TRUE(check(strided).ok());
  const AxisClasses half = axis_classes(strided, LiteralPolicy::kFollow);
  EXPECT_EQ(half.forms[2], (AxisTies::Form{0, 2, 3}));
  const Program small = with_extents(strided, {5, 4, 13, 2});
  EXPECT_TRUE(check(small).ok());
  EXPECT_EQ(small.inputs[0].extents, (std::vector<int64_t>{13, 2}));

  Program reversed = p;
  reversed.axes = {{"i", 20}, {"f", 50}};
  reversed.inputs = {tensor(reversed.axes, "x", {0, 1})};
  reversed.terms = TermGraph();
  const IndexExpr back{-1, {{0, -1}}, {{0, 1}}};  // size(i) - 1 - i
  reversed.outputs = {{tensor(reversed.axes, "y", {0, 1}), reversed.terms.input(0, {back, at(1)})}};
  EXPECT_EQ(small_extents(reversed), (std::vector<int64_t>{2, 3}));
  Program constant = reversed;
  constant.terms = TermGraph();
  constant.outputs[0].value = constant.terms.input(0, {IndexExpr::of_constant(19) - at(0), at(1)});
  EXPECT_EQ(small_extents(constant), (std::vector<int64_t>{20, 2}));
}

TEST(ResizeTest, SplitDimensionsFollowTheirFactors) {
  Program p;
  p.name = "heads";
  p.parameters = {{"m", 24, "2 * 12"}, {"z", 3, ""}};
  p.axes = {{"m.o", 6}, {"m.i", 4}, {"k.o", 6}, {"k.i", 4}};
  p.splits = {{"m", 24, {0, 1}}};
  TensorDecl x;
  x.name = "x";
  x.dtype = DType::kF32;
  x.dims = {at(0) * 4 + at(1)};
  x.dim_names = {"m"};
  x.extents = {24};
  p.inputs = {x};
  const TermId a = p.terms.input(0, x.dims), b = p.terms.input(0, {at(2) * 4 + at(3)});
  TensorDecl y = x;
  y.name = "y";
  const TermId total = p.terms.reduce(ReduceKind::kSum, AxisSet(0b1100), b);
  p.outputs = {{y, p.terms.apply(op::Mul{}, {a, total})}};
  ASSERT_TRUE(check(p).ok()) << check(p).error().message;
  const AxisClasses classes = axis_classes(p);
  EXPECT_EQ(classes.class_of[0], classes.class_of[2]);
  EXPECT_EQ(classes.class_of[1], classes.class_of[3]);
  const Program q = with_extents(p, {2, 3, 2, 3});
  EXPECT_TRUE(check(q).ok());
  EXPECT_EQ(q.inputs[0].dims[0], at(0) * 3 + at(1));
  EXPECT_EQ(q.inputs[0].extents[0], 6);
  EXPECT_EQ(q.splits[0].extent, 6);
  EXPECT_EQ(q.parameters[0], (Parameter{"m", 6, ""}));
  EXPECT_EQ(q.parameters[1], (Parameter{"z", 3, ""}));
  EXPECT_EQ(with_extents(q, {6, 4, 6, 4}).terms, p.terms);
}

TEST(ResizeTest, GivenStridesKeepTheirOrder) {
  const std::vector<Axis> axes = {{"a", 8}, {"b", 4}, {"c", 5}};
  TensorDecl x = tensor(axes, "x", {0, 1, 2});
  x.strides = {1, 0, 16};  // column-major, padded, b broadcast
  const TensorDecl y = resized(x, {8, 4, 5}, {3, 2, 5});
  EXPECT_EQ(y.extents, (std::vector<int64_t>{3, 2, 5}));
  EXPECT_EQ(y.strides, (std::vector<int64_t>{1, 0, 3}));
  EXPECT_EQ(resized(x, {8, 4, 5}, {8, 4, 5}), x);
}

TEST(ResizeTest, AMuGraphAtOtherSizesIsTheOneBuiltThere) {
  const Program large = rms_norm(16, 4096, 6144), small = rms_norm(3, 13, 7);
  const MuGraph built = split_rms_norm(small, 2, 4, 3);
  const Result<MuGraph> moved = with_sizes(split_rms_norm(large, 4, 128, 48), sizes_of(built));
  ASSERT_TRUE(moved.ok());
  EXPECT_EQ(*moved, built);
  const Program q = attention(256, 4096, 64), r = attention(5, 7, 3);
  const MuGraph online = online_attention(r, 2, 3);
  const Result<MuGraph> smaller = with_sizes(online_attention(q, 64, 128), sizes_of(online));
  ASSERT_TRUE(smaller.ok());
  EXPECT_EQ(*smaller, online);
}

TEST(ResizeTest, ConstantsOfTrimsFollowTheTile) {
  const Program p = attention(256, 256, 64);
  MuGraph g = online_attention(p, 32, 64);
  Loop& loop = std::get<Loop>(g.kernels[0].body[0].node);
  // 64 k.o <= 32 q.o + 31
  loop.trim = {{at(2) * 64 - at(0) * 32 - IndexExpr::of_constant(31), Relation::kLessEqual}};
  MuSizes sizes = sizes_of(g);
  sizes.axes = {8, 8, 2};
  sizes.factors = {{4, 2, 2, 4, 2}};
  const Result<MuGraph> moved = with_sizes(g, sizes);
  ASSERT_TRUE(moved.ok());
  const auto& trim = std::get<Loop>(moved->kernels[0].body[0].node).trim[0];
  EXPECT_EQ(trim.expr, at(2) * 4 - at(0) * 2 - IndexExpr::of_constant(1));
  loop.trim[0].expr.constant = -17;
  EXPECT_FALSE(with_sizes(g, sizes).ok());
  EXPECT_TRUE(with_sizes(g, sizes_of(g)).ok());
}

bool ragged(const MuGraph& g, const Kernel& k, AxisId axis) {
  int64_t reach = 1;
  for (AxisId f : factors_of(k, axis)) reach *= k.factors[f].extent;
  return reach > g.axes[axis].extent;
}

// What shrinking promises, whatever the policy.
void expect_shrunk(const MuGraph& g, const Program& p, ShrinkPolicy policy) {
  ASSERT_TRUE(check(g, p).ok()) << check(g, p).error().message;
  const Result<Shrunk> small = shrink(g, p, policy);
  ASSERT_TRUE(small.ok()) << small.error().message;
  EXPECT_TRUE(check(small->program).ok());
  EXPECT_TRUE(agrees(small->graph, small->program));
  for (size_t k = 0; k < g.kernels.size(); ++k) {
    for (size_t f = 0; f < g.kernels[k].factors.size(); ++f) {
      const int64_t before = g.kernels[k].factors[f].extent;
      const int64_t after = small->graph.kernels[k].factors[f].extent;
      EXPECT_LE(after, std::max<int64_t>(before, 2));
      EXPECT_EQ(after >= 2, before >= 2) << g.kernels[k].factors[f].name;
    }
    for (AxisId a = 0; a < p.axes.size(); ++a) {
      EXPECT_EQ(ragged(g, g.kernels[k], a), ragged(small->graph, small->graph.kernels[k], a))
          << p.axes[a].name;
    }
  }
}

TEST(ResizeTest, ShrunkGraphsStillComputeTheProgram) {
  for (const ShrinkPolicy policy : {ShrinkPolicy::kFewElements, ShrinkPolicy::kKeepTiles}) {
    const Program p = rms_norm(6, 384, 96), q = rms_norm(6, 390, 100);
    expect_shrunk(fused_rms_norm(p, 32, 16), p, policy);
    expect_shrunk(fused_rms_norm(q, 32, 16), q, policy);
    expect_shrunk(split_rms_norm(p, 3, 32, 16), p, policy);
    expect_shrunk(split_rms_norm(q, 4, 32, 16), q, policy);
    const Program a = attention(48, 160, 8), b = attention(50, 170, 8);
    expect_shrunk(online_attention(a, 16, 32), a, policy);
    expect_shrunk(online_attention(b, 16, 32), b, policy);
  }
}

// Two kernels cut h into equally many parts of different lengths; the second stores its partial
// results along the axis of the first one's.
TEST(ResizeTest, KernelsThatShareAnAxisOfPartsKeepAsManyOfThem) {
  const Result<Program> p = parse_program(R"(program norm(n = 6, h = 128, d = 40) {
  input X: f32[n, h]
  input W: f32[h, d]
  y[n, d] = sum[h](X * rsqrt(mean[h](X * X) + 1) * W)
  output y: f32[n, d]
})",
                                          "norm.sd", {});
  ASSERT_TRUE(p.ok());
  const Result<MuGraph> g = parse_mugraph(R"(ugraph norm of norm {
  axis h.s = h.s of k0
  tensor p_r: f32[h.s, n]
  tensor p_t: f32[h.s, n, d]
  kernel k0 grid(n, h.s) warps(4) {
    split h = h.s * h.i(48)
    xs[h.i] = X : reg f32
    r[] = sum[h.i](xs * xs) : reg f32
    store r -> p_r
  }
  kernel k1 grid(h.p) warps(4) {
    split h = h.p * h.o(6) * h.i(8)
    p_rs[h.s, n] = p_r : reg f32
    q[n] = sum[h.s](p_rs) : reg f32
    s[n] = rsqrt(q / size(h) + 1) : reg f32
    loop h.o {
      xs[n, h.i] = X : reg f32
      ws[h.i, d] = W : reg f32
      t[n, d] = sum[h.o, h.i](xs * ws) : reg f32
    }
    u[n, d] = s * t : reg f32
    store u -> p_t[h.p, n, d]
  }
  kernel k2 grid(n) warps(4) {
    p_ts[h.s, d] = p_t : reg f32
    y[d] = sum[h.s](p_ts) : reg f32
    store y -> y
  }
})",
                                          "norm.mu", *p);
  ASSERT_TRUE(g.ok()) << to_string(g.error());
  EXPECT_TRUE(agrees(*g, *p));
  for (const ShrinkPolicy policy : {ShrinkPolicy::kFewElements, ShrinkPolicy::kKeepTiles}) {
    expect_shrunk(*g, *p, policy);
    const Result<Shrunk> small = shrink(*g, *p, policy);
    ASSERT_TRUE(small.ok());
    EXPECT_LT(small->program.axes[1].extent, 128);
    const auto outermost = [&](size_t k) {
      const Kernel& kernel = small->graph.kernels[k];
      return kernel.factors[factors_of(kernel, 1)[0]].extent;
    };
    EXPECT_GE(outermost(0), 2);
    EXPECT_EQ(outermost(0), outermost(1));
  }
}

TEST(ResizeTest, FewElementsAreFewAndDistinct) {
  const Program p = rms_norm(16, 4096, 6144);
  const Result<Shrunk> small = shrink(fused_rms_norm(p, 128, 48), p, ShrinkPolicy::kFewElements);
  ASSERT_TRUE(small.ok());
  const std::vector<int64_t> sizes = extents(small->program);
  EXPECT_EQ(std::set<int64_t>(sizes.begin(), sizes.end()).size(), 3u);
  for (int64_t extent : sizes) EXPECT_LE(extent, 8);
}

TEST(ResizeTest, KeptTilesKeepTheirExtentsAndRemainders) {
  const Program p = rms_norm(16, 4100, 6150);
  MuGraph g = fused_rms_norm(p, 128, 48);
  std::get<Loop>(g.kernels[0].body[0].node).stages = 4;
  const Result<Shrunk> small = shrink(g, p, ShrinkPolicy::kKeepTiles);
  ASSERT_TRUE(small.ok());
  const Kernel& k = small->graph.kernels[0];
  EXPECT_EQ(factor_extents(k), (std::vector<int64_t>{16, 5, 128, 2, 48}));
  EXPECT_EQ(small->program.axes[1].extent, 4 * 128 + 4100 % 128);
  EXPECT_EQ(small->program.axes[2].extent, 48 + 6150 % 48);
}

TEST(ResizeTest, AWrongUseOfAnExtentShowsAfterShrinking) {
  const Program p = rms_norm(8, 64, 64);  // h and d are equal
  MuGraph g = fused_rms_norm(p, 16, 16);
  Kernel& k = g.kernels[0];
  const TermId mean = k.terms.apply(op::Div{}, {local(k, 2), k.terms.size(2)});  // size(d)
  const TermId half = k.terms.constant(Number::ratio(1, 2));
  const TermId r = k.terms.apply(op::Rsqrt{}, {k.terms.apply(op::Add{}, {mean, half})});
  k.computations[4].value = k.terms.apply(op::Mul{}, {local(k, 3), r});
  EXPECT_TRUE(agrees(g, p));
  const Result<Shrunk> small = shrink(g, p, ShrinkPolicy::kFewElements);
  ASSERT_TRUE(small.ok());
  EXPECT_FALSE(agrees(small->graph, small->program));
}

}  // namespace
}  // namespace sundog
