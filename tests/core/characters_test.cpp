#include "core/characters.h"

#include <gtest/gtest.h>

#include <string>

namespace sundog {
namespace {

TEST(Characters, WordsAreLettersDigitsAndUnderscores) {
  std::string words;
  for (int c = 0; c < 128; ++c) {
    if (is_word_character(static_cast<char>(c))) words += static_cast<char>(c);
  }
  EXPECT_EQ(words, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz");
  EXPECT_FALSE(is_word_character(static_cast<char>(0xb5)));
}

}  // namespace
}  // namespace sundog
