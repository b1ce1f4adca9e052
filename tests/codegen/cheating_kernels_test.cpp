// NOLINT(sundog-mirror): kernels that look fast because they do not do their work
//
// Each is compiled and run by the emulator against the same program as a right one; none may pass.
#include <gtest/gtest.h>

#include "codegen/launch_emulator.h"
#include "core/text.h"

namespace sundog::codegen {
namespace {

constexpr const char* kProgram = R"(
  program twice(n = 32, h = 32) {
    input x: f32[n, h]
    output y: f32[n, h] = x + x
  })";

// y of element `i` of thread tid in block `row`.
constexpr const char* kHead = R"(
extern "C" __global__ void k(const float* x, float* y, float* scratch) {
  const int tid = static_cast<int>(threadIdx.x), row = static_cast<int>(blockIdx.x);
  const int i = row * 32 + tid;
  (void)i; (void)scratch;
  float v;
  sd::load_global(v, x + i);
)";

std::string kernel(const std::string& body) {
  return "#include \"primitives.cuh\"\n" + std::string(kHead) + body + "}\n";
}

EmulatedRun run(const std::string& body) {
  const auto program = parse_program(kProgram, "test.sd");
  EXPECT_TRUE(program.ok());
  using Kind = PlanArgument::Kind;
  LaunchPlan plan;
  plan.inputs = {{"x", DType::kF32, 1024, 4096}};
  plan.outputs = {{"y", DType::kF32, 1024, 4096}};
  plan.workspace_bytes = 4096;
  plan.kernels = {{"k",
                   {32, 1, 1},
                   32,
                   0,
                   {{Kind::kInput, 0, 0}, {Kind::kOutput, 0, 0}, {Kind::kWorkspace, 0, 0}}}};
  const auto data = make_check_data(*program, Rounding::kWide, 1e9, 7);
  EXPECT_TRUE(data.ok());
  auto result = run_on_emulator(*program, plan, kernel(body), *data, 1e-6, {});
  if (!result.ok()) {
    ADD_FAILURE() << to_string(result.error());
    return {};
  }
  return std::move(*result);
}

TEST(CheatingKernels, TheRightOnePasses) {
  const EmulatedRun right = run("  sd::store_global(y + i, v + v);\n");
  EXPECT_TRUE(right.passed()) << right.failure();
}

TEST(CheatingKernels, NoneIsRight) {
  const std::pair<const char*, const char*> cheats[] = {
      {"empty", ""},
      {"the first row only", "  if (row == 0) sd::store_global(y + i, v + v);\n"},
      {"right once",
       "  float seen;\n  sd::load_global(seen, scratch + tid);\n"
       "  if (seen != 1.0f) sd::store_global(y + i, v + v);\n"
       "  sd::store_global(scratch + tid, 1.0f);\n"},
      {"NaN", "  sd::store_global(y + i, sd::bits_float(0x7fffffffu));\n"},
      {"inputs zeroed",
       "  sd::store_global(const_cast<float*>(x) + i, 0.0f);\n"
       "  sd::store_global(y + i, 0.0f);\n"},
      {"transposed", "  sd::store_global(y + tid * 32 + row, v + v);\n"},
      {"a constant", "  sd::store_global(y + i, 1.0f);\n"},
  };
  for (const auto& [what, body] : cheats) {
    const EmulatedRun cheat = run(body);
    EXPECT_FALSE(cheat.passed()) << what;
    EXPECT_FALSE(cheat.failure().empty()) << what;
  }
}

}  // namespace
}  // namespace sundog::codegen
