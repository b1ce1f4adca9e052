// The rules of one kernel's statements: places, visibility, accumulators and stores.
#pragma once

#include "core/mugraph.h"

namespace sundog {

// require: factors and terms of the kernel are well formed (check_kernel.h).
Status check_statements(const MuGraph& graph, const Kernel& kernel);

}  // namespace sundog
