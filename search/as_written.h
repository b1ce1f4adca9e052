// The program as it is written, in one kernel: what the algebra of the search starts from.
#pragma once

#include <optional>

#include "search/candidate.h"

namespace sundog::search {

// One block holds a row: the axes that no reduction runs over and all outputs and reductions have
// are cut over the grid, all others are whole tiles.  Terms are computed in the order and with the
// associations of the program, so it is as exact as the unfused program is; candidates of other
// forms may be refused for their numbers.  Nothing where no axis is free, where a select keeps the
// reads of a reduction in range, or where a row fits no block of the device.
std::optional<Candidate> as_written(const Program& program, const Machine& machine,
                                    const Device& device);

}  // namespace sundog::search
