#include "search/space_text.h"

#include <gtest/gtest.h>

#include "core/search.pb.h"
#include "search/rewrite.h"

namespace sundog::search {
namespace {

TEST(SpaceTextTest, EveryFieldIsPrintedAndReadBack) {
  SearchSpace space;
  space.online = false;
  space.most_kernels = 5;
  space.shortest_loop = 1 << 20;
  space.prune_dominated = false;
  const std::string text = print(space);
  const auto& fields = *proto::SearchSpace::descriptor();
  for (int i = 0; i < fields.field_count(); ++i) {
    EXPECT_NE(text.find(fields.field(i)->name() + ":"), std::string::npos)
        << fields.field(i)->name() << " has no row in the table of members";
  }
  const auto read = parse_space(text, "test");
  ASSERT_TRUE(read.ok()) << to_string(read.error());
  EXPECT_EQ(print(*read), text);
  EXPECT_FALSE(read->online);
  EXPECT_EQ(read->most_kernels, 5);
  EXPECT_EQ(read->shortest_loop, 1 << 20);
}

TEST(SpaceTextTest, EveryAxiomCanBeSwitchedOff) {
  for (const Axiom& axiom : axioms()) {
    SearchSpace off;
    off.*axiom.enabled = false;
    EXPECT_NE(print(off), print(SearchSpace{})) << axiom.name << " is no field of the message";
  }
}

TEST(SpaceTextTest, WhatIsNotNamedKeepsItsDefault) {
  const auto read = parse_space("# nothing but this\nmost_kernels: 1\n", "test");
  ASSERT_TRUE(read.ok());
  SearchSpace expected;
  expected.most_kernels = 1;
  EXPECT_EQ(print(*read), print(expected));
  EXPECT_TRUE(parse_space("", "test").ok());
}

TEST(SpaceTextTest, ComplaintsHaveAPlace) {
  const auto where = [](const std::string& text) {
    const auto read = parse_space(text, "my.space");
    EXPECT_FALSE(read.ok()) << text;
    if (read.ok() || !read.error().position) return std::string("nowhere");
    return read.error().position->file + ":" + std::to_string(read.error().position->line);
  };
  EXPECT_EQ(where("online: false\nmost_kernel: 2\n"), "my.space:2");
  EXPECT_EQ(where("\n\nmost_kernels: 0\n"), "my.space:3");
  EXPECT_EQ(where("most_kernels: 99"), "my.space:1");
  EXPECT_EQ(where("online: 7"), "my.space:1");
  EXPECT_EQ(where("online: true online: false"), "my.space:1");
  EXPECT_EQ(where("{"), "my.space:1");
}

}  // namespace
}  // namespace sundog::search
