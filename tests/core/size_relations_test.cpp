#include "core/size_relations.h"

#include <gtest/gtest.h>

#include <string>

#include "core/resize.h"
#include "core/text.h"

namespace sundog {
namespace {

Program parsed(const std::string& text) {
  Result<Program> p = parse_program(text, "program.sd");
  EXPECT_TRUE(p.ok()) << to_string(p.error());
  return *std::move(p);
}

// Sizes of a program by themselves: every class may have any extent from 2 on.
std::optional<SizeSystem::Choice> chosen(const Program& p, int64_t step = 1) {
  const AxisClasses classes = axis_classes(p, LiteralPolicy::kScale);
  const RelatedProgram related[] = {{p, size_forms(classes.forms)}};
  SizeSystem system(extents(p), related);
  for (AxisId a = 0; a < p.axes.size(); ++a) {
    if (classes.pinned[a] != 0 || classes.class_of[a] != a || !system.concerns(a)) continue;
    std::vector<int64_t> values;
    for (int64_t v = 2; v < p.axes[a].extent; ++v) values.push_back(v);
    system.allow(a, std::move(values));
  }
  auto choice = system.choose({}, step);
  if (!choice) return choice;
  EXPECT_TRUE(system.allows(choice->extents, choice->literals));
  for (AxisId a = 0; a < p.axes.size(); ++a) {
    choice->extents[a] = classes.forms[a].at(choice->extents[classes.class_of[a]]);
  }
  const Program small = with_extents(p, choice->extents, choice->literals);
  const Status status = check(small);
  EXPECT_TRUE(status.ok()) << to_string(status.error()) << print(small);
  return choice;
}

int64_t extent(const Program& p, const SizeSystem::Choice& choice, const char* axis) {
  return choice.extents[*find_axis(p, axis)];
}

std::string window(int64_t q, int64_t k, int64_t literal) {
  return "program window(q = " + std::to_string(q) + ", k = " + std::to_string(k) + R"() {
    input x: f32[q, k]
    output y: f32[q] = sum[k](select(q - k < )" +
         std::to_string(literal) + ", select(k <= q + " + std::to_string(2 * literal) +
         ", x, 0), 0)) }";
}

// Both conditions hold for some indices only, and not for the same ones.
TEST(SizeRelationsTest, ConditionsHoldAsOftenAsTheyDid) {
  const Program p = parsed(window(4096, 4096, 1024));
  const auto choice = chosen(p);
  ASSERT_TRUE(choice.has_value());
  const int64_t near = *choice->literals.moved(1024), far = *choice->literals.moved(2048);
  EXPECT_GE(near, 3);
  EXPECT_GT(far, near + 4) << "no neighbours, as before";
  EXPECT_GT(extent(p, *choice, "q"), far + 1) << "the second one holds for some k only";
  EXPECT_EQ(extent(p, *choice, "q"), extent(p, *choice, "k"));
  EXPECT_LE(extent(p, *choice, "q"), 16);
  const Program always = parsed(window(4096, 1500, 1024));  // k <= q + 2048 holds always
  const auto other = chosen(always);
  ASSERT_TRUE(other.has_value());
  EXPECT_GE(*other->literals.moved(2048), extent(always, *other, "k"));
}

TEST(SizeRelationsTest, LiteralsThatAreCloseKeepTheirDifference) {
  const Program p = parsed(R"(program p(q = 4096, k = 4096) {
    input x: f32[q, k]
    output y: f32[q] = sum[k](select(q - k < 1024, x, 0)) + sum[k](select(q - k <= 1023, x, 0)) })");
  const auto choice = chosen(p);
  ASSERT_TRUE(choice.has_value());
  EXPECT_EQ(*choice->literals.moved(1024), *choice->literals.moved(1023) + 1);
}

// 44 in `k <= q + 44` lets the last q see the last k; 45 in `k < q + 45` is the same.
TEST(SizeRelationsTest, LiteralsThatAlignEndsKeepAligningThem) {
  const Program p = parsed(R"(program p(q = 33, k = 77) {
    input x: f32[q, k]
    a[q] = sum[k](select(k <= q + 44, x, 0))
    b[q] = sum[k](select(k < q + 45, x, 0))
    c[q] = sum[k](select(q <= k - 30, x, 0))
    output y: f32[q] = a + b + c })");
  const auto choice = chosen(p);
  ASSERT_TRUE(choice.has_value());
  const int64_t apart = extent(p, *choice, "k") - extent(p, *choice, "q");
  EXPECT_EQ(choice->literals.moved(44), apart);
  EXPECT_EQ(choice->literals.moved(45), apart + 1);
  EXPECT_LT(*choice->literals.moved(30), apart);
}

// A cache and one new row: the new one stays one, and the literal is where the cache ends.
TEST(SizeRelationsTest, PiecesSumToTheWhole) {
  const Program one = parsed(R"(program p(k1 = 1023, k2 = 1, k = 1024) {
    input a: f16[k1]
    input b: f16[k2]
    output y: f16[k] = softmax[k](select(k < 1023, a[k], b[k - 1023])) })");
  const auto choice = chosen(one);
  ASSERT_TRUE(choice.has_value());
  EXPECT_EQ(extent(one, *choice, "k2"), 1);
  EXPECT_EQ(extent(one, *choice, "k"), extent(one, *choice, "k1") + 1);
  EXPECT_EQ(choice->literals.moved(1023), extent(one, *choice, "k1"));
  EXPECT_LE(extent(one, *choice, "k"), 8);
  const Program three = parsed(R"(program p(a1 = 100, a2 = 150, a3 = 60, k = 310) {
    input a: f16[a1]
    input b: f16[a2]
    input c: f16[a3]
    output y: f16[k] = select(k < 100, a[k], select(k < 250, b[k - 100], c[k - 250])) })");
  const auto parts = chosen(three);
  ASSERT_TRUE(parts.has_value());
  EXPECT_EQ(parts->literals.moved(100), extent(three, *parts, "a1"));
  EXPECT_EQ(*parts->literals.moved(250) - *parts->literals.moved(100), extent(three, *parts, "a2"));
  EXPECT_EQ(extent(three, *parts, "k") - *parts->literals.moved(250), extent(three, *parts, "a3"));
  EXPECT_LE(extent(three, *parts, "k"), 24);
}

// The same without a literal: sizes are in relation, too.
TEST(SizeRelationsTest, PiecesSumToTheWholeBySizesAlone) {
  const Program p = parsed(R"(program p(k1 = 1000, k2 = 24, k = 1024) {
    input a: f16[k1]
    input b: f16[k2]
    output y: f16[k] = select(k < size(k1), a[k], b[k - size(k1)]) })");
  const auto choice = chosen(p);
  ASSERT_TRUE(choice.has_value());
  EXPECT_FALSE(choice->literals.moves());
  EXPECT_EQ(extent(p, *choice, "k"), extent(p, *choice, "k1") + extent(p, *choice, "k2"));
  EXPECT_LE(extent(p, *choice, "k"), 16);
}

// New rows that see the cache and what is new up to themselves, behind rotated halves.
TEST(SizeRelationsTest, HalvesAndOffsetsMoveTogether) {
  const Program p = parsed(R"(program p(q = 16, h = 64, k1 = 240, k2 = 16, k = 256) {
    input x: f16[q, h]
    input a: f16[k1, h]
    input b: f16[k2, h]
    r[q, h] = select(h < 32, -x[q, h + 32], x[q, h - 32])
    s[q, k] = sum[h](r * select(k < 240, a[k, h], b[k - 240, h]))
    output y: f16[q] = sum[k](select(k <= q + 240, s, 0)) })");
  const auto choice = chosen(p);
  ASSERT_TRUE(choice.has_value());
  EXPECT_EQ(extent(p, *choice, "h"), 2 * *choice->literals.moved(32));
  EXPECT_EQ(extent(p, *choice, "k1"), *choice->literals.moved(240));
  EXPECT_EQ(extent(p, *choice, "k2"), extent(p, *choice, "q"));
  EXPECT_EQ(extent(p, *choice, "k"), extent(p, *choice, "k1") + extent(p, *choice, "k2"));
  EXPECT_NE(*choice->literals.moved(32), *choice->literals.moved(240));
}

TEST(SizeRelationsTest, ReversedReadsStayInBounds) {
  const Program p = parsed(R"(program p(n = 500, k = 300) {
    input x: f16[n]
    output y: f16[k] = select(k < 200, x[299 - k], x[k + 200]) })");
  const auto choice = chosen(p);
  ASSERT_TRUE(choice.has_value());
  const int64_t n = extent(p, *choice, "n"), k = extent(p, *choice, "k");
  const int64_t edge = *choice->literals.moved(200), last = *choice->literals.moved(299);
  EXPECT_LT(n, 64);
  EXPECT_GE(last - (edge - 1), 0);
  EXPECT_LT(last, n);
  EXPECT_EQ(k - 1 + edge, n - 1) << "the last element is read last, as before";
}

TEST(SizeRelationsTest, SplitAxesAreProducts) {
  const Program p = parsed(R"(program p(q = 1024, k = 1500) {
    split q = q.o * q.i(4)
    input x: f32[q, k]
    output y: f32[q.o, q.i] = sum[k](select(k <= q + 476, x, 0)) })");
  const auto choice = chosen(p);
  ASSERT_TRUE(choice.has_value());
  const int64_t rows = extent(p, *choice, "q.o") * extent(p, *choice, "q.i");
  EXPECT_EQ(extent(p, *choice, "k"), rows + *choice->literals.moved(476));
  EXPECT_LE(rows, 16);
}

// What a window reads beside its taps stays; so does a literal that is the shift of one.
TEST(SizeRelationsTest, LiteralsOfWindowsStay) {
  const Program p = parsed(R"(program p(n = 600, l = 300, t = 9, k = 300) {
    input x: f32[n]
    input z: f32[k]
    a[l] = sum[t](select(2 * l + t >= 8, x[2 * l + t - 8], 0))
    output y: f32[l] = a
    output s: f32[k] = select(k < 8, z, 0) })");
  const auto choice = chosen(p);
  ASSERT_TRUE(choice.has_value());
  EXPECT_EQ(choice->literals.moved(8), 8);
  EXPECT_GT(extent(p, *choice, "k"), 8);
  EXPECT_LT(extent(p, *choice, "k"), 16);
}

TEST(SizeRelationsTest, TheSmallestLiteralsStay) {
  const auto choice = chosen(parsed(window(4096, 4096, 2)));
  ASSERT_TRUE(choice.has_value());
  EXPECT_EQ(choice->literals.moved(2), 2);
}

// 4096 and 128 are whole tiles; so are what stands for them.
TEST(SizeRelationsTest, LiteralsMoveByWholeStepsWhereTheyCan) {
  const Program p = parsed(R"(program p(k1 = 4096, k2 = 100, k = 4196) {
    input a: f16[k1]
    input b: f16[k2]
    output y: f16[k] = select(k < 4096, a[k], b[k - 4096]) })");
  const auto choice = chosen(p, 64);
  ASSERT_TRUE(choice.has_value());
  EXPECT_EQ(*choice->literals.moved(4096) % 64, 0);
  EXPECT_LT(*choice->literals.moved(4096), 4096);
}

TEST(SizeRelationsTest, WhatNoLiteralIsIsNotMoved) {
  const Literals literals({{64, 2}, {1024, 7}});
  EXPECT_EQ(literals.moved(1023), 6);
  EXPECT_EQ(literals.moved(-1025), -8);
  EXPECT_EQ(literals.moved(-64), -2);
  EXPECT_EQ(literals.moved(1026), std::nullopt);
  EXPECT_EQ(Literals().moved(1026), 1026);
  EXPECT_EQ(literals.text(), "64 as 2, 1024 as 7");
  EXPECT_EQ(Literals({{64, 64}}).text(), "");
}

// Axes of one length that are compared stay so: with fewer k than q the last rows of a window have
// no element.
TEST(SizeRelationsTest, ComparedAxesOfOneLengthAreTied) {
  EXPECT_EQ(axis_classes(parsed(window(96, 96, 16)), LiteralPolicy::kScale).class_of[1], 0U);
  EXPECT_EQ(axis_classes(parsed(window(96, 97, 16)), LiteralPolicy::kScale).class_of[1], 1U);
}

// x[k] where k < 95 and something else behind it: k is one longer than x, whatever the size.
TEST(SizeRelationsTest, AnAxisLongerThanWhatItReadsStaysSo) {
  const Program p = parsed(R"(program joined(n = 95, k = 96) {
    input x: f32[n]
    input z: f32[]
    output y: f32[k] = select(k < 95, x[k], z) })");
  const auto choice = chosen(p);
  ASSERT_TRUE(choice.has_value());
  EXPECT_EQ(extent(p, *choice, "k"), extent(p, *choice, "n") + 1);
  const AxisClasses follow = axis_classes(p, LiteralPolicy::kKeepSizes);
  EXPECT_EQ(follow.class_of[1], follow.class_of[0]);
  EXPECT_EQ(follow.forms[1].at(5) - follow.forms[0].at(5), 1);
  EXPECT_EQ(axis_classes(p, LiteralPolicy::kPin).pinned, (std::vector<uint8_t>{1, 1}));
}

}  // namespace
}  // namespace sundog
