#include "verify/integer_outputs.h"

#include <algorithm>

#include "core/op.h"

namespace sundog::verify {
namespace {

// Casts what a body stores to integer outputs, each store in a computation of its own before it.
void cast_stores(const MuGraph& graph, Kernel& kernel, std::vector<Statement>& body) {
  for (size_t i = 0; i < body.size(); ++i) {
    if (auto* loop = std::get_if<Loop>(&body[i].node)) cast_stores(graph, kernel, loop->body);
    auto* store = std::get_if<Store>(&body[i].node);
    if (store == nullptr) continue;
    const DeviceTensor& tensor = graph.tensors[store->tensor];
    if (tensor.role != TensorRole::kOutput || !is_integer(tensor.decl.dtype)) continue;
    const Computation& from = kernel.computations[store->computation];
    Computation rounded;
    rounded.name = from.name + "_" + std::string(name(tensor.decl.dtype));
    while (std::any_of(kernel.computations.begin(), kernel.computations.end(),
                       [&](const Computation& c) { return c.name == rounded.name; })) {
      rounded.name += "'";
    }
    rounded.axes = from.axes;
    AxisSet axes;
    for (const AxisId axis : from.axes) axes.insert(axis);
    const TermId value = kernel.terms.local(store->computation, axes);
    rounded.value = kernel.terms.apply(op::Cast{tensor.decl.dtype}, {value});
    store->computation = static_cast<uint32_t>(kernel.computations.size());
    kernel.computations.push_back(std::move(rounded));
    body.insert(body.begin() + static_cast<std::ptrdiff_t>(i), {Compute{store->computation}});
    ++i;
  }
}

}  // namespace

bool has_integer_outputs(const Program& program) {
  return std::any_of(program.outputs.begin(), program.outputs.end(),
                     [](const Output& o) { return is_integer(o.tensor.dtype); });
}

Program with_integer_outputs(Program program) {
  for (Output& output : program.outputs) {
    if (!is_integer(output.tensor.dtype)) continue;
    output.value = program.terms.apply(op::Cast{output.tensor.dtype}, {output.value});
  }
  return program;
}

MuGraph with_integer_outputs(MuGraph graph) {
  for (Kernel& kernel : graph.kernels) cast_stores(graph, kernel, kernel.body);
  return graph;
}

}  // namespace sundog::verify
