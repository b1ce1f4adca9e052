#include "core/schedule/layout.h"

#include <algorithm>
#include <bit>

#include "core/arithmetic.h"
#include "core/check.h"

namespace sundog {
namespace {

int64_t ceil_power(int64_t x) {
  return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(x < 1 ? 1 : x)));
}
int64_t floor_power(int64_t x) {
  return static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(x < 1 ? 1 : x)));
}

// Builds a blocked layout: what is left of each axis, and the next free unit of each holder.
class BlockedBuilder {
 public:
  explicit BlockedBuilder(const BlockedRequest& request) : request_(request) {
    for (const auto& axis : request.axes) parts_.push_back({axis, axis.extent, 1});
  }

  Layout build() {
    if (!parts_.empty() && request_.vector > 1)
      take(parts_.size() - 1, Holder::kReg, request_.vector);
    for (const Mode& fixed : request_.fixed_warps) {
      for (size_t i = 0; i < parts_.size(); ++i) {
        if (parts_[i].tile.axis == fixed.axis) fixed_at_.push_back({i, fixed.extent});
      }
    }
    const bool by_hand = !fixed_at_.empty();
    if (by_hand) reserve_fixed();
    spread_lanes();
    if (by_hand) {
      for (auto [at, extent] : fixed_at_) take_warps_by_hand(at, extent);
    } else {
      spread_warps();
    }
    for (size_t i = parts_.size(); i-- > 0;) {
      if (parts_[i].left > 1) take(i, Holder::kReg, parts_[i].left);
    }
    return std::move(layout_);
  }

 private:
  struct Part {
    TileAxis tile;
    int64_t left = 1;    // digits still to be placed: ceil(extent / stride)
    int64_t stride = 1;  // of the next digit
  };

  bool reduced(size_t i) const { return request_.reduced.has(parts_[i].tile.axis); }

  int64_t& unit(Holder holder) {
    return holder == Holder::kReg ? reg_ : holder == Holder::kLane ? lane_ : warp_;
  }

  void take(size_t i, Holder holder, int64_t extent) {
    if (extent <= 1) return;
    Part& part = parts_[i];
    layout_.modes.push_back({part.tile.axis, extent, part.stride, holder, unit(holder)});
    unit(holder) *= extent;
    part.stride *= extent;
    part.left = ceil_div(part.left, extent);
  }

  // The warps that the user asked for along an axis are not available to its lanes.
  void reserve_fixed() {
    for (auto [at, extent] : fixed_at_) reserved_.push_back({at, extent});
  }
  int64_t available(size_t i) const {
    int64_t left = parts_[i].left;
    for (auto [at, extent] : reserved_) {
      if (at == i) left = ceil_div(left, extent);
    }
    return left;
  }
  void take_warps_by_hand(size_t i, int64_t extent) {
    if (warp_ * extent > request_.warps) return;
    // The warps' parts are contiguous: what is left inside goes to registers first.
    const int64_t inside = ceil_div(parts_[i].left, extent);
    if (inside > 1) take(i, Holder::kReg, inside);
    Part& part = parts_[i];
    layout_.modes.push_back({part.tile.axis, extent, part.stride, Holder::kWarp, warp_});
    warp_ *= extent;
    part.stride *= extent;
    part.left = 1;
  }

  // Threads that share the reduced axes: those that the kept elements do not need.
  int64_t threads_for_reduced() const {
    int64_t kept = 1, threads = int64_t{kLanes} * request_.warps;
    for (size_t i = 0; i < parts_.size() && kept < threads; ++i) {
      if (!reduced(i)) kept *= std::max<int64_t>(parts_[i].left, 1);
    }
    return floor_power(std::max<int64_t>(threads / kept, 1));
  }

  void spread_lanes() {
    int64_t budget = threads_for_reduced();
    int64_t lanes = kLanes;
    for (size_t i = parts_.size(); i-- > 0 && lanes > 1;) {
      int64_t most = std::min(lanes, ceil_power(available(i)));
      if (reduced(i)) {
        const int64_t least = i + 1 == parts_.size() ? request_.run_lanes : 1;
        most = std::min(most, std::max(budget, least));
        budget = std::max<int64_t>(budget / most, 1);
      }
      take(i, Holder::kLane, most);
      lanes /= most;
    }
  }

  void spread_warps() {
    int64_t warps = request_.warps;
    for (bool kept : {true, false}) {
      for (size_t i = parts_.size(); i-- > 0 && warps > 1;) {
        if (reduced(i) == kept || parts_[i].left <= 1) continue;
        int64_t count = 1;
        for (int64_t d = 1; d <= warps; ++d) {
          if (warps % d == 0) {
            count = d;
            if (d >= parts_[i].left) break;
          }
        }
        take(i, Holder::kWarp, count);
        warps /= count;
      }
    }
  }

  const BlockedRequest& request_;
  std::vector<Part> parts_;
  std::vector<std::pair<size_t, int64_t>> fixed_at_, reserved_;
  int64_t reg_ = 1, lane_ = 1, warp_ = 1;
  Layout layout_;
};

}  // namespace

int64_t slots(const Layout& layout) {
  int64_t count = 1;
  for (const Mode& m : layout.modes) {
    if (m.holder == Holder::kReg) count *= m.extent;
  }
  return count;
}

AxisSet axes_of(const Layout& layout) {
  AxisSet set;
  for (const Mode& m : layout.modes) set.insert(m.axis);
  return set;
}

int64_t covered(const Layout& layout, AxisId axis) {
  int64_t most = 1;
  for (const Mode& m : layout.modes) {
    if (m.axis == axis) most += (m.extent - 1) * m.stride;
  }
  return most;
}

Layout slice(const Layout& layout, AxisSet keep) {
  Layout result;
  for (const Mode& m : layout.modes) {
    if (keep.has(m.axis)) result.modes.push_back(m);
  }
  std::vector<Mode*> registers;
  for (Mode& m : result.modes) {
    if (m.holder == Holder::kReg) registers.push_back(&m);
  }
  std::stable_sort(registers.begin(), registers.end(),
                   [](const Mode* a, const Mode* b) { return a->unit < b->unit; });
  int64_t unit = 1;
  for (Mode* m : registers) {
    m->unit = unit;
    unit *= m->extent;
  }
  return result;
}

std::vector<Mode> canonical(const Layout& layout, AxisId axis) {
  std::vector<Mode> list;
  for (const Mode& m : layout.modes) {
    if (m.axis == axis && m.extent > 1) list.push_back(m);
  }
  std::sort(list.begin(), list.end(), [](const Mode& a, const Mode& b) {
    return a.stride != b.stride ? a.stride < b.stride : a.holder < b.holder;
  });
  std::vector<Mode> merged;
  for (Mode m : list) {
    if (m.holder == Holder::kReg) m.unit = 0;
    if (!merged.empty()) {
      Mode& last = merged.back();
      const bool continues = last.holder == m.holder && m.stride == last.stride * last.extent &&
                             (m.holder == Holder::kReg || m.unit == last.unit * last.extent);
      if (continues) {
        last.extent *= m.extent;
        continue;
      }
    }
    merged.push_back(m);
  }
  return merged;
}

bool agrees(const Layout& holder, const Layout& reader, AxisSet axes) {
  for (AxisId a : axes) {
    if (canonical(holder, a) != canonical(reader, a)) return false;
  }
  return true;
}

uint32_t lane_bits(const Layout& layout, AxisSet axes) {
  int64_t bits = 0;
  for (const Mode& m : layout.modes) {
    if (m.holder == Holder::kLane && axes.has(m.axis)) bits |= (m.extent - 1) * m.unit;
  }
  return static_cast<uint32_t>(bits);
}

std::vector<Mode> warp_modes(const Layout& layout, AxisSet axes) {
  std::vector<Mode> list;
  for (const Mode& m : layout.modes) {
    if (m.holder == Holder::kWarp && m.extent > 1 && axes.has(m.axis)) list.push_back(m);
  }
  std::sort(list.begin(), list.end(), [](const Mode& a, const Mode& b) { return a.unit < b.unit; });
  return list;
}

int64_t warp_count(const Layout& layout, AxisSet axes) {
  int64_t count = 1;
  for (const Mode& m : warp_modes(layout, axes)) count *= m.extent;
  return count;
}

Mode vector_mode(const Layout& layout) {
  for (const Mode& m : layout.modes) {
    if (m.holder == Holder::kReg && m.stride == 1 && m.unit == 1 && m.extent > 1) return m;
  }
  return {};
}

Layout blocked_layout(const BlockedRequest& request) { return BlockedBuilder(request).build(); }

}  // namespace sundog
