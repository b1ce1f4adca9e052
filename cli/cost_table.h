// What the cost model says of a µGraph, as a table to read: a row a kernel, and the time by
// resource.
#pragma once

#include <string>

#include "core/device.h"
#include "core/mugraph.h"

namespace sundog::cli {

// Times in microseconds.  Resources overlap, so that a kernel takes less than their sum.
std::string cost_table(const MuGraph& graph, const Device& device);

}  // namespace sundog::cli
