// The single steps by which a class can be computed, read off its views.
#pragma once

#include "search/bank.h"
#include "search/search_space.h"

namespace sundog::search {

// Of each program axis in `axes` the outermost factor: part, then step, then tile.
AxisSet outermost(const Bank& bank, AxisSet axes);

// Adds to class c the nodes that view v gives.  May file new classes, for the operands.
void add_nodes(Bank& bank, ClassId c, const View& v, const SearchSpace& space);

}  // namespace sundog::search
