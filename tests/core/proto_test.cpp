#include "core/proto.h"

#include <gtest/gtest.h>

#include <random>

#include "core/text.h"

namespace sundog {
namespace {

Program program() {
  auto result = parse_program(
      "program p(b = 2, n = 2 * b, m = 6, q = 8) {\n"
      "  split q = q.o * q.i(4)\n"
      "  input x: f16[n, m] stride(8, 1) offset 3 align 32 in [-1, inf]\n"
      "  input y: bf16[q, m]\n"
      "  s[n] = max[m](select(m < 3, x, x * ratio(1, 3)))\n"
      "  t[m] = sum[q](select(y > 0, clamp(y, -1, 2), -inf) + cast(y, f16) * index(m - 1))\n"
      "  output o: f32[n, m] = s / size(n) + t[m]\n"
      "  output r: f16[q] = mean[m](y)\n"
      "}\n",
      "t.sd");
  EXPECT_TRUE(result.ok()) << to_string(result.error());
  return *result;
}

Program small() {
  return *parse_program(
      "program p(n = 4, m = 6) { input x: f16[n, m] output o: f32[n] = sum[m](x) }", "t.sd");
}

MuGraph graph() {
  auto result = parse_mugraph(
      "ugraph g of p {\n"
      "  kernel a grid(n.o, m.s) warps(2) {\n"
      "    split n = n.o * n.i(2) split m = m.s(2) * m.o * m.i(2)\n"
      "    loop m.o stages(3) bulk trim(m.s + m.o < 3) {\n"
      "      t[n.i, m.i] = x : shared f16 warps(n.i/2)\n"
      "      y[n.i] = sum[m.o, m.i](t) : reg f32\n"
      "      z[n.i] = sum[m.o, m.i](t * select(m < 2, t, 1)) : reg f32 into y\n"
      "    }\n"
      "    store y -> parts : f32\n"
      "  }\n"
      "  kernel b grid(n) warps(1) { all[] = sum[m.s](parts) : reg f32 store all -> o }\n"
      "}\n",
      "t.mu", small());
  EXPECT_TRUE(result.ok()) << to_string(result.error());
  return *result;
}

void change(Number& number) { number = *Number::parse("0.125"); }
void change(DType& dtype) { dtype = DType::kBF16; }

TEST(Proto, ProgramsComeBack) {
  const Program original = program();
  const auto again = parse_program_proto(serialize(original));
  ASSERT_TRUE(again.ok()) << to_string(again.error());
  EXPECT_EQ(*again, original);
  EXPECT_EQ(again->definitions[0].position, original.definitions[0].position);
  EXPECT_EQ(serialize(*again), serialize(original));
}

TEST(Proto, MuGraphsComeBack) {
  const MuGraph original = graph();
  const auto again = parse_mugraph_proto(serialize(original), small());
  ASSERT_TRUE(again.ok()) << to_string(again.error());
  EXPECT_EQ(*again, original);
  EXPECT_EQ(serialize(*again), serialize(original));
}

// Every operator, with attributes that are not the defaults, through the generic path.
TEST(Proto, EveryOperatorComesBack) {
  Program original = small();
  const TermId x = original.terms.input(0, original.inputs[0].dims);
  TermId all = x;
  for_each_op([&]<class O>() {
    O op;
    std::apply([](auto&... attribute) { (change(attribute), ...); }, op.attributes());
    std::vector<TermId> operands(static_cast<size_t>(O::arity), all);
    all = original.terms.apply(op, operands);
  });
  original.outputs[0].value = original.terms.reduce(ReduceKind::kSum, AxisSet::of(1), all);
  original = renumbered(original);
  const auto stored = parse_program_proto(serialize(original));
  ASSERT_TRUE(stored.ok()) << to_string(stored.error());
  EXPECT_EQ(*stored, original);
  const auto text = parse_program(print(original), "t.sd");
  ASSERT_TRUE(text.ok()) << to_string(text.error()) << print(original);
  EXPECT_EQ(*text, original) << print(original);
}

TEST(Proto, AMuGraphOfAnotherProgramIsRefused) {
  const auto other = parse_program(
      "program p(n = 4, m = 7) { input x: f16[n, m] output o: f32[n] = sum[m](x) }", "t.sd");
  EXPECT_FALSE(parse_mugraph_proto(serialize(graph()), *other).ok());
}

TEST(Proto, TruncatedBytesAreRefused) {
  const std::string bytes = serialize(program());
  for (size_t length = 0; length < bytes.size(); ++length) {
    const auto result = parse_program_proto(std::string_view(bytes).substr(0, length));
    if (result.ok()) {
      EXPECT_NE(serialize(*result), bytes) << length;
    }
  }
  EXPECT_FALSE(parse_program_proto("").ok());
  EXPECT_FALSE(parse_program_proto("program p(n = 4) {").ok());
}

// Whatever bytes are accepted satisfy check(), print, and read back.
TEST(Proto, DamagedProgramsAreReadOrRefused) {
  std::mt19937 random(3);
  const std::string original = serialize(program());
  int accepted = 0, refused = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::string bytes = original;
    for (unsigned edits = 1 + random() % 3; edits > 0; --edits) {
      bytes[random() % bytes.size()] =
          static_cast<char>(random() % 4 == 0 ? random() : random() % 16);
    }
    const auto result = parse_program_proto(bytes);
    ++(result.ok() ? accepted : refused);
    if (!result.ok()) continue;
    EXPECT_TRUE(check(*result).ok());
    EXPECT_FALSE(print(*result).empty());
    EXPECT_EQ(*parse_program_proto(serialize(*result)), *result);
  }
  EXPECT_GT(accepted, 100);
  EXPECT_GT(refused, 100);
}

TEST(Proto, DamagedMuGraphsAreReadOrRefused) {
  std::mt19937 random(4);
  const std::string original = serialize(graph());
  const Program of = small();
  int accepted = 0, refused = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::string bytes = original;
    for (unsigned edits = 1 + random() % 3; edits > 0; --edits) {
      bytes[random() % bytes.size()] =
          static_cast<char>(random() % 4 == 0 ? random() : random() % 16);
    }
    const auto result = parse_mugraph_proto(bytes, of);
    ++(result.ok() ? accepted : refused);
    if (!result.ok()) continue;
    EXPECT_TRUE(check(*result, of).ok());
    EXPECT_FALSE(print(*result, of).empty());
    EXPECT_EQ(*parse_mugraph_proto(serialize(*result), of), *result);
  }
  EXPECT_GT(accepted, 100);
  EXPECT_GT(refused, 100);
}

}  // namespace
}  // namespace sundog
