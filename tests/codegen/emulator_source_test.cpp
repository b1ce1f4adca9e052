#include "codegen/emulator_source.h"

#include <gtest/gtest.h>

namespace sundog::codegen {
namespace {

TEST(EmulatorSource, FindsKernels) {
  const std::vector<std::string> expected{"one", "two", "three"};
  EXPECT_EQ(find_kernels(
                "// __global__ void no(int*)\n"
                "extern \"C\" __global__ void __launch_bounds__(128, 2) one(int* x);\n"
                "extern \"C\" __global__ void\n    __launch_bounds__(4 * (1 + 1)) one(int* x) {}\n"
                "/* __global__ void no() */ const char* s = \"__global__ void no()\";\n"
                "static __global__ void two(const __half* __restrict__ x) {}\n"
                "template <int n> __global__ void no(int* x) {}\n"
                "__global__ __cluster_dims__(2, 1, 1) void three() {}\n"),
            expected);
}

TEST(EmulatorSource, TellsForeignPrimitives) {
  const std::string ours =
      "#ifndef SUNDOG_PRIMITIVES_CUH\na\nb\nc\n#endif  // SUNDOG_PRIMITIVES_CUH\n";
  EXPECT_EQ(compare_primitives("x\n" + ours + "y\n", ours), PrimitivesText::kOurs);
  EXPECT_EQ(compare_primitives("int x;\n", ours), PrimitivesText::kIncluded);
  const std::string selected =
      "#ifndef SUNDOG_PRIMITIVES_CUH\na\n\nc\n#endif  // SUNDOG_PRIMITIVES_CUH\n";
  EXPECT_EQ(compare_primitives(selected, ours), PrimitivesText::kOurs);
  const std::string edited =
      "#ifndef SUNDOG_PRIMITIVES_CUH\na\nB\nc\n#endif  // SUNDOG_PRIMITIVES_CUH\n";
  EXPECT_EQ(compare_primitives(edited, ours), PrimitivesText::kForeign);
}

TEST(EmulatorSource, LinkageChangesNoLine) {
  EXPECT_EQ(without_c_linkage("a\nextern \"C\" b\n  extern \"C\" c"),
            "a\nextern \"C++\" b\n  extern \"C++\" c");
}

TEST(EmulatorSource, ModuleListsEveryKernel) {
  const std::string text = module_text({{"a", "b"}, {"a"}}, false);
  for (const char* row : {"{\"a\", 0, Invoke<&::unit_0::a>", "{\"b\", 0, Invoke<&::unit_0::b>",
                          "{\"a\", 1, Invoke<&::unit_1::a>", "kKernelCount = 3;"}) {
    EXPECT_NE(text.find(row), std::string::npos) << row << "\n" << text;
  }
  const std::string foreign = module_text({{"a"}}, true);
  EXPECT_EQ(foreign.find("prelude.h"), std::string::npos);
  EXPECT_NE(foreign.find("{\"a\", 0, Invoke<&::a>"), std::string::npos) << foreign;
}

}  // namespace
}  // namespace sundog::codegen
