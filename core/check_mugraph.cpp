#include <algorithm>
#include <set>
#include <string>

#include "core/check_kernel.h"
#include "core/mugraph.h"
#include "core/via.h"

// The specification of a well-formed µGraph, part one: axes, tensors and the order of kernels.  The
// rules inside a kernel are in check_kernel.cpp.

namespace sundog {
namespace {

std::string quoted(const std::string& name) { return "'" + name + "'"; }

Status check_axes(const MuGraph& graph, const Program& program) {
  if (graph.axes.size() > static_cast<size_t>(kMaxAxes)) {
    return unsupported("the µGraph has more than 64 axes");
  }
  if (graph.axes.size() < program.axes.size()) {
    return bad_input("the µGraph lacks axes of program " + quoted(program.name));
  }
  std::set<std::string> names;
  for (size_t i = 0; i < graph.axes.size(); ++i) {
    const MuAxis& axis = graph.axes[i];
    if (!names.insert(axis.name).second) {
      return bad_input("axis " + quoted(axis.name) + " is declared twice");
    }
    if (i < program.axes.size()) {
      if (axis.name == program.axes[i].name && axis.extent == program.axes[i].extent &&
          axis.kernel == kNone) {
        continue;
      }
      return bad_input("axis " + quoted(axis.name) + " (extent " + std::to_string(axis.extent) +
                       ") is not axis " + quoted(program.axes[i].name) + " (extent " +
                       std::to_string(program.axes[i].extent) + ") of the program");
    }
    if (axis.kernel >= graph.kernels.size() ||
        axis.factor >= graph.kernels[axis.kernel].factors.size()) {
      return bad_input("axis " + quoted(axis.name) + " stems from no grid factor");
    }
    const Kernel& kernel = graph.kernels[axis.kernel];
    if (std::find(kernel.grid.begin(), kernel.grid.end(), axis.factor) == kernel.grid.end()) {
      return bad_input("axis " + quoted(axis.name) + " stems from factor " +
                       quoted(kernel.factors[axis.factor].name) + " of kernel " +
                       quoted(kernel.name) + ", which is not in its grid");
    }
    if (kernel.factors[axis.factor].extent != axis.extent) {
      return bad_input("axis " + quoted(axis.name) + " has another extent than the factor " +
                       quoted(kernel.factors[axis.factor].name) + " of kernel " +
                       quoted(kernel.name));
    }
  }
  return {};
}

Status check_intermediate(const MuGraph& graph, const TensorDecl& decl) {
  const std::string what = "tensor " + quoted(decl.name);
  if (decl.dims.size() != decl.extents.size()) {
    return bad_input(what + " has unequally many dimensions and extents");
  }
  if (!decl.strides.empty() && decl.strides.size() != decl.extents.size()) {
    return bad_input(what + " has unequally many dimensions and strides");
  }
  for (size_t d = 0; d < decl.dims.size(); ++d) {
    if (decl.extents[d] < 0) return bad_input(what + " has a negative extent");
    if (!decl.strides.empty() && decl.strides[d] <= 0 && decl.extents[d] > 1) {
      return bad_input(what + " has a stride that is not positive");
    }
    for (const auto& item : decl.dims[d].axes) {
      if (item.axis >= graph.axes.size()) return bad_input(what + " uses an unknown axis");
    }
    for (const auto& item : decl.dims[d].sizes) {
      if (item.axis >= graph.axes.size()) return bad_input(what + " uses an unknown axis");
    }
  }
  return {};
}

Status check_tensors(const MuGraph& graph, const Program& program) {
  const size_t inputs = program.inputs.size(), outputs = program.outputs.size();
  if (graph.tensors.size() < inputs + outputs) {
    return bad_input("the µGraph lacks tensors of program " + quoted(program.name));
  }
  std::set<std::string> names;
  for (size_t i = 0; i < graph.tensors.size(); ++i) {
    const DeviceTensor& tensor = graph.tensors[i];
    const std::string what = "tensor " + quoted(tensor.decl.name);
    if (!names.insert(tensor.decl.name).second) {
      return bad_input("two tensors are called " + quoted(tensor.decl.name));
    }
    const TensorRole role = i < inputs             ? TensorRole::kInput
                            : i < inputs + outputs ? TensorRole::kOutput
                                                   : TensorRole::kIntermediate;
    if (tensor.role != role) {
      return bad_input(what +
                       " is out of place: inputs come first, then outputs, then intermediates");
    }
    if (role == TensorRole::kIntermediate) {
      SUNDOG_RETURN_IF_ERROR(check_intermediate(graph, tensor.decl));
      continue;
    }
    const TensorDecl& declared =
        i < inputs ? program.inputs[i] : program.outputs[i - inputs].tensor;
    if (!(tensor.decl == declared)) {
      return bad_input(what + " is declared otherwise than in program " + quoted(program.name));
    }
  }
  return {};
}

Status check_reads(const MuGraph& graph, const Kernel& kernel, const std::set<uint32_t>& before,
                   const std::set<uint32_t>& here) {
  for (const Computation& c : kernel.computations) {
    const TermId roots[] = {c.value};
    for (TermId t : reachable(kernel.terms, roots)) {
      const auto* input = std::get_if<InputTerm>(&kernel.terms[t]);
      if (input == nullptr) continue;
      const DeviceTensor& tensor = graph.tensors[input->tensor];
      const std::string what = "kernel " + quoted(kernel.name) + ": computation " + quoted(c.name) +
                               " reads tensor " + quoted(tensor.decl.name);
      if (here.contains(input->tensor)) {
        return bad_input(what + ", which the same kernel stores",
                         "blocks run in any order: read it in a later kernel");
      }
      if (tensor.role != TensorRole::kInput && !before.contains(input->tensor)) {
        return bad_input(what + " before any kernel stored it");
      }
    }
  }
  return {};
}

Status check_order(const MuGraph& graph) {
  std::set<uint32_t> stored;
  for (const Kernel& kernel : graph.kernels) {
    std::set<uint32_t> here;
    for (const Store* store : stores_of(kernel)) here.insert(store->tensor);
    SUNDOG_RETURN_IF_ERROR(check_reads(graph, kernel, stored, here));
    stored.insert(here.begin(), here.end());
  }
  for (size_t i = 0; i < graph.tensors.size(); ++i) {
    if (graph.tensors[i].role != TensorRole::kInput && !stored.contains(static_cast<uint32_t>(i))) {
      return bad_input("no kernel stores tensor " + quoted(graph.tensors[i].decl.name));
    }
  }
  return {};
}

}  // namespace

Status check(const MuGraph& graph, const Program& program) {
  SUNDOG_RETURN_IF_ERROR(check_axes(graph, program));
  SUNDOG_RETURN_IF_ERROR(check_tensors(graph, program));
  if (graph.kernels.empty()) return bad_input("the µGraph has no kernel");
  std::set<std::string> names;
  for (size_t k = 0; k < graph.kernels.size(); ++k) {
    if (!names.insert(graph.kernels[k].name).second) {
      return bad_input("two kernels are called " + quoted(graph.kernels[k].name));
    }
    SUNDOG_RETURN_IF_ERROR(check_kernel(graph, static_cast<uint32_t>(k)));
  }
  SUNDOG_RETURN_IF_ERROR(check_order(graph));
  for (uint32_t k = 0; k < graph.kernels.size(); ++k) {
    if (graph.kernels[k].via == Via::kKernel) continue;
    const Result<Arrival> arrival = arrival_of(graph, k);
    if (!arrival.ok()) return arrival.error();
  }
  return {};
}

}  // namespace sundog
