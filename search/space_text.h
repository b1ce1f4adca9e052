// Search spaces as text: the protobuf text form of SearchSpace in core/search.proto.
//
//   most_kernels: 2
//   online: false        # what is not named keeps its default
#pragma once

#include <string>
#include <string_view>

#include "core/status.h"
#include "search/search_space.h"

namespace sundog::search {

// Every field, one a line, in the order of the message; parse_space(print(s)) == s but for
// `rounding`, which --rounding decides.
std::string print(const SearchSpace& space);

// Errors, with line and column: not such a text, a field that does not exist or is given twice, a
// number outside its range.
Result<SearchSpace> parse_space(std::string_view text, const std::string& file_name);

}  // namespace sundog::search
