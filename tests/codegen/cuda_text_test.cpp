#include "codegen/cuda_text.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace sundog::codegen {
namespace {

TEST(WriterTest, FreshNamesAreNobodyElses) {
  Writer out;
  out.reserve({"t0", "t2"});
  std::set<std::string> seen{"t0", "t2"};
  for (int i = 0; i < 8; ++i) EXPECT_TRUE(seen.insert(out.fresh("t")).second);
}

TEST(WriterTest, RewindingTakesBackTextAndNames) {
  Writer out;
  out.line("int a = 0;");
  const auto mark = out.mark();
  const std::string first = out.fresh("x");
  out.line("int b = 0;");
  out.rewind(mark);
  EXPECT_EQ(out.text(), "int a = 0;\n");
  EXPECT_EQ(out.fresh("x"), first);
}

}  // namespace
}  // namespace sundog::codegen
