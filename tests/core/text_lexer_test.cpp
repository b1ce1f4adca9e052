#include "core/text_lexer.h"

#include <gtest/gtest.h>

namespace sundog::text {
namespace {

std::vector<std::string> words(std::string_view text) {
  Diagnostics diagnostics("f");
  std::vector<std::string> result;
  for (const Token& token : lex(text, diagnostics)) result.emplace_back(token.text);
  EXPECT_FALSE(diagnostics.failed()) << diagnostics.error().message;
  result.pop_back();  // the end
  return result;
}

std::string error_of(std::string_view text) {
  Diagnostics diagnostics("f");
  lex(text, diagnostics);
  return diagnostics.failed() ? to_string(diagnostics.error()) : "";
}

TEST(TextLexer, SplitsNamesNumbersAndSymbols) {
  using Words = std::vector<std::string>;
  EXPECT_EQ(words("q.o*q.i(4)"), (Words{"q.o", "*", "q.i", "(", "4", ")"}));
  EXPECT_EQ(words("k'.o k'' a->b"), (Words{"k'.o", "k''", "a", "->", "b"}));
  EXPECT_EQ(words("1e-6 2.5E+3 .5 7."), (Words{"1e-6", "2.5E+3", ".5", "7."}));
  EXPECT_EQ(words("a<=b<c!=d==e"), (Words{"a", "<=", "b", "<", "c", "!=", "d", "==", "e"}));
  EXPECT_EQ(words("x # all of this is gone @ \xff\n y"), (Words{"x", "y"}));
  EXPECT_EQ(words(""), Words());
}

TEST(TextLexer, CountsLinesAndColumnsFromOne) {
  Diagnostics diagnostics("f");
  const auto tokens = lex("a\n  b # c\r\n\td", diagnostics);
  ASSERT_EQ(tokens.size(), 4u);
  EXPECT_EQ(tokens[0].at.line, 1);
  EXPECT_EQ(tokens[0].at.column, 1);
  EXPECT_EQ(tokens[1].at.line, 2);
  EXPECT_EQ(tokens[1].at.column, 3);
  EXPECT_EQ(tokens[2].at.line, 3);
  EXPECT_EQ(tokens[2].at.column, 2);
}

TEST(TextLexer, RefusesWhatIsNoText) {
  EXPECT_EQ(error_of("ok\n  ~"), "f:2:3: error: unexpected character '~'");
  EXPECT_NE(error_of(std::string_view("a\0b", 3)).find("control character"), std::string::npos);
  EXPECT_NE(error_of("x \xc3\xa9").find("outside ASCII"), std::string::npos);
  EXPECT_NE(error_of("3x").find("neither a number nor a name"), std::string::npos);
  EXPECT_NE(error_of(std::string(5000, 'a')).find("a name of 5000 characters"), std::string::npos);
}

TEST(TextLexer, ExcerptsArePrintable) {
  EXPECT_EQ(excerpt("a\nb\x01"), "a?b?");
  EXPECT_EQ(excerpt("abcdef", 3), "abc...");
}

TEST(TextLexer, KeepsTheFirstError) {
  Diagnostics diagnostics("f");
  diagnostics.fail({1, 2}, "first");
  diagnostics.fail({3, 4}, "second");
  EXPECT_EQ(diagnostics.error().message, "first");
}

}  // namespace
}  // namespace sundog::text
