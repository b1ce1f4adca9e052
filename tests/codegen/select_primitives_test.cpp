#include "codegen/select_primitives.h"

#include <gtest/gtest.h>

#include "codegen/embedded.h"
#include "codegen/emulator_source.h"

namespace sundog::codegen {
namespace {

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

constexpr std::string_view kText = R"(// What it is.
#ifndef SUNDOG_PRIMITIVES_CUH
#define SUNDOG_PRIMITIVES_CUH
namespace sd {

// --- small things ---

// One.
SD_INLINE float one(float x) { return x; }  // max of it
SD_INLINE float two(float x) { return one(x) + one(x); }

// --- others ---

struct small {
  int bits;
};
template <class T>
SD_INLINE T from(float x);
template <>
SD_INLINE float from<float>(float x) {
  return three(x);
}
template <>
SD_INLINE small from<small>(float x) {
  return {four(x)};
}

namespace detail {

SD_INLINE int four(float x) { return static_cast<int>(x); }

}  // namespace detail

SD_INLINE float three(float x) {
#pragma unroll
  for (int i = 0; i < 3; ++i) x += 1;
  return x;
}
SD_INLINE float max(float x) { return x; }

}  // namespace sd

#endif  // SUNDOG_PRIMITIVES_CUH
)";

TEST(SelectPrimitives, AreThoseThatAreUsedAndWhatTheseUse) {
  const std::string two = select_primitives(kText, "y = sd::two(x);");
  EXPECT_TRUE(has(two, "// One.\nSD_INLINE float one(")) << two;
  EXPECT_TRUE(has(two, "float two(float x)"));
  for (const char* other : {"others", "struct small", "from", "three", "four", "detail", " max("}) {
    EXPECT_FALSE(has(two, other)) << other << "\n" << two;
  }
  EXPECT_TRUE(has(two, "// --- small things ---"));
  EXPECT_TRUE(has(two, "#define SUNDOG_PRIMITIVES_CUH"));
  EXPECT_TRUE(has(two, "}  // namespace sd\n\n#endif"));
  EXPECT_FALSE(has(two, "\n\n\n"));
}

TEST(SelectPrimitives, LeaveSpecialisationsForTypesThatDoNotOccur) {
  const std::string plain = select_primitives(kText, "y = sd::from<float>(x);");
  EXPECT_TRUE(has(plain, "from<float>") && has(plain, "three")) << plain;
  EXPECT_FALSE(has(plain, "small") || has(plain, "four")) << plain;
  const std::string narrow = select_primitives(kText, "y = sd::from<sd::small>(x);");
  EXPECT_TRUE(has(narrow, "from<small>") && has(narrow, "int four(")) << narrow;
  EXPECT_TRUE(has(narrow, "namespace detail {")) << narrow;
}

TEST(SelectPrimitives, CommentsAndNamesOfOthersAreNoUse) {
  const std::string none = select_primitives(kText, "// sd::two\nint two = max(1, \"sd::one\");");
  EXPECT_FALSE(has(none, "SD_INLINE")) << none;
  EXPECT_TRUE(has(select_primitives(kText, "", "two();"), "two(float"));
}

// What is selected are lines of ours in their order, which is how the emulator knows them.
TEST(SelectPrimitives, OfOursAreOurs) {
  const std::string some =
      select_primitives(kPrimitivesText, "sd::lane_sum<31>(x); sd::load_stream");
  EXPECT_EQ(compare_primitives(some, kPrimitivesText), PrimitivesText::kOurs);
  EXPECT_TRUE(has(some, "lane_sum") && has(some, "shfl_xor") && has(some, "struct Word<16>"));
  EXPECT_FALSE(has(some, "ldmatrix") || has(some, "cp_async") || has(some, "lane_max"));
  EXPECT_LT(some.size(), kPrimitivesText.size() / 2);
  const std::string all_sections =
      select_sections(kPrimitivesSm90Text, "sd::warpgroup_mma; sd::bulk_copy; sd::mbarrier_wait");
  EXPECT_TRUE(has(all_sections, "struct Product") && has(all_sections, "mbarrier_init"));
  const std::string copies = select_sections(kPrimitivesSm90Text, "sd::bulk_copy");
  EXPECT_FALSE(has(copies, "struct Product") || has(copies, "SD_WIDTH")) << copies;
  EXPECT_TRUE(has(copies, "}  // namespace sd\n\n#endif  // SUNDOG_PRIMITIVES_SM90_CUH"));
}

}  // namespace
}  // namespace sundog::codegen
