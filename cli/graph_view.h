// Pictures of µGraphs: what a person looks at.
#pragma once

#include <string>
#include <string_view>

#include "core/mugraph.h"
#include "core/program.h"

namespace sundog::cli {

// A Graphviz graph: tensors as boxes, kernels as clusters of their computations.
std::string dot(const MuGraph& graph, const Program& program);
// The terms of a program.
std::string dot(const Program& program);

// The same µGraph as a picture of its own, drawn without Graphviz: kernels from top to bottom with
// what they read and write.
std::string svg(const MuGraph& graph, const Program& program);

// "2 kernels: part[64 x 16 blocks, 4 warps, loop k.o 8] -> join[64 blocks, 4 warps]"
std::string one_line(const MuGraph& graph);

// The sizes alone: "64 x 16 blocks of 128, 64 blocks of 128".
std::string launch_text(const MuGraph& graph);

// Text as it must stand in XML and HTML, in attributes too.
std::string escaped_xml(std::string_view text);

}  // namespace sundog::cli
