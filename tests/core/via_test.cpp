#include "core/via.h"

#include <gtest/gtest.h>

#include "core/field.h"
#include "core/interpret.h"
#include "core/proto.h"
#include "core/resize.h"
#include "core/text.h"

namespace sundog {
namespace {

constexpr char kProgram[] =
    "program p(n = 6, h = 24, d = 10) {\n  input X: f32[n, h]\n  input W: f32[h, d]\n"
    "  output O: f32[n, d] = sum[h](X * W)\n}\n";

// A product cut along h; `join` is the header of the kernel that adds the parts, `body` its body.
std::string graph_text(const std::string& join, const std::string& body) {
  return "ugraph g of p {\n  kernel part grid(d.o, h.s, n.o) warps(2) {\n"
         "    split n = n.o(3) * n.i(2)\n    split h = h.s(4) * h.i(6)\n"
         "    split d = d.o(3) * d.i(4)\n    acc[n.i, d.i] = sum[h.i](X * W) : reg f32\n"
         "    store acc -> t : f32[h.s, n, d]\n  }\n  kernel join " +
         join + " {\n" + body + "  }\n}\n";
}
const std::string kBody =
    "    split n = n.o(3) * n.i(2)\n    split d = d.o(3) * d.i(4)\n"
    "    s[n.i, d.i] = sum[h.s](t) : reg f32\n    store s -> O\n";

Program program() { return *parse_program(kProgram, "p.sd", {}); }

Result<MuGraph> graph(const std::string& join, const std::string& body = kBody) {
  return parse_mugraph(graph_text(join, body), "g.mu", program());
}

// The message with which check() refuses it.
std::string refusal(const std::string& join, const std::string& body = kBody) {
  const Result<MuGraph> g = graph(join, body);
  if (!g.ok()) return to_string(g.error());
  const Status status = check(*g, program());
  return status.ok() ? "" : status.error().message;
}

TEST(Via, TextAndStoredFormKeepIt) {
  const Result<MuGraph> g = graph("grid(n.o, d.o) warps(2) via last_block");
  ASSERT_TRUE(g.ok()) << to_string(g.error());
  EXPECT_EQ(g->kernels[1].via, Via::kLastBlock);
  EXPECT_EQ(launch_count(*g), 1);
  const std::string text = print(*g, program());
  EXPECT_NE(text.find("kernel join grid(n.o, d.o) warps(2) via last_block {"), std::string::npos);
  EXPECT_EQ(*parse_mugraph(text, "g.mu", program()), *g);
  EXPECT_EQ(*parse_mugraph_proto(serialize(*g), program()), *g);
  EXPECT_EQ(graph("via kernel grid(n.o, d.o) warps(2)")->kernels[1].via, Via::kKernel);
  EXPECT_NE(refusal("grid(n.o, d.o) via nothing").find("known: kernel, last_block"),
            std::string::npos);
}

TEST(Via, GroupsAreTheGridOfTheJoiningKernel) {
  const Result<MuGraph> g = graph("grid(n.o, d.o) warps(2) via last_block");
  ASSERT_TRUE(check(*g, program()).ok()) << check(*g, program()).error().message;
  const Result<Arrival> arrival = arrival_of(*g, 1);
  ASSERT_TRUE(arrival.ok());
  const Kernel& part = g->kernels[0];
  EXPECT_EQ(arrival->group, (std::vector<AxisId>{part.grid[2], part.grid[0]}));
  EXPECT_EQ(arrival->arriving, std::vector<AxisId>{part.grid[1]});
  EXPECT_EQ(arrival->count, 4);
}

TEST(Via, RefusesWhatOtherBlocksWouldHaveToFinish) {
  const std::string via = "grid(n.o, d.o) warps(2) via last_block";
  EXPECT_EQ(refusal(via), "");
  EXPECT_NE(refusal("grid(n.o, d.o) warps(4) via last_block").find("it has 4 warps"),
            std::string::npos);
  // Tiles of other sizes; an axis of the grid that the first kernel does not cut.
  EXPECT_NE(refusal("grid(n.o, d.o) warps(2) via last_block",
                    "    split n = n.o(3) * n.i(2)\n    split d = d.o(5) * d.i(2)\n"
                    "    s[n.i, d.i] = sum[h.s](t) : reg f32\n    store s -> O\n")
                .find("'d.o' is no grid factor of 'part'"),
            std::string::npos);
  // Reads of another row than its own.
  EXPECT_NE(refusal(via,
                    "    split n = n.o(3) * n.i(2)\n    split d = d.o(3) * d.i(4)\n"
                    "    s[n.i, d.i] = sum[h.s](t[h.s, n - 1 - n.o * 2 - n.i, d]) : reg f32\n"
                    "    store s -> O\n")
                .find("reads what other blocks"),
            std::string::npos);
}

TEST(Via, TheFirstKernelHasNoBlocksBeforeIt) {
  const Result<MuGraph> g = parse_mugraph(
      "ugraph g of p {\n  kernel k grid(n) warps(1) via last_block {\n"
      "    s[d] = sum[h](X * W) : reg f32\n    store s -> O\n  }\n}\n",
      "g.mu", program());
  ASSERT_FALSE(g.ok());
  EXPECT_NE(g.error().message.find("is the first"), std::string::npos) << g.error().message;
}

// It means what a launch of its own means, and blocks run it one by one as groups fill up.
TEST(Via, MeansTheSameAsALaunchOfItsOwn) {
  const Program p = program();
  FieldImage field(7);
  std::vector<TensorValues<FieldImage::Value>> in;
  uint64_t key = 0;
  for (const TensorDecl& input : p.inputs) {
    TensorValues<FieldImage::Value> values{input.extents, {}};
    for (int64_t i = 0; i < element_count(input); ++i) values.values.push_back(field.random(key++));
    in.push_back(std::move(values));
  }
  const std::span<const TensorValues<FieldImage::Value>> inputs(in);
  const auto joined = interpret(field, *graph("grid(n.o, d.o) warps(2) via last_block"), p, inputs);
  const auto launched = interpret(field, *graph("grid(n.o, d.o) warps(2)"), p, inputs);
  ASSERT_TRUE(joined.ok() && launched.ok());
  EXPECT_EQ((*joined)[0].values, (*launched)[0].values);
  // Unchecked, a block that reads another group's parts finds them missing.
  MuGraph wrong = *graph("grid(n.o, d.o) warps(2)",
                         "    split n = n.o(3) * n.i(2)\n    split d = d.o(3) * d.i(4)\n"
                         "    s[n.i, d.i] = sum[h.s](t[h.s, n - 1 - n.o * 2 - n.i, d]) : reg f32\n"
                         "    store s -> O\n");
  ASSERT_TRUE(check(wrong, p).ok());
  wrong.kernels[1].via = Via::kLastBlock;
  EXPECT_FALSE(interpret(field, wrong, p, inputs).ok());
}

TEST(Via, OtherSizesKeepItWhereTheKernelsStillFit) {
  const MuGraph g = *graph("grid(n.o, d.o) warps(2) via last_block");
  for (ShrinkPolicy policy : {ShrinkPolicy::kFewElements, ShrinkPolicy::kKeepTiles}) {
    const Result<Shrunk> shrunk = shrink(g, program(), policy);
    ASSERT_TRUE(shrunk.ok());
    EXPECT_TRUE(check(shrunk->graph, shrunk->program).ok());
    EXPECT_EQ(shrunk->graph.kernels[1].via, Via::kLastBlock);
  }
}

}  // namespace
}  // namespace sundog
