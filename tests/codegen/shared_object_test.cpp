#include "codegen/shared_object.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>

#include "codegen/emulator_toolchain.h"
#include "core/process.h"

namespace sundog::codegen {
namespace {

namespace fs = std::filesystem;

// A driver whose one kernel adds its two inputs, and which tells what it is asked.
constexpr char kDriver[] = R"(
#include <stdio.h>
#include <string.h>
int cuCtxGetCurrent(void** c) { *c = (void*)1; return 0; }
int cuCtxGetDevice(int* d) { *d = 2; return 0; }
int cuDeviceGetAttribute(int* v, int which, int d) { *v = which == 75 ? 9 : 0; return 0; }
int cuModuleLoadData(void** m, const void* image) {
  printf("load %s aligned %d\n", (const char*)image, (int)((unsigned long)image % 64));
  *m = (void*)image;
  return 0;
}
int cuModuleGetFunction(void** f, void* m, const char* name) { *f = strcmp(name, "add") ? 0 : m; return *f ? 0 : 500; }
int cuFuncSetAttribute(void* f, int which, int value) { printf("attribute %d %d\n", which, value); return 0; }
int cuLaunchKernel(void* f, unsigned x, unsigned y, unsigned z, unsigned b, unsigned by, unsigned bz,
                   unsigned shared, void* stream, void** p, void** extra) {
  float *a = *(float**)p[0], *c = *(float**)p[1], *out = *(float**)p[2];
  *out = *a + *c;
  printf("launch %u %u %u block %u shared %u stream %ld\n", x, y, z, b, shared, (long)stream);
  return 0;
}
struct attribute { int id, pad; union { char bytes[64]; int value; }; };
struct config { unsigned grid[3], block[3], shared; void* stream; struct attribute* list; unsigned count; };
int cuLaunchKernelEx(const struct config* c, void* f, void** p, void** extra) {
  printf("early %u %d %d: ", c->count, c->list[0].id, c->list[0].value);
  return cuLaunchKernel(f, c->grid[0], c->grid[1], c->grid[2], c->block[0], c->block[1], c->block[2],
                        c->shared, c->stream, p, extra);
}
/* The bits begin with the address, which is all that this kernel looks at. */
int cuTensorMapEncodeTiled(void* bits, int type, unsigned rank, void* address, const unsigned long* extents,
                           const unsigned long* strides, const unsigned* boxes, const unsigned* steps,
                           int interleave, int swizzle, int promotion, int fill) {
  printf("map type %d: %lu %lu stride %lu box %u %u step %u swizzle %d promotion %d aligned %d\n", type,
         extents[0], extents[1], strides[0], boxes[0], boxes[1], steps[rank - 1], swizzle, promotion,
         (int)((unsigned long)bits % 64));
  memcpy(bits, &address, sizeof address);
  return 0;
}
)";

// A program that knows the saved library by its C entry alone.
constexpr char kUser[] = R"(
#include <dlfcn.h>
#include <stdio.h>
int main(int argc, char** argv) {
  void* library = dlopen(argv[1], RTLD_NOW);
  if (!library) return puts(dlerror()), 1;
  int (*sum)(void* const*, void* const*, void*, void*) = dlsym(library, "sum_up");
  long (*bytes)(void) = dlsym(library, "sum_up_workspace_bytes");
  const char* (*result)(unsigned long*) = dlsym(library, "sundog_saved_result");
  float a = 1, b = 2, c = 0, d = 0, workspace[4] = {0, 0, 0, 5};
  void *inputs[] = {&a, &b}, *outputs[] = {&c};
  unsigned long size = 0;
  const char* text = result(&size);
  int refused = sum(inputs, outputs, 0, (void*)7);
  int code = sum(inputs, outputs, workspace, (void*)7);
  int again = sum(inputs, outputs, workspace, (void*)7);
  printf("%d %d %d c %g workspace %ld result %.*s\n", refused, code, again, c, bytes(), (int)size, text);
  return 0;
}
)";

// A library that multiplies, columns first, and tells what it is asked.
constexpr char kLibrary[] = R"(
#include <stdio.h>
int cublasCreate_v2(void** h) { *h = (void*)3; puts("create"); return 0; }
int cublasSetMathMode(void* h, int mode) { printf("mode %d\n", mode); return 0; }
int cublasSetStream_v2(void* h, void* s) { printf("stream %ld\n", (long)s); return h == (void*)3 ? 0 : 1; }
int cublasSetWorkspace_v2(void* h, void* w, unsigned long n) { printf("workspace %g of %lu\n", *(float*)w, n); return 0; }
int cublasGemmStridedBatchedEx(void* h, int ta, int tb, int m, int n, int k, const float* alpha,
    const float* a, int type_a, int lda, long long sa, const float* b, int type_b, int ldb, long long sb,
    const float* beta, float* c, int type_c, int ldc, long long sc, int batch, int compute, int algorithm) {
  if (compute != 68 || algorithm != -1 || type_a || type_b || type_c) return 15;
  for (int x = 0; x < batch; ++x)
    for (int i = 0; i < m; ++i)
      for (int j = 0; j < n; ++j) {
        float sum = 0;
        for (int l = 0; l < k; ++l)
          sum += a[x * sa + (ta ? l + i * lda : i + l * lda)] * b[x * sb + (tb ? j + l * ldb : l + j * ldb)];
        c[x * sc + i + j * ldc] = *alpha * sum + *beta;
      }
  return 0;
}
)";

constexpr char kProductUser[] = R"(
#include <dlfcn.h>
#include <stdio.h>
int main(int argc, char** argv) {
  void* library = dlopen(argv[1], RTLD_NOW);
  if (!library) return puts(dlerror()), 1;
  int (*launch)(void* const*, void* const*, void*, void*) = dlsym(library, "sundog_saved_launch");
  float a[] = {9, 1, 2, 3, 4, 5, 6}, b[] = {1, 0, 2, 1, 1, 1}, c[4] = {0}, workspace[] = {0, 0, 7};
  void *inputs[] = {a, b}, *outputs[] = {c};
  for (int i = 0; i < 2; ++i) printf("%d\n", launch(inputs, outputs, workspace, (void*)7));
  printf("%g %g %g %g\n", c[0], c[1], c[2], c[3]);
  return 0;
}
)";

// c[m, n] = a[m, k] b[k, n]: a by columns behind one element, b by rows.
LaunchPlan product_plan() {
  using Kind = PlanArgument::Kind;
  LaunchPlan plan;
  plan.name = "product";
  plan.inputs = {{"a", DType::kF32, 7, 28}, {"b", DType::kF32, 6, 24}};
  plan.outputs = {{"c", DType::kF32, 4, 16}};
  plan.workspace_bytes = 12;
  plan.library_bytes = 4;
  plan.kernels.resize(1);
  plan.kernels[0].name = "k";
  plan.kernels[0].grid = {1, 1, 1};
  plan.kernels[0].arguments = {{Kind::kInput, 0, 0}, {Kind::kInput, 1, 0}, {Kind::kOutput, 0, 0}};
  plan.kernels[0].gemm = LibraryGemm{
      1,           2,          2, 3, {0, 1, 2, 0, true}, {1, 0, 2, 0, false}, {2, 0, 2, 0, false},
      DType::kF32, DType::kF32};
  return plan;
}

LaunchPlan plan() {
  using Kind = PlanArgument::Kind;
  LaunchPlan plan;
  plan.name = "sum_up";
  plan.inputs = {{"a", DType::kF32, 1, 4}, {"b", DType::kF32, 1, 4}};
  plan.outputs = {{"c", DType::kF32, 1, 4}};
  plan.workspace_bytes = 16;
  plan.kernels.resize(2);
  plan.kernels[0] = {"add",
                     {3, 2, 1},
                     64,
                     65536,
                     {{Kind::kInput, 0, 0}, {Kind::kInput, 1, 0}, {Kind::kWorkspace, 0, 4}}};
  plan.kernels[1] = {"add",
                     {1, 1, 1},
                     32,
                     0,
                     {{Kind::kWorkspace, 0, 4}, {Kind::kWorkspace, 0, 12}, {Kind::kOutput, 0, 0}}};
  return plan;
}

class SharedObject : public testing::Test {
 protected:
  SharedObject() {
    std::string name = (fs::temp_directory_path() / "sundog-test-XXXXXX").string();
    folder_ = mkdtemp(name.data());
    compiler_ = *find_cxx_compiler();
  }
  ~SharedObject() override { fs::remove_all(folder_); }
  void build(const char* text, const std::string& name, std::vector<std::string> more) {
    ASSERT_TRUE(write_file(folder_ / (name + ".c"), text).ok());
    std::vector<std::string> command = {compiler_,
                                        "-x",
                                        "c",
                                        "-w",
                                        (folder_ / (name + ".c")).string(),
                                        "-o",
                                        (folder_ / name).string()};
    command.insert(command.end(), more.begin(), more.end());
    const auto built = run_process(command, {.seconds = 60});
    ASSERT_TRUE(built.ok() && built->succeeded()) << built->err;
  }
  // A C program that launches the saved kernels, with a driver that prints what it is asked.
  Result<ProcessResult> run(const std::string& saved, const char* user = kUser) {
    build(kDriver, "libcuda.so.1", {"-shared", "-fPIC"});
    build(user, "user", {"-ldl"});
    return run_process(
        {"env", "LD_LIBRARY_PATH=" + folder_.string(), (folder_ / "user").string(), saved},
        {.seconds = 60});
  }
  fs::path folder_;
  std::string compiler_;
};

TEST_F(SharedObject, RunsWithNothingButADriver) {
  const std::string saved = (folder_ / "sum.so").string();
  const Status status = write_shared_object(
      saved, plan(), {{"sm_80", "old code"}, {"sm_90a", "this code"}, {"sm_100a", "new code"}},
      "a stored result");
  ASSERT_TRUE(status.ok()) << to_string(status.error());
  const auto ran = run(saved);
  ASSERT_TRUE(ran.ok() && ran->succeeded()) << ran->out << ran->err;
  // The module is loaded once; a launch without the workspace that it needs is refused.
  EXPECT_EQ(ran->out,
            "load this code aligned 0\n"
            "attribute 8 65536\n"
            "launch 3 2 1 block 64 shared 65536 stream 7\n"
            "launch 1 1 1 block 32 shared 0 stream 7\n"
            "launch 3 2 1 block 64 shared 65536 stream 7\n"
            "launch 1 1 1 block 32 shared 0 stream 7\n"
            "1 0 0 c 8 workspace 16 result a stored result\n");
}

TEST_F(SharedObject, LaunchesWithTensorMapsAndLeaveToStartEarly) {
  LaunchPlan with_map = plan();
  PlanTensorMap map{"", DType::kF32, 8, 64, {16, 4}, {4, 64}, {16, 2}};
  with_map.kernels[1].arguments[1] = {PlanArgument::Kind::kWorkspace, 0, 4, map};
  with_map.kernels[1].dependent = true;
  const std::string saved = (folder_ / "sum.so").string();
  const Status status = write_shared_object(saved, with_map, {{"sm_90a", "code"}}, "");
  ASSERT_TRUE(status.ok()) << to_string(status.error());
  const auto ran = run(saved);
  ASSERT_TRUE(ran.ok() && ran->succeeded()) << ran->out << ran->err;
  EXPECT_NE(ran->out.find("map type 7: 16 4 stride 64 box 16 2 step 1 swizzle 2 promotion 2 "
                          "aligned 0\nearly 1 6 1: launch 1 1 1 block 32 shared 0 stream 7\n"),
            std::string::npos)
      << ran->out;
  EXPECT_NE(ran->out.find(" c 8 "), std::string::npos) << ran->out;
}

TEST_F(SharedObject, ProductsOfALibraryAreCalledWhereItIs) {
  const std::string saved = (folder_ / "product.so").string();
  const Status status = write_shared_object(saved, product_plan(), {{"sm_90a", "code"}}, "");
  ASSERT_TRUE(status.ok()) << to_string(status.error());
  const auto without = run(saved, kProductUser);
  ASSERT_TRUE(without.ok());
  if (without->out.find("20001\n20001\n") == std::string::npos) {
    GTEST_SKIP() << "this machine has the library: " << without->out;
  }
  build(kLibrary, "libcublas.so.13", {"-shared", "-fPIC"});
  const auto with = run(saved, kProductUser);
  ASSERT_TRUE(with.ok() && with->succeeded()) << with->out << with->err;
  EXPECT_EQ(with->out,
            "load code aligned 0\ncreate\nmode 16\nstream 7\nworkspace 7 of 4\n0\n"
            "stream 7\nworkspace 7 of 4\n0\n12 8 16 10\n");
}

TEST_F(SharedObject, AGpuWithoutCodeIsAnErrorOfTheDriversKind) {
  const std::string saved = (folder_ / "sum.so").string();
  ASSERT_TRUE(write_shared_object(saved, plan(), {{"sm_80", "old"}, {"sm_120", "new"}}, "").ok());
  const auto ran = run(saved);
  ASSERT_TRUE(ran.ok());
  EXPECT_EQ(ran->out.substr(0, 12), "209 209 209 ") << ran->out;  // CUDA_ERROR_NO_BINARY_FOR_GPU
}

TEST_F(SharedObject, APlaceThatCannotBeWrittenIsNamed) {
  const std::string place = (folder_ / "absent" / "sum.so").string();
  const Status status = write_shared_object(place, plan(), {{"sm_80", "code"}}, "");
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.error().message.find(place), std::string::npos);
}

}  // namespace
}  // namespace sundog::codegen
