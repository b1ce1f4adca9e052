#include "verify/small_sizes.h"

#include <gtest/gtest.h>

#include "core/text.h"
#include "tests/verify/pairs.h"

namespace sundog::verify {
namespace {

constexpr const char* kMatrix = R"(
  program mm(m = 64, k = 128, n = 96) {
    input a: f32[m, k]
    input b: f32[k, n]
    c[m, n] = sum[k](a * b)
    output c: f32[m, n]
  })";

TEST(SmallSizes, AreSharedByNameOfTheTensorsNotOfTheAxes) {
  const Program other = parsed(R"(
    program mm(rows = 64, inner = 128, columns = 96) {
      input b: f32[inner, columns]
      input a: f32[rows, inner]
      c[rows, columns] = sum[inner](b * a)
      output c: f32[rows, columns]
    })");
  const Program program = parsed(kMatrix);
  const auto cases = small_cases(program, other);
  ASSERT_TRUE(cases.ok()) << to_string(cases.error());
  EXPECT_GE(cases->size(), 2u);
  for (const SmallCase& c : *cases) {
    const Program& theirs = std::get<Program>(c.candidate);
    EXPECT_TRUE(interface_mismatch(c.program, theirs).empty());
    EXPECT_LE(work(c.program), 1000);
    EXPECT_EQ(c.sizes, sizes_text(c.program));
    for (const Axis& axis : c.program.axes) EXPECT_GE(axis.extent, 2);
  }
  EXPECT_NE((*cases)[0].sizes, (*cases)[1].sizes);
}

TEST(SmallSizes, AnAxisFollowsTheFactorsOfTheOtherSide) {
  const std::string text = read_file(pairs_folder() / "qk_norm_wrong.differ.sd");
  const auto program = program_of(text);
  ASSERT_TRUE(program.ok());
  const auto wrong = parse_program(text, "wrong.sd", program_reference(text)->defines);
  ASSERT_TRUE(wrong.ok());
  const auto cases = small_cases(*program, *wrong);
  ASSERT_TRUE(cases.ok()) << to_string(cases.error());
  for (const SmallCase& c : *cases) {
    const Program& theirs = std::get<Program>(c.candidate);
    const auto extent = [](const Program& p, const char* axis) {
      return p.axes[*find_axis(p, axis)].extent;
    };
    EXPECT_EQ(extent(c.program, "q"), extent(theirs, "q.o") * extent(theirs, "q.i"));
    EXPECT_EQ(extent(theirs, "q.o"), extent(theirs, "e"));
  }
}

TEST(SmallSizes, OfAMuGraphKeepTilesOfTwoAndMore) {
  for (const std::string& file : pair_files({".equal.mu"})) {
    const std::string text = read_file(pairs_folder() / file);
    const auto program = program_of(text);
    const auto graph = parse_mugraph(text, file, *program);
    ASSERT_TRUE(graph.ok());
    const auto cases = small_cases(*program, *graph);
    ASSERT_TRUE(cases.ok()) << file;
    for (const SmallCase& c : *cases) {
      EXPECT_TRUE(check(std::get<MuGraph>(c.candidate), c.program).ok()) << file << " " << c.sizes;
    }
    const auto tiles = tile_case(*program, *graph, 1 << 21);
    ASSERT_TRUE(tiles.has_value()) << file;
    EXPECT_LE(work(tiles->program), 1 << 21);
  }
}

TEST(SmallSizes, WorkIsThatOfTheLargestTerm) { EXPECT_EQ(work(parsed(kMatrix)), 64.0 * 128 * 96); }

}  // namespace
}  // namespace sundog::verify
