#include "search/term_text.h"

#include <gtest/gtest.h>

#include <set>

#include "search/make_bank.h"
#include "tests/search/programs.h"

namespace sundog::search {
namespace {

TEST(TermTextTest, TermsHaveNamesAxesAndNodes) {
  const Program program = load("gqa_safe", {{"b", 8}});
  const Machine machine = machine_of(*find_device("h200"));
  const MadeBank made = make_bank(program, {}, 1, {}, machine, [] { return false; });
  const auto texts = term_texts(*made.run.bank, made.run.table);
  ASSERT_EQ(texts.size(), made.terms);
  std::set<std::string> names, nodes;
  for (size_t r = 0; r < texts.size(); ++r) {
    EXPECT_TRUE(names.insert(texts[r].name).second) << "two terms named " << texts[r].name;
    EXPECT_EQ(texts[r].nodes.size(), made.run.table.terms[r].nodes.size());
    nodes.insert(texts[r].nodes.begin(), texts[r].nodes.end());
  }
  for (const char* name : {"Q", "K", "V", "s", "m", "p", "O"}) EXPECT_TRUE(names.contains(name));
  EXPECT_TRUE(nodes.contains("p * V") || nodes.contains("V * p"));
  EXPECT_TRUE(nodes.contains("max[k.i](s)"));
}

}  // namespace
}  // namespace sundog::search
