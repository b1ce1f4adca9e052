#include "search/trim_masked.h"

#include <gtest/gtest.h>

#include <string>

#include "core/field.h"
#include "core/interpret.h"
#include "core/resize.h"
#include "core/text.h"
#include "search/superoptimize.h"

namespace sundog::search {
namespace {

constexpr const char* kAttention = R"(
program attention(q = 4096, k = 4096, e = 16, f = 16) {
  input Q: f16[q, e]
  input K: f16[k, e]
  input V: f16[k, f]
  s[q, k] = select(%, sum[e](Q * K), -inf)
  p[q, k] = exp(s - max[k](s))
  o[q, f] = sum[k](p * V) / sum[k](p)
  output O: f16[q, f] = o
})";

Program attention(const std::string& condition) {
  std::string text = kAttention;
  text.replace(text.find('%'), 1, condition);
  Result<Program> p = parse_program(text, "attention.sd", {});
  EXPECT_TRUE(p.ok()) << (p.ok() ? "" : to_string(p.error()));
  return std::move(*p);
}

int trimmed_loops(const std::vector<Statement>& body) {
  int count = 0;
  for (const Statement& s : body) {
    const auto* loop = std::get_if<Loop>(&s.node);
    if (loop != nullptr) count += (loop->trim.empty() ? 0 : 1) + trimmed_loops(loop->body);
  }
  return count;
}

std::vector<FieldImage::Value> run(const Program& program, const MuGraph* graph) {
  FieldImage field(3);
  std::vector<TensorValues<FieldImage::Value>> inputs;
  for (const TensorDecl& t : program.inputs) {
    TensorValues<FieldImage::Value> values{t.extents, {}};
    for (int64_t i = 0; i < element_count(t); ++i) {
      values.values.push_back(field.random(static_cast<uint64_t>(i) * 8 + inputs.size()));
    }
    inputs.push_back(std::move(values));
  }
  const auto in = std::span<const TensorValues<FieldImage::Value>>(inputs);
  auto out =
      graph == nullptr ? interpret(field, program, in) : interpret(field, *graph, program, in);
  EXPECT_TRUE(out.ok()) << (out.ok() ? "" : to_string(out.error()));
  return out.ok() ? (*out)[0].values : std::vector<FieldImage::Value>{};
}

// At small sizes.
void expect_right(const Program& program, const MuGraph& graph) {
  const auto small = shrink(graph, program, ShrinkPolicy::kFewElements);
  ASSERT_TRUE(small.ok()) << to_string(small.error());
  EXPECT_EQ(run(small->program, &small->graph), run(small->program, nullptr))
      << print(graph, program);
}

SearchReport search(const Program& program) {
  SearchOptions options;
  options.max_states = 20000;
  auto report = superoptimize(program, *find_device("h200"), {}, options);
  EXPECT_TRUE(report.ok());
  return std::move(*report);
}

TEST(TrimMaskedTest, CausalLoopsStopAtTheirLastQuery) {
  const Program program = attention("k <= q");
  int trimmed = 0;
  for (const Candidate& c : search(program).candidates) {
    for (const Kernel& k : c.graph.kernels) trimmed += trimmed_loops(k.body);
    expect_right(program, c.graph);
  }
  EXPECT_GT(trimmed, 0);
}

TEST(TrimMaskedTest, NothingIsTrimmedByAnEquality) {
  const Program program = attention("k != q");
  for (const Candidate& c : search(program).candidates) {
    for (const Kernel& k : c.graph.kernels) EXPECT_EQ(trimmed_loops(k.body), 0);
    expect_right(program, c.graph);
  }
}

// A window has two masks, and skips what either leaves nothing of; a band of a matrix likewise.
TEST(TrimMaskedTest, WindowsSkipOnBothSides) {
  Kernel kernel;
  kernel.factors = {{"k.o", 1, 64, 64}, {"k.i", 1, 64, 1}, {"q.o", 0, 64, 64}, {"q.i", 0, 64, 1}};
  kernel.grid = {2};
  TermGraph& g = kernel.terms;
  const IndexExpr k = IndexExpr::of(0) * 64 + IndexExpr::of(1);
  const IndexExpr q = IndexExpr::of(2) * 64 + IndexExpr::of(3);
  const IndexCondition causal{k - q, Relation::kLessEqual};
  const IndexCondition near{q - k - IndexExpr::of_constant(1024), Relation::kLess};
  const TermId x = g.input(0, {q, k});
  for (const bool band : {false, true}) {
    Kernel masked = kernel;
    const TermId none = masked.terms.constant(band ? Number(0) : Number::infinity(true));
    const TermId inside = masked.terms.push(SelectTerm{near, x, none});
    const TermId s = masked.terms.push(SelectTerm{causal, inside, none});
    Computation c;
    c.name = "a";
    c.axes = {3};
    c.value = masked.terms.reduce(band ? ReduceKind::kSum : ReduceKind::kMax,
                                  AxisSet::of(0) | AxisSet::of(1), s);
    masked.computations.push_back(c);
    masked.body = {{Loop{0, 1, {}, {{Compute{0}}}}}};
    trim_masked(masked);
    const Loop& loop = std::get<Loop>(masked.body[0].node);
    ASSERT_EQ(loop.trim.size(), 2u);
    const IndexExpr tiles = IndexExpr::of(0) * 64 - IndexExpr::of(2) * 64;
    EXPECT_EQ(loop.trim[0].expr, tiles - IndexExpr::of_constant(63));
    EXPECT_EQ(loop.trim[1].expr, tiles * -1 - IndexExpr::of_constant(1024 + 63));
  }
}

// A sum of all elements beside the attention needs every iteration.
TEST(TrimMaskedTest, AnUnmaskedSumKeepsItsLoopWhole) {
  const Program program = attention("k <= q");
  Kernel kernel;
  kernel.factors = {{"k.o", 1, 5, 64}, {"k.i", 1, 64, 1}, {"q", 0, 40, 1}};
  TermGraph& g = kernel.terms;
  const TermId x = g.input(0, {IndexExpr::of(2), IndexExpr::of_constant(0)});
  const IndexCondition causal{IndexExpr::of(0) * 64 + IndexExpr::of(1) - IndexExpr::of(2),
                              Relation::kLessEqual};
  const TermId s = g.push(SelectTerm{causal, x, g.constant(Number::infinity(true))});
  const AxisSet over = AxisSet::of(0) | AxisSet::of(1);
  const auto add = [&](const char* name, TermId value) {
    Computation c;
    c.name = name;
    c.axes = {2};
    c.value = value;
    kernel.computations.push_back(c);
  };
  add("m", g.reduce(ReduceKind::kMax, over, s));
  kernel.body = {{Loop{0, 1, {}, {{Compute{0}}}}}};
  Kernel masked = kernel;
  trim_masked(masked);
  EXPECT_EQ(trimmed_loops(masked.body), 1);
  add("l", kernel.terms.reduce(ReduceKind::kSum, over, x));
  std::get<Loop>(kernel.body[0].node).body.push_back({Compute{1}});
  trim_masked(kernel);
  EXPECT_EQ(trimmed_loops(kernel.body), 0);
}

}  // namespace
}  // namespace sundog::search
