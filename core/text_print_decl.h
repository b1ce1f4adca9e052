// Printing of tensor declarations and splits, which programs and µGraphs share.
// NOLINT(sundog-mirror): the insides of core/text.h, tested through it
#pragma once

#include <string>
#include <vector>

#include "core/join.h"
#include "core/program.h"

namespace sundog::text {

// "x: f16[b, h] stride(1, 4) in [-1, 1]".
std::string tensor_text(const TensorDecl& tensor, const std::vector<std::string>& dims);

// "split q = q.o * q.i(4)": the outermost extent is left out where it follows.
std::string split_text(const std::string& axis, int64_t extent,
                       const std::vector<std::pair<std::string, int64_t>>& factors);

}  // namespace sundog::text
