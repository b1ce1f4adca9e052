// The plain program as a µGraph, nothing fused: the first incumbent, and the answer where search
// finds no better one.
#pragma once

#include <set>

#include "core/program.h"
#include "search/kernel_plan.h"
#include "search/machine.h"

namespace sundog::search {

// One kernel a reduction, with the elementwise work of its operand in place; one kernel for each
// factor of a product that is summed, where the factor is computed; one an output.  Works for every
// program that check() accepts.  The reductions in `split` are two kernels each: one reduces parts
// of the longest axis, as a library does where there are few results, the next one joins these.
GraphPlan unfused_plan(const Program& program, const std::set<TermId>& split = {});

// The plan at its best sizes, each long reduction split where that is faster.
struct SizedPlan {
  GraphPlan plan;
  std::vector<std::vector<int64_t>> tiles;  // of each kernel
  std::vector<int64_t> part_counts;
  double us = 0;
};
// Errors (kUnsupported): a kernel fits the device at no size.
// `library`: a product of stored terms may be a library's.
Result<SizedPlan> sized_unfused_plan(const Program& program, const Machine& machine,
                                     bool library = true);

}  // namespace sundog::search
