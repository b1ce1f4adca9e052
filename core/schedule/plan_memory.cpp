// Pass 3 of planning: shared memory and registers.
//
// Tiles that ldmatrix reads are swizzled, so that eight rows of 16 bytes lie in different banks:
// with n = 2^z * odd words a row, rows repeat their banks after 2^(3 - z) rows, and exchanging
// words by that many bits of the row number beyond spreads them.  Padding would do as well for
// ldmatrix, but cp.async then writes each line of memory to two lines of shared memory, which costs
// it up to three times the cycles.  Short rows are rounded up to a power of two of words for the
// same reason.
//
// Tiles live from the statement that writes them to the last that reads them, loops considered, and
// are placed first fit: scratch memory for combining takes over what the operands of a loop have
// left.
#include <algorithm>
#include <bit>
#include <optional>
#include <utility>

#include "core/schedule/banks.h"
#include "core/schedule/planner.h"

namespace sundog::planning {
namespace {

constexpr int64_t kChunk = 16;   // bytes that one lane of ldmatrix reads
constexpr int64_t kPanel = 128;  // bytes of the longest row that is swizzled

int64_t round_up(int64_t value, int64_t to) { return (value + to - 1) / to * to; }

class MemoryPass {
 public:
  explicit MemoryPass(Context& context) : x_(context) {}

  void run() {
    for (uint32_t id = 0; id < count(); ++id) pad_operands(id);
    for (const LoopSite& loop : x_.scan.loops) settle_bulk(*loop.loop);
    for (uint32_t id = 0; id < count(); ++id) size_tile(id);
    for (uint32_t id = 0; id < count(); ++id) add_scratch(id);
    for (uint32_t id = 0; id < count(); ++id) find_life(id);
    place();
    estimate_registers();
  }

 private:
  uint32_t count() const { return static_cast<uint32_t>(x_.plan.computations.size()); }
  ComputationPlan& plan(uint32_t id) { return x_.plan.computations[id]; }

  // The atom reads whole 16-byte words and, along k, whole steps.
  void pad_operands(uint32_t id) {
    const auto& mma = plan(id).mma;
    if (!mma) return;
    for (bool a_side : {true, false}) {
      if (a_side ? mma->a_in_registers : mma->b_in_registers) continue;
      SharedTile& tile = *plan(a_side ? mma->a : mma->b).shared;
      for (TileAxis& axis : tile.axes) {
        if (axis.axis == mma->k) axis.extent = round_up(axis.extent, 16);
      }
      TileAxis& inner = tile.axes.back();
      inner.extent = round_up(inner.extent, kChunk / bytes(tile.dtype));
      ldmatrix_.push_back(a_side ? mma->a : mma->b);
      if (mma->warpgroup) warpgroup_.push_back(a_side ? mma->a : mma->b);
    }
  }

  // All copies ahead of a loop are bulk copies, or none is.
  void settle_bulk(const Loop& loop) {
    BulkLoop bulk{loop.factor, {}, loop.stages, 0, 0};
    for (const Statement& statement : loop.body) {
      const auto* c = std::get_if<Compute>(&statement.node);
      if (c != nullptr && plan(c->computation).ring != kNone) bulk.loads.push_back(c->computation);
    }
    const bool all = std::all_of(bulk.loads.begin(), bulk.loads.end(),
                                 [&](uint32_t id) { return box_fits(id); });
    if (!all || bulk.loads.empty()) {
      for (uint32_t id : bulk.loads) plan(id).bulk.reset();
      return;
    }
    for (uint32_t id : bulk.loads) {
      const SharedTile& tile = *plan(id).shared;
      bulk.stage_bytes += tile.rows() * tile.axes.back().extent * bytes(tile.dtype);
    }
    x_.plan.bulk_loops.push_back(std::move(bulk));
  }

  // A copy fills the tile, padding excluded, and its rows are a swizzle's or short.
  bool box_fits(uint32_t id) {
    if (!plan(id).bulk) return false;
    const SharedTile& tile = *plan(id).shared;
    for (const TileAxis& axis : tile.axes) {
      if (axis.extent != x_.extent(axis.axis)) return false;
    }
    const int64_t columns = tile.axes.back().extent, row = columns * bytes(tile.dtype);
    const bool whole = columns <= kLongestBox || columns % kLongestBox == 0;
    const int64_t together = std::min(columns, kLongestBox) * bytes(tile.dtype);
    return swizzles(id, row) || (whole && tile.rows() * together % kBulkAlignment == 0);
  }

  bool swizzles(uint32_t id, int64_t row) const {
    const SharedTile& tile = *x_.plan.computations[id].shared;
    if (tile.rows() % 8 == 0) return row == 32 || row == 64 || row % kPanel == 0;
    // Panels of few rows are more copies, for which there must be a reason; and the next stage must
    // begin where the pattern does.
    return row % kPanel == 0 && tile.rows() * row % (8 * kPanel) == 0 && rows_meet(id);
  }

  // Of a bulk copy that is not swizzled, whose rows begin at the same bank: threads read several at
  // once.
  bool rows_meet(uint32_t id) const {
    SharedTile tile = *x_.plan.computations[id].shared;
    if (tile.rows() < 2) return false;
    if (std::find(ldmatrix_.begin(), ldmatrix_.end(), id) != ldmatrix_.end()) return true;
    tile.pitch = tile.axes.back().extent;
    return bank_turns(tile, accesses(id)).conflicts > 0;
  }

  // As one copy leaves them: rows of 32, 64 and 128 bytes swizzled, longer ones in panels of 128;
  // others one after the other, as many elements as a copy takes.
  void size_bulk_tile(uint32_t id, int64_t row) {
    SharedTile& tile = *plan(id).shared;
    BulkPlan& bulk = *plan(id).bulk;
    const int64_t columns = tile.axes.back().extent;
    if (swizzles(id, row)) {
      size_swizzled_tile(tile, row);
    } else {
      tile.pitch = std::min(columns, kLongestBox);
      if (columns > kLongestBox) tile.panel = kLongestBox;
    }
    if (tile.panel > 0) {
      bulk.panels = columns / tile.panel;
      bulk.dims[0].box = tile.panel;
    }
    join_copies(bulk, tile.axes.size());
    // A vector is a matrix of one row.
    if (bulk.dims.size() == 1) {
      const std::vector<int64_t> still(x_.kernel.factors.size(), 0);
      bulk.dims.push_back({1, kBulkUnit / bytes(tile.dtype), 1, 1, {0, still}});
    }
  }

  // As few copies as can be: where the pieces of a dimension begin at multiples of their length
  // they are a dimension of their own, panels behind all of the tile's others, and come in one
  // copy.
  static void join_copies(BulkPlan& bulk, size_t tile_dims) {
    std::vector<BulkDim> dims;
    std::optional<BulkDim> panels;
    for (size_t d = 0; d < bulk.dims.size(); ++d) {
      BulkDim dim = bulk.dims[d];
      const int64_t count = d == 0 ? bulk.panels : std::exchange(dim.pieces, 1);
      if (count > 1) {
        if (!multiple_of_box(dim) || count > kLongestBox) return;
        BulkDim outer{dim.extent / dim.box, dim.stride * dim.box, count, 1, dim.index};
        outer.index.constant /= dim.box;
        for (int64_t& step : outer.index.coefficients) step /= dim.box;
        dim.extent = dim.box;
        dim.index = {0, std::vector<int64_t>(dim.index.coefficients.size(), 0)};
        dims.push_back(dim);
        if (d == 0) {
          panels = outer;
        } else {
          dims.push_back(outer);
        }
      } else {
        dims.push_back(dim);
      }
      if (d + 1 == tile_dims && panels) dims.push_back(*panels);
    }
    if (dims.size() > kMostBulkDims) return;
    bulk.dims = std::move(dims);
    bulk.panels = 1;
  }

  static bool multiple_of_box(const BulkDim& dim) {
    const auto& steps = dim.index.coefficients;
    return dim.extent % dim.box == 0 && dim.index.constant % dim.box == 0 &&
           std::all_of(steps.begin(), steps.end(), [&](int64_t s) { return s % dim.box == 0; });
  }

  void size_tile(uint32_t id) {
    std::optional<SharedTile>& tile = plan(id).shared;
    if (!tile) return;
    if (tile->axes.empty()) {
      tile->pitch = 1;
      return;
    }
    const int64_t size = bytes(tile->dtype);
    const int64_t row = tile->axes.back().extent * size;
    int64_t rows = 1;
    for (size_t i = 0; i + 1 < tile->axes.size(); ++i) rows *= tile->axes[i].extent;
    int64_t pitch = row;
    if (plan(id).bulk) {
      size_bulk_tile(id, row);
      return;
    }
    if (std::find(warpgroup_.begin(), warpgroup_.end(), id) != warpgroup_.end()) {
      size_swizzled_tile(*tile, row);
      return;
    }
    if (std::find(ldmatrix_.begin(), ldmatrix_.end(), id) != ldmatrix_.end()) {
      int64_t words = (row + kChunk - 1) / kChunk;
      if (words < 8) words = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(words)));
      pitch = words * kChunk;
      const int zeros = std::min(std::countr_zero(static_cast<uint64_t>(words)), 3);
      tile->swizzle_mask = rows > 1 ? (1 << zeros) - 1 : 0;
      tile->swizzle_shift = 3 - zeros;
    } else if (rows > 1 && row > kChunk) {
      const bool pad = plan(id).kind != Realisation::kAsyncCopy;
      pitch = round_up(row, kChunk);
      if (pad && pitch / kChunk % 2 == 0) pitch += kChunk;
      tile->pitch = pitch / size;
      spread_over_banks(*tile, accesses(id), pad);
      return;
    }
    tile->pitch = pitch / size;
  }

  // Who writes and reads the tile of `id`, products apart.
  std::vector<TileAccess> accesses(uint32_t id) const {
    const ComputationPlan& p = x_.plan.computations[id];
    std::vector<TileAccess> result;
    if (p.kind != Realisation::kAsyncCopy)
      result.push_back({write_order(p.layout, *p.shared), true});
    const auto read = [&](const Layout& layout) {
      if (p.in_registers && agrees(p.layout, layout, x_.tile_axes(id))) return;
      result.push_back({layout, false});
    };
    for (uint32_t reader : x_.scan.readers[id]) {
      const ComputationPlan& r = x_.plan.computations[reader];
      if (!r.mma) read(r.iteration);
      if (x_.computation(reader).rescale == id) read(r.deferred ? r.partial : r.layout);
    }
    const uint32_t to = x_.computation(id).accumulate_into;
    if (to != kNone && !p.into_partial) read(x_.plan.computations[to].layout);
    for (size_t i = 0; i < x_.scan.stores.size(); ++i) {
      const bool own = x_.scan.stores[i].store->computation == id;
      if (own && !x_.plan.stores[i].from_registers) read(x_.plan.stores[i].layout);
    }
    return result;
  }

  // The swizzles that the instructions of a warp group and bulk copies know are those of rows of
  // 32, 64 and 128 bytes, counted from a multiple of eight rows.
  static void size_swizzled_tile(SharedTile& tile, int64_t row) {
    const int64_t width = std::min(row, kPanel);
    if (row > kPanel) tile.panel = kPanel / bytes(tile.dtype);
    const int zeros = std::countr_zero(static_cast<uint64_t>(width / kChunk));
    tile.pitch = width / bytes(tile.dtype);
    tile.swizzle_mask = (1 << zeros) - 1;
    tile.swizzle_shift = 3 - zeros;
    tile.alignment = 8 * width;
  }

  // One value an element and warp, in f32.
  void add_scratch(uint32_t id) {
    ComputationPlan& p = plan(id);
    if (p.combine.warps.empty() || p.into_partial) return;
    SharedTile& scratch = p.combine.scratch.emplace();
    std::vector<AxisId> axes = x_.computation(id).axes;
    const Mode run = vector_mode(p.combine.redistribute ? p.layout : p.partial);
    const auto at = std::find(axes.begin(), axes.end(), run.axis);
    if (run.extent > 1 && at != axes.end()) std::rotate(at, at + 1, axes.end());
    scratch.axes = x_.tile(axes);
    scratch.dtype = DType::kF32;
    scratch.copies = static_cast<int>(p.combine.parts());
    if (!scratch.axes.empty()) {
      // A few words more, so that what lanes write together falls into different banks: an
      // accumulator's pairs of neighbours, of four rows at a time, or across the rows its single
      // values, of eight columns at a time.
      scratch.pitch = scratch.axes.back().extent;
      const Layout written = write_order(p.partial, scratch);
      const Mode pair = vector_mode(written);
      if (scratch.axes.size() > 1 && scratch.pitch >= 8) {
        const bool pairs = pair.extent == 2 && pair.axis == scratch.axes.back().axis;
        const int64_t apart = pairs ? 8 : 4;
        while (scratch.pitch % (2 * apart) != apart) ++scratch.pitch;
        spread_over_banks(scratch, {{written, true}, {p.layout, false}}, true);
      }
    }
  }

  int outermost_first(uint32_t id) const {
    const ComputationPlan& p = x_.plan.computations[id];
    for (int loop : x_.scan.computations[id].around) {
      const LoopSite& site = x_.scan.loops[static_cast<size_t>(loop)];
      if (p.loops.has(site.loop->factor)) return site.first;
    }
    return p.position;
  }

  int last_use(uint32_t id) const {
    const StatementSite& own = x_.scan.computations[id];
    int last = own.position;
    const auto use = [&](const StatementSite& site) {
      last = std::max(last, x_.scan.lives_until(own, site));
    };
    for (uint32_t reader : x_.scan.readers[id]) use(x_.scan.computations[reader]);
    for (const StoreSite& store : x_.scan.stores) {
      if (store.store->computation == id) use(store.site);
    }
    for (uint32_t other = 0; other < x_.kernel.computations.size(); ++other) {
      if (x_.computation(other).accumulate_into == id) use(x_.scan.computations[other]);
    }
    return last;
  }

  void find_life(uint32_t id) {
    ComputationPlan& p = plan(id);
    const int combined =
        p.deferred ? (p.finish_before < 0 ? p.position : p.finish_before - 1) : p.position;
    if (p.combine.scratch) p.combine.scratch->first = p.combine.scratch->last = combined;
    if (!p.shared) return;
    p.shared->last = std::max(last_use(id), combined);
    p.shared->first = p.deferred ? combined : outermost_first(id);
    if (p.ring == kNone) return;
    const LoopSite& ring =
        x_.scan.loops[static_cast<size_t>(x_.scan.computations[id].around.back())];
    // Bulk copies start when the kernel does.
    p.shared->first = p.bulk ? 0 : ring.first;
    p.shared->last = std::max(p.shared->last, ring.last);
  }

  void place() {
    std::vector<SharedTile*> tiles;
    for (ComputationPlan& p : x_.plan.computations) {
      if (p.shared) tiles.push_back(&*p.shared);
      if (p.combine.scratch) tiles.push_back(&*p.combine.scratch);
    }
    // Large ones first: the small ones fill the gaps.
    std::stable_sort(tiles.begin(), tiles.end(), [](const SharedTile* a, const SharedTile* b) {
      return a->bytes() > b->bytes();
    });
    constexpr int64_t kSmall = 256;
    for (size_t i = 0; i < tiles.size(); ++i) {
      SharedTile& tile = *tiles[i];
      std::vector<std::pair<int64_t, int64_t>> taken;
      for (size_t j = 0; j < i; ++j) {
        // Small ones do not share bytes with one another: that would only cost barriers.
        const bool small = tile.bytes() <= kSmall && tiles[j]->bytes() <= kSmall;
        if (small || (tiles[j]->first <= tile.last && tile.first <= tiles[j]->last)) {
          taken.push_back({tiles[j]->offset, tiles[j]->offset + tiles[j]->bytes()});
        }
      }
      std::sort(taken.begin(), taken.end());
      int64_t offset = 0;
      for (auto [begin, end] : taken) {
        if (offset + tile.bytes() <= begin) break;
        offset = std::max(offset, round_up(end, tile.alignment));
      }
      tile.offset = offset;
      x_.plan.shared_bytes = std::max(x_.plan.shared_bytes, offset + tile.bytes());
    }
    x_.plan.shared_bytes = round_up(x_.plan.shared_bytes, 16);
    constexpr int64_t kBarrier = 8;
    for (BulkLoop& loop : x_.plan.bulk_loops) {
      loop.offset = x_.plan.shared_bytes;
      x_.plan.shared_bytes += round_up(2 * loop.stages * kBarrier, 16);
    }
  }

  static int64_t words(const Layout& layout, DType dtype) {
    return (slots(layout) * std::max(bytes(dtype), 2) + 3) / 4;
  }

  // The most registers that live at once at any statement, and a flat amount for addresses.
  void estimate_registers() {
    constexpr int kAddresses = 32;
    std::vector<std::pair<int, int64_t>> changes;
    for (uint32_t id = 0; id < count(); ++id) {
      const ComputationPlan& p = plan(id);
      int64_t held = 0, passing = 0;
      const bool reduction = p.kind == Realisation::kReduce || p.kind == Realisation::kMma;
      if (p.in_registers || reduction) held = words(p.layout, x_.computation(id).dtype);
      if (reduction) held = std::max(held, words(p.partial, DType::kF32));
      if (p.mma) {
        passing =
            p.mma->warpgroup ? 8 : slots(slice(p.mma->a_layout, AxisSet::of(p.mma->m))) * 4 + 8;
      }
      if (p.window > 0) {
        // Fetched words, two for each run; ahead of a loop from the beginning on.
        const int64_t words = slots(p.iteration) / p.window * 8;
        const auto& around = x_.scan.computations[id].around;
        const int last =
            p.ahead ? x_.scan.loops[static_cast<size_t>(around.back())].last : p.position;
        changes.push_back({p.ahead ? 0 : 2 * p.position, words});
        changes.push_back({2 * last + 1, -words});
      }
      const int first = outermost_first(id);
      const int last = p.in_registers ? last_use(id)
                       : p.deferred   ? std::max(p.finish_before, p.position)
                                      : p.position;
      changes.push_back({2 * first, held});
      changes.push_back({2 * last + 1, -held});
      changes.push_back({2 * p.position, passing});
      changes.push_back({2 * p.position + 1, -passing});
    }
    std::sort(changes.begin(), changes.end(), [](const auto& a, const auto& b) {
      return a.first != b.first ? a.first < b.first : a.second > b.second;
    });
    int64_t live = 0, most = 0;
    for (auto [position, change] : changes) {
      live += change;
      most = std::max(most, live);
    }
    x_.plan.registers = static_cast<int>(std::min<int64_t>(kAddresses + most, 1 << 20));
  }

  Context& x_;
  std::vector<uint32_t> ldmatrix_, warpgroup_;  // computations whose tiles they read
};

}  // namespace

void plan_memory(Context& context) { MemoryPass(context).run(); }

}  // namespace sundog::planning
