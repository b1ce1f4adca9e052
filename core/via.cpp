#include "core/via.h"

#include <algorithm>
#include <set>
#include <string>

namespace sundog {
namespace {

std::string quoted(const std::string& name) { return "'" + name + "'"; }

std::vector<const InputTerm*> reads_of(const Kernel& kernel) {
  std::vector<const InputTerm*> reads;
  std::vector<TermId> roots;
  for (const Computation& c : kernel.computations) roots.push_back(c.value);
  for (TermId t : reachable(kernel.terms, roots)) {
    if (const auto* input = std::get_if<InputTerm>(&kernel.terms[t])) reads.push_back(input);
  }
  return reads;
}

bool has(const std::vector<AxisId>& list, AxisId f) {
  return std::find(list.begin(), list.end(), f) != list.end();
}

// A pair of kernels under the rules.
class Rules {
 public:
  Rules(const MuGraph& graph, uint32_t kernel)
      : graph_(graph),
        id_(kernel),
        own_(graph.kernels[kernel]),
        before_(graph.kernels[kernel - 1]) {}

  Result<Arrival> run() {
    if (before_.kind != KernelKind::kGraphDefined) {
      return bad_input(where() + "the kernel before it is a library's");
    }
    if (before_.via != Via::kKernel) {
      return bad_input(where() + "the kernel before it is no launch of its own");
    }
    if (own_.warps != before_.warps) {
      return bad_input(where() + "it has " + std::to_string(own_.warps) + " warps and " +
                       quoted(before_.name) + " has " + std::to_string(before_.warps));
    }
    SUNDOG_RETURN_IF_ERROR(match_grids());
    if (arrival_.count < 1) return bad_input(where() + "no block of a group ever arrives");
    if (own_.via == Via::kCluster) {
      SUNDOG_RETURN_IF_ERROR(is_cluster());
      for (uint32_t t : handed_over(graph_, id_)) SUNDOG_RETURN_IF_ERROR(stays_in_cluster(t));
      return arrival_;
    }
    for (AxisId f : own_.grid) {
      if (own_.factors[f].extent > 1) SUNDOG_RETURN_IF_ERROR(reads_own_group(own_.factors[f].axis));
    }
    return arrival_;
  }

 private:
  std::string where() const {
    return "kernel " + quoted(own_.name) + " cannot be run by blocks of " + quoted(before_.name) +
           ": ";
  }
  std::string of_tensor(uint32_t t) const {
    return where() + "of tensor " + quoted(graph_.tensors[t].decl.name) + " ";
  }

  bool same(AxisId own, AxisId before) const {
    const Factor &f = own_.factors[own], &g = before_.factors[before];
    return f.axis == g.axis && f.stride == g.stride && f.extent == g.extent;
  }

  Status match_grids() {
    for (AxisId f : own_.grid) {
      const auto at = std::find_if(before_.grid.begin(), before_.grid.end(),
                                   [&](AxisId g) { return same(f, g); });
      if (at != before_.grid.end()) {
        if (!arrival_.sharing.empty()) {
          return bad_input(where() + "factor " + quoted(own_.factors[f].name) +
                           " of its grid tells groups apart and stands behind one that does not");
        }
        arrival_.group.push_back(*at);
      } else if (own_.via == Via::kCluster) {
        arrival_.sharing.push_back(f);
        arrival_.shares *= own_.factors[f].extent;
      } else {
        return bad_input(where() + "factor " + quoted(own_.factors[f].name) +
                         " is no grid factor of " + quoted(before_.name));
      }
    }
    for (AxisId g : before_.grid) {
      if (has(arrival_.group, g)) continue;
      arrival_.arriving.push_back(g);
      arrival_.count *= before_.factors[g].extent;
    }
    return {};
  }

  Status is_cluster() const {
    if (arrival_.count > kMostClusterBlocks) {
      return bad_input(where() + "a cluster of " + std::to_string(arrival_.count) +
                           " blocks; it has at most " + std::to_string(kMostClusterBlocks),
                       "cut the reduced axis into fewer parts, or write via last_block");
    }
    if (arrival_.shares > arrival_.count) {
      return bad_input(where() + "its work is cut into " + std::to_string(arrival_.shares) +
                       " shares for a cluster of " + std::to_string(arrival_.count) + " blocks");
    }
    const size_t groups = before_.grid.size() - arrival_.arriving.size();
    for (size_t i = 0; i < groups; ++i) {
      if (has(arrival_.group, before_.grid[i])) continue;
      return bad_input(where() + "factor " + quoted(before_.factors[before_.grid[i]].name) +
                           " tells the blocks of a cluster apart, which are neighbours",
                       "put it last in the grid of " + quoted(before_.name));
    }
    return {};
  }

  // Via cluster, for a tensor that is handed over.
  Status stays_in_cluster(uint32_t t) const {
    const DeviceTensor& tensor = graph_.tensors[t];
    const bool output = tensor.role == TensorRole::kOutput;
    if (output || tensor.decl.dtype != DType::kF32) {
      return bad_input(of_tensor(t) + "blocks of a cluster read what others stored, and it is " +
                       (output ? "an output" : "not f32"));
    }
    for (uint32_t k = 0; k < graph_.kernels.size(); ++k) {
      const Kernel& other = graph_.kernels[k];
      if ((k == id_ ? stores(other, t) : k + 1 != id_ && (stores(other, t) || reads(other, t)))) {
        return bad_input(of_tensor(t) + "nothing leaves the cluster, and kernel " +
                         quoted(other.name) + (k == id_ ? " stores to it" : " uses it"));
      }
    }
    for (const Store* store : stores_of(before_)) {
      if (store->tensor == t) SUNDOG_RETURN_IF_ERROR(is_whole(t, id_ - 1, store->index));
    }
    for (const InputTerm* read : reads_of(own_)) {
      if (read->tensor == t) SUNDOG_RETURN_IF_ERROR(is_whole(t, id_, read->index));
    }
    return tells_blocks_apart(t);
  }

  static bool stores(const Kernel& kernel, uint32_t t) {
    const std::vector<const Store*> all = stores_of(kernel);
    return std::any_of(all.begin(), all.end(), [&](const Store* s) { return s->tensor == t; });
  }
  static bool reads(const Kernel& kernel, uint32_t t) {
    const std::vector<const InputTerm*> all = reads_of(kernel);
    return std::any_of(all.begin(), all.end(), [&](const InputTerm* r) { return r->tensor == t; });
  }

  Status is_whole(uint32_t t, uint32_t k, const std::vector<IndexExpr>& index) const {
    const std::vector<IndexExpr>& dims = graph_.tensors[t].decl.dims;
    for (size_t d = 0; d < index.size(); ++d) {
      const bool plain = dims[d].axes.size() == 1 && dims[d] == IndexExpr::of(dims[d].axes[0].axis);
      if (plain && index[d] == whole(k, dims[d].axes[0].axis)) continue;
      return bad_input(of_tensor(t) + "dimension " + std::to_string(d) +
                       " is not indexed by its axis, whole, in kernel " +
                       quoted(graph_.kernels[k].name));
    }
    return {};
  }

  IndexExpr whole(uint32_t k, AxisId axis) const {
    const bool own_part = graph_.axes[axis].kernel == k;
    return own_part ? IndexExpr::of(graph_.axes[axis].factor) : axis_index(graph_.kernels[k], axis);
  }

  // require: is_whole() for all stores and reads.
  Status tells_blocks_apart(uint32_t t) const {
    std::set<AxisId> telling;
    for (const IndexExpr& dim : graph_.tensors[t].decl.dims) {
      const AxisId axis = dim.axes[0].axis;
      const std::vector<AxisId> factors = stored_factors(graph_, id_ - 1, axis);
      for (AxisId f : factors) {
        if (!has(arrival_.arriving, f)) continue;
        if (factors.size() > 1 || !telling.insert(f).second) {
          return bad_input(of_tensor(t) + "axis " + quoted(graph_.axes[axis].name) +
                           " is cut over the blocks of a cluster and inside of them");
        }
      }
    }
    for (AxisId f : arrival_.arriving) {
      if (before_.factors[f].extent == 1 || telling.contains(f)) continue;
      return bad_input(of_tensor(t) + "no dimension says which block of a cluster stored it: " +
                       quoted(before_.factors[f].name) + " indexes none");
    }
    return {};
  }

  Status reads_own_group(AxisId axis) const {
    const std::vector<const Store*> stores = stores_of(before_);
    const std::vector<const InputTerm*> reads = reads_of(own_);
    const IndexExpr stored = axis_index(before_, axis), read = axis_index(own_, axis);
    for (uint32_t t : handed_over(graph_, id_)) {
      bool told = false;
      for (size_t d = 0; d < graph_.tensors[t].decl.extents.size(); ++d) {
        told |= std::all_of(stores.begin(), stores.end(),
                            [&](const Store* store) {
                              return store->tensor != t || store->index[d] == stored;
                            }) &&
                std::all_of(reads.begin(), reads.end(), [&](const InputTerm* input) {
                  return input->tensor != t || input->index[d] == read;
                });
      }
      if (!told) {
        return bad_input(of_tensor(t) + "it reads what other blocks than those of its own " +
                         quoted(graph_.axes[axis].name) + " store");
      }
    }
    return {};
  }

  const MuGraph& graph_;
  const uint32_t id_;
  const Kernel& own_;
  const Kernel& before_;
  Arrival arrival_;
};

}  // namespace

std::string_view name(Via via) {
  switch (via) {
    case Via::kKernel:
      return "kernel";
    case Via::kLastBlock:
      return "last_block";
    case Via::kCluster:
      return "cluster";
  }
  return {};
}

Result<Arrival> arrival_of(const MuGraph& graph, uint32_t kernel) {
  if (kernel == 0) {
    return bad_input("kernel " + quoted(graph.kernels[0].name) +
                     " is the first: there are no blocks before it that could run it");
  }
  return Rules(graph, kernel).run();
}

std::vector<uint32_t> handed_over(const MuGraph& graph, uint32_t kernel) {
  std::set<uint32_t> stored, both;
  for (const Store* store : stores_of(graph.kernels[kernel - 1])) stored.insert(store->tensor);
  for (const InputTerm* read : reads_of(graph.kernels[kernel])) {
    if (stored.contains(read->tensor)) both.insert(read->tensor);
  }
  return {both.begin(), both.end()};
}

std::vector<uint32_t> kept_in_cluster(const MuGraph& graph, uint32_t kernel) {
  if (graph.kernels[kernel].via != Via::kCluster) return {};
  return handed_over(graph, kernel);
}

int launch_count(const MuGraph& graph) {
  return static_cast<int>(std::count_if(graph.kernels.begin(), graph.kernels.end(),
                                        [](const Kernel& k) { return k.via == Via::kKernel; }));
}

}  // namespace sundog
