// Characters of the languages that are read here.
#pragma once

#include <cctype>

namespace sundog {

// A letter, digit or '_': what a word of C++ is made of.
inline bool is_word_character(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

}  // namespace sundog
