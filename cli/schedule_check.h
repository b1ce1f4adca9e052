// What is shown about emitted kernels by themselves: bounds and races, for every block, thread and
// iteration (verify/smt_safety.h).
#pragma once

#include <string_view>

#include "codegen/generate.h"
#include "core/mugraph.h"
#include "verify/smt_safety.h"

namespace sundog::cli {

// What stands between the proof of a µGraph and what is shown about its kernels.
inline constexpr std::string_view kOfEmittedKernels = "; emitted kernels: ";

// require: `generated` was made of `graph`.
verify::Safety check_schedule(const MuGraph& graph, const codegen::Generated& generated,
                              double seconds);

}  // namespace sundog::cli
