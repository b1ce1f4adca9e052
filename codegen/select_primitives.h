// What of codegen/primitives.cuh a file of kernels needs.
#pragma once

#include <string>
#include <string_view>

namespace sundog::codegen {

// The primitives that `source` uses (words behind `sd::`), those that `inside` uses (any word: text
// of the namespace itself), and those that these use, as lines of `primitives` in their order:
// preprocessor lines, namespaces and types always, functions and structs with their comments where
// they are needed, headings of what is left.
std::string select_primitives(std::string_view primitives, std::string_view source,
                              std::string_view inside = {});

// The same by whole sections, which begin with a heading `// --- name ---` in the outermost
// namespace; what stands before the first heading always.
std::string select_sections(std::string_view primitives, std::string_view source);

}  // namespace sundog::codegen
