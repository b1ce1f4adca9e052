// The thread level follows from tile extents by a few rules, so it is derived and not enumerated;
// each rule is one of those that won by measurement on skinny products and attention:
//  - a product uses the tensor core if its padding to the 16 x 8 x 16 atom costs less than the
//  sixteen
//    fold rate gains; the M side is the operand that pads less, so with few rows the weight is M;
//  - its operands are of 16 bits, or of 8 that are widened as they are fetched, and shared, except
//  one that is computed from an accumulator with the same
//    rows: that stays in registers (the probabilities of attention);
//  - warps share a wide tile by rows and columns, a skinny one by the reduced axis, whose parts are
//    added at the end: loads then stay wide however few rows there are;
//  - what is read once stays in registers, the parts of attention that another kernel joins, too,
//    but for long rows of f32, which wait for their sums in shared memory where blocks queue;
//    what several reductions' elements share is put in shared memory, and so is what a loop loads
//    beside the operands of its products.
#include "search/thread_level.h"

#include <algorithm>
#include <cmath>

#include "core/check.h"
#include "core/schedule/kernel_plan.h"

namespace sundog::search {
namespace {

constexpr double kAtomM = 16, kAtomN = 8, kAtomK = 16;
constexpr double kMostPadding = 16;  // how much faster a tensor core is than the FMA units
constexpr int kMostWarps = 16;
constexpr int kGroupWarps = 4;
constexpr double kGroupColumns = 32;  // fewer leave a warp group's product waiting for its rows
constexpr int kMmaWarps = 8;  // of a block with products, unless twice as many are asked for
constexpr double kElementsPerThread = 32;       // where blocks queue: less overhead an element
constexpr double kElementsPerThreadAlone = 16;  // where they do not: the shortest time of one

double round_up(double x, double to) { return std::ceil(x / to) * to; }

// The largest power of two that is at most `limit`.
int floor_power(double limit) {
  int p = 1;
  while (2 * p <= limit) p *= 2;
  return p;
}

}  // namespace

MmaChoice choose_mma(double m, double n, double k) {
  MmaChoice out;
  const double depth = round_up(k, kAtomK);
  const double straight = round_up(m, kAtomM) * round_up(n, kAtomN) * depth;
  const double swapped = round_up(n, kAtomM) * round_up(m, kAtomN) * depth;
  out.swap = swapped < straight;
  out.padded = std::min(straight, swapped);
  out.use = m * n * k > 0 && out.padded <= kMostPadding * m * n * k;
  return out;
}

namespace {

class Chooser {
 public:
  Chooser(const Kernel& kernel, const std::vector<Role>& roles, const std::vector<int64_t>& extents,
          const Machine& machine, int warp_choice, ThreadLevel& level)
      : kernel_(kernel),
        roles_(roles),
        extents_(extents),
        machine_(machine),
        warp_choice_(warp_choice),
        finished_(std::any_of(kernel.computations.begin(), kernel.computations.end(),
                              [](const Computation& c) { return c.mma != MmaAtom::kNoAtom; })),
        level_(level) {
    const size_t n = roles.size();
    level_.warps = 4;
    level_.chained = level_.warps_vary = false;
    level_.mma.assign(n, {});
    level_.fragment.assign(n, false);
    level_.storage.assign(n, Storage::kReg);
    level_.dtype.assign(n, DType::kF32);
    level_.splits.resize(n);
    for (auto& splits : level_.splits) splits.clear();
  }

  void run() {
    for (uint32_t i = 0; i < roles_.size(); ++i) choose_atom(i);
    for (uint32_t i = 0; i < roles_.size(); ++i) choose_storage(i);
    choose_warps();
    for (uint32_t i = 0; i < roles_.size(); ++i) {
      level_.fragment[i] = made_as_fragments(i);
      if (level_.fragment[i]) level_.storage[i] = Storage::kReg;
    }
  }

 private:
  double count(AxisSet f) const { return tile_count(f, extents_); }
  double blocks() const { return count(AxisSet::of(kernel_.grid)); }

  void choose_atom(uint32_t i) {
    const auto& c = roles_[i].contraction;
    if (!c || count(c->batch) > 1) return;
    if (!product_dtype(roles_[c->left].operand_dtype, roles_[c->right].operand_dtype)) return;
    level_.mma[i] = choose_mma(count(c->m), count(c->n), depth(c->k));
    // Where either side may be M, it is the one that another product leaves in registers.
    const MmaChoice turned = choose_mma(count(c->n), count(c->m), depth(c->k));
    const bool either = !level_.mma[i].swap && !turned.swap;
    if (either && !roles_[c->right].is_load && follows_product(c->right) &&
        !follows_product(c->left)) {
      level_.mma[i].swap = true;
    }
  }

  // Of a product: the atom cuts the longest of its reduced axes and runs over the others.
  double depth(AxisSet k) const {
    const auto longest = static_cast<double>(extents_[widest(k)]);
    return round_up(longest, kAtomK) * count(k) / longest;
  }

  bool feeds_mma(uint32_t i) const {
    return std::any_of(roles_[i].users.begin(), roles_[i].users.end(), [&](uint32_t u) {
      const auto& c = roles_[u].contraction;
      return c && level_.mma[u].use && (c->left == i || c->right == i);
    });
  }

  AxisSet rows_of(uint32_t i) const {
    return level_.mma[i].swap ? roles_[i].contraction->n : roles_[i].contraction->m;
  }

  // A computed operand on the M side whose rows are those of the product that it is computed from,
  // with enough rows for four warps.
  bool stays_in_registers(uint32_t i) const {
    if (roles_[i].is_load || roles_[i].is_reduction) return false;
    AxisSet rows;
    for (uint32_t u : roles_[i].users) {
      const auto& c = roles_[u].contraction;
      if (!c) continue;
      if (!level_.mma[u].use || (level_.mma[u].swap ? c->right : c->left) != i) return false;
      rows |= rows_of(u);
    }
    if (count(rows) < 4 * kAtomM) return false;
    for (uint32_t s = 0; s < roles_.size(); ++s) {
      if (!roles_[s].contraction || !level_.mma[s].use || !(rows_of(s) == rows)) continue;
      if (feeds_elementwise(s, i)) return true;
    }
    return false;
  }

  bool follows_product(uint32_t i) const {
    for (uint32_t s = 0; s < roles_.size(); ++s) {
      if (s != i && roles_[s].contraction && feeds_elementwise(s, i)) return true;
    }
    return false;
  }

  // Whether computation `to` is made of the product `from` element by element.
  bool feeds_elementwise(uint32_t from, uint32_t to) const {
    const std::vector<uint32_t>& followers = roles_[from].followers;
    return std::find(followers.begin(), followers.end(), to) != followers.end();
  }

  void choose_storage(uint32_t i) {
    const Role& role = roles_[i];
    const Computation& c = kernel_.computations[i];
    level_.dtype[i] = role.is_load ? c.dtype : DType::kF32;
    const bool mma_operand = feeds_mma(i);
    if (mma_operand && !role.is_load && !role.is_reduction) level_.dtype[i] = role.operand_dtype;
    if (mma_operand && stays_in_registers(i)) return;
    if (summed_by_threads(i)) return;
    if (role.is_operand || (role.is_load && count(role.reuse) > 1) || comes_with_operands(i) ||
        waits_in_shared(i)) {
      level_.storage[i] = Storage::kShared;
    }
  }

  // Long rows of words that are reduced and then read again, one after another by blocks that
  // queue: copies that need no registers keep more of them under way.
  bool waits_in_shared(uint32_t i) const {
    constexpr double kLongRow = 8192, kQueue = 4;  // bytes, blocks an SM
    constexpr int kCopy = 16;
    const Role& role = roles_[i];
    const Computation& c = kernel_.computations[i];
    if (!role.is_load || role.loop >= 0 || role.users.size() < 2) return false;
    if (bytes(c.dtype) < 4 || role.aligned < kCopy || (role.row & role.tile).empty()) return false;
    if (count(role.tile) * bytes(c.dtype) < kLongRow) return false;
    if (blocks() < kQueue * machine_.sms) return false;
    const auto is_product = [](const Role& r) { return r.contraction.has_value(); };
    return std::none_of(roles_.begin(), roles_.end(), is_product) &&
           std::any_of(role.users.begin(), role.users.end(), [&](uint32_t user) {
             return roles_[user].is_reduction && (roles_[user].tile & role.row).empty();
           });
  }

  // Read by no products but short ones without tensor cores, outside of loops, of which each thread
  // takes all factors of its own sums: parts that are joined.  What is loaded is not used by
  // others; what is computed is so little that they compute it again.
  bool summed_by_threads(uint32_t i) const {
    constexpr double kMostFactors = 32, kLeastSums = 32;
    const Role& role = roles_[i];
    if (!role.is_operand || (role.is_load && count(role.reuse) > 1)) return false;
    double sums = 0;
    for (uint32_t u : role.users) {
      const Role& user = roles_[u];
      if (!user.contraction) continue;
      if (level_.mma[u].use || count(user.loops) > 1) return false;
      if (count(user.reduced) > kMostFactors) return false;
      sums = std::max(sums, count(user.tile));
    }
    return sums >= kLeastSums;
  }

  // A load in a loop whose products have operands that are copied ahead: a tile that bulk copies
  // can bring comes along; threads would have to wait for it in each iteration.  A finished kernel
  // says itself whether it does.
  bool comes_with_operands(uint32_t i) const {
    const Role& role = roles_[i];
    if (!role.is_load) return false;
    if (finished_) return kernel_.computations[i].storage == Storage::kShared;
    if (!machine_.bulk || role.loop < 0 || count(role.loops) <= 1) return false;
    if (role.tile.size() < 2 && !copies_in_bulk(i)) return false;
    for (uint32_t j = 0; j < roles_.size(); ++j) {
      const bool copied = j != i && roles_[j].is_load && roles_[j].loop == role.loop;
      if (copied && feeds_mma(j)) return true;
    }
    return false;
  }

  // Whether a vector fills boxes of bulk copies.
  bool copies_in_bulk(uint32_t i) const {
    const auto length = static_cast<int64_t>(count(roles_[i].tile));
    return roles_[i].aligned >= kBulkUnit && (length <= kLongestBox || length % kLongestBox == 0) &&
           length * bytes(kernel_.computations[i].dtype) % kBulkAlignment == 0;
  }

  // Warps that each have all parts of the sums that they join, a line of sums at least.
  double most_joining_warps() const {
    constexpr double kLine = 64;
    double most = 0;
    for (uint32_t i = 0; i < roles_.size(); ++i) {
      if (!roles_[i].is_load || !summed_by_threads(i)) continue;
      for (uint32_t u : roles_[i].users) most = std::max(most, count(roles_[u].tile) / kLine);
    }
    return most == 0 ? kMostWarps : most;
  }

  void choose_warps() {
    double largest = 0, rows = 0, deepest = 0;
    bool any = false, chained = false;
    for (uint32_t i = 0; i < roles_.size(); ++i) {
      const Role& role = roles_[i];
      largest = std::max(largest, count(role.tile | role.reduced));
      if (!level_.mma[i].use) continue;
      any = true;
      const auto& c = *role.contraction;
      const AxisSet m = level_.mma[i].swap ? c.n : c.m;
      rows = rows == 0 ? count(m) : std::min(rows, count(m));
      deepest = std::max(deepest, count(c.k));
      for (uint32_t operand : {c.left, c.right}) {
        if (!roles_[operand].is_load && level_.storage[operand] == Storage::kReg) chained = true;
      }
    }
    if (!any) {
      const bool queue = blocks() > machine_.sms;
      const double elements = queue ? kElementsPerThread : kElementsPerThreadAlone;
      // More threads hold a row of which several values are kept.
      const double most = std::clamp<double>(most_joining_warps(), 1, kMostWarps);
      const auto warps = [&](int choice) {
        // Half as many at most: blocks of more than that wait for one another's barriers.
        const double shared = queue ? std::min(choice, 2) : choice;
        const double threads = std::ceil(largest * shared / elements);
        return floor_power(std::clamp<double>(std::ceil(threads / 32), 1, most));
      };
      level_.warps = warps(warp_choice_);
      level_.warps_vary = warps(1) != warps(std::end(kWarpChoices)[-1]);
      return;
    }
    level_.chained = chained;
    const int choice = std::min(warp_choice_, 2);
    if (chained) {
      level_.warps = floor_power(std::clamp<double>(rows / (kAtomM * choice), 1, kMmaWarps));
      level_.warps_vary = true;
    } else {
      const double pieces = std::ceil(rows / kAtomM) * std::ceil(deepest / kAtomK);
      const double most = kMmaWarps * choice;
      level_.warps = floor_power(std::clamp<double>(pieces, 1, most));
      level_.warps_vary = pieces > kMmaWarps;
    }
    for (uint32_t i = 0; i < roles_.size(); ++i) {
      if (!level_.mma[i].use) continue;
      level_.mma[i].warpgroup = suits_warpgroup(i);
      if (level_.mma[i].warpgroup) {
        level_.splits[i].push_back({widest(m_side(i)), level_.warps});
      } else {
        split(i, chained, level_.splits[i]);
      }
    }
  }

  // An operand in a loop that each thread computes for itself, just what the products of its warp
  // read, from tiles that have been copied ahead and lie along K: nothing is passed on, and the
  // block does not meet.
  bool made_as_fragments(uint32_t i) const {
    const Role& role = roles_[i];
    const bool computed = !role.is_load && !role.is_reduction && role.inline_reads.empty();
    if (!computed || level_.storage[i] != Storage::kShared || count(role.loops) <= 1) return false;
    if (!feeds_mma(i)) return false;
    if (finished_) return kernel_.computations[i].storage == Storage::kReg;
    return std::all_of(role.users.begin(), role.users.end(), [&](uint32_t user) {
      return reads_apart(user, i) && made_along(i, widest(roles_[user].contraction->k));
    });
  }

  // Whether warps read whole atoms of the operand `i` and no two the same.
  bool reads_apart(uint32_t user, uint32_t i) const {
    const auto& c = roles_[user].contraction;
    if (!c || !level_.mma[user].use || level_.mma[user].warpgroup) return false;
    const AxisSet others = c->left == i ? c->n : c->m;
    double steps = static_cast<double>(extents_[widest(c->k)]) / kAtomK;
    for (const WarpSplit& split : level_.splits[user]) {
      if (others.has(split.factor)) return false;
      if (split.factor == widest(c->k)) steps /= split.count;
    }
    return steps == std::floor(steps);
  }

  // Whether the whole tiles that `i` is computed from are loads in shared memory with rows along k.
  bool made_along(uint32_t i, AxisId k) const {
    for (uint32_t j = 0; j < roles_.size(); ++j) {
      const std::vector<uint32_t>& users = roles_[j].users;
      if (std::find(users.begin(), users.end(), i) == users.end()) continue;
      if (!(roles_[j].tile == roles_[i].tile)) continue;
      if (!roles_[j].is_load || level_.storage[j] != Storage::kShared) return false;
      if (!roles_[j].row.has(k)) return false;
    }
    return true;
  }

  AxisSet m_side(uint32_t i) const { return rows_of(i); }
  AxisSet n_side(uint32_t i) const {
    const Contraction& c = *roles_[i].contraction;
    return level_.mma[i].swap ? c.m : c.n;
  }

  // All warps along whole groups of rows, and tiles that the instruction can address
  // (core/schedule/plan_mma.cpp).
  bool suits_warpgroup(uint32_t i) const {
    if (!machine_.warpgroups || level_.warps % kGroupWarps != 0) return false;
    const Contraction& c = *roles_[i].contraction;
    for (uint32_t operand : {c.left, c.right}) {
      if (bytes(level_.dtype[operand]) != 2) return false;
    }
    const AxisSet axes[] = {m_side(i), n_side(i), c.k};
    for (AxisSet side : axes) {
      if (side.empty()) return false;
      const int64_t extent = extents_[widest(side)];
      if (count(side) != static_cast<double>(extent)) return false;  // of several axes
      if (extent != 16 && extent != 32 && extent % 64 != 0) return false;
    }
    const double rows = count(axes[0]);
    return std::fmod(rows, kAtomM * level_.warps) == 0 && count(axes[1]) >= kGroupColumns;
  }

  // The factor with the most values, over which warps are laid.
  AxisId widest(AxisSet factors) const {
    AxisId best = *factors.begin();
    for (AxisId f : factors) {
      if (extents_[f] > extents_[best]) best = f;
    }
    return best;
  }

  void split(uint32_t i, bool chained, std::vector<WarpSplit>& out) const {
    const auto& c = *roles_[i].contraction;
    const bool swap = level_.mma[i].swap;
    const AxisSet m = swap ? c.n : c.m, n = swap ? c.m : c.n;
    int left = level_.warps;
    const auto lay = [&](AxisSet axes, double pieces) {
      if (axes.empty() || left == 1) return;
      const int share = std::min(left, floor_power(std::max(1.0, pieces)));
      if (share == 1) return;
      const AxisId factor = widest(axes);
      const auto same = [&](const WarpSplit& o) { return o.factor == factor; };
      const auto it = std::find_if(out.begin(), out.end(), same);
      if (it == out.end()) {
        out.push_back({factor, share});
      } else {
        it->count *= share;
      }
      left /= share;
    };
    const double mt = std::ceil(count(m) / kAtomM), nt = std::ceil(count(n) / kAtomN);
    if (chained || mt * nt >= 4.0 * left) {
      lay(m, chained ? mt : std::min(mt, std::max(1.0, left / 2.0)));
      lay(n, nt / 2);
      lay(m, mt);
    } else {
      lay(c.k, std::ceil(count(c.k) / kAtomK));
      lay(m, mt);
      lay(n, nt);
    }
  }

  const Kernel& kernel_;
  const std::vector<Role>& roles_;
  const std::vector<int64_t>& extents_;
  const Machine& machine_;
  int warp_choice_;
  bool finished_;  // its atoms are chosen already
  ThreadLevel& level_;
};

}  // namespace

void choose_thread_level(const Kernel& kernel, const std::vector<Role>& roles,
                         const std::vector<int64_t>& extents, const Machine& machine,
                         int warp_choice, ThreadLevel& out) {
  Chooser(kernel, roles, extents, machine, warp_choice, out).run();
}

ThreadLevel choose_thread_level(const Kernel& kernel, const std::vector<Role>& roles,
                                const std::vector<int64_t>& extents, const Machine& machine,
                                int warp_choice) {
  ThreadLevel level;
  choose_thread_level(kernel, roles, extents, machine, warp_choice, level);
  return level;
}

void apply(const ThreadLevel& level, Kernel& kernel) {
  kernel.warps = level.warps;
  for (size_t i = 0; i < kernel.computations.size(); ++i) {
    Computation& c = kernel.computations[i];
    c.storage = level.storage[i];
    c.dtype = level.dtype[i];
    c.mma = !level.mma[i].use        ? MmaAtom::kNoAtom
            : level.mma[i].warpgroup ? MmaAtom::kM64N8K16
                                     : MmaAtom::kM16N8K16;
    c.mma_swap = level.mma[i].use && level.mma[i].swap;
  }
}

}  // namespace sundog::search
