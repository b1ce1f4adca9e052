#include "search/as_written.h"

#include <gtest/gtest.h>

#include "core/check.h"
#include "search/superoptimize.h"
#include "tests/search/expect_right.h"
#include "tests/search/programs.h"

namespace sundog::search {
namespace {

std::optional<Candidate> written(const Program& program) {
  const Device device = *find_device("h200");
  return as_written(program, machine_of(device), device);
}

constexpr const char* kDivergence = R"(program kl(b = 6, v = 300) {
  input p: f32[b, v]
  input q: f32[b, v]
  lp[b, v] = p - max[v](p)
  lq[b, v] = q - max[v](q)
  P[b, v] = exp(lp) / sum[v](exp(lp))
  d[b] = sum[v](P * (lp - log(sum[v](exp(lp))) - lq + log(sum[v](exp(lq)))))
  output d: f32[b]
})";

TEST(AsWrittenTest, IsOneKernelThatComputesTheProgram) {
  for (const char* text :
       {kDivergence,
        "program p(n = 3, h = 70) {\n input x: f16[n, h]\n input g: f16[h]\n"
        " m[n] = mean[h](x)\n d[n, h] = x - m\n"
        " output m: f32[n]\n output y: f16[n, h] = d * rsqrt(mean[h](d * d) + 1e-5) * g\n}",
        // A broadcast output, an index, a select without reductions below it.
        "program p(n = 4, h = 33) {\n input x: f32[n, h]\n"
        " s[n] = sum[h](select(h < 20, x * index(h), 0))\n output y: f32[n, h] = s\n}"}) {
    const Program program = parse(text);
    const std::optional<Candidate> candidate = written(program);
    ASSERT_TRUE(candidate.has_value()) << text;
    ASSERT_EQ(candidate->graph.kernels.size(), 1u);
    EXPECT_FALSE(candidate->graph.kernels[0].grid.empty());
    EXPECT_TRUE(check(candidate->graph, program).ok());
    EXPECT_GT(candidate->predicted_us, 0);
    expect_right(program, candidate->graph);
  }
}

TEST(AsWrittenTest, IsNothingWhereNoBlockHoldsARow) {
  for (const char* text :
       {// No axis is free of reductions.
        "program p(n = 8, h = 16) {\n input x: f16[n, h]\n output y: f32[] = sum[n, h](x)\n}",
        // A row of 4 MB.
        "program p(n = 4, h = 1048576) {\n input x: f32[n, h]\n"
        " output y: f32[n, h] = x - mean[h](x)\n}",
        // What the select keeps in range would be read beyond it.
        "program p(n = 8, i = 6, a = 4, k = 8) {\n input x: f16[n, a, k]\n"
        " output y: f32[n, i] = select(i < 4, sum[k](x[n, i, k]), 0)\n}"}) {
    EXPECT_FALSE(written(parse(text)).has_value()) << text;
  }
}

// Where every other form is refused for its numbers, the program's own is left, and is found
// whatever the budget; the space switches it off.
TEST(AsWrittenTest, IsOfferedBehindOtherForms) {
  const Program program = parse(kDivergence);
  SearchOptions options;
  options.max_states = 500;
  options.top_k = 16;
  options.accept = [](const Candidate& c) { return c.kind == "as written"; };
  const auto offered = [&](bool as_written) {
    SearchSpace space;
    space.as_written = as_written;
    const auto report = superoptimize(program, *find_device("h200"), space, options);
    EXPECT_TRUE(report.ok());
    return report->candidates.front().kind;
  };
  EXPECT_EQ(offered(true), "as written");
  EXPECT_EQ(offered(false), "unfused");
}

}  // namespace
}  // namespace sundog::search
