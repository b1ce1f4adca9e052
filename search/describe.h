// One line about a µGraph, for people.
#pragma once

#include <string>

#include "core/mugraph.h"

namespace sundog::search {

// "1 kernel, grid(d.o), loop(h.o): ss and acc accumulate together; o after the loop".
std::string describe(const MuGraph& graph);

}  // namespace sundog::search
