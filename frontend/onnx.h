// ONNX models as programs.
//
//   Result<Graph> graph = graph_of_onnx(bytes, {{"batch", 8}});
//   Result<Program> program = program_of(*graph);
//
// Inputs of the program are the inputs of the model and its weights, under their names; small
// constants (shapes, scalars) become part of the program.  Nodes may stand in any order. Dimensions
// with a name get their value from `defines`.  Weights may lie in files beside the model: they are
// looked for in its folder, and must be there and long enough.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "core/status.h"
#include "frontend/graph.h"

namespace sundog::frontend {

// Errors: kBadInput if the bytes are no model, a named dimension has no value or `defines` names
// none of the model; kUnsupported with every node that has no form in a program, by name, operator
// and shape: nothing is skipped; kIo with every weight whose file is missing or short.  Without a
// `folder` a model with weights in files is refused.
Result<Graph> graph_of_onnx(std::string_view bytes, const std::map<std::string, int64_t>& defines,
                            const std::optional<std::string>& folder = std::nullopt);

}  // namespace sundog::frontend
