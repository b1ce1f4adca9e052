#include "search/range_class.h"

#include <gtest/gtest.h>

#include <string>

#include "core/text.h"
#include "search/import.h"
#include "search/rewrite.h"
#include "search/superoptimize.h"

namespace sundog::search {
namespace {

Program parse(const std::string& text) {
  Result<Program> p = parse_program(text, "test.sd", {});
  EXPECT_TRUE(p.ok()) << (p.ok() ? "" : to_string(p.error()));
  return std::move(*p);
}

RangeClass class_of(const std::string& body) {
  const Program program = parse("program p(n = 4, h = 300) { input X: f32[n, h] " + body + " }");
  Bank bank(program, {});
  const auto outputs = import_program(bank);
  EXPECT_TRUE(outputs.ok());
  return bank[(*outputs)[0]].range;
}

TEST(RangeClassTest, FormsOfOneTermDiffer) {
  const std::string safe = "p[n, h] = exp(X - max[h](X)) output O: f32[n, h] = p / sum[h](p)";
  const std::string unsafe = "p[n, h] = exp(X) output O: f32[n, h] = p / sum[h](p)";
  EXPECT_EQ(class_of(safe), 0);
  EXPECT_EQ(class_of(unsafe), kUnboundedExp);
  const std::string two = "c[n, h] = X - mean[h](X) output O: f32[n] = mean[h](c * c)";
  const std::string one = "m[n] = mean[h](X) output O: f32[n] = mean[h](X * X) - m * m";
  EXPECT_EQ(class_of(two), 0);
  EXPECT_EQ(class_of(one), kCancelling);
}

// What is taken off may be the greatest of several values, if the exponent is below one of them.
TEST(RangeClassTest, AMaximumOfSeveralBoundsAnExponent) {
  const auto exponent = [](const std::string& text) {
    return class_of("input s: f32[n] m[n] = max[h](X) output O: f32[n, h] = exp(" + text + ")");
  };
  EXPECT_EQ(exponent("X - max(m, s)"), 0);
  EXPECT_EQ(exponent("X - max(s, max(0, m))"), 0);
  EXPECT_EQ(exponent("0.5 * X - max(s, max[h](X * 0.5))"), 0);
  EXPECT_EQ(exponent("X - max(X, s)"), 0);
  EXPECT_EQ(exponent("X * 0 + s - max(m, s) + X"), kUnboundedExp);
  EXPECT_EQ(exponent("2 * X - max(m, s)"), kUnboundedExp);
  EXPECT_EQ(exponent("X - min(m, s)"), kUnboundedExp);
  EXPECT_EQ(exponent("max(m, s) - X"), kUnboundedExp);
}

// No class of the bank that an output of a two-pass variance can be computed from cancels.
TEST(RangeClassTest, ATwoPassVarianceStaysOne) {
  const Program program = parse(
      "program p(n = 4, h = 300) { input X: f32[n, h] c[n, h] = X - mean[h](X) "
      "output O: f32[n, h] = c * rsqrt(mean[h](c * c) + 1e-5) }");
  Bank bank(program, {});
  const auto outputs = import_program(bank);
  ASSERT_TRUE(outputs.ok());
  saturate(bank, {}, [] { return false; });
  std::vector<ClassId> reached = {(*outputs)[0]};
  for (size_t i = 0; i < reached.size(); ++i) {
    EXPECT_EQ(bank[reached[i]].range, 0) << bank[reached[i]].name;
    for (const Node& node : bank[reached[i]].nodes) {
      for (ClassId o : node.operands) {
        if (std::find(reached.begin(), reached.end(), o) == reached.end()) reached.push_back(o);
      }
    }
  }
  EXPECT_GT(reached.size(), 8U);
}

// The other way is open: attention without its maximum is offered with one.
TEST(RangeClassTest, AnUnsafeQuotientMayBeMadeSafe) {
  const Program program = parse(
      "program p(q = 256, k = 4096, e = 64, f = 64) { input Q: f16[q, e] input K: f16[k, e] "
      "input V: f16[k, f] p[q, k] = exp(sum[e](Q * K)) "
      "output O: f16[q, f] = sum[k](p * V) / sum[k](p) }");
  SearchOptions options;
  options.max_states = 50000;
  const auto report = superoptimize(program, *find_device("h200"), {}, options);
  ASSERT_TRUE(report.ok());
  bool maximum = false;
  for (const Kernel& k : report->candidates.front().graph.kernels) {
    for (const Computation& c : k.computations) {
      const auto* reduce = std::get_if<ReduceTerm>(&k.terms[c.value]);
      maximum = maximum || (reduce != nullptr && reduce->kind == ReduceKind::kMax);
    }
  }
  EXPECT_TRUE(maximum) << report->candidates.front().structure;
}

}  // namespace
}  // namespace sundog::search
