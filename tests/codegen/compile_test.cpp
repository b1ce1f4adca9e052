#include "codegen/compile.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>

#include "codegen/embedded.h"
#include "codegen/nvrtc.h"
#include "core/process_wire.h"

namespace sundog::codegen {
namespace {

// Two kernels; the second keeps an array with a computed index, which must live in local memory.
const char kSource[] = R"(
#include <cuda_fp16.h>
extern "C" __global__ void plain(float* out) { out[threadIdx.x] = 1; }
extern "C" __global__ void indexed(const __half* in, float* out, int n) {
  __shared__ float kept[128];
  float local[64];
  kept[threadIdx.x] = __half2float(in[threadIdx.x]);
  __syncthreads();
  for (int i = 0; i < 64; ++i) local[(i * n) % 64] = kept[i];
  out[threadIdx.x] = local[n];
}
)";

const KernelResources& find(const CompiledModule& module, const std::string& name) {
  const auto found = std::find_if(module.kernels.begin(), module.kernels.end(),
                                  [&](const KernelResources& k) { return k.name == name; });
  SUNDOG_CHECK(found != module.kernels.end());
  return *found;
}

class Compile : public testing::TestWithParam<Compiler> {
 protected:
  // A machine without this compiler cannot run the test; every other failure is one.
  Result<CompiledModule> compiled(const std::string& source, const std::string& arch = "sm_90a") {
    return compile(source, arch, {.compiler = GetParam()});
  }
};

TEST_P(Compile, GivesMachineCodeAndResources) {
  const Result<CompiledModule> module = compiled(kSource);
  if (!module.ok() && module.error().code == ErrorCode::kToolMissing) GTEST_SKIP();
  ASSERT_TRUE(module.ok()) << to_string(module.error());
  EXPECT_EQ(module->cubin.substr(1, 3), "ELF");
  ASSERT_EQ(module->kernels.size(), 2u) << module->log;
  EXPECT_EQ(find(*module, "plain").stack_bytes, 0);
  EXPECT_GT(find(*module, "plain").registers, 0);
  EXPECT_EQ(find(*module, "indexed").stack_bytes, 256);
  EXPECT_GE(find(*module, "indexed").shared_bytes, 512);
}

TEST_P(Compile, ReportsTheFirstErrorOfTheCompiler) {
  const Result<CompiledModule> module = compiled("__global__ void k() { undeclared(1); }");
  ASSERT_FALSE(module.ok());
  if (module.error().code == ErrorCode::kToolMissing) GTEST_SKIP();
  EXPECT_EQ(module.error().code, ErrorCode::kFailed);
  EXPECT_NE(module.error().message.find("undeclared"), std::string::npos) << module.error().message;
}

TEST_P(Compile, RefusesAnUnknownArchitecture) {
  const Result<CompiledModule> module = compiled(kSource, "sm_3");
  ASSERT_FALSE(module.ok());
}

// Of a kernel with the primitives of sm_90a, and not in words of the assembler.
TEST_P(Compile, SaysWhatAnOlderArchitectureLacks) {
  const std::string source = std::string(kPrimitivesText) + std::string(kPrimitivesSm90Text) +
                             std::string(kPrimitivesWindowText) +
                             std::string(kPrimitivesNarrowText);
  for (const std::string arch : {"sm_80", "sm_90"}) {
    const Result<CompiledModule> module = compiled(source, arch);
    ASSERT_FALSE(module.ok());
    if (module.error().code == ErrorCode::kToolMissing) GTEST_SKIP();
    EXPECT_NE(module.error().message.find("made for sm_90a"), std::string::npos)
        << module.error().message;
  }
  const Result<CompiledModule> module = compiled(source);
  EXPECT_TRUE(module.ok()) << to_string(module.error());
}

INSTANTIATE_TEST_SUITE_P(Both, Compile, testing::Values(Compiler::kNvrtc, Compiler::kNvcc));

TEST(PtxasLog, IsReadKernelByKernel) {
  const auto kernels = parse_ptxas_log(
      "ptxas info    : 0 bytes gmem\n"
      "ptxas info    : Compiling entry function 'a' for 'sm_90a'\n"
      "ptxas info    : Function properties for a\n"
      "    16 bytes stack frame, 12 bytes spill stores, 8 bytes spill loads\n"
      "ptxas info    : Used 255 registers, used 1 barriers, 1024 bytes smem\n"
      "ptxas info    : Compiling entry function 'b' for 'sm_90a'\n"
      "ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
      "ptxas info    : Used 10 registers, used 0 barriers");
  ASSERT_EQ(kernels.size(), 2u);
  EXPECT_EQ(kernels[0], (KernelResources{"a", 255, 12, 8, 16, 1024}));
  EXPECT_EQ(kernels[1], (KernelResources{"b", 10, 0, 0, 0, 0}));
  EXPECT_TRUE(parse_ptxas_log("").empty());
  EXPECT_TRUE(parse_ptxas_log("Used 3 registers").empty()) << "registers of no kernel";
}

TEST(Nvrtc, IsTakenFromTheEnvironmentWhereThatNamesIt) {
  setenv("SUNDOG_NVRTC", "/no/such/libnvrtc.so", 1);
  EXPECT_EQ(nvrtc_candidates(), std::vector<std::string>{"/no/such/libnvrtc.so"});
  const Result<CompiledModule> module = compile(kSource, "sm_90a", {.compiler = Compiler::kNvrtc});
  unsetenv("SUNDOG_NVRTC");
  ASSERT_FALSE(module.ok());
  EXPECT_EQ(module.error().code, ErrorCode::kToolMissing);
  EXPECT_NE(module.error().hint.find("SUNDOG_NVRTC"), std::string::npos);
  EXPECT_GT(nvrtc_candidates().size(), 4u);
}

TEST(Wire, GivesBackWhatWasPutIn) {
  Packer packer;
  packer.put(int64_t{-7});
  packer.put("a\0b");
  packer.put(2.5);
  Unpacker reader(packer.bytes());
  EXPECT_EQ(reader.number<int64_t>(), -7);
  EXPECT_EQ(reader.text(), "a");
  EXPECT_EQ(reader.number<double>(), 2.5);
  EXPECT_TRUE(reader.finished());

  Unpacker shorter(std::string_view(packer.bytes()).substr(0, 12));
  EXPECT_EQ(shorter.number<int64_t>(), -7);
  EXPECT_EQ(shorter.text(), "");
  EXPECT_TRUE(shorter.failed());
  EXPECT_FALSE(shorter.finished());
}

}  // namespace
}  // namespace sundog::codegen
