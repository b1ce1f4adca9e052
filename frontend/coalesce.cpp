#include "frontend/coalesce.h"

#include <algorithm>
#include <utility>

namespace sundog::frontend {
namespace {

using Pair = std::pair<AxisVar, AxisVar>;  // the second always right behind the first

class Finder {
 public:
  Finder(const Graph& graph, const Inference& in) : graph_(graph), in_(in) {}

  // Which axis follows each axis, wherever it stands.
  std::map<AxisVar, AxisVar> run() {
    for (const Value& value : in_.values) {
      const Dim axes = leaves(value.dims);
      for (size_t i = 0; i + 1 < axes.size(); ++i) pairs_.insert({axes[i], axes[i + 1]});
    }
    for (const Value& value : in_.values) check_value(value);
    for (size_t i = 0; i < graph_.inputs.size(); ++i) {
      check_strides(graph_.inputs[i], in_.values[i].dims);
    }
    for (const GraphOutput& output : graph_.outputs) {
      check_strides(output.tensor, in_.values[in_.by_name.at(output.value)].dims);
    }
    while (check_renamed()) {
    }
    return {pairs_.begin(), pairs_.end()};
  }

 private:
  Dim leaves(const Dims& dims) const {
    Dim out;
    for (const Dim& dim : dims) {
      const Dim axes = in_.axes.resolved(dim);
      out.insert(out.end(), axes.begin(), axes.end());
    }
    return out;
  }

  // Keeps of the pairs those that stand in a list of axes side by side, or not at all.
  void in_order(const Dim& axes) {
    std::erase_if(pairs_, [&](const Pair& pair) {
      const auto x = std::find(axes.begin(), axes.end(), pair.first);
      const auto y = std::find(axes.begin(), axes.end(), pair.second);
      if (x == axes.end() || y == axes.end()) return x != y;
      return y != x + 1;
    });
  }

  void together(const Dim& axes) {
    const std::set<AxisVar> all(axes.begin(), axes.end());
    std::erase_if(pairs_, [&](const Pair& p) { return all.count(p.first) != all.count(p.second); });
  }

  void apart(const Dim& axes) {
    const std::set<AxisVar> all(axes.begin(), axes.end());
    std::erase_if(pairs_,
                  [&](const Pair& p) { return all.count(p.first) + all.count(p.second) > 0; });
  }

  void check_value(const Value& value) {
    in_order(leaves(value.dims));
    together(leaves({value.reduced}));
    if (value.part >= 0) apart(leaves({{value.part}}));
    const bool is_index =
        value.node >= 0 && graph_.nodes[static_cast<size_t>(value.node)].op == "iota";
    for (size_t d = 0; is_index && d < value.dims.size(); ++d) together(leaves({value.dims[d]}));
    for (const Access& access : value.operands) {
      Dims read = access.dims;
      if (access.dim >= 0) {
        apart(leaves({access.outer}));
        apart(leaves({access.along}));
        apart(leaves({access.window}));
        read[static_cast<size_t>(access.dim)] = access.inner;
      }
      in_order(leaves(read));
    }
  }

  void check_strides(const GraphTensor& tensor, const Dims& dims) {
    const Dim axes = leaves(dims);
    const std::vector<int64_t> strides = axis_strides(tensor, dims, in_.axes);
    for (size_t i = 0; i + 1 < axes.size(); ++i) {
      if (strides[i] != strides[i + 1] * in_.axes.extent(axes[i + 1])) {
        pairs_.erase({axes[i], axes[i + 1]});
      }
    }
  }

  // What is read along other axes has as many there as of its own; whether a pair had to go.
  bool check_renamed() {
    const size_t before = pairs_.size();
    for (const Value& value : in_.values) {
      for (const Access& access : value.operands) {
        if (!access.renamed) continue;
        Dims read = access.dims, own = in_.values[access.value].dims;
        if (access.dim >= 0) {
          read[static_cast<size_t>(access.dim)].clear();
          own[static_cast<size_t>(access.dim)].clear();
        }
        const Dim from = leaves(own), to = leaves(read);
        for (size_t i = 0; i + 1 < from.size() && i + 1 < to.size(); ++i) {
          const Pair x{from[i], from[i + 1]}, y{to[i], to[i + 1]};
          if (pairs_.count(x) == pairs_.count(y)) continue;
          pairs_.erase(x);
          pairs_.erase(y);
        }
      }
    }
    return pairs_.size() != before;
  }

  const Graph& graph_;
  const Inference& in_;
  std::set<Pair> pairs_;
};

}  // namespace

Dim Coalesced::shown(const Dim& resolved) const {
  Dim result;
  for (const AxisVar axis : resolved) {
    if (others.count(axis) != 0) continue;
    const auto found = first.find(axis);
    result.push_back(found == first.end() ? axis : found->second);
  }
  return result;
}

Coalesced coalesce(const Graph& graph, Inference& inference) {
  const std::map<AxisVar, AxisVar> next = Finder(graph, inference).run();
  Coalesced result;
  for (const auto& [x, y] : next) result.others.insert(y);
  for (const auto& [x, y] : next) {
    if (result.others.count(x) != 0) continue;
    int64_t extent = inference.axes.extent(x);
    for (auto at = next.find(x); at != next.end(); at = next.find(at->second)) {
      extent *= inference.axes.extent(at->second);
    }
    result.first[x] = inference.axes.fresh(extent);
  }
  return result;
}

std::vector<int64_t> axis_strides(const GraphTensor& tensor, const Dims& dims, const Axes& axes) {
  std::vector<int64_t> strides = tensor.strides, factored;
  if (strides.empty()) {
    strides.assign(tensor.extents.size(), 1);
    for (size_t d = strides.size(); d-- > 1;) strides[d - 1] = strides[d] * tensor.extents[d];
  }
  for (size_t d = 0; d < dims.size(); ++d) {
    const Dim of_dim = axes.resolved(dims[d]);
    int64_t step = strides[d] * axes.extent(of_dim);
    for (const AxisVar axis : of_dim) {
      step /= axes.extent(axis);
      factored.push_back(step);
    }
  }
  return factored;
}

}  // namespace sundog::frontend
