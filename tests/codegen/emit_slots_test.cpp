#include "codegen/emit_slots.h"

#include <gtest/gtest.h>

namespace sundog::codegen {
namespace {

constexpr AxisId kM = 0, kN = 1;

TEST(EmitSlots, RegisterIndexSplitsAndJoinsDigits) {
  // Eight atoms of eight columns, read in pairs: digit 2 j + h of the holder.
  const Layout holder{{{kN, 2, 1, Holder::kReg, 1}, {kN, 8, 8, Holder::kReg, 4}}};
  const std::vector<RegisterLoop> pairs = {{{kN, 2, 1, Holder::kReg, 1}, "v"},
                                           {{kN, 2, 8, Holder::kReg, 2}, "h"},
                                           {{kN, 4, 16, Holder::kReg, 4}, "j"}};
  EXPECT_EQ(register_index(holder, pairs).text(), "v + h * 4 + j * 8");
  // The other way round: one digit of the reader is two of the holder.
  const Layout split{{{kN, 2, 8, Holder::kReg, 1}, {kN, 4, 16, Holder::kReg, 2}}};
  EXPECT_EQ(register_index(split, {{{kN, 8, 8, Holder::kReg, 1}, "r"}}).text(),
            "(r % 2) + (r / 2) * 2");
}

TEST(EmitSlots, DigitsAreMixedRadix) {
  EXPECT_EQ(digit_text({kM, 8, 1, Holder::kLane, 4}, 4), "lane / 4");
  EXPECT_EQ(digit_text({kM, 4, 1, Holder::kLane, 1}, 4), "lane % 4");
  EXPECT_EQ(digit_text({kM, 2, 1, Holder::kWarp, 3}, 6), "warp / 3");
  EXPECT_EQ(digit_text({kM, 3, 1, Holder::kWarp, 1}, 6), "warp % 3");
}

TEST(EmitSlots, OneThreadOfTheReplicasIsPrimary) {
  EXPECT_EQ(join(primary_tests({{kM, 8, 1, Holder::kLane, 4}}, 1), " && "), "lane % 4 == 0");
  EXPECT_EQ(
      join(primary_tests({{kM, 4, 1, Holder::kLane, 1}, {kM, 2, 4, Holder::kWarp, 2}}, 8), " && "),
      "lane < 4 && warp % 2 == 0 && warp < 4");
  EXPECT_TRUE(primary_tests({{kM, 32, 1, Holder::kLane, 1}}, 1).empty());
}

TEST(EmitSlots, LoopsAndCoordinates) {
  Kernel kernel;
  kernel.warps = 1;
  kernel.factors = {{"m", 0, 16, 1}, {"n", 1, 5, 1}};
  const Layout layout{{{kM, 8, 1, Holder::kLane, 4},
                       {kM, 2, 8, Holder::kReg, 4},
                       {kN, 4, 1, Holder::kReg, 1},
                       {kN, 2, 4, Holder::kReg, 8}}};
  Writer out;
  const Slots slots(out, kernel, layout);
  EXPECT_EQ(slots.vector(), 4);
  EXPECT_EQ(slots.coordinates().at(kN).text(), "r1 * 4 + v");
  const auto tests = slots.edge_tests([&](AxisId f) { return kernel.factors[f].extent; },
                                      AxisSet::of(kM) | AxisSet::of(kN));
  EXPECT_EQ(join(tests, " && "), "r1 * 4 + v < 5");
  slots.for_each(
      out, {}, [&] { out.line("prepare;"); }, [&] { out.line("body;"); },
      [&] { out.line("after;"); });
  const std::string& text = out.text();
  EXPECT_LT(text.find("prepare;"), text.find("for (int v"));
  EXPECT_LT(text.find("body;"), text.find("after;"));
}

}  // namespace
}  // namespace sundog::codegen
