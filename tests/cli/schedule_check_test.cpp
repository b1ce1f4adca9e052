#include "cli/schedule_check.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "core/text.h"
#include "tests/cli/tool_runner.h"

namespace sundog::cli {
namespace {

std::string source(const std::string& path) { return std::string(SUNDOG_SOURCE_DIR) + "/" + path; }

std::string content(const std::string& path) {
  std::ifstream in(path);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

// A split reduction: a ring of copies, parts joined over warps, a second kernel.
TEST(ScheduleCheck, EmittedKernelsAreSafeAndWithoutABarrierAreNot) {
  const std::string path = source("tests/programs/rms_norm_split_k.equal.mu");
  const std::string text = content(path);
  const auto reference = program_reference(text);
  const std::string sd = source("benchmarks/programs/rms_norm.sd");
  const auto program = parse_program(content(sd), sd, reference->defines);
  ASSERT_TRUE(program.ok());
  const auto graph = parse_mugraph(text, path, *program);
  const auto device = find_device("h200");
  ASSERT_TRUE(graph.ok() && device.ok());
  auto generated = codegen::generate(*graph, *program, *device, {});
  ASSERT_TRUE(generated.ok());
  const verify::Safety safety = check_schedule(*graph, *generated, 60);
  EXPECT_TRUE(safety.safe()) << verify::to_string(safety);
  const std::string barrier = "sd::sync_threads();";
  const size_t at = generated->cuda.find(barrier, generated->cuda.find("extern \"C\" __global__"));
  ASSERT_NE(at, std::string::npos);
  generated->cuda.erase(at, barrier.size());
  const verify::Safety broken = check_schedule(*graph, *generated, 60);
  EXPECT_FALSE(broken.faults.empty()) << verify::to_string(broken);
}

TEST(ScheduleCheck, VerifySaysWhatIsProved) {
  const auto proved = run_tool({"verify", source("benchmarks/programs/rms_norm.sd"),
                                source("tests/programs/rms_norm_split_k.equal.mu"), "--prove"});
  EXPECT_EQ(proved.code, 0);
  EXPECT_NE(proved.out.find("proved for all sizes of n, h, d"), std::string::npos) << proved.out;
  EXPECT_NE(proved.out.find("absences of races shown"), std::string::npos) << proved.out;
  const auto refuted =
      run_tool({"verify", source("benchmarks/programs/rms_norm.sd"),
                source("tests/programs/rms_norm_lost_part.differ.mu"), "--prove", "--json"});
  EXPECT_EQ(refuted.code, 1);
  EXPECT_NE(refuted.out.find("\"proof\": \"refuted: "), std::string::npos) << refuted.out;
}

}  // namespace
}  // namespace sundog::cli
