// Candidates and the CUDA compiler: whether it takes them, and what it says of their registers.
#pragma once

#include <functional>
#include <vector>

#include "cli/pipeline.h"

namespace sundog::cli {

// Compiles a row where a CUDA compiler is found; false if that compiler refuses it.
bool passes_compiler(Row& row, PipelineResult& result, const Device& device,
                     const PipelineOptions& options);

// Where nothing was timed: asks `compile` for the first row's resources, predicts it again with the
// registers and spills that it counts, and puts it where it then belongs, until the first row is
// one that was compiled.  `compile` ends it by leaving a row without a compiler's name; it may drop
// the row.
void rank_by_compiler(std::vector<Row>& rows, const Device& device,
                      const std::function<void(Row&)>& compile);

}  // namespace sundog::cli
