#include "codegen/wrap_text.h"

#include <gtest/gtest.h>

namespace sundog::codegen {
namespace {

TEST(WrapText, ShortLinesStay) {
  const std::string text = "a b c\n\n  d // e\n#define A b c d e f g h i j k\nlast";
  EXPECT_EQ(wrapped(text, 20), text);
}

TEST(WrapText, CommentsBreakBetweenWords) {
  EXPECT_EQ(wrapped("  // one two three four\n", 16),
            "  // one two\n  //     three\n  //     four\n");
  EXPECT_EQ(wrapped("// averyveryverylongword x\n", 10), "// averyveryverylongword\n//     x\n");
}

TEST(WrapText, CodeBreaksOutermostAndBehindCommas) {
  EXPECT_EQ(wrapped("  call(one, two(three, four), five);\n", 24),
            "  call(one,\n      two(three, four),\n      five);\n");
  EXPECT_EQ(wrapped("x = aaaa + bbbb + cccc;\n", 18), "x = aaaa + bbbb\n    + cccc;\n");
  EXPECT_EQ(wrapped("f<int, 3, long>(aaaaa, b < c);\n", 24),
            "f<int, 3, long>(aaaaa,\n    b < c);\n");
}

TEST(WrapText, ACommentBehindCodeMovesInFront) {
  EXPECT_EQ(wrapped("  int x = 1;  // what it is\n", 20), "  // what it is\n  int x = 1;\n");
}

TEST(WrapText, StringsAreNotBroken) {
  const std::string text = "f(\"a b c d e f g h i j\");\n";
  EXPECT_EQ(wrapped(text, 10), text);
  EXPECT_EQ(wrapped("f(\"http://a b\", cccccc);\n", 20), "f(\"http://a b\",\n    cccccc);\n");
}

}  // namespace
}  // namespace sundog::codegen
