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

// A pair of kernels under the rules.
class Rules {
 public:
  Rules(const MuGraph& graph, uint32_t kernel)
      : graph_(graph), own_(graph.kernels[kernel]), before_(graph.kernels[kernel - 1]) {}

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
    Arrival arrival;
    for (AxisId f : own_.grid) {
      const auto at = std::find_if(before_.grid.begin(), before_.grid.end(),
                                   [&](AxisId g) { return same(f, g); });
      if (at == before_.grid.end()) {
        return bad_input(where() + "factor " + quoted(own_.factors[f].name) +
                         " is no grid factor of " + quoted(before_.name));
      }
      arrival.group.push_back(*at);
    }
    for (AxisId g : before_.grid) {
      const auto& group = arrival.group;
      if (std::find(group.begin(), group.end(), g) != group.end()) continue;
      arrival.arriving.push_back(g);
      arrival.count *= before_.factors[g].extent;
    }
    if (arrival.count < 1) return bad_input(where() + "no block of a group ever arrives");
    for (AxisId f : own_.grid) {
      if (own_.factors[f].extent > 1) SUNDOG_RETURN_IF_ERROR(reads_own_group(own_.factors[f].axis));
    }
    return arrival;
  }

 private:
  std::string where() const {
    return "kernel " + quoted(own_.name) + " cannot be run by blocks of " + quoted(before_.name) +
           ": ";
  }

  bool same(AxisId own, AxisId before) const {
    const Factor &f = own_.factors[own], &g = before_.factors[before];
    return f.axis == g.axis && f.stride == g.stride && f.extent == g.extent;
  }

  Status reads_own_group(AxisId axis) const {
    const std::vector<const Store*> stores = stores_of(before_);
    std::set<uint32_t> tensors;
    for (const Store* store : stores) tensors.insert(store->tensor);
    const std::vector<const InputTerm*> reads = reads_of(own_);
    const IndexExpr stored = axis_index(before_, axis), read = axis_index(own_, axis);
    for (uint32_t t : tensors) {
      const auto reads_it = [&](const InputTerm* input) { return input->tensor == t; };
      if (std::none_of(reads.begin(), reads.end(), reads_it)) continue;
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
        return bad_input(where() + "of tensor " + quoted(graph_.tensors[t].decl.name) +
                         " it reads what other blocks than those of its own " +
                         quoted(graph_.axes[axis].name) + " store");
      }
    }
    return {};
  }

  const MuGraph& graph_;
  const Kernel& own_;
  const Kernel& before_;
};

}  // namespace

std::string_view name(Via via) {
  switch (via) {
    case Via::kKernel:
      return "kernel";
    case Via::kLastBlock:
      return "last_block";
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

int launch_count(const MuGraph& graph) {
  return static_cast<int>(std::count_if(graph.kernels.begin(), graph.kernels.end(),
                                        [](const Kernel& k) { return k.via == Via::kKernel; }));
}

}  // namespace sundog
