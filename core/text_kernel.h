// From the syntax of a kernel to a Kernel of a µGraph.
// NOLINT(sundog-mirror): the insides of core/text.h, tested through it
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/mugraph.h"
#include "core/text_mugraph_syntax.h"

namespace sundog::text {

// The index of a tensor in a kernel where none is written: each dimension by its axes, written in
// factors; an axis that stems from a grid factor of this very kernel is that factor.
std::vector<IndexExpr> tensor_index(const MuGraph& graph, uint32_t kernel,
                                    const TensorDecl& tensor);

// A factor of a kernel, as its splits say.
struct FactorShape {
  AxisId axis = 0;
  int64_t extent = 0;
};
// Looks at the splits of `syntax` only; reports what is unknown.
FactorShape factor_shape(const MuGraph& graph, const Program& program, const KernelSyntax& syntax,
                         const Ident& factor, Diagnostics& diagnostics);

// The axis of that name, if the µGraph has it.
std::optional<AxisId> find_axis(const MuGraph& graph, std::string_view name);
std::optional<uint32_t> find_tensor(const MuGraph& graph, std::string_view name);

// Appends the kernel to `graph`, with the intermediate tensors and axes that its stores declare.
// `factor_of` names, for each axis of the graph that stems from this kernel, the grid factor.
void build_kernel(MuGraph& graph, const Program& program, const KernelSyntax& syntax,
                  const std::map<AxisId, std::string>& factor_of, Diagnostics& diagnostics);

}  // namespace sundog::text
