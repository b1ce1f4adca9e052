// The plain program as a µGraph, nothing fused: the first incumbent, and the answer where search
// finds no better one.
#pragma once

#include "core/program.h"
#include "search/kernel_plan.h"

namespace sundog::search {

// One kernel a reduction, with the elementwise work of its operand in place; one kernel for each
// factor of a product that is summed, where the factor is computed; one an output.  Works for every
// program that check() accepts.
GraphPlan unfused_plan(const Program& program);

}  // namespace sundog::search
