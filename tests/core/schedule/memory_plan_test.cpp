#include "core/schedule/memory_plan.h"

#include <gtest/gtest.h>

#include "core/text.h"

namespace sundog {
namespace {

struct Planned {
  MuGraph graph;
  KernelPlan plan;
  const Kernel& kernel() const { return graph.kernels[0]; }
};

// A product whose operands are staged in shared memory, k.i at a time.
Planned product(int64_t inner, int stages) {
  const auto program = parse_program(
      "program p(n = 16, k = 8192, d = 64) { input x: f16[n, k] input w: f16[k, d] "
      "output y: f16[n, d] = sum[k](x * w) }",
      "p.sd");
  SUNDOG_CHECK(program.ok());
  auto graph = parse_mugraph(
      "ugraph u of p { kernel staged grid() warps(4) { split k = k.o * k.i(" +
          std::to_string(inner) + ") loop k.o stages(" + std::to_string(stages) + R"() {
          xs[n, k.i] = x : shared f16
          ws[k.i, d] = w : shared f16
          acc[n, d] = sum[k.o, k.i](xs * ws) : reg f32 mma(m16n8k16)
        } store acc -> y } })",
      "u.mu", *program);
  SUNDOG_CHECK(graph.ok());
  auto plan = plan_kernel(*graph, graph->kernels[0]);
  SUNDOG_CHECK(plan.ok());
  return {std::move(*graph), std::move(*plan)};
}

// One row of `width` elements, kept in the registers of one warp.
Planned row(int64_t width, int warps) {
  const auto program = parse_program("program p(n = " + std::to_string(width) +
                                         ") { input x: f32[n] output y: f32[n] = x / sum[n](x) }",
                                     "p.sd");
  SUNDOG_CHECK(program.ok());
  auto graph = parse_mugraph("ugraph u of p { kernel wide grid() warps(" + std::to_string(warps) +
                                 R"() {
        xs[n] = x : reg f32
        s[] = sum[n](xs) : reg f32
        o[n] = xs / s : reg f32
        store o -> y } })",
                             "u.mu", *program);
  SUNDOG_CHECK(graph.ok());
  auto plan = plan_kernel(*graph, graph->kernels[0]);
  SUNDOG_CHECK(plan.ok());
  return {std::move(*graph), std::move(*plan)};
}

// The refusal, which has to name the kernel and both numbers.
void expect_refused(const Status& status, const Planned& p, int64_t needed, int64_t available) {
  ASSERT_FALSE(status.ok());
  const Error& error = status.error();
  EXPECT_EQ(error.code, ErrorCode::kUnsupported);
  for (const std::string& part : {"'" + p.kernel().name + "'", " " + std::to_string(needed),
                                  " " + std::to_string(available)}) {
    EXPECT_NE(error.message.find(part), std::string::npos) << part << " in: " << error.message;
  }
  EXPECT_FALSE(error.hint.empty());
}

TEST(MemoryPlan, SmallTilesFitEveryDevice) {
  const Planned p = product(64, 2);
  EXPECT_GT(p.plan.shared_bytes, 0);
  for (const std::string& name : device_names()) {
    EXPECT_TRUE(can_launch(p.kernel(), p.plan, *find_device(name)).ok()) << name;
    EXPECT_TRUE(fits(p.kernel(), p.plan, *find_device(name)).ok()) << name;
  }
}

TEST(MemoryPlan, LargeTilesAreRefusedWithBothNumbers) {
  const Device device = *find_device("h200");
  const Planned p = product(512, 4);
  // Each of four stages has 512 columns of x (16 rows) and 512 rows of w (64 columns).
  EXPECT_GE(p.plan.shared_bytes, int64_t{4} * 512 * (16 + 64) * 2);
  expect_refused(can_launch(p.kernel(), p.plan, device), p, p.plan.shared_bytes,
                 device.shared_per_block);
  expect_refused(fits(p.kernel(), p.plan, device), p, p.plan.shared_bytes, device.shared_per_block);
}

TEST(MemoryPlan, StagesMultiplyWhatIsStaged) {
  const int64_t two = product(256, 2).plan.shared_bytes, three = product(256, 3).plan.shared_bytes;
  EXPECT_EQ(two, int64_t{2} * 256 * (16 + 64) * 2);
  EXPECT_EQ(three, int64_t{3} * 256 * (16 + 64) * 2);
}

TEST(MemoryPlan, TheLastByteCounts) {
  const Planned p = product(128, 2);
  Device device = *find_device("h200");
  device.shared_per_block = p.plan.shared_bytes;
  EXPECT_TRUE(fits(p.kernel(), p.plan, device).ok());
  --device.shared_per_block;
  expect_refused(fits(p.kernel(), p.plan, device), p, p.plan.shared_bytes, p.plan.shared_bytes - 1);
}

// What spills is slow but runs; what can hardly be compiled is not run at all.
TEST(MemoryPlan, RegistersAreBoundedTwice) {
  const Device device = *find_device("h200");
  const Planned fine = row(1024, 1), spills = row(32 * 512, 1), absurd = row(32 * 8192, 1);
  EXPECT_TRUE(fits(fine.kernel(), fine.plan, device).ok());
  EXPECT_GT(spills.plan.registers, 512);
  EXPECT_TRUE(can_launch(spills.kernel(), spills.plan, device).ok());
  expect_refused(fits(spills.kernel(), spills.plan, device), spills, spills.plan.registers,
                 kMaxRegisters);
  EXPECT_GT(absurd.plan.registers, 8192);
  expect_refused(can_launch(absurd.kernel(), absurd.plan, device), absurd, absurd.plan.registers,
                 kMostSpilled);
}

TEST(MemoryPlan, ABlocksRegistersAreThoseOfAllItsThreads) {
  const Planned p = row(4096, 4);
  Device device = *find_device("h200");
  const int64_t block = int64_t{p.plan.registers} * 4 * kLanes;
  device.registers_per_sm = block;
  EXPECT_TRUE(fits(p.kernel(), p.plan, device).ok());
  --device.registers_per_sm;
  EXPECT_TRUE(can_launch(p.kernel(), p.plan, device).ok());
  expect_refused(fits(p.kernel(), p.plan, device), p, block, block - 1);
}

// More elements than 24 bits count are refused before anything is planned.
TEST(MemoryPlan, TilesBeyondAnyDeviceAreNotPlanned) {
  const auto program = parse_program(
      "program p(n = 4097, m = 4096) { input x: f16[n, m] output y: f16[n, m] = 2 * x }", "p.sd");
  ASSERT_TRUE(program.ok());
  const auto graph = parse_mugraph(
      "ugraph u of p { kernel k0 grid() warps(1) { o[n, m] = 2 * x : reg f32 store o -> y } }",
      "u.mu", *program);
  ASSERT_TRUE(graph.ok()) << to_string(graph.error());
  const auto plan = plan_kernel(*graph, graph->kernels[0]);
  ASSERT_FALSE(plan.ok());
  EXPECT_EQ(plan.error().code, ErrorCode::kUnsupported);
  EXPECT_NE(plan.error().message.find("'o'"), std::string::npos);
}

// The tiles of a kernel that last blocks run take the place of the first one's, but not that of
// what counts the bytes of bulk copies; what stays in a cluster lies behind both.
TEST(MemoryPlan, AnArenaHoldsBothKernelsOfALaunch) {
  KernelPlan first, second;
  first.shared_bytes = 5000;
  second.shared_bytes = 3000;
  std::vector<ClusterTensor> kept;
  EXPECT_EQ(arena_of({first}, kept).bytes, 5000);
  EXPECT_EQ(arena_of({first, second}, kept).bytes, 5000);
  EXPECT_EQ(arena_of({first, second}, kept).joined_offset, 0);
  kept.resize(2);
  kept[0].elements = 100;
  kept[1].elements = 8;
  const int64_t all = arena_of({first, second}, kept).bytes;
  EXPECT_EQ(all, kept[1].offset + 32);
  EXPECT_GE(kept[0].offset, 5000);
  EXPECT_GE(kept[1].offset, kept[0].offset + 400);
  EXPECT_EQ(kept[0].offset % 128 + kept[1].offset % 128, 0);
  first.bulk_loops.emplace_back();
  kept.clear();
  EXPECT_EQ(arena_of({first, second}, kept).joined_offset, 5120);
  EXPECT_EQ(arena_of({first, second}, kept).bytes, 5120 + 3000);
}

}  // namespace
}  // namespace sundog
