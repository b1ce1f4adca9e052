#include "verify/small_sizes.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/text.h"
#include "tests/verify/pairs.h"
#include "verify/interface.h"

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

// A row of some hundred elements has a denominator of as many terms: seconds, where small rows say
// the same.
TEST(SmallSizes, AreNotTheOriginalOnesWithoutNeed) {
  const Program program = parsed(R"(
    program rows(n = 7, k = 509) {
      input x: f16[n, k]
      y[n, k] = softmax[k](x)
      output y: f16[n, k]
    })");
  const auto graph = parse_mugraph(R"(
    ugraph g of rows {
      kernel k0 grid(n) warps(2) {
        xs[k] = x : reg f16
        m[] = max[k](xs) : reg f32
        p[k] = exp(xs - m) : reg f32
        l[] = sum[k](p) : reg f32
        o[k] = p / l : reg f32
        store o -> y
      }
    })",
                                   "g.mu", program);
  ASSERT_TRUE(graph.ok()) << to_string(graph.error());
  const auto cases = small_cases(program, *graph);
  ASSERT_TRUE(cases.ok()) << to_string(cases.error());
  EXPECT_GE(cases->size(), 2u);
  for (const SmallCase& c : *cases) EXPECT_LE(work(c.program), 128) << c.sizes;
}

// Too large as it is: the window moves, in the µGraph's masks and trims as well.
TEST(SmallSizes, MoveLiteralsWhereTheseKeepItTooLarge) {
  const std::string text = read_file(traps_folder() / "sliding_tiles.equal.mu");
  const auto program = program_of(text, traps_folder());
  ASSERT_TRUE(program.ok());
  const auto graph = parse_mugraph(text, "sliding.mu", *program);
  ASSERT_TRUE(graph.ok()) << to_string(graph.error());
  const auto cases = small_cases(*program, *graph);
  ASSERT_TRUE(cases.ok()) << to_string(cases.error());
  EXPECT_GE(cases->size(), 2u);
  for (const SmallCase& c : *cases) {
    EXPECT_TRUE(c.literals_moved);
    EXPECT_NE(c.sizes.find("(1024 as "), std::string::npos) << c.sizes;
    EXPECT_LE(work(c.program), 2000) << c.sizes;
    EXPECT_TRUE(check(std::get<MuGraph>(c.candidate), c.program).ok());
  }
  const auto tiles = tile_case(*program, *graph, 1 << 21);
  ASSERT_TRUE(tiles.has_value());
  EXPECT_TRUE(tiles->literals_moved);
  const Kernel& kernel = std::get<MuGraph>(tiles->candidate).kernels[0];
  for (const Factor& factor : kernel.factors) {
    if (!factor.name.ends_with(".i")) continue;
    EXPECT_EQ(factor.extent, 64) << factor.name;
  }
}

// A cache and what is new, side by side: the axis over both stays one longer than the cache.
TEST(SmallSizes, MoveTheLiteralsOfConcatenations) {
  const Program program = parsed(R"(
    program decode(a = 64, b = 511, c = 128, f = 4, g = 512) {
      input past: bf16[a, b, c]
      input fresh: bf16[a, c]
      input x: bf16[a, f, c]
      keys[a, g, c] = select(g < 511, past[a, g, c], fresh)
      s[a, f, g] = sum[c](x * keys)
      w[a, f, g] = exp(s - max[g](s))
      output all: bf16[a, g, c] = keys
      output y: bf16[a, f, c] = sum[g](w / sum[g](w) * keys)
    })");
  const auto cases = small_cases(program, program);
  ASSERT_TRUE(cases.ok()) << to_string(cases.error());
  ASSERT_FALSE(cases->empty());
  for (const SmallCase& c : *cases) {
    EXPECT_TRUE(c.literals_moved);
    EXPECT_LE(work(c.program), 4096) << c.sizes;
    EXPECT_EQ(c.program.axes[4].extent, c.program.axes[1].extent + 1) << c.sizes;
  }
}

// As is: a denominator of 1024 exponentials takes a minute, and the sizes that say the same are
// few.
TEST(SmallSizes, MoveLiteralsWhereADenominatorIsLarge) {
  const auto joined = [](const char* value) {
    return parsed(std::string(R"(
      program t(k1 = 1023, k2 = 1, k = 1024) {
        input a: f16[k1]
        input b: f16[k2]
        c[k] = select(k < 1023, a[k], b[k - 1023])
        output y: f16[k] = )") +
                  value + " }");
  };
  const Program softmax = joined("softmax[k](c)"), largest = joined("c - max[k](c)");
  const auto moved = small_cases(softmax, softmax), kept = small_cases(largest, largest);
  ASSERT_TRUE(moved.ok() && kept.ok());
  EXPECT_EQ(moved->size(), 2u);
  for (const SmallCase& c : *moved) {
    const auto extent = [&](const char* axis) {
      return c.program.axes[*find_axis(c.program, axis)].extent;
    };
    EXPECT_TRUE(c.literals_moved);
    EXPECT_EQ(extent("k2"), 1);
    EXPECT_EQ(extent("k"), extent("k1") + 1);
    EXPECT_LE(extent("k"), 16);
  }
  for (const SmallCase& c : *kept) EXPECT_FALSE(c.literals_moved) << "an exact test is cheap";
}

// What a literal pins is compared as it is, where that can be done.
TEST(SmallSizes, AreTheOriginalOnesWhereALiteralAsksForThem) {
  const Program program = parsed(R"(
    program window(q = 40, k = 40) {
      input x: f16[q, k]
      y[q] = sum[k](select(k <= q + 3, x, 0))
      output y: f16[q]
    })");
  const auto graph = parse_mugraph(R"(
    ugraph g of window {
      kernel k0 grid(q) warps(1) {
        xs[k] = x : reg f16
        s[] = sum[k](select(k <= q + 3, xs, 0)) : reg f32
        store s -> y
      }
    })",
                                   "g.mu", program);
  ASSERT_TRUE(graph.ok()) << to_string(graph.error());
  const auto cases = small_cases(program, *graph);
  ASSERT_TRUE(cases.ok()) << to_string(cases.error());
  EXPECT_TRUE(std::any_of(cases->begin(), cases->end(),
                          [](const SmallCase& c) { return c.sizes == "q=40 k=40"; }));
}

TEST(SmallSizes, AreRefusedWhereLiteralsKeepThemLarge) {
  const char* text = R"(
    program window(q = 2000, k = 2000) {
      input x: f16[q, k]
      y[q] = sum[k](select(2 * k <= q + 1000, x, 0))
      output y: f16[q]
    })";
  const auto cases = small_cases(parsed(text), parsed(text));
  ASSERT_FALSE(cases.ok());
  EXPECT_NE(cases.error().message.find("q=2000 k=2000"), std::string::npos)
      << cases.error().message;
}

// With fewer k than q the last rows of this window have no element, and a softmax of them no value.
TEST(SmallSizes, AreSizesAtWhichTheProgramIsDefined) {
  for (const char* literals : {"w = 37", "w = 1"}) {
    const Program program =
        parsed(std::string("program window(q = 300, k = q, ") + literals + R"() {
      input x: f32[q, k]
      output y: f32[q, k] = softmax[k](select(k <= q, select(k > q - w, x, -inf), -inf)) })");
    const auto cases = small_cases(program, program);
    ASSERT_TRUE(cases.ok()) << to_string(cases.error());
    for (const SmallCase& c : *cases) {
      EXPECT_LT(work(c.program), 4096);
      EXPECT_GE(c.program.axes[1].extent, c.program.axes[0].extent) << c.sizes;
    }
  }
}

TEST(SmallSizes, KeepSizesThatAreValuesWhereThatIsAskedFor) {
  const Program mean =
      parsed("program p(n = 30, h = 64) { input x: f32[n, h]\n output y: f32[n] = mean[h](x) }");
  const Program literal = parsed(
      "program p(n = 30, h = 64) { input x: f32[n, h]\n output y: f32[n] = sum[h](x) / 64 }");
  const auto cases = cases_with_declared_sizes(mean, literal);
  ASSERT_FALSE(cases.empty());
  for (const SmallCase& c : cases) {
    EXPECT_EQ(c.program.axes[1].extent, 64);
    EXPECT_LT(c.program.axes[0].extent, 30);
  }
}

TEST(SmallSizes, WorkIsThatOfTheLargestTerm) { EXPECT_EQ(work(parsed(kMatrix)), 64.0 * 128 * 96); }

}  // namespace
}  // namespace sundog::verify
