#include "search/passes.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/search/programs.h"

namespace sundog::search {
namespace {

// Of a program that is one part.
int passes(const std::string& statements) {
  const Program program = parse("program p(n = 8, h = 64, d = 16) {\n" + statements + "\n}");
  std::vector<TermId> roots;
  for (const Output& o : program.outputs) roots.push_back(o.value);
  const auto reduces = [&](TermId t) {
    const TermId root[] = {t};
    for (TermId below : reachable(program.terms, root)) {
      if (std::holds_alternative<ReduceTerm>(program.terms[below])) return 0;
    }
    return -1;
  };
  return passes_of_parts(program, reachable(program.terms, roots), 1, reduces,
                         std::vector<int>(program.outputs.size(), 0))[0];
}

TEST(PassesTest, OnlyWhatASumHasToWaitForIsAPass) {
  const std::string x = "input x: f16[n, h]\n input w: f16[h, d]\n";
  EXPECT_EQ(passes(x + "output y: f32[n] = sum[h](x)"), 1);
  EXPECT_EQ(passes(x + "output y: f32[n] = logsumexp[h](x)"), 1);
  // The norm leaves the product; what is stored of it is another pass.
  EXPECT_EQ(passes(x + "output y: f32[n, d] = sum[h](x * rsqrt(mean[h](x * x) + 1) * w)"), 1);
  EXPECT_EQ(passes(x + "output y: f16[n, h] = x * rsqrt(mean[h](x * x) + 1)"), 2);
  EXPECT_EQ(passes(x + "output y: f32[n, d] = sum[h](softmax[h](x) * w)"), 1);
  // A variance waits for its mean, and so does a logarithm that is summed.
  EXPECT_EQ(passes(x + "output y: f32[n] = var[h](x)"), 2);
  EXPECT_EQ(passes(x + "l[n, h] = x - logsumexp[h](x)\n output y: f32[n] = sum[h](exp(l) * l)"), 2);
}

}  // namespace
}  // namespace sundog::search
