// What a kernel reads and writes, and how that lies in memory.
#include <algorithm>

#include "search/cost.h"
#include "search/merge_repeats.h"

namespace sundog::search {
namespace {

// Factors along which a block moves over neighbours in memory: those of the innermost dimension
// and, where none of these is in `elsewhere`, of the dimension whose rows follow one another.
AxisSet contiguous(const TensorDecl& decl, const std::vector<IndexExpr>& index, AxisSet elsewhere) {
  const std::vector<int64_t> strides = strides_of(decl);
  AxisSet run;
  int64_t next = 1;
  for (size_t d = index.size(); d-- > 0;) {
    if (decl.extents[d] <= 1 || strides[d] != next) continue;
    run |= index[d].axis_set();
    if (!(index[d].axis_set() & elsewhere).empty()) break;
    next *= decl.extents[d];
    d = index.size();
  }
  return run - elsewhere;
}

void add_stores(const MuGraph& graph, const Kernel& kernel, const std::vector<Statement>& body,
                AxisSet around, int loop_around, KernelProfile& out) {
  for (const Statement& s : body) {
    if (const auto* loop = std::get_if<Loop>(&s.node)) {
      AxisSet inside = around;
      inside.insert(loop->factor);
      const int own = static_cast<int>(out.loop_sets.size());
      out.loop_sets.push_back(inside);
      out.loop_factors.push_back(loop->factor);
      out.loops |= inside;
      add_stores(graph, kernel, loop->body, inside, own, out);
    } else if (const auto* store = std::get_if<Store>(&s.node)) {
      Traffic t;
      t.tensor = store->tensor;
      t.computation = store->computation;
      for (const IndexExpr& e : store->index) t.index |= e.axis_set();
      t.times = around;
      t.loop = loop_around;
      const TensorDecl& decl = graph.tensors[store->tensor].decl;
      t.row = innermost(decl, store->index) - around - out.grid;
      t.run = contiguous(decl, store->index, around | out.grid);
      t.element_bytes = bytes(graph.tensors[store->tensor].decl.dtype);
      t.aligned = aligned_bytes(decl, store->index);
      t.is_store = true;
      t.in_cluster = graph.tensors[store->tensor].role == TensorRole::kCluster;
      out.traffic.push_back(t);
    }
  }
}

Traffic read_of(const MuGraph& graph, const Role& role, uint32_t computation, uint32_t tensor,
                const std::vector<IndexExpr>& index, AxisSet grid) {
  Traffic t;
  t.tensor = tensor;
  t.computation = computation;
  for (const IndexExpr& e : index) t.index |= e.axis_set();
  t.times = role.loops;
  t.loop = role.loop;
  const DeviceTensor& device = graph.tensors[tensor];
  t.row = (role.is_load ? role.row : innermost(device.decl, index)) - role.loops - grid;
  t.run = contiguous(device.decl, index, role.loops | grid);
  t.element_bytes = bytes(device.decl.dtype);
  t.aligned = role.is_load ? role.aligned : aligned_bytes(device.decl, index);
  t.in_cluster = device.role == TensorRole::kCluster;
  if (device.role == TensorRole::kInput) {
    t.tensor_bytes = t.element_bytes * static_cast<double>(element_count(device.decl));
  }
  return t;
}

}  // namespace

KernelProfile profile(const MuGraph& graph, const Kernel& kernel,
                      const std::set<std::string>& wide) {
  KernelProfile out;
  out.roles = roles_of(graph, kernel, wide);
  for (AxisId f : kernel.grid) out.grid.insert(f);
  out.load_of.assign(out.roles.size(), kNone);
  for (uint32_t i = 0; i < out.roles.size(); ++i) {
    const Role& role = out.roles[i];
    if (role.is_load) {
      out.load_of[i] = static_cast<uint32_t>(out.traffic.size());
      const auto& in = std::get<InputTerm>(kernel.terms[kernel.computations[i].value]);
      out.traffic.push_back(read_of(graph, role, i, role.tensor, in.index, out.grid));
    }
    for (const InputTerm& in : role.inline_reads) {
      out.traffic.push_back(read_of(graph, role, i, in.tensor, in.index, out.grid));
    }
  }
  add_stores(graph, kernel, kernel.body, {}, -1, out);
  // Within one body equal terms are one computation.
  out.repeats = out.loop_sets.size() > 1 ? repeats(kernel)
                                         : std::vector<uint32_t>(kernel.computations.size(), kNone);
  out.trims = trims_of(kernel, axis_extents(graph));
  return out;
}

KernelProfile profile(const MuGraph& graph, const KernelPlan& plan) {
  KernelProfile out = profile(graph, plan.kernel, plan.wide);
  out.trims = trims_to_come(plan.kernel, axis_extents(graph));
  return out;
}

}  // namespace sundog::search
