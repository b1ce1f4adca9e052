// Keeps the lines of emitted text short.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace sundog::codegen {

// C++ text whose lines have at most `columns` columns where they can be broken: comments between
// words, code at a space outside of strings, as far out in brackets as there is one, the rest
// indented by four more.  Preprocessor lines stay, and no word is broken.
std::string wrapped(std::string_view text, size_t columns);

}  // namespace sundog::codegen
