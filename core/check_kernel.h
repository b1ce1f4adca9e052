// The rules of a µGraph that concern one kernel; check() in core/mugraph.h applies them all.
#pragma once

#include "core/mugraph.h"

namespace sundog {

// Factors, places, terms, statements and stores of kernel `kernel`.
// require: the axes and tensors of the graph are well formed.
Status check_kernel(const MuGraph& graph, uint32_t kernel);

}  // namespace sundog
