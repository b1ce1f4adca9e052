#include "core/schedule/cluster.h"

#include <algorithm>
#include <charconv>
#include <string_view>

#include "core/check.h"

namespace sundog {
namespace {

constexpr int64_t kVector = 4;  // f32 values of the widest load

// Rows of whole lines of banks would lie in the same ones; what products leave behind, eight rows
// of four pairs at once, then comes in eight turns.
int64_t padded_row(int64_t extent) {
  constexpr int64_t kBanks = 32, kShift = 8;
  return extent % kBanks == 0 ? extent + kShift : extent;
}

bool has(const std::vector<AxisId>& list, AxisId f) {
  return std::find(list.begin(), list.end(), f) != list.end();
}

ClusterTensor place(const MuGraph& graph, uint32_t kernel, const Arrival& arrival,
                    uint32_t tensor) {
  const Kernel& before = graph.kernels[kernel - 1];
  const TensorDecl& decl = graph.tensors[tensor].decl;
  const size_t dims = decl.dims.size();
  ClusterTensor placed{tensor,
                       std::vector<int64_t>(dims, 0),
                       std::vector<int64_t>(dims, 0),
                       std::vector<int64_t>(dims, 1),
                       0,
                       0};
  for (size_t d = 0; d < dims; ++d) {
    const AxisId axis = decl.dims[d].axes[0].axis;
    int64_t last = 0;
    for (AxisId f : stored_factors(graph, kernel - 1, axis)) {
      const Factor& factor = before.factors[f];
      if (has(arrival.arriving, f)) {
        int64_t step = 1;
        for (size_t i = arrival.arriving.size(); arrival.arriving[--i] != f;) {
          step *= before.factors[arrival.arriving[i]].extent;
        }
        placed.ranks[d] = step;
      } else if (!has(arrival.group, f)) {
        last += (factor.extent - 1) * factor.stride;
      }
    }
    placed.extents[d] = std::max<int64_t>(std::min(last, decl.extents[d] - 1), 0) + 1;
  }
  int64_t step = 1;
  bool innermost = true;
  for (size_t d = dims; d-- > 0;) {
    if (placed.ranks[d] > 0) continue;
    placed.strides[d] = step;
    step *= innermost ? padded_row(placed.extents[d]) : placed.extents[d];
    innermost = false;
  }
  placed.elements = (step + kVector - 1) / kVector * kVector;
  return placed;
}

}  // namespace

bool has_clusters(const Device& device) {
  constexpr std::string_view kPrefix = "sm_";
  constexpr int kFirst = 90;
  const std::string_view arch = device.arch;
  int architecture = 0;
  if (!arch.starts_with(kPrefix)) return false;
  std::from_chars(arch.data() + kPrefix.size(), arch.data() + arch.size(), architecture);
  return architecture >= kFirst;
}

Status clusters_run_on(const Device& device, const MuGraph& graph) {
  if (has_clusters(device)) return {};
  for (const Kernel& kernel : graph.kernels) {
    if (kernel.via != Via::kCluster) continue;
    return unsupported("kernel '" + kernel.name + "' is run by the blocks of a cluster; " +
                           device.name + " is " + device.arch + " and has no clusters",
                       "write via last_block");
  }
  return {};
}

std::vector<ClusterTensor> cluster_tensors(const MuGraph& graph, uint32_t kernel) {
  std::vector<ClusterTensor> result;
  const std::vector<uint32_t> kept = kept_in_cluster(graph, kernel);
  if (kept.empty()) return result;
  const Result<Arrival> arrival = arrival_of(graph, kernel);
  SUNDOG_CHECK(arrival.ok());
  for (uint32_t t : kept) result.push_back(place(graph, kernel, *arrival, t));
  return result;
}

ClusterAddress cluster_address(const MuGraph& graph, const Kernel& kernel,
                               const ClusterTensor& tensor, const std::vector<IndexExpr>& index,
                               AxisSet group) {
  const std::vector<int64_t> zeros(kernel.factors.size(), 0);
  ClusterAddress result{{0, zeros}, {0, zeros}};
  for (size_t d = 0; d < index.size(); ++d) {
    const Affine dim = affine(graph, kernel, index[d]);
    const bool tells = tensor.ranks[d] > 0;
    Affine& to = tells ? result.rank : result.offset;
    const int64_t step = tells ? tensor.ranks[d] : tensor.strides[d];
    to.constant += step * dim.constant;
    for (AxisId f = 0; f < kernel.factors.size(); ++f) {
      if (!group.has(f)) to.coefficients[f] += step * dim.coefficients[f];
    }
  }
  return result;
}

AxisSet group_of_joined(const MuGraph& graph, uint32_t kernel) {
  const Result<Arrival> arrival = arrival_of(graph, kernel);
  SUNDOG_CHECK(arrival.ok());
  AxisSet group;
  for (AxisId f : graph.kernels[kernel].grid) {
    if (!has(arrival->sharing, f)) group.insert(f);
  }
  return group;
}

AxisSet group_of_parts(const MuGraph& graph, uint32_t kernel) {
  const Result<Arrival> arrival = arrival_of(graph, kernel);
  SUNDOG_CHECK(arrival.ok());
  AxisSet group;
  for (AxisId f : arrival->group) group.insert(f);
  return group;
}

MuGraph placed_in_clusters(const MuGraph& graph) {
  MuGraph result = graph;
  for (uint32_t k = 1; k < graph.kernels.size(); ++k) {
    for (const ClusterTensor& placed : cluster_tensors(graph, k)) {
      DeviceTensor& tensor = result.tensors[placed.tensor];
      tensor.role = TensorRole::kCluster;
      tensor.decl.strides = placed.strides;
      for (size_t d = 0; d < placed.ranks.size(); ++d) {
        if (placed.ranks[d] > 0) tensor.decl.strides[d] = placed.ranks[d] * placed.elements;
      }
      tensor.decl.offset = 0;
      tensor.decl.alignment = 16;
    }
  }
  return result;
}

}  // namespace sundog
