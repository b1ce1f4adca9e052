// How often the parts of a program have to pass over what they read.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "core/program.h"

namespace sundog::search {

// By part, at least 1: a sum of what is made of a sum over the same axis has to wait for that one,
// and so has an output that runs along it.  No pass more is a maximum, since sums of exponentials
// are rescaled as it grows, nor what leaves a sum as a factor.
// `order`: the program's terms, operands first.  `part_of`: of a term; -1: it reduces nothing.
// `made_in`: the part of each output.
std::vector<int> passes_of_parts(const Program& program, const std::vector<TermId>& order,
                                 size_t parts, const std::function<int(TermId)>& part_of,
                                 const std::vector<int>& made_in);

}  // namespace sundog::search
