// Bulk tensor copies (TMA): one instruction moves a box of a tensor into shared memory, swizzled,
// and zeros arrive for what lies outside of the tensor.
//
// A load can be made so if each dimension's index moves with at most one axis of the tile, one
// element a step, and if the elements that are absent are just those outside of the tensor: the
// zeros are then the ones that a tile must have (codegen/emit_load.cpp).
#include <algorithm>

#include "core/schedule/planner.h"

namespace sundog::planning {
namespace {

constexpr int64_t kSwizzleRows = 8;  // after which a swizzle begins anew
constexpr int64_t kLongestDim = int64_t{1} << 31;

class BulkPass {
 public:
  BulkPass(const Context& context, uint32_t id, const InputTerm& load)
      : x_(context), id_(id), load_(load), decl_(context.graph.tensors[load.tensor].decl) {}

  std::optional<BulkPlan> run() {
    if (!reachable() || !collect() || !absent_is_outside()) return std::nullopt;
    BulkPlan plan;
    plan.tensor = load_.tensor;
    // Tile axes from the innermost outwards, then what the tile does not move along.
    const std::vector<TileAxis>& axes = x_.plan.computations[id_].shared->axes;
    for (size_t i = axes.size(); i-- > 0;) {
      for (const Found& f : found_) {
        if (f.tile == axes[i].axis) plan.dims.push_back(f.dim);
      }
    }
    if (plan.dims.size() != axes.size()) return std::nullopt;
    for (const Found& f : found_) {
      if (f.tile == kNone) plan.dims.push_back(f.dim);
    }
    if (plan.dims[0].stride != 1 || plan.dims.size() > kMostBulkDims) return std::nullopt;
    if (plan.dims[0].box * bytes(decl_.dtype) % kBulkUnit != 0) return std::nullopt;
    for (size_t d = 1; d < plan.dims.size(); ++d) {
      if (plan.dims[d].stride * bytes(decl_.dtype) % kBulkUnit != 0) return std::nullopt;
      if (!cut(plan.dims[d])) return std::nullopt;
    }
    return plan;
  }

 private:
  struct Found {
    BulkDim dim;
    AxisId tile = kNone;
  };

  // Into equal boxes of whole swizzles.
  static bool cut(BulkDim& dim) {
    if (dim.box <= kLongestBox) return true;
    int64_t box = kLongestBox;
    while (box > 0 && dim.box % box != 0) box -= kSwizzleRows;
    if (box == 0) return false;
    dim.pieces = dim.box / box;
    dim.box = box;
    return true;
  }

  bool reachable() const {
    const int64_t size = bytes(decl_.dtype);
    return decl_.alignment % kBulkUnit == 0 && decl_.offset * size % kBulkUnit == 0 && size <= 4;
  }

  // The dimensions, and which axis of the tile each moves with.
  bool collect() {
    const std::vector<int64_t> strides = strides_of(decl_);
    const AxisSet tile = x_.tile_axes(id_);
    for (size_t d = 0; d < load_.index.size(); ++d) {
      Found f;
      f.dim.extent = decl_.extents[d];
      f.dim.stride = strides[d];
      f.dim.index = affine(x_.graph, x_.kernel, load_.index[d]);
      if (f.dim.extent < 1 || f.dim.extent >= kLongestDim || f.dim.stride < 1) return false;
      for (AxisId axis : tile) {
        int64_t& step = f.dim.index.coefficients[axis];
        if (step == 0) continue;
        if (step != 1 || f.tile != kNone) return false;
        f.tile = axis;
        f.dim.box = x_.extent(axis);
        step = 0;
      }
      found_.push_back(std::move(f));
    }
    return true;
  }

  bool absent_is_outside() const {
    const std::vector<Bound> bounds = x_.read_bounds(id_, load_);
    return std::all_of(bounds.begin(), bounds.end(), [&](const Bound& b) {
      for (size_t d = 0; d < load_.index.size(); ++d) {
        const bool same = affine(x_.graph, x_.kernel, load_.index[d]) == b.value;
        if (same && b.extent == decl_.extents[d]) return true;
      }
      return false;
    });
  }

  const Context& x_;
  uint32_t id_;
  const InputTerm& load_;
  const TensorDecl& decl_;
  std::vector<Found> found_;
};

}  // namespace

std::optional<BulkPlan> plan_bulk(const Context& context, uint32_t id, const InputTerm& load) {
  return BulkPass(context, id, load).run();
}

}  // namespace sundog::planning
